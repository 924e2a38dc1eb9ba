/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/tree_node.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array_sort.h"
#include "common/base/bisect.h"
#include "common/base/text_begins.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define SIZE_LENGTH 16

/* Parts are alike where the smallest has at least so much of the largest. */
#define ALIKE 0.8

/* A part that has so much of a module is shown in its place. */
#define WHOLE 0.995

static int by_parent(const void *x, const void *y, void *context)
{
    const struct attribution *a = context;
    size_t i = *(const size_t *)x, j = *(const size_t *)y;

    if (a->modules[i].parent != a->modules[j].parent)
        return a->modules[i].parent < a->modules[j].parent ? -1 : 1;
    return i < j ? -1 : 1;
}

static int by_module(const void *x, const void *y, void *context)
{
    const struct attribution *a = context;
    size_t i = *(const size_t *)x, j = *(const size_t *)y;

    if (a->blocks[i].module != a->blocks[j].module)
        return a->blocks[i].module < a->blocks[j].module ? -1 : 1;
    return i < j ? -1 : 1;
}

void tree_nodes_init(struct tree_nodes *t, const struct attribution *a)
{
    *t = (struct tree_nodes){.a = a};
    t->order = xcalloc(a->module_count + 1, sizeof *t->order);
    t->blocks = xcalloc(a->block_count + 1, sizeof *t->blocks);
    for (size_t i = 0; i < a->module_count; i++)
        t->order[i] = i;
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i].allocated)
            t->blocks[t->block_count++] = i;
    qsort_r(t->order, a->module_count, sizeof *t->order, by_parent, (void *)a);
    qsort_r(t->blocks, t->block_count, sizeof *t->blocks, by_module, (void *)a);
}

void tree_nodes_fini(struct tree_nodes *t)
{
    free(t->order);
    free(t->blocks);
}

/* The first place in the order of PARENT's children. */
static size_t children_find(const struct tree_nodes *t, size_t parent)
{
    return BISECT(i, t->a->module_count,
                  t->a->modules[t->order[i]].parent < parent);
}

/* --- parts ---------------------------------------------------------------- */

const char *tree_short_name(const char *name, const char *above)
{
    size_t length = strlen(above);

    if (length && !strncmp(name, above, length) && name[length] == '.')
        return name + length + 1;
    return name;
}

struct nodes {
    struct tree_node *all;
    size_t count;
};

static const char *short_name(const struct tree_nodes *t, size_t module)
{
    const struct attribution_module *m = &t->a->modules[module];

    return tree_short_name(
        m->name, m->parent == SIZE_MAX ? "" : t->a->modules[m->parent].name);
}

static void node_add(struct tree_node *n, const struct tree_nodes *t,
                     size_t module)
{
    const struct attribution_module *m = &t->a->modules[module];

    n->members = xreallocarray(n->members, n->count + 1, sizeof *n->members);
    n->members[n->count++] = module;
    n->bytes += m->bytes_at_peak;
    n->own_bytes += m->self_bytes;
}

static void children_add(struct nodes *nodes, const struct tree_nodes *t,
                         size_t parent)
{
    for (size_t i = children_find(t, parent);
         i < t->a->module_count && t->a->modules[t->order[i]].parent == parent;
         i++) {
        if (!t->a->modules[t->order[i]].bytes_at_peak)
            continue;
        nodes->all =
            xreallocarray(nodes->all, nodes->count + 1, sizeof *nodes->all);
        struct tree_node *n = &nodes->all[nodes->count++];
        *n = (struct tree_node){.parts = 1,
                                .name = xstrdup(short_name(t, t->order[i]))};
        node_add(n, t, t->order[i]);
    }
}

static int by_name(const void *x, const void *y)
{
    const struct tree_node *a = x, *b = y;
    int order = strverscmp(a->name, b->name);

    return order ? order : strcmp(a->name, b->name);
}

static int by_size(const void *x, const void *y)
{
    const struct tree_node *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return by_name(x, y);
}

static void node_fini(struct tree_node *n)
{
    free(n->members);
    free(n->name);
}

/* OTHER becomes a part of INTO. */
static void node_merge(struct tree_node *into, struct tree_node *other)
{
    into->members = xreallocarray(into->members, into->count + other->count,
                                  sizeof *into->members);
    memcpy(into->members + into->count, other->members,
           other->count * sizeof *other->members);
    into->count += other->count;
    into->bytes += other->bytes;
    into->own_bytes += other->own_bytes;
    node_fini(other);
}

