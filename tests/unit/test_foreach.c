/* SPDX-License-Identifier: Apache-2.0
 * The lists that PyTorch's foreach kernels are given, in both layouts. */
#include "capture/core/work/foreach.c"
#include "check.h"

static struct session_process slot;

struct session_process *process_slot(void)
{
    return &slot;
}

/* TensorListMetadata<2> and TensorListScalarListMetadata<float, 1>, for 4 and
 * for 32 KiB of arguments. */
struct small {
    uint64_t addresses[2][64];
    int64_t numel[64];
    unsigned char tensor[320];
    int chunk[320];
};

struct large {
    uint64_t addresses[2][448];
    int64_t numel[448];
    uint16_t tensor[2240];
    int chunk[2240];
};

struct each {
    uint64_t addresses[672];
    int64_t numel[672];
    float scalars[672];
    uint16_t tensor[2240];
    int chunk[2240];
};

/* Three tensors, the last in two chunks, of which the first is this launch's;
 * what is not used is what a stack holds. */
#define FILL(lists)                                                            \
    do {                                                                       \
        memset(&(lists), 0x7f, sizeof(lists));                                 \
        for (int i = 0; i < 3; i++)                                            \
            (lists).numel[i] = 10 + i, (lists).tensor[i] = (unsigned char)i,   \
            (lists).chunk[i] = 0;                                              \
        (lists).numel[2] = 70000;                                              \
    } while (0)

static struct foreach_lists lists;

static bool read_lists(struct foreach_kind kind, void *data, uint32_t blocks)
{
    void *arguments[] = {data};
    const struct kernel_launch launch = {.grid = {blocks, 1, 1},
                                         .arguments = arguments};

    return foreach_read(&kind, &launch, &lists);
}

TEST(both_layouts_are_read)
{
    static struct small small;
    static struct large large;
    const struct foreach_kind two = {.depth = 2};

    FILL(small);
    CHECK(read_lists(two, &small, 3));
    CHECK_UINT(lists.room, 64);
    CHECK_UINT(lists.tensors, 3);
    CHECK(lists.numel[2] == 70000 && !lists.last_chunk);
    CHECK(lists.bytes == offsetof(struct small, chunk) + 3 * sizeof(int));
    FILL(large);
    CHECK(read_lists(two, &large, 3));
    CHECK_UINT(lists.room, 448);
    CHECK(lists.numel == large.numel);
}

TEST(scalars_lie_behind_the_numbers)
{
    static struct each each;

    FILL(each);
    CHECK(read_lists((struct foreach_kind){.depth = 1, .scalar_bytes = 4},
                     &each, 3));
    CHECK(lists.scalars == (const char *)each.scalars);
}

TEST(what_is_none_is_not_read)
{
    static struct large large;
    const struct foreach_kind two = {.depth = 2};

    FILL(large);
    CHECK(!read_lists(two, &large, 0));
    CHECK(!read_lists(two, &large, 2241));
    large.tensor[0] = 1;
    CHECK(!read_lists(two, &large, 3));
    FILL(large);
    large.numel[1] = 0;
    CHECK(!read_lists(two, &large, 3));
    FILL(large);
    large.chunk[2] = 2;
    CHECK(!read_lists(two, &large, 3));
}
