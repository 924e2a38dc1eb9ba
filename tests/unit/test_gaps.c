/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/gaps.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memsim/attribution/attribute.h"

/* The note on a run with the phases of WORDS: f, b, o, which saved FILES; NULL:
 * none. */
static const char *note_of(const char *words, enum verdict verdict,
                           size_t files)
{
    static char text[256];
    struct attribution_phase phases[16] = {{0}};
    struct attribution a = {.phases = phases};
    struct result_device device = {.attribution = &a};
    struct result_rank rank = {.devices = &device, .device_count = 1};
    struct result r = {.verdict = verdict,
                       .ranks = &rank,
                       .rank_count = 1,
                       .file_count = files};

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

static const char *note_on(const char *words, enum verdict verdict)
{
    return note_of(words, verdict, 1);
}

TEST(a_training_without_a_checkpoint_is_named)
{
    CHECK(strstr(note_of("fbofbo", VERDICT_FITS, 0), "no checkpoint"));
    CHECK(!note_of("fbofbo", VERDICT_GROWS, 0));
    CHECK(!note_of("", VERDICT_FITS, 0));
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
