/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/diff_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/ink.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/tree.h"
#include "memsim/result/result_verdict.h"
#include "memsim/result/tree_node.h"

#define SIZE_LENGTH 16
#define ROW_COLUMNS 45 /* before a row's name */
#define INDENT_MAX  20

/* --- words ---------------------------------------------------------------- */

static const char *change_words(const struct diff_pair *p, char *out,
                                size_t size)
{
    char bytes[SIZE_LENGTH];

    units_format_bytes(diff_distance(p), bytes, sizeof bytes);
    if (p->after == p->before)
        return "stayed the same";
    const char *verb = p->after > p->before ? "grew by" : "fell by";
    if (!p->before)
        snprintf(out, size, "%s %s", verb, bytes);
    else
        snprintf(out, size, "%s %s (%.1f%%)", verb, bytes,
                 100.0 * (double)diff_distance(p) / (double)p->before);
    return out;
}

static char *culprit_words(const struct diff_device *d)
{
    char bytes[SIZE_LENGTH];

    if (!d->attributed)
        return xstrdup("which module grew is not known");
    struct diff_culprit c = diff_culprit_find(d);
    if (!c.name)
        return xstrdup("no module grew: it is memory that PyTorch caches, the "
                       "context's or the libraries'");
    units_format_bytes(diff_distance(&c.bytes), bytes, sizeof bytes);
    return xasprintf("most of it in %s%s, by %s",
                     *c.name ? c.name : "what no module was at work for",
                     c.itself && *c.name ? " itself" : "", bytes);
}

static char *limit_words(const struct diff_limit *limit)
{
    char bytes[SIZE_LENGTH];

    if (limit->relative)
        return xasprintf("%g%%", limit->percent);
    return xstrdup(units_format_bytes(limit->bytes, bytes, sizeof bytes));
}

static bool has_several_cards(const struct diff *diff)
{
    return diff->device_count > 1;
}

/* The GPU whose peak moved most speaks for the runs. */
static const struct diff_device *device_of_all(const struct diff *diff)
{
    const struct diff_device *most = &diff->devices[0];

    for (size_t i = 1; i < diff->device_count; i++)
        if (diff_distance(&diff->devices[i].allocated) >
            diff_distance(&most->allocated))
            most = &diff->devices[i];
    return most;
}

/* One that died early may hold less than the one that fitted. */
static char *refusal_words(const struct diff_report *r)
{
    const struct diff_device *d =
        r->diff->device_count ? device_of_all(r->diff) : NULL;
    bool grew = d && d->allocated.after > d->allocated.before;
    char *culprit = grew ? culprit_words(d) : xstrdup("");
    char *words = xasprintf("%s runs out of memory, as %s did not%s%s",
                            r->after, r->before, grew ? "; " : "", culprit);

    free(culprit);
    return words;
}

/* A change of the verdict comes before any figure: a run that died has no
 * peak to compare. */
static char *change_of_all(const struct diff_report *r)
{
    enum verdict before = r->diff->before->verdict;
    enum verdict after = r->diff->after->verdict;
    char change[64];

    if (after == VERDICT_OOM && before != VERDICT_OOM) {
        char *words = refusal_words(r);
        char *whole = xasprintf("does not fit any more: %s", words);
        free(words);
        return whole;
    }
    const char *moved = change_words(&device_of_all(r->diff)->allocated,
                                     change, sizeof change);
    if (before == VERDICT_OOM && result_is_whole(r->diff->after))
        return xasprintf("fits now, as %s did not; the peak allocated %s",
                         r->before, moved);
    return xasprintf("the peak allocated %s", moved);
}

static char *excess_words(const struct diff_report *r)
{
    const struct diff_excess *e = &r->excess;
    char change[64], where[48] = "";

    if (e->worse && r->diff->after->verdict == VERDICT_OOM)
        return change_of_all(r);
    if (e->worse)
        return xasprintf("%s failed, and not for lack of GPU memory", r->after);
    if (has_several_cards(r->diff))
        snprintf(where, sizeof where, " of rank %u, GPU %u", e->device->rank,
                 e->device->index);
    char *limit = limit_words(&r->limit);
    char *culprit = culprit_words(e->device);
    char *words = xasprintf(
        "the %s%s %s, past the limit of %s; %s", e->figure, where,
        change_words(&e->bytes, change, sizeof change), limit, culprit);
    free(culprit);
    free(limit);
    return words;
}

