/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_what_if.h"

#include <stdlib.h>

#include "memsim/report/text/time_report.h"
#include "memsim/time/time_log.h"

/* Device time of a step's forward of the lists that C puts under
 * checkpointing; 0: not known. */
static double forward_ns(const struct timing *t, const struct changed *c)
{
    char *names = change_lists_text(&c->change, &c->from);
    double ns = names ? time_forward_ns(t, names) : 0;

    free(names);
    return ns;
}

static void note_step(struct result *r, const struct timing *t,
                      const struct changed *c)
{
    const char *unknown = change_time_unknown(&c->change);
    bool waits = time_waits_for_cpu(t);
    double step = (double)(waits ? t->keeps_up_ns : timing_step_ns(t));
    double more = forward_ns(t, c);
    char before[32], added[32], after[32];

    time_format_ns(step, before, sizeof before);
    time_format_ns(more, added, sizeof added);
    time_format_ns(step + more, after, sizeof after);
    if (!unknown && more > 0)
        result_note(r,
                    "a step takes about %s%s: %s as recorded, and %s for the "
                    "forward that checkpointing runs again",
                    after, waits ? " with a CPU that keeps up" : "", before,
                    added);
    else
        result_note(r,
                    "what a step takes is not known: %s. As recorded it takes "
                    "%s%s; `memsim run' of the changed script tells",
                    unknown ? unknown
                            : "checkpointing runs the forward of these modules "
                              "again",
                    before, waits ? " with a CPU that keeps up" : "");
}

void replay_what_if_time(struct result *result, const struct changed *changed)
{
    const struct timing *t = time_slowest(result);

    if (t)
        note_step(result, t, changed);
    for (size_t i = 0; i < result->rank_count; i++) {
        timing_destroy(result->ranks[i].timing);
        result->ranks[i].timing = NULL;
        time_log_destroy(result->ranks[i].step);
        result->ranks[i].step = NULL;
    }
}
