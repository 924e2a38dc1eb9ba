/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/rank_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 50 /* of the list; --json has all of it */

void rank_text_write(const struct rank_set *members, FILE *out)
{
    const struct range *first = members->ranges;
    char *list = rank_set_text(members);
    bool all = strlen(list) <= COLUMNS;

    if (members->count < 2)
        fprintf(out, "rank %s", list);
    else if (members->range_count == 1 && first->stride == 1)
        fprintf(out, "ranks %" PRIu32 " to %" PRIu32 ", each", first->first,
                range_at(first, first->count - 1));
    else
        fprintf(out, "ranks %.*s%s, each of %" PRIu32, COLUMNS, list,
                all ? "" : "...", members->count);
    free(list);
}
