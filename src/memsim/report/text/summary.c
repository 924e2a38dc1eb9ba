/* SPDX-License-Identifier: Apache-2.0
 * The report for people: the verdict, then what it rests on. */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "memsim/report/text/collation_report.h"
#include "memsim/report/text/advice_report.h"
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/guess_text.h"
#include "memsim/report/text/host_report.h"
#include "memsim/report/text/law_report.h"
#include "memsim/report/text/scan_read.h"
#include "memsim/report/text/seeds_report.h"
#include "memsim/report/text/ink.h"
#include "memsim/report/text/moments.h"
#include "memsim/report/text/rank_text.h"
#include "memsim/report/report.h"
#include "memsim/result/result_verdict.h"
#include "memsim/run/ended.h"
#include "memsim/collectives/traffic.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/thing_text.h"
#include "memsim/report/text/time_report.h"
#include "memsim/report/text/tree.h"

#define BAR_CELLS   24
#define THINGS       3
#define THINGS_ALL   5
#define COLUMNS_MOST 120
#define SIZE_LENGTH 16
/* Beside "  PyTorch asked for 1023.99 MiB in ". */
#define OOM_MODULE_COLUMNS 45

struct page {
    FILE *out;
    bool color, timeline, verbose;
    bool short_of_more; /* something is left out */
    unsigned depth, top;
    int columns; /* of the terminal */
};

static const char *ink_of(const struct page *page, enum ink which)
{
    return ink_code(which, page->color);
}

