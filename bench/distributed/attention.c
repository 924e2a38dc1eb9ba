/* SPDX-License-Identifier: Apache-2.0
 * Prices causal attention in bf16. Reads lines of ID GPU BATCH HEADS LENGTH
 * HEAD_SIZE; writes ID and what a forward and a backward call take in ns, of
 * flash attention 2 and of cuDNN. */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_fit.h"
#include "kernels/work_internal.h"
#include "runtime/cost/cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t price(const struct gpu *gpu, const struct cost_image *image,
                      const struct work_attention_shape *shape, bool backward)
{
    struct work work = {
        .type = WORK_BF16, .source = WORK_EXACT, .element_bytes = 2};
    struct cost_gpu limits;
    struct cost_answer answer;

    work_attention_set(shape, backward, &work);
    cost_gpu_set(gpu, &limits);
    cost_price(image, &limits, &work, &answer);
    return answer.ns;
}

int main(void)
{
    static const enum work_attention kernels[] = {WORK_ATTENTION_FLASH2,
                                                  WORK_ATTENTION_CUDNN};
    char id[128], name[64];
    struct work_attention_shape s = {.causal = true};
    struct err err = {""};

    while (scanf("%127s %63s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, id,
                 name, &s.batch, &s.heads, &s.queries, &s.head_size) == 6) {
        struct gpu gpu;
        struct cost_image *image = NULL;
        if (!gpu_load(name, &gpu, &err))
            image = cost_fit_load(&gpu, NULL, &err);
        if (!image) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        s.kv_heads = s.heads;
        s.keys = s.queries;
        s.value_size = s.head_size;
        s.padded_head_size = (uint32_t)s.head_size;
        printf("%s", id);
        for (int i = 0; i < 4; i++) {
            s.kernel = kernels[i / 2];
            printf(" %" PRIu64, price(&gpu, image, &s, i % 2));
        }
        printf("\n");
        free(image);
    }
    return 0;
}
