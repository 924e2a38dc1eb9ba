/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/replay_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/stack_text.h"

#define NO_STACK "(no stack recorded)"

/* Blocks by the number of their stack; 0: none. */
struct sums {
    struct replay_line *rows;
    size_t count, capacity;
    struct map places; /* 1 + rows, by 1 + the number */
};

static void block_add(struct sums *s, const struct snapshot_block *b)
{
    uintptr_t place = (uintptr_t)map_get(&s->places, b->stack + UINT64_C(1));

    if (!place) {
        xgrow(&s->rows, s->count, &s->capacity, sizeof *s->rows);
        s->rows[s->count++] = (struct replay_line){0};
        place = s->count;
        map_put(&s->places, b->stack + UINT64_C(1), (void *)place);
    }
    s->rows[place - 1].bytes += b->bytes;
    s->rows[place - 1].blocks++;
}

/* Its line of Python: the innermost that is in no package, or the innermost;
 * NULL: it has none. */
static const struct snapshot_frame *line_find(const struct snapshot_frames *f,
                                              const struct snapshot_stack *s)
{
    const struct snapshot_frame *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        const struct snapshot_frame *frame = &f->frames[s->first + i];

        if (!snapshot_is_python(f, frame))
            continue;
        if (!stack_is_package(snapshot_text(f, frame->file)))
            return frame;
        if (!first)
            first = frame;
    }
    return first;
}

/* Of a stack that has frames. */
static char *line_text(const struct snapshot_frames *f,
                       const struct snapshot_stack *s)
{
    const struct snapshot_frame *line = line_find(f, s);
    const struct snapshot_frame *frames = &f->frames[s->first];

    if (line)
        return xasprintf("%s:%" PRIu32 " %s", snapshot_text(f, line->file),
                         line->line, snapshot_text(f, line->name));
    if (s->count > 1 &&
        !strcmp(snapshot_text(f, frames[1].file), RECORDING_MODULE))
        return xasprintf("%s of %s", snapshot_text(f, frames[0].name),
                         snapshot_text(f, frames[1].name));
    return xstrdup(snapshot_text(f, frames[0].name));
}

/* The outermost first, with semicolons between them. */
static char *folded_text(const struct snapshot_frames *f,
                         const struct snapshot_stack *s)
{
    char *text, *from, *to;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        abort(); /* only for lack of memory */
    for (size_t i = s->count; i-- > 0;) {
        const struct snapshot_frame *frame = &f->frames[s->first + i];

        fputs(snapshot_text(f, frame->name), out);
        if (frame->line)
            fprintf(out, " %s:%" PRIu32, snapshot_text(f, frame->file),
                    frame->line);
        if (i)
            fputc('\n', out);
    }
    fclose(out);
    for (from = to = text; *from; from++)
        *to++ = *from == ';' ? '_' : *from == '\n' ? ';' : *from;
    return text;
}

static void line_add(struct replay_line **rows, size_t *count, char *text,
                     const struct replay_line *sum)
{
    *rows = xreallocarray(*rows, *count + 1, sizeof **rows);
    (*rows)[(*count)++] = (struct replay_line){text, sum->bytes, sum->blocks};
}

static int by_text(const void *x, const void *y)
{
    return strcmp(((const struct replay_line *)x)->text,
                  ((const struct replay_line *)y)->text);
}

static int by_bytes(const void *x, const void *y)
{
    const struct replay_line *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return by_text(x, y);
}

/* Equal texts become one row. Returns how many are left. */
static size_t rows_fold(struct replay_line *rows, size_t count)
{
    size_t kept = 0;

    if (count)
        qsort(rows, count, sizeof *rows, by_text);
    for (size_t i = 0; i < count; i++) {
        if (!kept || by_text(&rows[kept - 1], &rows[i])) {
            rows[kept++] = rows[i];
            continue;
        }
        rows[kept - 1].bytes += rows[i].bytes;
        rows[kept - 1].blocks += rows[i].blocks;
        free(rows[i].text);
    }
    return kept;
}

struct finding {
    struct replay_lines *lines;
    unsigned device;
};

static void sums_tell(const struct sums *s, const struct snapshot_frames *f,
                      struct replay_lines *to)
{
    static const struct snapshot_stack none = {0};

    for (uint32_t stack = 0; stack <= f->stack_count; stack++) {
        uintptr_t place =
            (uintptr_t)map_get(&s->places, stack + UINT64_C(1));
        if (!place)
            continue;
        const struct snapshot_stack *frames =
            stack ? &f->stacks[stack - 1] : &none;
        const struct replay_line *sum = &s->rows[place - 1];

        to->known |= frames->count > 0;
        line_add(&to->rows, &to->count,
                 frames->count ? line_text(f, frames) : xstrdup(NO_STACK), sum);
        line_add(&to->folded, &to->folded_count,
                 frames->count ? folded_text(f, frames) : xstrdup(NO_STACK),
                 sum);
    }
}

static void blocks_take(void *context, const struct snapshot *at)
{
    const struct finding *finding = context;
    struct replay_lines *to = finding->lines;
    struct sums sums = {0};

    for (size_t i = 0; i < at->segment_count; i++) {
        const struct snapshot_segment *g = &at->segments[i];

        for (size_t k = 0; g->device == finding->device && k < g->block_count;
             k++)
            if (g->blocks[k].state != SNAPSHOT_INACTIVE)
                block_add(&sums, &g->blocks[k]);
    }
    sums_tell(&sums, &at->frames, to);
    to->count = rows_fold(to->rows, to->count);
    to->folded_count = rows_fold(to->folded, to->folded_count);
    if (to->count)
        qsort(to->rows, to->count, sizeof *to->rows, by_bytes);
    map_fini(&sums.places);
    free(sums.rows);
}

int replay_lines_find(struct replay_lines *lines, const struct recording *rec,
                      struct err *err)
{
    struct finding finding = {lines, rec->whatif.device};

    *lines = (struct replay_lines){0};
    return recording_blocks(rec, blocks_take, &finding, err);
}

static void rows_fini(struct replay_line *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(rows[i].text);
    free(rows);
}

void replay_lines_fini(struct replay_lines *lines)
{
    rows_fini(lines->rows, lines->count);
    rows_fini(lines->folded, lines->folded_count);
    *lines = (struct replay_lines){0};
}
