/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/delay_options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "playback/delay_library.h"

static int library_find(const char *path, struct delays *delays,
                        struct err *err)
{
    char absolute[PATH_MAX];

    if (!realpath(path, absolute))
        return err_set(err, "--delay-lib: %s: %s", path, strerror(errno));
    if (strlen(absolute) >= sizeof delays->library)
        return err_set(err, "--delay-lib: the path of %s is longer than %zu",
                       path, sizeof delays->library - 1);
    strcpy(delays->library, absolute);
    return 0;
}

int study_delay_read(const struct study_options *options, struct delays *delays,
                     struct err *err)
{
    *delays = (struct delays){.count = 0};
    if (options->delay && delays_parse(options->delay, delays, err))
        return -1;
    return options->delay_lib ? library_find(options->delay_lib, delays, err)
                              : 0;
}

int study_delay_open(const struct delays *table,
                     struct simulation_delays *delays, struct err *err)
{
    *delays = (struct simulation_delays){.table = table};
    return *table->library
               ? delay_library_open(table->library, &delays->library, err)
               : 0;
}

/* What entry WHICH did, on the rank that it delays most. */
static void note_entry(const struct delays *table, uint32_t which,
                       const struct timing_rank *timed, size_t count,
                       struct result *result)
{
    const struct delay *d = &table->all[which];
    uint64_t calls = 0, ns = 0;
    char text[160];

    if (d->kind == DELAY_DEATH)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct timing *t = &timed[i].timing;
        calls = t->delayed[which] > calls ? t->delayed[which] : calls;
        ns = t->delay_ns[which] > ns ? t->delay_ns[which] : ns;
    }
    delay_text(d, text, sizeof text);
    if (!calls)
        result_note(result,
                    "--delay %s: it delays nothing: there is no such %s on "
                    "the ranks and in the steps that it names",
                    text, d->kind == DELAY_HOST ? "step" : "operation");
    else
        result_note(result,
                    "--delay %s: on the rank that it delays most, %" PRIu64
                    " %s come later, by %.6g ms in all",
                    text, calls, d->kind == DELAY_HOST ? "steps" : "calls",
                    (double)ns / 1e6);
}

/* In a recording the others wait for it; a job that ran has failed by itself.
 */
static void note_death(const struct timing *t, struct result *result)
{
    if (!t->dead_rank)
        return;
    result_note_explained(result);
    result_note(result,
                "rank %u dies as step %u begins (--delay die=%u): the ranks "
                "that wait for it never go on",
                t->dead_rank - 1, t->dead_step, t->dead_step);
    if (result->exit_status)
        return;
    result->verdict = VERDICT_FAILED;
    result->exit_status = CMD_RUN_FAILED;
}

int study_delay_conclude(const struct delays *table,
                         const struct timing_rank *timed, size_t count,
                         struct result *result, struct err *err)
{
    const char *crash = delay_library_crash();
    uint64_t asked = 0;

    for (uint32_t i = 0; i < table->count; i++)
        note_entry(table, i, timed, count, result);
    for (size_t i = 0; i < count; i++) {
        note_death(&timed[i].timing, result);
        asked += timed[i].timing.library_calls;
    }
    if (*table->library)
        result_note(result,
                    "--delay-lib %s: it was asked about %" PRIu64 " calls",
                    table->library, asked);
    return crash ? err_set(err,
                           "--delay-lib: %s: %s; mend it, and build it "
                           "with -g to use a debugger",
                           table->library, crash)
                 : 0;
}
