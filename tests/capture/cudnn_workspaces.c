/* SPDX-License-Identifier: Apache-2.0
 * Workspaces of convolutions that an H200 with cuDNN 9.19 asked for, against
 * data/workspaces/cudnn.csv. The tests' GPU, an H100, has the same SMs. */
#include <stdio.h>
#include <string.h>

#include "cudnn_problem.h"

/* The columns of conv-workspaces.csv that say a problem, in order. */
enum column {
    JOB,
    OPERATION,
    TYPE,
    LAYOUT,
    GROUPS,
    N,
    C,
    H,
    W,
    K,
    R,
    S,
    P,
    Q,
    PAD,
    STRIDE,
    DILATION,
    X_BYTES,
    W_BYTES,
    Y_BYTES,
    ENGINE,
    KNOBS,
    CONFIGS,
    WORKSPACE,
    COLUMNS,
};

struct counts {
    int all, near, equal; /* near: up to 512 bytes */
};

static int columns_split(char *line, char *columns[COLUMNS])
{
    int count = 0;

    while (line && count < COLUMNS)
        columns[count++] = strsep(&line, ",");
    return count;
}

static int64_t column_number(char *const *columns, enum column column)
{
    return strtoll(columns[column], NULL, 10);
}

static int kind_of(const char *operation)
{
    return !strcmp(operation, "wgrad") ? 2 : !strcmp(operation, "dgrad");
}

static struct problem problem_read(char *const *t)
{
    int64_t n = column_number(t, N), c = column_number(t, C);
    int64_t k = column_number(t, K);
    bool is_depthwise = !strcmp(t[GROUPS], "depthwise");

    return (struct problem){
        .type = strcmp(t[TYPE], "fp32") ? CUDNN_DATA_BFLOAT16
                                        : CUDNN_DATA_FLOAT,
        .x = {n, c, column_number(t, H), column_number(t, W)},
        .w = {k, is_depthwise ? 1 : c, column_number(t, R),
              column_number(t, S)},
        .y = {n, k, column_number(t, P), column_number(t, Q)},
        .stride = column_number(t, STRIDE),
        .channels_last = !strcmp(t[LAYOUT], "nhwc"),
        .kind = kind_of(t[OPERATION]),
    };
}

static int64_t blocks(int64_t bytes)
{
    return (bytes + 511) / 512;
}

static void row_count(char *line, struct counts *counts)
{
    char *columns[COLUMNS] = {0};
    char text[512];

    snprintf(text, sizeof text, "%.100s", line);
    if (columns_split(line, columns) < COLUMNS)
        return;
    struct problem problem = problem_read(columns);
    int64_t real = column_number(columns, WORKSPACE);
    int64_t ours = workspace_of(&problem, 0);
    counts->all++;
    counts->equal += blocks(ours) == blocks(real);
    bool is_near = ours - real <= 512 && real - ours <= 512;
    counts->near += is_near;
    if (blocks(ours) != blocks(real))
        fprintf(stderr, "%s: %lld, ours %lld\n", text, (long long)real,
                (long long)ours);
}

/* wav2vec2's filters of one row, as that card's allocator was asked. */
TEST(sound_has_workspaces_of_its_own)
{
    need_capability(HOPPER, HOPPER, "sizes of Hopper");
    static const struct sound {
        int64_t c, width, k, taps, stride, groups, out;
        int64_t bytes[3]; /* by kind */
    } sounds[] = {
        {1, 80000, 512, 10, 5, 1, 15999, {141385744, 141385744, 143351952}},
        {512, 15999, 512, 3, 2, 1, 7999, {198164627, 198164627, 198164496}},
        {512, 3999, 512, 3, 2, 1, 1999, {50708496, 50708627, 50708496}},
        {512, 499, 512, 2, 2, 1, 249, {7176208, 7176339, 7176208}},
        {768, 249, 768, 128, 1, 16, 250, {196608, 7784576, 24952848}},
    };

    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++) {
        const struct sound *s = &sounds[i];
        struct problem p = {.type = CUDNN_DATA_BFLOAT16,
                            .x = {8, s->c, 1, s->width},
                            .w = {s->k, s->c / s->groups, 1, s->taps},
                            .y = {8, s->k, 1, s->out},
                            .stride = s->stride};
        for (p.kind = 0; p.kind < 3; p.kind++)
            CHECK_UINT((uint64_t)workspace_of(&p, 0),
                       (uint64_t)s->bytes[p.kind]);
    }
}

TEST(workspaces_are_those_of_an_h200)
{
    need_capability(HOPPER, HOPPER, "sizes of Hopper");
    FILE *file = fopen(check_shared("gpu/h200/conv-workspaces.csv"), "r");
    struct counts counts = {0};
    char line[1024];

    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        if (*line != '#' && strncmp(line, "job,", 4))
            row_count(line, &counts);
    fclose(file);
    fprintf(stderr, "%d of %d up to 512 bytes, %d as blocks\n", counts.near,
            counts.all, counts.equal);
    CHECK(counts.all == 262);
    CHECK(counts.equal == 262);
}
