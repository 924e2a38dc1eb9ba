/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/carry.h"

#include <stddef.h>

const struct carry *carry;

bool memsim_carries(void)
{
    return carry;
}
