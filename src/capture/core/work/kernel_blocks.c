/* SPDX-License-Identifier: Apache-2.0
 * What kernels of whose arguments only the sizes are known, Triton's and
 * programs' own, can reach: the live blocks that their arguments point into,
 * from there on. */
#include <string.h>

#include "capture/core/memory/blocks.h"
#include "capture/core/memory/values.h"
#include "capture/core/work/graph_steps.h"
#include "capture/core/work/kernel.h"

#define PARTS_MAX 32 /* of one launch; more are not counted */

struct found {
    struct part {
        uint64_t address, end, block;
    } parts[PARTS_MAX]; /* by address */
    uint32_t count;
};

/* At most BYTES from ADDRESS on, and nothing behind the block's end. */
static void part_add(struct found *found, uint64_t address, uint64_t bytes)
{
    struct block block;
    uint32_t at = found->count;

    if (!address || !bytes || at == PARTS_MAX || !blocks_find(address, &block))
        return;
    uint64_t left = block.address + block.bytes - address;
    for (; at && found->parts[at - 1].address > address; at--)
        found->parts[at] = found->parts[at - 1];
    found->parts[at] =
        (struct part){.address = address,
                      .end = address + (bytes < left ? bytes : left),
                      .block = block.address};
    found->count++;
}

/* The bytes of all parts, each counted once, and their blocks. */
static void parts_sum(const struct found *found, uint64_t words[2])
{
    uint64_t end = 0, block = 0;

    words[0] = words[1] = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct part *part = &found->parts[i];
        uint64_t from = part->address > end ? part->address : end;

        words[1] += part->block != block;
        block = part->block;
        if (part->end <= from)
            continue;
        words[0] += part->end - from;
        end = part->end;
    }
}

/* What LAUNCH can reach through argument I, at most. */
static uint64_t argument_reach(const struct kernel *kernel, uint32_t i,
                               const struct kernel_launch *launch)
{
    const uint32_t *grid = launch->grid;
    uint64_t bytes, programs = (uint64_t)grid[0] * grid[1] * grid[2];

    if (i >= kernel->reach_count)
        return REACH_UNLIMITED;
    if (__builtin_mul_overflow(kernel->reaches[i].program, programs, &bytes))
        bytes = REACH_UNLIMITED;
    return bytes < kernel->reaches[i].all ? bytes : kernel->reaches[i].all;
}

bool kernel_blocks_read(const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        uint64_t words[TRACE_LAUNCH_WORDS])
{
    struct found found = {.count = 0};

    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const char *argument = launch->arguments[i];
        uint64_t word, bytes = argument_reach(kernel, i, launch);

        for (uint32_t at = 0; at + sizeof word <= kernel->parameter_bytes[i];
             at += sizeof word) {
            memcpy(&word, argument + at, sizeof word);
            part_add(&found, word, bytes);
        }
    }
    parts_sum(&found, words);
    return found.count;
}

/* Calls EACH with the blocks that the arguments of MASK point into. */
static void blocks_each(const struct kernel *kernel,
                        const struct kernel_launch *launch, uint64_t mask,
                        void (*each)(void *context, const struct block *block),
                        void *context)
{
    struct block block;
    uint64_t word;

    for (uint32_t i = 0; i < kernel->parameter_count && i < 64; i++) {
        const char *argument = launch->arguments[i];

        for (uint32_t at = 0;
             mask >> i & 1 && at + sizeof word <= kernel->parameter_bytes[i];
             at += sizeof word) {
            memcpy(&word, argument + at, sizeof word);
            if (blocks_find(word, &block))
                each(context, &block);
        }
    }
}

static void block_forget(void *context, const struct block *block)
{
    (void)context;
    memsim_values_forget(block->address, block->bytes);
}

static void block_doubt(void *context, const struct block *block)
{
    (void)context;
    values_forget_made(block->address, block->bytes);
}

static void block_step(void *context, const struct block *block)
{
    graph_steps_add(context, STEP_FORGET,
                    (const uint64_t[STEP_WORDS]){block->address, block->bytes});
}

/* Calls EACH with what lies from the pointers of KERNEL, one of PyTorch's that
 * stores to them, to the ends of their blocks. */
static void stores_each(const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        void (*each)(void *context, const struct block *block),
                        void *context)
{
    for (uint64_t left = kernel->written; left; left &= left - 1) {
        struct block block;
        uint64_t address;

        memcpy(&address, launch->arguments[__builtin_ctzll(left)],
               sizeof address);
        if (!values_may_hold(address) || !blocks_find(address, &block))
            continue;
        block.bytes -= address - block.address;
        block.address = address;
        each(context, &block);
    }
}

void kernel_blocks_write(const struct kernel *kernel,
                         const struct kernel_launch *launch)
{
    if (kernel->writes == KERNEL_STORES)
        stores_each(kernel, launch, block_forget, NULL);
    else if (kernel->writes == KERNEL_WRITES)
        blocks_each(kernel, launch, kernel->written, block_forget, NULL);
    else
        blocks_each(kernel, launch, ~UINT64_C(0), block_doubt, NULL);
}

void kernel_blocks_step(struct graph_steps *steps, const struct kernel *kernel,
                        const struct kernel_launch *launch)
{
    if (kernel->writes == KERNEL_WRITES)
        blocks_each(kernel, launch, kernel->written, block_step, steps);
}
