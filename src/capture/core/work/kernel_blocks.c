/* SPDX-License-Identifier: Apache-2.0
 * What kernels of whose arguments only the sizes are known, Triton's and
 * programs' own, can reach: the live blocks that their arguments point into. */
#include <string.h>

#include "capture/core/memory/blocks.h"
#include "capture/core/work/kernel.h"

#define BLOCKS_MAX 32 /* blocks of one launch; more are not counted */

struct found {
    uint64_t addresses[BLOCKS_MAX], bytes;
    uint32_t count;
};

static void block_count(struct found *found, uint64_t address)
{
    struct block block;

    if (!address || found->count == BLOCKS_MAX || !blocks_find(address, &block))
        return;
    for (uint32_t i = 0; i < found->count; i++)
        if (found->addresses[i] == block.address)
            return;
    found->addresses[found->count++] = block.address;
    found->bytes += block.bytes;
}

bool kernel_blocks_read(const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        uint64_t words[TRACE_LAUNCH_WORDS])
{
    struct found found = {.count = 0};

    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const char *argument = launch->arguments[i];
        uint64_t word;

        for (uint32_t at = 0; at + sizeof word <= kernel->parameter_bytes[i];
             at += sizeof word) {
            memcpy(&word, argument + at, sizeof word);
            block_count(&found, word);
        }
    }
    words[0] = found.bytes;
    words[1] = found.count;
    return found.count;
}
