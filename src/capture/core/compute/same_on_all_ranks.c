/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/same_on_all_ranks.h"

#include "capture/core/compute/compute.h"

#define ALIKE_COUNT 4096 /* of more, nobody asks what they are */

void ranks_sum(uint64_t address, int wanted, uint64_t count, unsigned ranks)
{
    enum number_type type = (enum number_type)wanted;
    uint32_t bytes = number_bytes(type);
    long double value;

    if (!bytes || count > ALIKE_COUNT)
        return;
    for (uint64_t end = address + count * bytes; address < end;
         address += bytes)
        if (compute_load(type, address, &value))
            compute_store(type, address, value * ranks, true);
}
