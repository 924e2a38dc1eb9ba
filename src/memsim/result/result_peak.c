/* SPDX-License-Identifier: Apache-2.0
 * What was in memory at a GPU's peak, as a part of the result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/attribution/stack_text.h"
#include "common/base/text_begins.h"
#include "memsim/result/result.h"
#include "memsim/result/result_cards.h"
#include "memsim/result/tree_node.h"

#define PEAK_THINGS 64 /* listed one by one */

static void thing_add(struct result_device *device, uint64_t bytes,
                      const char *label)
{
    if (!bytes)
        return;
    struct peak_thing *t = &device->things[device->thing_count++];
    *t = (struct peak_thing){.bytes = bytes};
    snprintf(t->label, sizeof t->label, "%s", label);
}

/* --- blocks by what they are ---------------------------------------------- */

/* A block's place in the list: what is alike becomes one thing. */
struct named {
    char *label;
    char where[PEAK_LABEL_BYTES];
    const struct attribution_block *block;
    uint64_t count, bytes;
};

/* NAME with each number between dots as an asterisk: "layers.*.mlp". */
static char *pattern_of(const char *name)
{
    char *pattern = xstrdup(name), *out = pattern;

    for (const char *at = name; *at;) {
        size_t length = strcspn(at, ".");
        if (length && strspn(at, "0123456789") >= length)
            *out++ = '*';
        else
            memcpy(out, at, length), out += length;
        at += length;
        if (*at)
            *out++ = *at++;
    }
    *out = '\0';
    return pattern;
}

static bool is_state(enum trace_category c)
{
    return c == TRACE_CATEGORY_PARAMETER || c == TRACE_CATEGORY_BUFFER ||
           c == TRACE_CATEGORY_GRADIENT || c == TRACE_CATEGORY_OPTIMIZER ||
           c == TRACE_CATEGORY_UNSHARDED_PARAMETER ||
           c == TRACE_CATEGORY_UNSHARDED_GRADIENT || c == TRACE_CATEGORY_INPUT;
}

/* What B, which has a name in MODULE, is: "parameter layers.*.mlp.weight",
 * "exp_avg of lm_head.weight", "gradient of ln.bias". */
static char *named_words(const struct attribution_block *b, const char *module)
{
    const char *of = strstr(b->name, " of ");
    const char *last = of ? of + strlen(" of ") : b->name;
    const char *dot = *module ? "." : "";

    if (of)
        return xasprintf("%.*s of %s%s%s", (int)(of - b->name), b->name, module,
                         dot, last);
    if (b->category == TRACE_CATEGORY_OPTIMIZER)
        return xasprintf("%s (optimizer state)", last);
    return xasprintf("%s%s%s%s%s", attribution_category_name(b->category),
                     b->category == TRACE_CATEGORY_GRADIENT ? " of " : " ",
                     module, dot, last);
}

/* "parameters of layers.*.mlp", "log_softmax of lm_head (activation)". */
static char *block_words(const struct attribution *a,
                         const struct attribution_block *b)
{
    bool known = b->module < a->module_count && *a->modules[b->module].name;
    char *module = known ? pattern_of(a->modules[b->module].name) : NULL;
    const char *what = tree_category_words(b->category);
    const char *made = b->operation && *b->operation ? b->operation : b->label;
    char *words;

    if (made && text_begins(made, "aten::"))
        made += 6;
    if (b->name)
        words = named_words(b, module ? module : "");
    else if (is_state(b->category) || !made || !*made)
        words = module ? xasprintf("%s of %s", what, module) : xstrdup(what);
    else
        words = module ? xasprintf("%s of %s (%s)", made, module, what)
                       : xasprintf("%s (%s)", made, what);
    free(module);
    return words;
}

static const char *shape_of(const struct named *n)
{
    return n->block->shape ? n->block->shape : "";
}

static int by_text(const struct named *a, const struct named *b)
{
    int order = strcmp(a->label, b->label);

    if (!order)
        order = strcmp(shape_of(a), shape_of(b));
    return order ? order : strcmp(a->where, b->where);
}

static int by_words(const void *x, const void *y)
{
    const struct named *a = x, *b = y;

    if (a->block->bytes != b->block->bytes)
        return a->block->bytes < b->block->bytes ? 1 : -1;
    return by_text(a, b);
}

static int by_bytes(const void *x, const void *y)
{
    const struct named *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return by_text(a, b);
}

