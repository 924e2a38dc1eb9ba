/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/replay_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/status.h"
#include "memsim/report/text/ink.h"

#define SIZE           16
#define SEGMENTS_SHOWN 16
#define LINES_SHOWN    10
#define LINE_WIDTH     54
#define CONF_WIDTH     30 /* a longer setting has a line of its own */

static void add_oom(struct result_device *d, const struct replay_oom *o)
{
    /* An expandable segment is refused a small part of the request. */
    uint64_t wanted = o->refused_bytes > o->requested_bytes
                          ? o->refused_bytes
                          : o->requested_bytes;
    uint64_t missing = wanted > o->free_bytes ? wanted - o->free_bytes : 0;

    d->ooms = xreallocarray(d->ooms, d->oom_count + 1, sizeof *d->ooms);
    d->ooms[d->oom_count++] = (struct result_oom){
        .caught = o->caught,
        .torch = !o->other,
        .requested_bytes = o->requested_bytes,
        .free_bytes = o->free_bytes,
        .allocated_bytes = o->allocated_bytes,
        .unallocated_bytes = o->reserved_bytes - o->allocated_bytes,
        .missing_bytes = (missing + 2 * MIB - 1) / (2 * MIB) * (2 * MIB),
    };
}

static void add_device(struct result_rank *rank, const struct replay_device *d,
                       unsigned card)
{
    rank->devices = xreallocarray(rank->devices, rank->device_count + 1,
                                  sizeof *rank->devices);
    struct result_device *to = &rank->devices[rank->device_count++];
    *to = (struct result_device){
        .index = card,
        .card = card,
        .capacity_bytes = d->capacity_bytes,
        .peak_allocated_bytes = d->peak_allocated_bytes,
        .peak_reserved_bytes = d->peak_reserved_bytes,
        .peak_used_bytes = d->peak_used_bytes,
        .headroom_bytes = d->peak_used_bytes < d->capacity_bytes
                              ? d->capacity_bytes - d->peak_used_bytes
                              : 0,
    };
    for (size_t i = 0; i < d->oom_count; i++)
        add_oom(to, &d->ooms[i]);
}

static void add_rank(struct result *r, const struct recording *rec)
{
    const struct replay_result *played = &rec->whatif.rows[0].result;

    r->ranks = xreallocarray(r->ranks, r->rank_count + 1, sizeof *r->ranks);
    struct result_rank *rank = &r->ranks[r->rank_count++];
    *rank = (struct result_rank){.rank = rec->info.rank};
    snprintf(rank->program, sizeof rank->program, "%s", rec->info.program);
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        if (played->devices[i].used)
            add_device(rank, &played->devices[i],
                       rec->trace ? rec->info.devices[i].card : i);
}

static bool is_over(const struct result *r)
{
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if ((double)w.device->peak_used_bytes >
            r->fail_above_percent / 100 * (double)w.device->capacity_bytes)
            return true;
    return false;
}

/* The best of the rows asked for. Without --alloc-conf there is one. */
static enum whatif_outcome best_outcome(const struct whatif *w)
{
    enum whatif_outcome best = WHATIF_OOM;

    for (size_t i = 0; i < w->row_count; i++) {
        enum whatif_outcome outcome = whatif_outcome(w, &w->rows[i].result);

        if (w->rows[i].advised || best == WHATIF_FITS)
            continue;
        if (best == WHATIF_OOM || outcome == WHATIF_FITS)
            best = outcome;
    }
    return best;
}

static const char *why_unknown(const struct whatif *w)
{
    static const char *const endings[] = {
        [REPLAY_FAILED] = "the recording ends where its command failed",
        [REPLAY_KILLED] = "the recording ends where its process was killed",
        [REPLAY_LIMITED] = "the recording is cut short",
    };

    if (w->rows[0].result.ends_at_oom)
        return "the recording ends at an out-of-memory error";
    if (w->rows[0].result.changed_course)
        return "the recording went another way after an out-of-memory error";
    return endings[w->ending] ? endings[w->ending]
                              : "the recording is not of the whole job";
}

