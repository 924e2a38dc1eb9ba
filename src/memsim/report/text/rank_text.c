/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/rank_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 50 /* of the list; --json has all of it */

/* "ranks 0 to 3", followed by EACH, or by OF and their number. */
static void names_write(const struct rank_set *members, const char *each,
                        const char *of, FILE *out)
{
    const struct range *first = members->ranges;
    char *list = rank_set_text(members);
    bool all = strlen(list) <= COLUMNS;

    if (members->range_count == 1 && first->stride == 1)
        fprintf(out, "ranks %" PRIu32 " to %" PRIu32 "%s", first->first,
                range_at(first, first->count - 1), each);
    else
        fprintf(out, "ranks %.*s%s%s%" PRIu32, COLUMNS, list, all ? "" : "...",
                of, members->count);
    free(list);
}

void rank_text_write(const struct rank_set *members, FILE *out)
{
    char *list = rank_set_text(members);

    if (members->count < 2)
        fprintf(out, "rank %s", list);
    else
        names_write(members, ", each", ", each of ", out);
    free(list);
}

void rank_text_write_near(const struct rank_set *members, unsigned shown,
                          FILE *out)
{
    names_write(members, "", ", of ", out);
    fprintf(out, ", nearly equal; of these rank %u", shown);
}
