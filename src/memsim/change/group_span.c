/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/group_span.h"

#include <string.h>

#include "common/base/range.h"

#define ID_BYTES 24 /* before the ranges in the text of a communicator */

/* Over how many the group of RECORD reaches; 0: it does not say. */
static uint64_t span_of(const struct records *r, const struct record *record)
{
    const struct trace_communicator *c =
        (const struct trace_communicator *)records_fields(r, record);
    struct range range;

    if (c->ranges != 1 || record->text_bytes != ID_BYTES + sizeof range)
        return 0;
    memcpy(&range, records_text(r, record) + ID_BYTES, sizeof range);
    return range.stride > 0 ? (uint64_t)range.stride * range.count : 0;
}

uint32_t group_span(const struct records *r)
{
    uint64_t most = 1;

    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].kind == TRACE_COMMUNICATOR) {
            uint64_t span = span_of(r, &r->all[i]);
            most = span > most && span <= UINT32_MAX ? span : most;
        }
    return (uint32_t)most;
}