static void add_outcome(struct result *to, const struct whatif *w)
{
    enum whatif_outcome outcome = best_outcome(w);

    if (outcome == WHATIF_OOM) {
        to->verdict = VERDICT_OOM;
        to->exit_status = CMD_RUN_OOM;
    }
    if (outcome != WHATIF_UNKNOWN || to->verdict == VERDICT_OOM)
        return;
    to->verdict = VERDICT_UNKNOWN;
    to->exit_status = CMD_RUN_UNKNOWN;
    if (w->needs_bytes > to->needs_bytes || !to->why) {
        to->needs_bytes = w->needs_bytes;
        to->why = why_unknown(w);
    }
}

static void reach_verdict(struct replay_report *r)
{
    struct result *to = &r->result;

    for (size_t i = 0; i < r->count; i++)
        if (recording_is_used(&r->recordings[i]))
            add_outcome(to, &r->recordings[i].whatif);
    if (to->verdict == VERDICT_FITS && to->fail_above_percent && is_over(to)) {
        to->verdict = VERDICT_OVER_LIMIT;
        to->exit_status = CMD_RUN_OVER_LIMIT;
    }
}

static const char *size_text(uint64_t bytes, char *out)
{
    return units_format_bytes(bytes, out, SIZE);
}

static void add_notes(struct result *to, const struct recording *rec)
{
    const struct replay_plan *plan = &rec->plan;
    char size[SIZE];

    if (!plan->exact)
        result_note(to,
                    "%s: the replay departs from the recording, so take "
                    "the figures as estimates: %s",
                    rec->path, plan->difference);
    if (!rec->trace && !rec->snapshot_source.complete)
        result_note(to,
                    "%s: the history begins in the middle; what was there "
                    "before is taken from the segments",
                    rec->path);
    if (rec->snapshot.simulated)
        result_note(to, "%s: memsim made this snapshot, no GPU did", rec->path);
    if (rec->torch_assumed)
        result_note(to,
                    "%s: a snapshot does not name its torch; the rules are "
                    "those of %s, --torch says otherwise",
                    rec->path, rec->info.torch_version);
    else if (!rec->torch_known)
        result_note(to,
                    "%s: torch %s is newer than the rules known (%s); the "
                    "newest are used",
                    rec->path, rec->info.torch_version, alloc_rules_range());
    if (rec->kernels_differ)
        result_note(to,
                    "%s: recorded on %s; only one of the two GPUs has flash "
                    "attention and bfloat16: PyTorch uses other kernels on "
                    "it, with other memory; run the program with this GPU "
                    "to know",
                    rec->path, rec->info.gpu);
    if (rec->whatif.rows[0].result.plans_changed)
        result_note(
            to,
            "%s: %" PRIu64 " of the convolutions found no room for a "
            "workspace (up to %s); PyTorch goes on without, with plans that "
            "may be slower",
            rec->path, rec->whatif.rows[0].result.plans_changed,
            size_text(rec->whatif.rows[0].result.plan_bytes_most, size));
    if (rec->whatif.rows[0].result.changed_course &&
        !rec->whatif.rows[0].result.ends_at_oom)
        result_note(to,
                    "%s: a request that failed in the recording does not "
                    "fail here. The recorded program caught the error and "
                    "went on in another way; this one would not, and needs "
                    "at least what it had at that request",
                    rec->path);
}