/* Parts of the same name, of several modules told as one, are one. */
static void same_names_merge(struct nodes *nodes)
{
    size_t kept = 0;

    array_sort(nodes->all, nodes->count, sizeof *nodes->all, by_name);
    for (size_t i = 0; i < nodes->count; i++)
        if (kept && !strcmp(nodes->all[kept - 1].name, nodes->all[i].name))
            node_merge(&nodes->all[kept - 1], &nodes->all[i]);
        else
            nodes->all[kept++] = nodes->all[i];
    nodes->count = kept;
}

static bool is_number(const char *name)
{
    size_t length = strspn(name, "0123456789");

    return length && length < 10 && !name[length];
}

static int by_number(const void *x, const void *y)
{
    unsigned long a = strtoul(((const struct tree_node *)x)->name, NULL, 10);
    unsigned long b = strtoul(((const struct tree_node *)y)->name, NULL, 10);

    return a < b ? -1 : a > b;
}

/* "0-2,5", of COUNT nodes in the order of their numbers. */
static char *ranges_text(const struct tree_node *nodes, size_t count)
{
    char *text = xstrdup("");

    for (size_t i = 0, last; i < count; i = last + 1) {
        unsigned long first = strtoul(nodes[i].name, NULL, 10);
        for (last = i;
             last + 1 < count &&
             strtoul(nodes[last + 1].name, NULL, 10) == first + (last + 1 - i);)
            last++;
        char *longer =
            last > i ? xasprintf("%s%s%lu-%lu", text, *text ? "," : "", first,
                                 first + (last - i))
                     : xasprintf("%s%s%lu", text, *text ? "," : "", first);
        free(text);
        text = longer;
    }
    return text;
}

/* The COUNT numbered nodes at FIRST, alike, become the first of them. */
static void numbers_merge(struct tree_node *first, size_t count, bool equal)
{
    char each[SIZE_LENGTH];

    qsort(first, count, sizeof *first, by_number);
    char *ranges = ranges_text(first, count);
    for (size_t i = 1; i < count; i++)
        node_merge(first, &first[i]);
    free(first->name);
    units_format_bytes(first->bytes / count, each, sizeof each);
    first->name = xasprintf("%s, each %s%s", ranges, equal ? "" : "~", each);
    first->parts = count;
    first->is_list = true;
    free(ranges);
}

/* NODES are sorted by size: numbered ones that follow each other in it and are
 * alike become one. */
static void layers_merge(struct nodes *nodes)
{
    struct nodes numbered = {NULL, 0};
    size_t kept = 0;

    numbered.all = xcalloc(nodes->count + 1, sizeof *numbered.all);
    for (size_t i = 0; i < nodes->count; i++)
        if (is_number(nodes->all[i].name))
            numbered.all[numbered.count++] = nodes->all[i];
        else
            nodes->all[kept++] = nodes->all[i];
    for (size_t i = 0, next; i < numbered.count; i = next) {
        uint64_t most = numbered.all[i].bytes;
        for (next = i + 1;
             next < numbered.count &&
             (double)numbered.all[next].bytes >= ALIKE * (double)most;)
            next++;
        if (next > i + 1)
            numbers_merge(&numbered.all[i], next - i,
                          numbered.all[next - 1].bytes == most);
        nodes->all[kept++] = numbered.all[i];
    }
    free(numbered.all);
    nodes->count = kept;
    array_sort(nodes->all, nodes->count, sizeof *nodes->all, by_size);
}

static struct nodes parts_of(const struct tree_nodes *t,
                             const struct tree_node *above)
{
    struct nodes nodes = {NULL, 0};

    if (!above->count)
        children_add(&nodes, t, SIZE_MAX);
    for (size_t i = 0; i < above->count; i++)
        children_add(&nodes, t, above->members[i]);
    same_names_merge(&nodes);
    array_sort(nodes.all, nodes.count, sizeof *nodes.all, by_size);
    layers_merge(&nodes);
    return nodes;
}

/* N, whose largest part has all of it, becomes one with that part. Returns
 * whether it did. */
