/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock.h"

const struct clock_source *clock_source;

uint64_t memsim_clock_now(void)
{
    return clock_now();
}

uint64_t memsim_clock_unix(void)
{
    return clock_now() + clock_host(CLOCK_REALTIME) -
           clock_host(CLOCK_MONOTONIC);
}
