/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/step_mark.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/cpu_look.h"
#include "capture/core/torch/kept.h"
#include "common/trace/episode.h"
#include "common/trace/step.h"

/* A range of a domain that no range of the program has. */
struct own_range {
    const char *start; /* of its text */
    char text[256];    /* of the one that has not ended; "": none */
};

static struct own_range step = {.start = STEP_MARK_TEXT},
                        episode = {.start = EPISODE_TEXT};

static void range_record(const struct own_range *r)
{
    if (r->text[0])
        RECORD_TEXT(RANGE_PUSH, r->text, strlen(r->text),
                    .domain = memsim_name(r->start));
}

/* NAME NULL: it ends. */
static void range_change(struct own_range *r, const char *name)
{
    r->text[0] = '\0';
    if (name)
        snprintf(r->text, sizeof r->text, "%s%s", r->start, name);
    else
        RECORD(RANGE_POP, .domain = memsim_name(r->start));
    range_record(r);
}

void memsim_step_mark(const char *name)
{
    if (name) {
        kept_restart(KEPT_MARK);
        kept_round();
        cpu_look_round();
    }
    range_change(&step, name);
}

void memsim_episode(const char *name)
{
    range_change(&episode, name);
}

static void ranges_record(void)
{
    range_record(&step);
    range_record(&episode);
}

static struct process_hook hook = {.at_open = ranges_record};

__attribute__((constructor)) static void mark_hook(void)
{
    process_hook_add(&hook);
}
