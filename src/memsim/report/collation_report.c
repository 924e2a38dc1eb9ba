/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/collation_report.h"

#include "common/base/json_add.h"
#include "memsim/cluster/collate.h"
#include "memsim/report/text_columns.h"

#define SHOWN 8

void collation_text_write(const struct result *result, FILE *out)
{
    const struct collation *c = result->collation;

    if (!c || !c->count)
        return;
    fputs("  the ranks do not call the same collectives; on a cluster:\n",
          out);
    for (size_t i = 0; i < c->count && i < SHOWN; i++)
        text_write_wrapped(out, "   ", c->faults[i].text);
    if (c->count + c->dropped > SHOWN)
        fprintf(out, "    and %zu more; --json has %zu of them\n",
                c->count + c->dropped - SHOWN, c->count);
}

void collation_json_add(cJSON *root, const struct result *result)
{
    const struct collation *c = result->collation;

    if (!c || !c->count)
        return;
    cJSON *list = cJSON_AddArrayToObject(root, "collective_faults");
    for (size_t i = 0; i < c->count; i++) {
        cJSON *fault = json_add_object(list);
        cJSON_AddStringToObject(fault, "fault",
                                comm_fault_name(c->faults[i].fault));
        json_add_uint(fault, "rank", c->faults[i].rank);
        json_add_uint(fault, "other_rank", c->faults[i].other_rank);
        json_add_uint(fault, "sequence", c->faults[i].sequence);
        cJSON_AddStringToObject(fault, "text", c->faults[i].text);
    }
    if (c->dropped)
        json_add_uint(root, "collective_faults_dropped", c->dropped);
}
