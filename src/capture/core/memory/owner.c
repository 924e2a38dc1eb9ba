/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/owner.h"

static bool (*owners[OWNER_COUNT])(uint64_t address);

void owner_set(enum owner owner, bool (*owns)(uint64_t address))
{
    owners[owner] = owns;
}

bool owner_has(enum owner owner, uint64_t address)
{
    return owners[owner] && owners[owner](address);
}
