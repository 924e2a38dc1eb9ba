/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/carry.h"

#include <stddef.h>

const struct carry *carry;

bool memsim_carries(void)
{
    return carry;
}

void memsim_carry_sum(uint64_t address, int type, uint64_t count,
                      unsigned ranks)
{
    if (carry)
        carry->sum(address, type, count, ranks);
}