/* What is said once of all recordings. */
static void note_all(struct result *to, const struct recording *recordings,
                     size_t count)
{
    uint64_t blocks = 0, workspace = 0;
    size_t exact = 0;
    char size[SIZE], of[48] = "";

    for (size_t i = 0; i < count; i++) {
        const struct recording *rec = &recordings[i];
        if (!rec->whatif.row_count)
            continue;
        if (rec->plan.exact) {
            exact++;
            blocks += rec->plan.blocks_checked;
        }
        if (rec->workspace_bytes)
            workspace = rec->workspace_bytes;
    }
    if (exact > 1)
        snprintf(of, sizeof of, " of %zu recordings", exact);
    if (exact)
        result_note(to,
                    "replayed as recorded: all %" PRIu64 " blocks%s lie at "
                    "their recorded address",
                    blocks, of);
    if (workspace)
        result_note(to,
                    "contexts, libraries and cuBLAS's workspaces (%s each) are "
                    "those of this GPU",
                    size_text(workspace, size));
}

/* Of the recordings, one that does not fit or that uses most. */
static const struct recording *find_worst(const struct replay_report *r)
{
    const struct recording *worst = NULL;
    uint64_t most = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct recording *rec = &r->recordings[i];
        uint64_t used;

        if (!rec->whatif.row_count)
            continue;
        used = whatif_peak_used(&rec->whatif.rows[0].result);
        if (!rec->whatif.rows[0].result.fits)
            return rec;
        if (!worst || used > most) {
            worst = rec;
            most = used;
        }
    }
    return worst;
}

void replay_report_init(struct replay_report *r,
                        const struct recording *recordings, size_t count,
                        const struct gpu *gpu, double fail_above_percent,
                        char *const *command)
{
    *r = (struct replay_report){.recordings = recordings, .count = count};
    r->result.command = command;
    r->result.finished = true;
    r->result.fail_above_percent = fail_above_percent;
    if (gpu)
        r->result.gpu = *gpu;
    for (size_t i = 0; i < count; i++) {
        if (!recordings[i].whatif.row_count)
            continue;
        add_rank(&r->result, &recordings[i]);
        add_notes(&r->result, &recordings[i]);
        snprintf(r->result.torch_version, sizeof r->result.torch_version, "%s",
                 recordings[i].info.torch_version);
        r->result.gpu.memory_bytes = recordings[i].whatif.config.total_bytes;
    }
    note_all(&r->result, recordings, count);
    reach_verdict(r);
    r->worst = find_worst(r);
}

void replay_report_fini(struct replay_report *r)
{
    result_fini(&r->result);
    replay_lines_fini(&r->lines);
}

static void text_row(const struct whatif *w, const struct whatif_row *row,
                     FILE *out)
{
    static const char *const outcomes[] = {[WHATIF_FITS] = "fits",
                                           [WHATIF_OOM] = "out of memory",
                                           [WHATIF_UNKNOWN] = "unknown"};
    char used[SIZE], reserved[SIZE], allocated[SIZE];
    uint64_t most[3] = {0};

    for (int i = 0; i < REPLAY_DEVICES; i++) {
        const struct replay_device *d = &row->result.devices[i];

        if (d->peak_used_bytes <= most[0])
            continue;
        most[0] = d->peak_used_bytes;
        most[1] = d->peak_reserved_bytes;
        most[2] = d->peak_allocated_bytes;
    }
    fprintf(out, "  %-13s %10s %10s %10s  %s%s\n",
            outcomes[whatif_outcome(w, &row->result)],
            size_text(most[0], used), size_text(most[1], reserved),
            size_text(most[2], allocated),
            strlen(row->conf) > CONF_WIDTH ? "\n    " : "",
            row->conf[0] ? row->conf : "(defaults)");
}

static void text_heading(const struct report_style *style, const char *words,
                         FILE *out)
{
    fprintf(out, "\n  %s%s%s\n", ink_code(INK_BOLD, style->color), words,
            ink_code(INK_PLAIN, style->color));
}

/* Settings that were not asked for, and of which none is better, are told on
 * request only. */
static bool rows_matter(const struct whatif *w)
{
    size_t asked = 0;

    for (size_t i = 0; i < w->row_count; i++)
        asked += !w->rows[i].advised;
    return asked > 1 || whatif_best(w);
}

