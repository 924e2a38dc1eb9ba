/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/gradient_marks.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/trace/gradient.h"

bool gradient_mark_read(const struct records *r, size_t index,
                        struct gradient_mark *g)
{
    const struct record *record = &r->all[index];
    char text[64];

    if (record->kind != TRACE_MARK)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)record->text_bytes,
             records_text(r, record));
    g->mark = index;
    return sscanf(text, TRACE_GRADIENT "%" SCNu64 " %" SCNu64, &g->elements,
                  &g->each) == 2 &&
           g->elements && g->each && g->each <= 8;
}