static size_t named_merge(struct named *all, size_t count)
{
    size_t kept = 0;

    qsort(all, count, sizeof *all, by_words);
    for (size_t i = 0; i < count; i++)
        if (kept && !by_words(&all[kept - 1], &all[i])) {
            all[kept - 1].count++;
            all[kept - 1].bytes += all[i].bytes;
            free(all[i].label);
        } else {
            all[kept++] = all[i];
        }
    qsort(all, kept, sizeof *all, by_bytes);
    return kept;
}

/* The blocks of A by what they are and by size, the largest first. */
static size_t blocks_name(const struct attribution *a, struct named **named)
{
    size_t count = 0;

    *named = xcalloc(a->block_count + 1, sizeof **named);
    for (size_t i = 0; i < a->block_count; i++) {
        const struct attribution_block *b = &a->blocks[i];
        if (!b->allocated)
            continue;
        struct named *n = &(*named)[count++];
        *n = (struct named){.label = block_words(a, b),
                            .block = b,
                            .count = 1,
                            .bytes = b->bytes};
        stack_line(b->stack, n->where, sizeof n->where);
    }
    return named_merge(*named, count);
}

static void thing_of_block(struct peak_thing *t, const struct attribution *a,
                           const struct named *n)
{
    const struct attribution_block *b = n->block;

    *t =
        (struct peak_thing){.bytes = n->bytes,
                            .count = n->count,
                            .category = attribution_category_name(b->category)};
    snprintf(t->label, sizeof t->label, "%s", n->label);
    if (b->module < a->module_count) {
        char *pattern = pattern_of(a->modules[b->module].name);
        snprintf(t->module, sizeof t->module, "%s", pattern);
        free(pattern);
    }
    if (b->operation)
        snprintf(t->operation, sizeof t->operation, "%s", b->operation);
    snprintf(t->where, sizeof t->where, "%s", n->where);
    snprintf(t->shape, sizeof t->shape, "%s", shape_of(n));
}

/* The same from the attribution, which knows more than the first use. */
static void attributed_add(struct result_device *device)
{
    const struct attribution *a = device->attribution;
    struct named *named;
    uint64_t rest = 0;
    size_t count = blocks_name(a, &named);

    for (size_t i = 0; i < count; i++) {
        if (i < PEAK_THINGS)
            thing_of_block(&device->things[device->thing_count++], a,
                           &named[i]);
        else
            rest += named[i].bytes;
        free(named[i].label);
    }
    free(named);
    thing_add(device, rest, "everything smaller");
}

/* Whether the blocks that the attribution has are all that was allocated. */
static bool has_all_blocks(const struct attribution *a, uint64_t bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; a && i < a->block_count; i++)
        if (a->blocks[i].allocated)
            sum += a->blocks[i].bytes;
    return sum && sum == bytes;
}

/* What is beyond the largest ones becomes one. */
static void blocks_add(struct result_device *device,
                       const struct peak_card *card)
{
    size_t shown =
        card->thing_count < PEAK_THINGS ? card->thing_count : PEAK_THINGS;
    uint64_t rest = 0;

    for (size_t i = 0; i < shown; i++)
        device->things[i] = card->things[i];
    device->thing_count = shown;
    for (size_t i = shown; i < card->thing_count; i++)
        rest += card->things[i].bytes;
    thing_add(device, rest, "everything smaller");
}

/* The trace and the session tell of the same refusals in the same order. */
static void ooms_place(struct result_device *device)
{
    const struct attribution *a = device->attribution;
    size_t at = 0;

    for (size_t i = 0; a && i < device->oom_count; i++)
        if (device->ooms[i].torch && at < a->oom_count)
            device->ooms[i].at = &a->ooms[at++];
}

void result_device_take(struct result_device *device, struct peak_card *card)
{
    char others[96];

    attribution_destroy(device->attribution);
    device->attribution = card->attribution;
    card->attribution = NULL;
    device->range = card->range;
    device->retries = card->retries;
    ooms_place(device);
    free(device->things);
    device->thing_count = 0;
    device->things = xcalloc(PEAK_THINGS + 6, sizeof *device->things);
    if (has_all_blocks(device->attribution, card->allocated_bytes))
        attributed_add(device);
    else
        blocks_add(device, card);
    if (card->torch) {
        thing_add(device,
                  card->reserved_bytes > card->allocated_bytes
                      ? card->reserved_bytes - card->allocated_bytes
                      : 0,
                  "cached by PyTorch, not in use");
        thing_add(device, card->outside_bytes, "cudaMalloc outside PyTorch");
    }
    thing_add(device, device->context_bytes, "CUDA context");
    thing_add(device, device->libraries_bytes, "CUDA libraries");
    thing_add(device, device->others_bytes,
              result_others_text(device, others, sizeof others));
    qsort(device->things, device->thing_count, sizeof *device->things,
          thing_compare);
}