/* --- notes ---------------------------------------------------------------- */

static void add_note(struct diff_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_note(struct diff_report *r, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    r->notes = xreallocarray(r->notes, r->note_count + 1, sizeof *r->notes);
    r->notes[r->note_count++] = text;
}

static char *command_join(char *const *command)
{
    char *text = xstrdup(command[0] ? command[0] : "");

    for (size_t i = 1; command[0] && command[i]; i++) {
        char *longer = xasprintf("%s %s", text, command[i]);
        free(text);
        text = longer;
    }
    return text;
}

static void note_commands(struct diff_report *r)
{
    char *before = command_join(r->diff->before->command);
    char *after = command_join(r->diff->after->command);

    if (strcmp(before, after))
        add_note(r, "the commands differ: `%s' before, `%s' after", before,
                 after);
    free(before);
    free(after);
}

static void note_gpus(struct diff_report *r)
{
    const struct gpu *a = &r->diff->before->gpu, *b = &r->diff->after->gpu;
    char before[SIZE_LENGTH], after[SIZE_LENGTH];

    if (strcmp(a->name, b->name))
        add_note(r, "the GPUs differ: %s before, %s after", a->name, b->name);
    if (a->memory_bytes != b->memory_bytes)
        add_note(r, "the memory of the GPUs differs: %s before, %s after",
                 units_format_bytes(a->memory_bytes, before, sizeof before),
                 units_format_bytes(b->memory_bytes, after, sizeof after));
}

static void note_cards_alone(struct diff_report *r)
{
    if (r->diff->before_alone)
        add_note(r, "only the run before used %zu GPU%s", r->diff->before_alone,
                 r->diff->before_alone == 1 ? "" : "s");
    if (r->diff->after_alone)
        add_note(r, "only the run after used %zu GPU%s", r->diff->after_alone,
                 r->diff->after_alone == 1 ? "" : "s");
}

static void notes_collect(struct diff_report *r)
{
    const struct diff *d = r->diff;

    note_commands(r);
    note_gpus(r);
    if (strcmp(d->before->torch_version, d->after->torch_version))
        add_note(r, "PyTorch differs: %s before, %s after",
                 d->before->torch_version, d->after->torch_version);
    note_cards_alone(r);
    if (!result_is_whole(d->before) || !result_is_whole(d->after))
        add_note(r, "a run that died may not have got to its peak");
}

static char *slower_words(const struct diff_report *r)
{
    return xasprintf("%s takes %.2f ms, %.1f%% longer than %.2f ms: more "
                     "than --fail-slower %g%%",
                     r->time->gate, r->time->gate_after_ns / 1e6,
                     time_gate_percent(r->time),
                     r->time->gate_before_ns / 1e6, r->slower_limit);
}

void diff_report_init(struct diff_report *r)
{
    r->notes = NULL;
    r->note_count = 0;
    r->past = r->limit.given && diff_is_past(r->diff, &r->limit, &r->excess);
    r->slower = r->limits_time && time_gate_percent(r->time) > r->slower_limit;
    if (r->past)
        r->words = excess_words(r);
    else
        r->words = r->slower ? slower_words(r) : change_of_all(r);
    notes_collect(r);
}

void diff_report_fini(struct diff_report *r)
{
    for (size_t i = 0; i < r->note_count; i++)
        free(r->notes[i]);
    free(r->notes);
    free(r->words);
}

/* --- the text ------------------------------------------------------------- */

struct sheet {
    FILE *out;
    bool color;
    unsigned depth, top;
    const struct diff_device *device;
    size_t *order; /* of modules: by parent, what moved most first */
};

struct line {
    struct diff_pair bytes;
    bool was, is;
    bool good; /* growth is welcome */
    const char *name;
    unsigned level;
};

static void write_line(const struct sheet *s, const struct line *l)
{
    char before[SIZE_LENGTH], after[SIZE_LENGTH], change[SIZE_LENGTH + 1] = "";
    bool changed = l->bytes.after != l->bytes.before;
    bool grew = l->bytes.after > l->bytes.before;
    int indent = 2 * (int)l->level;

    if (indent > INDENT_MAX)
        indent = INDENT_MAX;
    units_format_bytes(l->bytes.before, before, sizeof before);
    units_format_bytes(l->bytes.after, after, sizeof after);
    if (changed) {
        change[0] = grew ? '+' : '-';
        units_format_bytes(diff_distance(&l->bytes), change + 1, SIZE_LENGTH);
    }
    fprintf(s->out, "  %12s %12s  %s%13s%s  %*s", l->was ? before : "new",
            l->is ? after : "gone",
            ink_code(grew == l->good ? INK_GOOD : INK_BAD, s->color && changed),
            change, ink_code(INK_PLAIN, s->color && changed), indent, "");
    text_write_end(s->out, l->name, TEXT_COLUMNS - ROW_COLUMNS - indent);
    fputc('\n', s->out);
}

static void write_figure(const struct sheet *s, const struct diff_pair *p,
                         bool good, const char *name)
{
    char text[48];

    if (p->before && p->after != p->before)
        snprintf(text, sizeof text, "%s, %+.1f%%", name,
                 100.0 * ((double)p->after / (double)p->before - 1));
    else
        snprintf(text, sizeof text, "%s", name);
    write_line(
        s,
        &(struct line){
            .bytes = *p, .was = true, .is = true, .good = good, .name = text});
}

static void write_heading(const struct sheet *s, const char *text)
{
    fprintf(s->out, "  %s%12s %12s  %13s  %s%s\n", ink_code(INK_DIM, s->color),
            "before", "after", "change", text, ink_code(INK_PLAIN, s->color));
}

static int distance_compare(const struct diff_pair *a,
                            const struct diff_pair *b)
{
    uint64_t x = diff_distance(a), y = diff_distance(b);

    return x < y ? 1 : x > y ? -1 : 0;
}

struct category_row {
    struct diff_pair bytes;
    int category;
};

static int category_compare(const void *x, const void *y)
{
    const struct category_row *a = x, *b = y;
    int order = distance_compare(&a->bytes, &b->bytes);

    return order ? order : a->category - b->category;
}

static void write_categories(const struct sheet *s)
{
    struct category_row rows[TRACE_CATEGORY_COUNT];

    for (int c = 0; c < TRACE_CATEGORY_COUNT; c++)
        rows[c] = (struct category_row){s->device->categories[c], c};
    qsort(rows, TRACE_CATEGORY_COUNT, sizeof *rows, category_compare);
    write_heading(s, "at the peak, by category");
    for (int i = 0; i < TRACE_CATEGORY_COUNT; i++)
        if (rows[i].bytes.before || rows[i].bytes.after)
            write_line(
                s, &(struct line){.bytes = rows[i].bytes,
                                  .was = true,
                                  .is = true,
                                  .name = attribution_category_name(
                                      (enum trace_category)rows[i].category)});
}

static int order_compare(const void *x, const void *y, void *context)
{
    const struct diff_module *modules = context;
    const struct diff_module *a = &modules[*(const size_t *)x];
    const struct diff_module *b = &modules[*(const size_t *)y];

    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->moved_bytes != b->moved_bytes)
        return a->moved_bytes < b->moved_bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* The first place in the order of PARENT's children. */
static size_t children_find(const struct sheet *s, size_t parent)
{
    const struct diff_device *d = s->device;

    return BISECT(i, d->module_count, d->modules[s->order[i]].parent < parent);
}

static const char *short_name(const struct diff_device *d, size_t module)
{
    const struct diff_module *m = &d->modules[module];

    return tree_short_name(
        m->name, m->parent == SIZE_MAX ? "" : d->modules[m->parent].name);
}

static void write_self(const struct sheet *s, const struct diff_pair *self,
                       const char *name, unsigned level)
{
    if (self->before != self->after)
        write_line(s, &(struct line){.bytes = *self,
                                     .was = true,
                                     .is = true,
                                     .name = name,
                                     .level = level});
}

static void write_children(const struct sheet *s, size_t parent,
                           const struct diff_pair *self, const char *self_name,
                           unsigned level)
{
    const struct diff_device *d = s->device;
    struct diff_pair rest = {0, 0};
    size_t shown = 0, more = 0;
    size_t at = children_find(s, parent);

    if (level >= (s->depth ? s->depth : TREE_DEPTH_VERBOSE))
        return;
    if (at < d->module_count && d->modules[s->order[at]].parent == parent)
        write_self(s, self, self_name, level);
    for (; at < d->module_count; at++) {
        const struct diff_module *m = &d->modules[s->order[at]];
        if (m->parent != parent)
            break;
        if (!m->moved_bytes)
            break;
        if (shown++ >= (s->top ? s->top : TREE_TOP)) {
            rest.before += m->held.before;
            rest.after += m->held.after;
            more++;
            continue;
        }
        write_line(s, &(struct line){.bytes = m->held,
                                     .was = m->was,
                                     .is = m->is,
                                     .name = short_name(d, s->order[at]),
                                     .level = level});
        write_children(s, s->order[at], &m->self, "(own)", level + 1);
    }
    if (more) {
        char name[40];
        snprintf(name, sizeof name, "(%zu more)", more);
        write_line(s, &(struct line){rest, true, true, false, name, level});
    }
}

static bool has_changed(const struct diff_device *d)
{
    for (size_t i = 0; i < d->module_count; i++)
        if (d->modules[i].moved_bytes)
            return true;
    return d->outside.before != d->outside.after;
}

static void write_modules(struct sheet *s)
{
    const struct diff_device *d = s->device;

    if (!has_changed(d))
        return;
    s->order = xcalloc(d->module_count + 1, sizeof *s->order);
    for (size_t i = 0; i < d->module_count; i++)
        s->order[i] = i;
    qsort_r(s->order, d->module_count, sizeof *s->order, order_compare,
            d->modules);
    write_heading(s, "by module, what changed");
    write_children(s, SIZE_MAX, &d->outside, "(no module)", 0);
    free(s->order);
    s->order = NULL;
}

static void write_device(struct sheet *s)
{
    const struct diff_device *d = s->device;

    write_heading(s, "of the whole run");
    write_figure(s, &d->used, false, "peak used");
    write_figure(s, &d->reserved, false, "peak reserved");
    write_figure(s, &d->allocated, false, "peak allocated");
    write_figure(s, &d->headroom, true, "headroom");
    if (!d->attributed)
        return;
    write_categories(s);
    write_modules(s);
}

static void write_devices(struct sheet *s, const struct diff *diff)
{
    for (size_t i = 0, last; i < diff->device_count; i = last + 1) {
        const struct diff_device *d = s->device = &diff->devices[i];
        for (last = i; last + 1 < diff->device_count; last++)
            if (!diff_devices_alike(d, &diff->devices[last + 1]))
                break;
        if (last > i)
            fprintf(s->out, "%sranks %u to %u, each%s\n",
                    ink_code(INK_BOLD, s->color), d->rank,
                    diff->devices[last].rank, ink_code(INK_PLAIN, s->color));
        else if (has_several_cards(diff))
            fprintf(s->out, "%srank %u, GPU %u%s\n",
                    ink_code(INK_BOLD, s->color), d->rank, d->index,
                    ink_code(INK_PLAIN, s->color));
        write_device(s);
    }
}

static void write_run(const struct sheet *s, const char *which,
                      const char *name, const struct result *r)
{
    char first[80];

    snprintf(first, sizeof first, "  %s: %s,", which,
             result_verdict_name(r->verdict));
    text_write_wrapped(s->out, first, name);
}

void diff_report_text(const struct diff_report *r,
                      const struct report_style *style, FILE *out)
{
    struct sheet s = {.out = out,
                      .color = style->color,
                      .depth = style->depth,
                      .top = style->top};

    fprintf(out, "%s",
            ink_code(r->past || r->slower ? INK_BAD : INK_BOLD, s.color));
    text_write_wrapped(out, "memsim:", r->words);
    fprintf(out, "%s", ink_code(INK_PLAIN, s.color));
    write_run(&s, "before", r->before, r->diff->before);
    write_run(&s, "after", r->after, r->diff->after);
    write_devices(&s, r->diff);
    time_diff_text(r->time, ink_code(INK_DIM, s.color),
                   ink_code(INK_PLAIN, s.color), out);
    for (size_t i = 0; i < r->note_count; i++)
        text_write_wrapped(out, "  note:", r->notes[i]);
}