static bool node_descend(struct tree_node *n, const struct tree_nodes *t)
{
    struct nodes parts = parts_of(t, n);
    bool whole =
        parts.count && (double)parts.all[0].bytes >= WHOLE * (double)n->bytes;

    if (whole) {
        struct tree_node *part = &parts.all[0];
        char *name = xasprintf("%s.%s", n->name, part->name);
        uint64_t outside = n->bytes - part->bytes;
        free(n->name);
        free(n->members);
        n->name = name;
        n->members = part->members;
        n->count = part->count;
        n->own_bytes = part->own_bytes + outside;
        n->is_list |= part->is_list;
        part->members = NULL;
    }
    tree_node_free(parts.all, parts.count);
    return whole;
}

size_t tree_node_children(const struct tree_nodes *t,
                          const struct tree_node *above,
                          struct tree_node **nodes)
{
    struct nodes parts = parts_of(t, above);

    for (size_t i = 0; i < parts.count; i++)
        while (node_descend(&parts.all[i], t))
            continue;
    *nodes = parts.all;
    return parts.count;
}

void tree_node_free(struct tree_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        node_fini(&nodes[i]);
    free(nodes);
}

/* --- what a module holds itself ------------------------------------------- */

const char *tree_category_words(enum trace_category category)
{
    static const char *const words[TRACE_CATEGORY_COUNT] = {
        [TRACE_CATEGORY_PARAMETER] = "parameters",
        [TRACE_CATEGORY_BUFFER] = "buffers",
        [TRACE_CATEGORY_GRADIENT] = "gradients",
        [TRACE_CATEGORY_OPTIMIZER] = "optimizer state",
        [TRACE_CATEGORY_INPUT] = "inputs",
        [TRACE_CATEGORY_UNSHARDED_PARAMETER] = "unsharded parameters",
        [TRACE_CATEGORY_UNSHARDED_GRADIENT] = "unsharded gradients",
    };

    return words[category] ? words[category]
                           : attribution_category_name(category);
}

/* What many tensors are is said by their category; what the others are, by the
 * operator that made them as well. */
static char *own_name(const struct attribution_block *b)
{
    bool many = b->category != TRACE_CATEGORY_ACTIVATION &&
                b->category != TRACE_CATEGORY_TEMPORARY &&
                b->category != TRACE_CATEGORY_OTHER;
    const char *made = b->operation && *b->operation ? b->operation : b->label;

    if (many || !made || !*made)
        return xstrdup(tree_category_words(b->category));
    if (text_begins(made, "aten::"))
        made += 6;
    if (b->category == TRACE_CATEGORY_ACTIVATION)
        return xstrdup(made);
    return xasprintf("%s, %s", made, attribution_category_name(b->category));
}

static int own_by_name(const void *x, const void *y)
{
    return strcmp(((const struct tree_own *)x)->name,
                  ((const struct tree_own *)y)->name);
}

static int own_by_size(const void *x, const void *y)
{
    const struct tree_own *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

static size_t own_merge(struct tree_own *own, size_t count)
{
    size_t kept = 0;

    qsort(own, count, sizeof *own, own_by_name);
    for (size_t i = 0; i < count; i++)
        if (kept && !strcmp(own[kept - 1].name, own[i].name)) {
            own[kept - 1].bytes += own[i].bytes;
            free(own[i].name);
        } else {
            own[kept++] = own[i];
        }
    qsort(own, kept, sizeof *own, own_by_size);
    return kept;
}

/* The first place of MODULE's blocks. */
static size_t blocks_find(const struct tree_nodes *t, size_t module)
{
    return BISECT(i, t->block_count,
                  t->a->blocks[t->blocks[i]].module < module);
}

static void own_add(const struct tree_nodes *t, size_t module,
                    struct tree_own **own, size_t *count)
{
    for (size_t i = blocks_find(t, module); i < t->block_count; i++) {
        const struct attribution_block *b = &t->a->blocks[t->blocks[i]];
        if (b->module != module)
            return;
        *own = xreallocarray(*own, *count + 1, sizeof **own);
        (*own)[(*count)++] = (struct tree_own){own_name(b), b->bytes};
    }
}

size_t tree_own_list(const struct tree_nodes *t, const struct tree_node *node,
                     struct tree_own **own)
{
    size_t count = 0;

    *own = NULL;
    if (!node->count)
        own_add(t, SIZE_MAX, own, &count);
    for (size_t i = 0; i < node->count; i++)
        own_add(t, node->members[i], own, &count);
    return own_merge(*own, count);
}

void tree_own_free(struct tree_own *own, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(own[i].name);
    free(own);
}
