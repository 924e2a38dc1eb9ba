/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/flame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/attribution/stack_text.h"
#include "memsim/result/result.h"

struct folded {
    char *text;
    uint64_t bytes;
};

/* A frame may hold neither a semicolon nor a line's end. */
static void frame_put(FILE *out, const char *frame)
{
    for (; *frame; frame++)
        fputc(*frame == ';' || (unsigned char)*frame < ' ' ? '_' : *frame, out);
    fputc(';', out);
}

/* The outermost first. */
static void stack_put(FILE *out, const char *stack)
{
    char **frames;
    size_t count = stack_frames(stack, &frames);

    for (size_t i = 0; i < count; i++)
        frame_put(out, frames[i]);
    stack_frames_free(frames, count);
}

static char *block_fold(const struct attribution *a,
                        const struct attribution_block *b, const char *place)
{
    const char *module =
        b->module < a->module_count ? a->modules[b->module].name : "";
    const char *made = b->operation && *b->operation ? b->operation : b->label;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        abort(); /* only for lack of memory */
    frame_put(out, place);
    if (b->stack)
        stack_put(out, b->stack);
    else
        frame_put(out, *module ? module : "(no module)");
    frame_put(out,
              made && *made ? made : attribution_category_name(b->category));
    fclose(out);
    text[length - 1] = '\0'; /* the last semicolon */
    return text;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(((const struct folded *)x)->text,
                  ((const struct folded *)y)->text);
}

static void device_write(const struct attribution *a, const char *place,
                         FILE *out)
{
    struct folded *all = xcalloc(a->block_count + 1, sizeof *all);
    size_t count = 0;

    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i].allocated)
            all[count++] = (struct folded){block_fold(a, &a->blocks[i], place),
                                           a->blocks[i].bytes};
    qsort(all, count, sizeof *all, by_text);
    for (size_t i = 0, next; i < count; i = next) {
        uint64_t bytes = all[i].bytes;
        for (next = i + 1; next < count && !by_text(&all[i], &all[next]);)
            bytes += all[next++].bytes;
        fprintf(out, "%s %" PRIu64 "\n", all[i].text, bytes);
    }
    for (size_t i = 0; i < count; i++)
        free(all[i].text);
    free(all);
}

static void flame_write(const void *result, const struct report_style *style,
                        FILE *out)
{
    (void)style;
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        char place[64];

        if (!w.device->attribution)
            continue;
        snprintf(place, sizeof place, "rank %u, GPU %u", w.rank->rank,
                 w.device->index);
        device_write(w.device->attribution, place, out);
    }
}

const struct report_ops report_flame = {.write = flame_write};
