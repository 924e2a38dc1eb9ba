/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/side.h"

int side_read(struct side *side, const char *path, struct err *err)
{
    if (records_read(&side->records, path, err))
        return -1;
    layer_marks_make(&side->marks, &side->records);
    return 0;
}

void side_fini(struct side *side)
{
    layer_marks_fini(&side->marks);
    records_fini(&side->records);
}

struct rewrite rewrite_of(struct records *r, const struct layer_marks *marks)
{
    return (struct rewrite){.records = r,
                            .record_count = r->count,
                            .ops = marks->ops,
                            .op_count = marks->count};
}
