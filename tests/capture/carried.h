/* SPDX-License-Identifier: Apache-2.0
 * For tests of kernels that are carried out. */
#ifndef MEMSIM_TESTS_CARRIED_H
#define MEMSIM_TESTS_CARRIED_H

#include "capture/core/work/carry.h"
#include "check.h"

#pragma weak memsim_carries /* on a GPU there is none, and kernels run */

/* Skips the test in a build without them. */
static inline void need_carried(void)
{
    if (memsim_carries && !memsim_carries())
        SKIP("built with COMPUTE=0: no kernel is carried out");
}

#endif
