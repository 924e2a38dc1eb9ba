/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/step.h"
#include "common/trace/trace_read.h"

int step_list_read(struct step_list *list, struct trace_reader *reader,
                   struct err *err)
{
    struct step_finder *f = step_finder_create();
    struct trace_item item;
    int rc;

    while ((rc = trace_reader_next(reader, &item, err)) > 0)
        step_finder_take(f, &item);
    step_finder_conclude(f, list);
    if (rc)
        step_list_fini(list);
    return rc;
}
