/* SPDX-License-Identifier: Apache-2.0
 * A registered clock is taken to go evenly between the two moments at which we
 * looked at it: when it was registered, and at the last flush. PyTorch's counts
 * the processor's cycles, which do not jump as the program's clock does; so
 * what PyTorch makes nanoseconds of them is ours (core/torch/profile_clock.h),
 * and takes nanoseconds since 1970 as they are. */
#include "capture/cupti/timestamp.h"

#include "capture/core/run/clock.h"
#include "capture/core/torch/profile_clock.h"

#define LEAST_NS 1000000 /* between the two moments */

static CUpti_TimestampCallbackFunc callback;
static struct moment {
    uint64_t unix_ns, time;
} begin, last;

static struct moment moment_now(void)
{
    struct moment m = {.time = callback()};

    m.unix_ns = memsim_clock_unix();
    return m;
}

void timestamp_register(CUpti_TimestampCallbackFunc function)
{
    callback = function && !memsim_profile_clock_is((const void *)function)
                   ? function
                   : NULL;
    if (callback)
        begin = last = moment_now();
}

void timestamp_look(void)
{
    if (callback)
        last = moment_now();
}

uint64_t timestamp_of(uint64_t unix_ns)
{
    double rate = 1;

    if (!callback)
        return unix_ns;
    if (last.unix_ns > begin.unix_ns + LEAST_NS)
        rate = (double)(last.time - begin.time) /
               (double)(last.unix_ns - begin.unix_ns);
    double passed = (double)(int64_t)(unix_ns - begin.unix_ns) * rate;
    return begin.time + (uint64_t)(int64_t)passed;
}

uint64_t timestamp_now(void)
{
    return callback ? callback() : memsim_clock_unix();
}
