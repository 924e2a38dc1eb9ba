/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/collation_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/json_add.h"
#include "memsim/attribution/stack_text.h"
#include "memsim/collectives/collate.h"
#include "memsim/report/text/text_columns.h"

#define SHOWN  8
#define FRAMES 6 /* of a stack that are shown */

/* The frames of STACK, of RANK's call, that are the program's own, innermost
 * first; of a stack that has none, all of them. */
static void stack_write(FILE *out, uint32_t rank, const char *stack)
{
    char **frames;
    size_t count = stack_frames(stack, &frames), shown = 0, own = 0;

    for (size_t i = 0; i < count; i++)
        own += !stack_is_package(frames[i]);
    for (size_t i = count; i-- > 0;) {
        if ((own && stack_is_package(frames[i])) || shown == FRAMES)
            continue;
        if (shown++)
            fputs("               ", out);
        else
            fprintf(out, "      rank %-4" PRIu32, rank);
        text_write_end(out, frames[i], TEXT_COLUMNS - 15);
        fputc('\n', out);
    }
    stack_frames_free(frames, count);
}

static void stack_add(cJSON *fault, const char *name, const char *stack)
{
    char **frames;
    size_t count = stack_frames(stack, &frames);

    if (count)
        json_add_strings(fault, name, frames, count);
    stack_frames_free(frames, count);
}

/* What the faults of C are, of which the first one is the worst. */
static const char *heading_of(const struct result *result)
{
    enum comm_fault first = result->collation->faults[0].fault;

    if (result->endless && first == COMM_ENDED)
        return "a rank waits for one that has ended";
    if (result->endless && first == COMM_ENDLESS)
        return "ranks wait for each other";
    return "the ranks do not call the same collectives";
}

void collation_text_write(const struct result *result, FILE *out)
{
    const struct collation *c = result->collation;

    if (!c || !c->count)
        return;
    fprintf(out, "  %s; on a cluster:\n", heading_of(result));
    for (size_t i = 0; i < c->count && i < SHOWN; i++) {
        const struct collation_fault *fault = &c->faults[i];

        text_write_wrapped(out, "   ", fault->text);
        stack_write(out, fault->rank, fault->stack);
        stack_write(out, fault->other_rank, fault->other_stack);
    }
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
        if (c->faults[i].other_rank != COMM_NONE)
            json_add_uint(fault, "other_rank", c->faults[i].other_rank);
        json_add_uint(fault, "sequence", c->faults[i].sequence);
        cJSON_AddStringToObject(fault, "text", c->faults[i].text);
        stack_add(fault, "stack", c->faults[i].stack);
        stack_add(fault, "other_stack", c->faults[i].other_stack);
    }
    if (c->dropped)
        json_add_uint(root, "collective_faults_dropped", c->dropped);
}
