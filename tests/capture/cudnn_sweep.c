/* SPDX-License-Identifier: Apache-2.0
 * The workspaces of the convolutions of 60 networks, as PyTorch asks for them:
 * the first plan that the heuristics offer and that can be made
 * (tools/on-a-card/conformance). $MEMSIM_CONVOLUTIONS names the list,
 * data/conformance/convolutions.csv by default. */
#include <stdio.h>
#include <time.h>

#include "answers.h"
#include "check.h"
#include "cudnn_problem.h"

/* The columns of the list. */
enum { N, C, H, W, K, R, S, DOWN, STRIDE, PAD_H, PAD_W, DILATION, GROUPS, ALL };

#define SECONDS 100 /* of the 3 minutes of all programs */

static int64_t out_size(const int64_t *t, int size, int filter, int stride,
                        int pad)
{
    int64_t reach = t[DILATION] * (t[filter] - 1) + 1;

    return (t[size] + 2 * t[pad] - reach) / t[stride] + 1;
}

static struct problem problem_of(const int64_t *t)
{
    return (struct problem){
        .x = {t[N], t[C], t[H], t[W]},
        .w = {t[K], t[C] / t[GROUPS], t[R], t[S]},
        .y = {t[N], t[K], out_size(t, H, R, DOWN, PAD_H),
              out_size(t, W, S, STRIDE, PAD_W)},
        .stride = t[STRIDE],
        .down = t[DOWN],
        .pads = {t[PAD_H], t[PAD_W]},
        .dilation = t[DILATION],
    };
}

/* The workspace of P's first plan that can be made; -1: there is none. */
static int64_t first_workspace(const struct problem *p)
{
    cudnnBackendDescriptor_t found[4], graph = convolution_graph(p);
    int64_t count = configurations(graph, found), bytes = -1;

    for (int i = 0; i < count; i++) {
        cudnnBackendDescriptor_t plan =
            make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

        set_part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, found[i]);
        if (bytes < 0 && !cudnnBackendFinalize(plan))
            bytes = number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        CHECK(!cudnnBackendDestroyDescriptor(plan));
        CHECK(!cudnnBackendDestroyDescriptor(found[i]));
    }
    CHECK(!cudnnBackendDestroyDescriptor(graph));
    return bytes;
}

/* In both types and layouts, and all three directions. */
static void convolution_ask(struct problem p, const char *name)
{
    static const char *const directions[] = {"conv", "conv data",
                                             "conv filter"};

    for (int i = 0; i < 12; i++) {
        p.kind = i / 4;
        p.type = i % 2 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
        p.channels_last = i / 2 % 2;
        answer(first_workspace(&p), "workspace of plan, %s %s %s %s",
               directions[p.kind], i % 2 ? "bf16" : "fp32",
               p.channels_last ? "NHWC" : "NCHW", name);
    }
}

/* The numbers of LINE, to T, and its text; false where it is none. */
static bool line_read(char *line, int64_t t[ALL])
{
    char *at = line, *end = line;

    for (int i = 0; i < ALL; i++, at = end + 1) {
        t[i] = strtoll(at, &end, 10);
        if (end == at || *end != ',')
            return false;
    }
    *end = '\0'; /* how many networks have it */
    return true;
}

TEST(workspaces_of_networks)
{
    const char *path = getenv("MEMSIM_CONVOLUTIONS");
    FILE *file =
        fopen(path ? path : "data/conformance/convolutions.csv", "r");
    time_t end = time(NULL) + SECONDS;
    int64_t t[ALL];
    char line[256];
    int asked = 0;

    if (!file)
        SKIP("no data/conformance/convolutions.csv: set MEMSIM_CONVOLUTIONS");
    while (fgets(line, sizeof line, file) && time(NULL) < end)
        if (line_read(line, t)) {
            convolution_ask(problem_of(t), line);
            asked++;
        }
    fclose(file);
    fprintf(stderr, "%d shapes\n", asked);
    CHECK(asked > 500);
}
