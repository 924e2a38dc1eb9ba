/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/carry.h"

#include <stddef.h>

const struct carry *carry;

_Thread_local uint64_t carry_launches = 1;

bool memsim_carries(void)
{
    return carry;
}