static void text_rows(const struct whatif *w, const struct report_style *style,
                      FILE *out)
{
    if (w->row_count < 2 || (!style->verbose && !rows_matter(w)))
        return;
    text_heading(style, "with other settings of the allocator", out);
    fprintf(out, "  %-13s %10s %10s %10s  %s\n", "", "used", "reserved",
            "allocated", "PYTORCH_CUDA_ALLOC_CONF");
    for (size_t i = 0; i < w->row_count; i++)
        text_row(w, &w->rows[i], out);
}

static void text_advice(const struct whatif *w, FILE *out)
{
    const struct whatif_row *best = whatif_best(w);
    char now[SIZE], then[SIZE];

    if (!best)
        return;
    if (whatif_outcome(w, &w->rows[0].result) == WHATIF_OOM) {
        bool fits = whatif_outcome(w, &best->result) == WHATIF_FITS;

        fprintf(out, "  advice: %s with PYTORCH_CUDA_ALLOC_CONF=%s\n",
                fits ? "it fits" : "the recorded part fits", best->conf);
        return;
    }
    fprintf(out,
            "  advice: PYTORCH_CUDA_ALLOC_CONF=%s\n"
            "          takes the peak from %s to %s\n",
            best->conf, size_text(whatif_peak_used(&w->rows[0].result), now),
            size_text(whatif_peak_used(&best->result), then));
}

static void text_group(const struct fragments_group *g, FILE *out)
{
    char allocated[SIZE], cached[SIZE], largest[SIZE], pool[64] = "";

    if (g->pool.first || g->pool.second)
        snprintf(pool, sizeof pool, ", pool %" PRIu64 ".%" PRIu64,
                 g->pool.first, g->pool.second);
    fprintf(out, "  %-5s %11s %11s %11s %9" PRIu64 "  stream %#" PRIx64 "%s\n",
            g->small ? "small" : "large",
            size_text(g->allocated_bytes, allocated),
            size_text(g->cached_bytes, cached),
            size_text(g->largest_cached_bytes, largest), g->segments, g->stream,
            pool);
}

static void text_reasons(const struct fragments *f, FILE *out)
{
    char bytes[SIZE], largest[SIZE], wanted[SIZE];

    uint64_t blocks = 0;

    for (int i = 0; i < FRAGMENTS_REASONS; i++)
        blocks += f->reasons[i].blocks;
    if (!f->request.bytes || !blocks)
        return;
    fprintf(out,
            "  cached, but of no use to the request for %s\n"
            "       cached  in 1 piece  because it is\n",
            size_text(f->request.bytes, wanted));
    for (int i = 0; i < FRAGMENTS_REASONS; i++)
        if (f->reasons[i].blocks)
            fprintf(out, "  %11s %11s  %s\n",
                    size_text(f->reasons[i].bytes, bytes),
                    size_text(f->reasons[i].largest_bytes, largest),
                    fragments_reason_text((enum fragments_reason)i));
}

static int by_cached(const void *x, const void *y)
{
    const struct fragments_segment *const *a = x, *const *b = y;
    uint64_t p = (*a)->bytes - (*a)->allocated_bytes;
    uint64_t q = (*b)->bytes - (*b)->allocated_bytes;

    if (p != q)
        return p < q ? 1 : -1;
    return (*a)->address < (*b)->address ? -1 : 1;
}

static void text_segment(const struct fragments_segment *s, FILE *out)
{
    char bytes[SIZE], cached[SIZE];

    fprintf(out, "  %#14" PRIx64 " %10s %s %10s free\n", s->address,
            size_text(s->bytes, bytes), s->map,
            size_text(s->bytes - s->allocated_bytes, cached));
}

