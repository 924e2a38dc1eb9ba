/* SPDX-License-Identifier: Apache-2.0
 * What a price takes: the first time a shape is asked for, and again. */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_fit.h"
#include "runtime/cost/cost_memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SHAPES 300 /* of which a second word says fewer */
#define ROUNDS 2000 /* likewise a third one */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct work product(uint64_t m, uint64_t n, uint64_t k)
{
    double a = (double)(m * k), b = (double)(k * n), c = (double)(m * n);

    return (struct work){.family = WORK_GEMM,
                         .type = WORK_BF16,
                         .source = WORK_EXACT,
                         .element_bytes = 2,
                         .flops = 2 * a * (double)n,
                         .read_bytes = 2 * (a + b),
                         .written_bytes = 2 * c,
                         .gemm = {.m = m, .n = n, .k = k, .batch = 1}};
}

static int count_of(const char *word, int most)
{
    int count = word ? atoi(word) : most;

    return count >= 0 && count < most ? count : most;
}

int main(int argc, char **argv)
{
    int shapes = count_of(argc > 2 ? argv[2] : NULL, SHAPES);
    int rounds = count_of(argc > 3 ? argv[3] : NULL, ROUNDS);
    static struct cost_memo memo;
    static struct work works[SHAPES];
    struct gpu gpu;
    struct cost_gpu limits;
    struct cost_answer answer;
    struct err err = {""};
    uint64_t sum = 0;

    if (gpu_load(argc > 1 ? argv[1] : "h100-sxm-80gb", &gpu, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double start = now_ns();
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);
    double load = now_ns() - start;
    if (!image) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    cost_gpu_set(&gpu, &limits);
    for (int i = 0; i < SHAPES; i++)
        works[i] = product(512 + 64 * (i % 20), 768 + 128 * (i / 20), 1024);

    start = now_ns();
    for (int i = 0; i < shapes; i++) {
        cost_memo_price(&memo, image, &limits, &works[i], &answer);
        sum += answer.ns;
    }
    double first = (now_ns() - start) / shapes;
    start = now_ns();
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < shapes; i++) {
            cost_memo_price(&memo, image, &limits, &works[i], &answer);
            sum += answer.ns;
        }
    double again = (now_ns() - start) / shapes / rounds;
    printf("load %.1f ms, first price %.0f ns, again %.0f ns (%llu)\n",
           load / 1e6, first, again, (unsigned long long)sum);
    free(image);
    return 0;
}
