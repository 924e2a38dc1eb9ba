/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/host_read.h"

#include "capture/core/compute/assumption.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/tag_operator.h"
#include "capture/core/memory/values.h"

/* Above so many bytes four stand for the first of them. */
#define EACH_BYTES (UINT64_C(64) << 10)

/* What a copy of PyTorch's says of its type where no kernel did: one double is
 * rare, one int64_t (.item()) is not, and one byte is a flag. */
static bool is_single(uint64_t bytes)
{
    return (bytes == 8 || bytes == 1) && operator_outermost();
}

/* How many of BYTES at SOURCE are of integers and flags and not known. */
static uint64_t unknown_bytes(uint64_t source, uint64_t bytes)
{
    const struct values_window *w = values_window(source);
    uint64_t at = w ? source - w->base : 0, unknown = 0;

    if (!w || bytes > VALUES_COPY_BYTES || bytes > w->bytes - at)
        return 0;
    uint64_t step = bytes > EACH_BYTES ? 4 : 1;
    if (values_some(w, at, bytes))
        for (uint64_t i = 0; i < bytes; i += step)
            unknown += values_known_at(w, at + i) == VALUES_COUNTS ? step : 0;
    if (unknown || values_known(source, bytes))
        return unknown;
    return is_single(bytes) ? bytes : 0;
}

void reading_check(uint64_t source, uint64_t bytes, int device, uint64_t stream)
{
    uint64_t unknown = unknown_bytes(source, bytes);
    uint64_t unit = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;

    if (!unknown)
        return;
    const struct guess guess = {.name = memsim_name("a copy to the host"),
                                .asker = operator_outermost(),
                                .device = (uint64_t)device,
                                .stream = stream,
                                .elements = bytes / unit,
                                .chosen = (unknown + unit - 1) / unit};
    memsim_guess(&guess,
                 "integers or flags that the program reads are not known: "
                 "taken to be what follows from zeros, of checks that nothing "
                 "is wrong; what it does then is a guess");
}
