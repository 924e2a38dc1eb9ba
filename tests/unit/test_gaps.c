/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/gaps.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memsim/attribution/attribute.h"

/* The note on a run with the phases of WORDS: f, b, o; NULL: none. */
static const char *note_on(const char *words, enum verdict verdict)
{
    static char text[256];
    struct attribution_phase phases[16] = {{0}};
    struct attribution a = {.phases = phases};
    struct result_device device = {.attribution = &a};
    struct result_rank rank = {.devices = &device, .device_count = 1};
    struct result r = {.verdict = verdict, .ranks = &rank, .rank_count = 1};

    for (; words[a.phase_count]; a.phase_count++)
        phases[a.phase_count].phase =
            words[a.phase_count] == 'f'   ? TRACE_PHASE_FORWARD
            : words[a.phase_count] == 'b' ? TRACE_PHASE_BACKWARD
                                          : TRACE_PHASE_OPTIMIZER;
    gaps_note(&r);
    if (!r.note_count)
        return NULL;
    CHECK_UINT(r.note_count, 1);
    snprintf(text, sizeof text, "%s", r.notes[0]);
    free(r.notes[0]);
    free(r.notes);
    return text;
}

TEST(what_did_not_happen_is_named)
{
    CHECK(strstr(note_on("f", VERDICT_FITS), "no backward pass"));
    CHECK(strstr(note_on("fbfb", VERDICT_FITS), "no optimizer step"));
    CHECK(strstr(note_on("fbo", VERDICT_FITS), "the first optimizer step"));
    CHECK(strstr(note_on("fbo", VERDICT_HOST), "the first optimizer step"));
}

TEST(what_happened_is_not)
{
    CHECK(!note_on("fbofbo", VERDICT_FITS));
    CHECK(!note_on("fbof", VERDICT_FITS)); /* the evaluation after it */
    CHECK(!note_on("", VERDICT_FITS));     /* no module was called */
    CHECK(!note_on("f", VERDICT_OOM));
}