static double percent_of(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const struct heading {
    enum ink ink;
    const char *text;
} headings[] = {
    [VERDICT_FITS] = {INK_GOOD, "fits"},
    [VERDICT_OOM] = {INK_BAD, "out of memory"},
    [VERDICT_OVER_LIMIT] = {INK_WARN, "fits, but over the limit"},
    [VERDICT_FAILED] = {INK_BAD, "the command failed"},
    [VERDICT_UNKNOWN] = {INK_WARN, "unknown"},
    [VERDICT_NONE] = {INK_WARN, "no GPU was used"},
    [VERDICT_GROWS] = {INK_WARN, "memory grows"},
    [VERDICT_HOST] = {INK_BAD, "fits on the GPU, but not on the host"},
    [VERDICT_INPUT] = {INK_BAD, "fits, but the worst case does not"},
};

static const struct heading rank_failed = {INK_BAD, "a rank failed"};
static const struct heading process_failed = {INK_BAD, "a process failed"};
static const struct heading no_match = {INK_BAD, "collectives do not match"};
static const struct heading endless = {INK_BAD, "never ends"};
static const struct heading not_all = {INK_WARN, "fits"};
static const struct heading unfinished = {INK_WARN, "not finished"};

static const struct heading interrupted = {INK_WARN, "interrupted"};

/* The user ended it. */
static bool is_interrupted(const struct result *r)
{
    return r->verdict == VERDICT_FAILED && r->finished &&
           r->command_status == ended_by(SIGINT);
}

/* The command itself ended well. */
static const struct heading *heading_of_failure(const struct result *r)
{
    const struct result_failure *f = result_failure_decisive(r);

    return f && !f->ranks ? &process_failed : &rank_failed;
}

static const struct heading *heading_of(const struct result *r)
{
    if (!r->finished && r->verdict == VERDICT_FAILED)
        return &unfinished;
    if (is_interrupted(r))
        return &interrupted;
    if (!r->command_status && !r->rank_count)
        return &headings[VERDICT_NONE];
    if (!r->command_status && r->verdict == VERDICT_FAILED)
        return heading_of_failure(r);
    if (r->verdict == VERDICT_OVER_LIMIT && r->collectives_fail)
        return r->endless ? &endless : &no_match;
    if (r->verdict == VERDICT_FITS &&
        (r->refused || r->failure_count))
        return &not_all;
    return &headings[r->verdict];
}

/* What did not go well in a run that fits, or what its verdict is without, in
 * DETAIL. */
static void fits_detail(const struct result *r, char *detail, size_t size)
{
    size_t failures = r->failure_count;

    if (r->refused)
        snprintf(detail, size, ", but %" PRIu64 " allocation%s failed",
                 r->refused, r->refused > 1 ? "s" : "");
    else if (failures)
        snprintf(detail, size, ", but %zu process%s failed", failures,
                 failures > 1 ? "es" : "");
}

static void failure_detail(const struct result *r, char *detail, size_t size)
{
    int status = r->command_status;
    bool by_signal = status > ended_by(0) && status < ended_by(SIGRTMIN);

    if (is_interrupted(r))
        snprintf(detail, size, "%s",
                 r->rank_count ? "; until then it fitted" : "");
    else if (r->finished && status)
        snprintf(detail, size, " (status %d%s%s), not for lack of GPU memory",
                 status, by_signal ? ", " : "",
                 by_signal ? strsignal(status - ended_by(0)) : "");
}

/* What the verdict needs to be understood, in DETAIL. */
static void verdict_detail(const struct result *r, char *detail, size_t size)
{
    char needs[SIZE_LENGTH];

    *detail = '\0';
    if (r->verdict == VERDICT_FAILED)
        failure_detail(r, detail, size);
    if (r->verdict == VERDICT_OVER_LIMIT && r->slower_percent > 0)
        snprintf(detail, size, " of time: a step takes %.1f%% longer",
                 r->slower_percent);
    else if (r->verdict == VERDICT_OVER_LIMIT && !r->collectives_fail)
        snprintf(detail, size, " of %g%%", r->fail_above_percent);
    if (r->verdict == VERDICT_FITS)
        fits_detail(r, detail, size);
    if (r->verdict == VERDICT_UNKNOWN)
        snprintf(detail, size, ": needs at least %s; %s",
                 units_format_bytes(r->needs_bytes, needs, sizeof needs),
                 r->why);
    if (r->verdict == VERDICT_GROWS)
        growth_verdict(growth_first(r), r->job_steps, detail, size);
    if (r->verdict == VERDICT_HOST)
        host_verdict(r, detail, size);
}

/* The verdict and the GPU, on two lines where one is too short. */
static void write_verdict(const struct page *page, const struct result *r)
{
    const struct heading *h = heading_of(r);
    char detail[128], card[96], capacity[SIZE_LENGTH];

    verdict_detail(r, detail, sizeof detail);
    int width = fprintf(page->out, "memsim: %s%s%s%s", ink_of(page, h->ink),
                        h->text, ink_of(page, INK_PLAIN), detail);
    width -=
        (int)(strlen(ink_of(page, h->ink)) + strlen(ink_of(page, INK_PLAIN)));
    if (r->rank_count) {
        width += snprintf(
            card, sizeof card, "%s, %s", r->gpu.device_name,
            units_format_bytes(r->gpu.memory_bytes, capacity, sizeof capacity));
        fprintf(page->out, "%s%s", width + 2 > TEXT_COLUMNS ? "\n  " : ": ",
                card);
    }
    fputc('\n', page->out);
}

static void write_figure(const struct page *page, const char *name,
                         uint64_t bytes, uint64_t capacity)
{
    char size[SIZE_LENGTH];

    units_format_bytes(bytes, size, sizeof size);
    fprintf(page->out, "  %-16s %11s %5.1f%%", name, size,
            percent_of(bytes, capacity));
}

static void write_bar(const struct page *page, const struct result_device *d)
{
    char bar[BAR_CELLS + 1];
    double share = percent_of(d->peak_used_bytes, d->capacity_bytes) / 100;
    size_t filled = (size_t)(share * BAR_CELLS + 0.5);

    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', filled < BAR_CELLS ? filled : BAR_CELLS);
    bar[BAR_CELLS] = '\0';
    fprintf(page->out, "  [%s]\n", bar);
}

/* Where the peak is not certain, between what and what it is. */
static void write_range(const struct page *page,
                        const struct workspace_range *r)
{
    char least[SIZE_LENGTH], most[SIZE_LENGTH], source[128];

    if (!workspace_range_matters(r))
        return;
    fprintf(page->out,
            "    between %s and %s: the sizes of libraries' workspaces are\n"
            "    %s\n",
            units_format_bytes(r->least_bytes, least, sizeof least),
            units_format_bytes(r->most_bytes, most, sizeof most),
            workspace_range_source(r, source, sizeof source));
}

static void write_reserved_range(const struct page *page,
                                 const struct reserved_range *r)
{
    char least[SIZE_LENGTH], most[SIZE_LENGTH];

    if (!reserved_range_matters(r))
        return;
    fprintf(page->out,
            "    between %s and %s: by the order of the driver's addresses\n"
            "    and the sizes of libraries' workspaces\n",
            units_format_bytes(r->least_bytes, least, sizeof least),
            units_format_bytes(r->most_bytes, most, sizeof most));
}

static void write_retries(const struct page *page,
                          const struct result_device *d)
{
    bool fatal = false;

    for (size_t i = 0; i < d->oom_count; i++)
        fatal |= !d->ooms[i].caught;
    if (d->retries)
        fprintf(page->out,
                "    %s%" PRIu64 " %s: each empties PyTorch's cache and waits "
                "for the GPU,\n    which takes time\n",
                fatal ? "" : "fits after ", d->retries,
                d->retries == 1 ? "retry" : "retries");
}

static void write_plain_figure(const struct page *page, const char *name,
                               uint64_t bytes, uint64_t capacity)
{
    write_figure(page, name, bytes, capacity);
    fputc('\n', page->out);
}

/* What decides comes first; STEP: with the step's time. */
static void write_peaks(const struct page *page, const struct result *r,
                        const struct result_device *d, bool step)
{
    uint64_t capacity = d->capacity_bytes;

    write_figure(page, "peak used", d->peak_used_bytes, capacity);
    write_bar(page, d);
    write_plain_figure(page, "headroom", d->headroom_bytes, capacity);
    write_retries(page, d);
    if (step)
        time_text_write_step(r, page->out);
    write_plain_figure(page, "peak reserved", d->peak_reserved_bytes, capacity);
    write_reserved_range(page, &d->reserved_range);
    write_plain_figure(page, "peak allocated", d->peak_allocated_bytes,
                       capacity);
    write_range(page, &d->range);
    if (step)
        host_text_write(r, page->out);
}

/* What was missing, in TEXT. */
static void missing_text(const struct result_oom *o, char *text, size_t size)
{
    char missing[SIZE_LENGTH];

    units_format_bytes(o->missing_bytes, missing, sizeof missing);
    if (!o->missing_bytes)
        snprintf(text, size,
                 "A limit that the program set caused this, not the "
                 "memory of the GPU.");
    else if (o->caught)
        snprintf(text, size, "%s more memory would have met it.", missing);
    else
        snprintf(text, size, "At least %s more memory would have been needed.",
                 missing);
}

static void write_oom(const struct page *page, const struct result_device *d,
                      const struct result_oom *o)
{
    char requested[SIZE_LENGTH], available[SIZE_LENGTH], idle[SIZE_LENGTH];
    char missing[96], cached[48] = "", text[256], when[MOMENT_WORDS];

    units_format_bytes(o->requested_bytes, requested, sizeof requested);
    units_format_bytes(o->free_bytes, available, sizeof available);
    units_format_bytes(o->unallocated_bytes, idle, sizeof idle);
    missing_text(o, missing, sizeof missing);
    fprintf(page->out, "  %s%s asked for %s%s", ink_of(page, INK_BOLD),
            o->torch ? "PyTorch" : "cudaMalloc or a library", requested,
            ink_of(page, INK_PLAIN));
    if (o->at && *o->at->module) {
        fputs(" in ", page->out);
        text_write_end(page->out, o->at->module, OOM_MODULE_COLUMNS);
    }
    fputs(".\n", page->out);
    if (o->at)
        fprintf(page->out, "  This was %s.\n",
                moment_words(d->attribution, o->at->step, o->at->phase,
                             o->at->episode, when));
    if (o->torch)
        snprintf(cached, sizeof cached, ", %s reserved but unallocated", idle);
    snprintf(text, sizeof text, "%s was free%s%s. %s", available, cached,
             o->caught ? "; the program went on" : "", missing);
    text_write_wrapped(page->out, " ", text);
}

/* Every fatal refusal; of those survived, the first and how many. */
static void write_ooms(const struct page *page, const struct result_device *d)
{
    size_t survived = 0;

    for (size_t i = 0; i < d->oom_count; i++) {
        const struct result_oom *o = &d->ooms[i];
        if (o->caught && survived++)
            continue;
        write_oom(page, d, o);
    }
    if (survived > 1)
        fprintf(page->out, "  ... and %zu more that it survived.\n",
                survived - 1);
}

#define THING_MARGIN  16 /* "    1023.99 MiB  " */
#define EACH_COLUMNS  32
#define LABEL_COLUMNS 44 /* of a terminal of TEXT_COLUMNS */

/* How many blocks T is, and of which tensor or, where that is not known, of
 * which size: "24 x float32 8x1024". Empty: one block. */
static void thing_each(const struct peak_thing *t, char *out, size_t size)
{
    char each[SIZE_LENGTH], count[24] = "";

    out[0] = '\0';
    if (t->count > 1)
        snprintf(count, sizeof count, "%" PRIu64 " x ", t->count);
    if (*t->shape && strlen(t->shape) + strlen(count) <= EACH_COLUMNS)
        snprintf(out, size, "%s%s", count, t->shape);
    else if (t->count > 1)
        snprintf(out, size, "%s%s", count,
                 units_format_bytes(t->bytes / t->count, each, sizeof each));
}

static void write_things(const struct page *page, const struct result_device *d)
{
    const struct attribution *a = d->attribution;
    size_t most_things = page->verbose ? THINGS_ALL : THINGS;
    char when[MOMENT_WORDS] = "";

    if (a)
        moment_words(a, a->peak_step, a->peak_phase, a->peak_episode, when);
    if (d->thing_count)
        fprintf(page->out, "\n  %slargest at the peak%s%s%s\n",
                ink_of(page, INK_BOLD), a ? ", " : "", when,
                ink_of(page, INK_PLAIN));
    for (size_t i = 0; i < d->thing_count && i < most_things; i++) {
        const struct peak_thing *t = &d->things[i];
        char total[SIZE_LENGTH], each[64], words[THING_TEXT_BYTES];

        units_format_bytes(t->bytes, total, sizeof total);
        thing_each(t, each, sizeof each);
        size_t room = (size_t)page->columns - THING_MARGIN - strlen(each) - 2;
        size_t most =
            (size_t)page->columns - TEXT_COLUMNS + LABEL_COLUMNS;
        room = room < most ? room : most;
        if (*each)
            fprintf(page->out, "  %12s  %-*s  %s\n", total, (int)room,
                    thing_text(t, room, words), each);
        else
            fprintf(page->out, "  %12s  %s\n", total,
                    thing_text(t, (size_t)page->columns - THING_MARGIN,
                               words));
    }
}

static void write_owners(const struct page *page, const struct result_device *d)
{
    const struct tree_style style = {
        .bold = ink_of(page, INK_BOLD),
        .plain = ink_of(page, INK_PLAIN),
        .columns = page->columns,
        .verbose = page->verbose,
        .depth = page->depth,
        .top = page->top,
    };

    if (!d->attribution)
        return;
    tree_write(d->attribution, &style, page->out);
    if (page->timeline)
        moments_write(d->attribution, &style, page->out);
}

/* Ranks that are written once. */
struct shown {
    const struct result *result;
    const struct rank_class *class;
    const struct result_rank *rank; /* the fullest of them */
    bool equal;                     /* they have the same peaks */
};

static uint64_t rank_used(const struct result_rank *rank)
{
    uint64_t most = 0;

    for (size_t i = 0; i < rank->device_count; i++)
        if (rank->devices[i].peak_used_bytes > most)
            most = rank->devices[i].peak_used_bytes;
    return most;
}

static bool is_of_class(const struct rank_class *class,
                        const struct result_rank *rank)
{
    return rank_set_has(&class->members, rank->rank);
}

static bool peaks_equal(const struct result_rank *a,
                        const struct result_rank *b)
{
    for (size_t i = 0; i < a->device_count; i++) {
        const struct result_device *x = &a->devices[i], *y = &b->devices[i];
        if (x->peak_used_bytes != y->peak_used_bytes ||
            x->peak_reserved_bytes != y->peak_reserved_bytes ||
            x->peak_allocated_bytes != y->peak_allocated_bytes)
            return false;
    }
    return true;
}

static struct shown shown_make(const struct result *r,
                               const struct rank_class *class)
{
    struct shown s = {r, class, &r->ranks[class->first], true};

    for (size_t i = class->first; i < r->rank_count; i++) {
        if (!is_of_class(class, &r->ranks[i]))
            continue;
        s.equal &= peaks_equal(&r->ranks[class->first], &r->ranks[i]);
        if (rank_used(&r->ranks[i]) > rank_used(s.rank))
            s.rank = &r->ranks[i];
    }
    return s;
}

static void write_rank_title(const struct page *page, const struct shown *s,
                             const struct result_device *d)
{
    const struct rank_set *members = &s->class->members;
    bool one = members->count < 2, named = !one || s->result->rank_count > 1;
    bool several = s->rank->device_count > 1;

    if (!named && !several)
        return;
    fprintf(page->out, "%s", ink_of(page, INK_BOLD));
    if (named && s->equal)
        rank_text_write(members, page->out);
    else if (named)
        rank_text_write_near(members, s->rank->rank, page->out);
    if (!one && d->own && several)
        fputs(", its own GPU", page->out);
    else if (one || several)
        fprintf(page->out, "%sGPU %u", named ? ", " : "", d->index);
    fprintf(page->out, "%s\n", ink_of(page, INK_PLAIN));
}

/* Appends to TEXT from where to where the peak at OFFSET of struct
 * result_device goes on the GPUs numbered DEVICE of S's ranks. */
static void spread_add(const struct shown *s, size_t device, const char *name,
                       size_t offset, char *text, size_t size)
{
    const struct result_rank *least = s->rank, *most = s->rank;
    uint64_t low = UINT64_MAX, high = 0;
    char from[SIZE_LENGTH], to[SIZE_LENGTH];
    size_t used = strlen(text);

    for (size_t i = s->class->first; i < s->result->rank_count; i++) {
        const struct result_rank *rank = &s->result->ranks[i];
        if (!is_of_class(s->class, rank))
            continue;
        const char *at = (const char *)&rank->devices[device];
        uint64_t bytes = *(const uint64_t *)(const void *)(at + offset);
        if (bytes < low)
            low = bytes, least = rank;
        if (bytes > high)
            high = bytes, most = rank;
    }
    if (low == high)
        return;
    snprintf(text + used, size - used, "%s%s %s (rank %u) to %s (rank %u)",
             used ? ", " : "", name, units_format_bytes(low, from, sizeof from),
             least->rank, units_format_bytes(high, to, sizeof to), most->rank);
}

static void write_spread(const struct page *page, const struct shown *s,
                         size_t device)
{
    char text[320] = "";

    if (s->equal)
        return;
    spread_add(s, device, "used",
               offsetof(struct result_device, peak_used_bytes), text,
               sizeof text);
    spread_add(s, device, "reserved",
               offsetof(struct result_device, peak_reserved_bytes), text,
               sizeof text);
    spread_add(s, device, "allocated",
               offsetof(struct result_device, peak_allocated_bytes), text,
               sizeof text);
    if (*text)
        text_write_wrapped(page->out, "  these ranks:", text);
}

static void inputs_write(const struct result *r, FILE *out)
{
    scan_text_write(r, out);
    seeds_text_write(r, out);
}

static void write_class(const struct page *page, const struct shown *s,
                        bool step)
{
    for (size_t i = 0; i < s->rank->device_count; i++) {
        const struct result_device *d = &s->rank->devices[i];
        write_rank_title(page, s, d);
        write_ooms(page, d);
        write_peaks(page, s->result, d, step && !i);
        write_spread(page, s, i);
        law_text_write(d, &s->result->wanted, page->out);
        if (step && !i)
            inputs_write(s->result, page->out);
        growth_text_write(d, ink_of(page, INK_DIM), ink_of(page, INK_PLAIN),
                          page->out);
        growth_calls_write(d, page->out);
        write_things(page, d);
        write_owners(page, d);
        advice_write(d, ink_of(page, INK_BOLD), ink_of(page, INK_PLAIN),
                     page->out);
    }
}

/* Ranks with nearly the same figures are written once. */
static void write_ranks(const struct page *page, const struct result *r)
{
    struct rank_classes classes;

    result_ranks_group_near(r, &classes);
    if (classes.count != 1) {
        time_text_write_step(r, page->out);
        host_text_write(r, page->out);
        inputs_write(r, page->out);
    }
    for (size_t i = 0; i < classes.count; i++) {
        const struct shown s = shown_make(r, &classes.all[i]);
        if (i)
            fputc('\n', page->out);
        write_class(page, &s, classes.count == 1);
    }
    rank_classes_fini(&classes);
}

/* A replay takes no time. */
static void write_end(const struct page *page, const struct result *r,
                      FILE *out)
{
    bool ran = r->seconds > 0, told = r->torch_version[0];

    if (ran)
        fprintf(out, "  took %.1f s", r->seconds);
    if (told)
        fprintf(out, "%sPyTorch %s", ran ? ", " : "  ", r->torch_version);
    if (page->short_of_more)
        fprintf(out, "%s--verbose has more", ran || told ? "; " : "  ");
    if (ran || told || page->short_of_more)
        fputc('\n', out);
}

/* Of the terminal, as far as names profit. */
static int columns_of(const struct report_style *style)
{
    if (style->columns < TEXT_COLUMNS)
        return TEXT_COLUMNS;
    return style->columns < COLUMNS_MOST ? style->columns : COLUMNS_MOST;
}

static void summary_write(const void *result, const struct report_style *style,
                          FILE *out)
{
    const struct result *r = result;
    struct page page = {.out = out,
                        .color = style->color,
                        .timeline = style->timeline,
                        .verbose = style->verbose,
                        .short_of_more =
                            !style->verbose && time_slowest(r) != NULL,
                        .depth = style->depth,
                        .top = style->top,
                        .columns = columns_of(style)};
    const struct time_style time = {ink_of(&page, INK_BOLD),
                                    ink_of(&page, INK_PLAIN), style->verbose,
                                    page.columns};

    write_verdict(&page, r);
    if (r->answer)
        fprintf(out, "  %s\n", r->answer);
    write_ranks(&page, r);
    time_text_write(r, &time, out);
    if (r->traffic)
        traffic_text_write(r->traffic, ink_of(&page, INK_BOLD),
                           ink_of(&page, INK_PLAIN), out);
    collation_text_write(r, out);
    if (style->more)
        style->more(style->more_of, style, out);
    if (r->rank_count && (r->note_count || r->guess_count))
        fputc('\n', out);
    for (size_t i = 0; i < r->note_count; i++)
        text_write_wrapped(out, "  note:", r->notes[i]);
    guess_text_write(r, out);
    write_end(&page, r, out);
}

const struct report_ops report_summary = {.write = summary_write};