/* The segments with most to give, until the shown ones are enough. */
static void text_map(const struct fragments *f, FILE *out)
{
    const struct fragments_segment **sorted =
        xreallocarray(NULL, f->segment_count, sizeof *sorted);
    size_t shown = 0;

    for (size_t i = 0; i < f->segment_count; i++)
        sorted[i] = &f->segments[i];
    if (f->segment_count)
        qsort(sorted, f->segment_count, sizeof *sorted, by_cached);
    for (; shown < f->segment_count && shown < SEGMENTS_SHOWN &&
           sorted[shown]->allocated_bytes < sorted[shown]->bytes;
         shown++)
        text_segment(sorted[shown], out);
    if (shown < f->segment_count)
        fprintf(out, "  ... and %zu more segments\n", f->segment_count - shown);
    free(sorted);
}

/* The segments' addresses are for who looks into the allocator. */
static void text_fragments(const struct whatif *w,
                           const struct report_style *style, FILE *out)
{
    const struct fragments *f = &w->fragments;

    text_heading(style,
                 w->at_oom ? "when memory ran out, by pool and stream"
                           : "at the peak, by pool and stream",
                 out);
    fprintf(out, "  %-5s %11s %11s %11s %9s\n", "pool", "allocated", "cached",
            "in 1 piece", "segments");
    for (size_t i = 0; i < f->group_count; i++)
        text_group(&f->groups[i], out);
    text_reasons(f, out);
    if (style->verbose)
        text_map(f, out);
}

void replay_report_sweep(struct replay_report *r)
{
    const struct whatif *w = r->worst ? &r->worst->whatif : NULL;
    char bytes[SIZE];

    r->swept = true;
    if (!w)
        return;
    if (w->smallest_bytes)
        snprintf(r->answer, sizeof r->answer,
                 "smallest memory that fits: %s%s (%" PRIu64 " bytes)",
                 w->smallest_is_least ? "at least " : "",
                 size_text(w->smallest_bytes, bytes), w->smallest_bytes);
    else
        snprintf(r->answer, sizeof r->answer,
                 "no memory of the sweep is enough");
    r->result.answer = r->answer;
}

void replay_report_lines(struct replay_report *r)
{
    struct err err = {""};

    if (r->worst && replay_lines_find(&r->lines, r->worst, &err))
        result_note(&r->result, "the lines are not known: %s", err.text);
}

static void flame_write(const void *report, const struct report_style *style,
                        FILE *out)
{
    const struct replay_report *r = report;

    (void)style;
    for (size_t i = 0; i < r->lines.folded_count; i++)
        fprintf(out, "%s %" PRIu64 "\n", r->lines.folded[i].text,
                r->lines.folded[i].bytes);
}

const struct report_ops replay_report_flame = {.write = flame_write};

/* The end of a line says most. */
static void text_line(const struct replay_line *line, FILE *out)
{
    char size[SIZE];
    size_t length = strlen(line->text);
    const char *text = line->text;
    bool cut = length > LINE_WIDTH;

    if (cut)
        text += length - LINE_WIDTH + 3;
    fprintf(out, "  %12s  %s%s", size_text(line->bytes, size), cut ? "..." : "",
            text);
    if (line->blocks > 1)
        fprintf(out, ", %zu blocks", line->blocks);
    fputc('\n', out);
}

static void text_lines(const struct replay_report *r,
                       const struct report_style *style, FILE *out)
{
    const struct replay_lines *lines = &r->lines;

    if (!lines->known)
        return;
    text_heading(style,
                 r->worst->whatif.at_oom
                     ? "when memory ran out, by line of Python"
                     : "at the peak of allocated memory, by line of Python",
                 out);
    for (size_t i = 0; i < lines->count && i < LINES_SHOWN; i++)
        text_line(&lines->rows[i], out);
    if (lines->count > LINES_SHOWN)
        fprintf(out, "  ... and %zu more lines\n", lines->count - LINES_SHOWN);
}

void replay_report_text(const void *report, const struct report_style *style,
                        FILE *out)
{
    const struct replay_report *r = report;

    if (!r->worst)
        return;
    text_lines(r, style, out);
    text_fragments(&r->worst->whatif, style, out);
    text_rows(&r->worst->whatif, style, out);
    text_advice(&r->worst->whatif, out);
}
