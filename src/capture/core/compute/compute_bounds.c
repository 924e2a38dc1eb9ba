/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute_bounds.h"

#include <stdio.h>
#include <string.h>

#include "capture/core/diagnose/fault.h"
#include "capture/core/work/stream.h"
#include "capture/core/memory/values.h"

#define CHECKED_MAX (UINT64_C(128) << 10) /* what a copy of 1 MiB can hold */

static bool doubt; /* foreign kernels ran: what is known may be out of date */

void compute_bounds_doubt(void)
{
    doubt = true;
}

/* What a program copied from the host is what the kernel finds, as long as only
 * PyTorch's kernels run. Else, or of what was computed here since, a kernel
 * that cannot be followed may have changed it: a note has to do. */
static void bounds_report(const struct compute_bounds *b,
                          const struct kernel_launch *launch, int64_t index,
                          bool certain)
{
    char text[96];
    int device;

    snprintf(text, sizeof text, "%s is %lld, of %lld %s", b->what,
             (long long)index, (long long)b->size, b->of);
    if (!certain)
        fault_suspect(text);
    else if (!memsim_stream_device(launch->stream, &device))
        fault_raise(device, CORE_ASSERT, text);
}

static int64_t index_at(enum number_type type, const char *from)
{
    int64_t wide;
    int32_t narrow;

    switch (type) {
    case NUMBER_I64:
        memcpy(&wide, from, sizeof wide);
        return wide;
    case NUMBER_I32:
        memcpy(&narrow, from, sizeof narrow);
        return narrow;
    default:
        return *(const unsigned char *)from;
    }
}

static bool is_within(const struct compute_bounds *b, int64_t index)
{
    return (index >= b->low && index < b->size) || index == b->ignore;
}

/* Of most indices it need not be asked whether they are known. */
static bool all_within(const struct compute_bounds *b, const char *from,
                       uint64_t count)
{
    const int64_t *index = (const int64_t *)from;
    bool within = b->type == NUMBER_I64;

    for (uint64_t i = 0; within && i < count; i++)
        within = is_within(b, index[i]);
    return within;
}

/* The first of COUNT indices, which lie at AT of W, that is known and out of
 * bounds; their end where none is. */
static uint64_t first_outside(const struct compute_bounds *b,
                              const struct values_window *w, uint64_t at,
                              uint64_t count)
{
    uint32_t bytes = number_bytes(b->type);
    const char *from = values_at(w, at, count * bytes);
    uint64_t i = all_within(b, from, count) ? count : 0;

    while (i < count && (is_within(b, index_at(b->type, from + i * bytes)) ||
                         !values_is_known(values_known_at(w, at + i * bytes))))
        i++;
    return at + i * bytes;
}

void compute_bounds_check(const struct compute_bounds *b,
                          const struct kernel_launch *launch, uint64_t address,
                          uint64_t count)
{
    const struct values_window *w = values_window(address);
    uint64_t at = w ? address - w->base : 0;
    uint64_t bytes = count * number_bytes(b->type);

    if (values_are_diverted()) {
        values_divert_whole();
        return;
    }
    if (!w || !bytes || count > CHECKED_MAX || bytes > w->bytes - at ||
        !values_some(w, at, bytes))
        return;
    uint64_t outside = first_outside(b, w, at, count);
    if (outside == at + bytes)
        return;
    bool given = values_known_at(w, outside) == VALUES_GIVEN;
    if (given || !doubt)
        bounds_report(b, launch,
                      index_at(b->type, values_at(w, outside, bytes / count)),
                      given && !doubt);
}
