/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/step_mark.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/kept.h"
#include "common/trace/step.h"

static char text[256]; /* of the call that has not ended; "": none */

/* A domain that no range of the program has. */
static uint64_t domain(void)
{
    return memsim_name(STEP_MARK_TEXT);
}

static void mark_record(void)
{
    if (text[0])
        RECORD_TEXT(RANGE_PUSH, text, strlen(text), .domain = domain());
}

void memsim_step_mark(const char *name)
{
    text[0] = '\0';
    if (name)
        kept_round();
    if (name)
        snprintf(text, sizeof text, STEP_MARK_TEXT "%s", name);
    else
        RECORD(RANGE_POP, .domain = domain());
    mark_record();
}

static struct process_hook hook = {.at_open = mark_record};

__attribute__((constructor)) static void mark_hook(void)
{
    process_hook_add(&hook);
}
