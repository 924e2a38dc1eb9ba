/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_after.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/list_launches.h"

#define CAT_TENSORS    128 /* of a launch: CAT_ARRAY_BATCH_SIZE */
#define BLOCK_ELEMENTS 512 /* of an elementwise kernel: at least */

/* A list of parameters: as recorded, and with the wanted layers. */
struct list {
    uint64_t *sizes, *wanted;
    size_t count, wanted_count;
};

static void list_fini(struct list *l)
{
    free(l->sizes);
    free(l->wanted);
}

/* Puts the sizes of the first layer, the last COUNT of L->wanted, there EXTRA
 * times more. */
static void list_repeat(struct list *l, size_t count, size_t extra)
{
    size_t first = l->wanted_count - count;

    for (size_t i = 0; i < count * extra; i++)
        l->wanted[l->wanted_count++] = l->wanted[first + i];
}

/* Puts those of COUNT parameters with LEAST to MOST elements into SIZES;
 * returns how many they are. */
static size_t sizes_take(uint64_t *sizes, const struct parameter *all,
                         size_t count, uint64_t least, uint64_t most)
{
    size_t taken = 0;

    for (size_t i = 0; i < count; i++)
        if (all[i].elements >= least && all[i].elements <= most)
            sizes[taken++] = all[i].elements;
    return taken;
}

/* The parameters of LEAST to MOST elements, of the recording and of the job. */
static struct list list_of_job(const struct layer_after *a, uint64_t least,
                               uint64_t most)
{
    const struct records *r = a->rewrite->records;
    struct list l = {.count = 0};

    l.sizes = xcalloc(r->parameter_count + 1, sizeof *l.sizes);
    l.wanted = xcalloc(a->job_count + 1, sizeof *l.wanted);
    l.count =
        sizes_take(l.sizes, r->parameters, r->parameter_count, least, most);
    l.wanted_count = sizes_take(l.wanted, a->job, a->job_count, least, most);
    return l;
}

/* The parameters of LEAST to MOST elements. Layers that are added come behind
 * the first; those that go are the second and so on. */
static struct list list_make(const struct layer_after *a, uint64_t least,
                             uint64_t most)
{
    if (a->job)
        return list_of_job(a, least, most);
    const struct records *r = a->rewrite->records;
    const struct layer_modules *m = a->modules;
    size_t extra = a->wanted > m->count ? a->wanted - m->count : 0;
    uint32_t gone = a->wanted < m->count ? m->count - a->wanted : 0;
    size_t of_first = 0; /* sizes of the first layer */
    struct list l = {.count = 0};

    l.sizes = xcalloc(r->parameter_count + 1, sizeof *l.sizes);
    l.wanted = xcalloc(r->parameter_count + extra * m->per_layer + 1,
                       sizeof *l.wanted);
    for (size_t i = 0; i < r->parameter_count; i++) {
        uint64_t elements = r->parameters[i].elements;
        uint32_t layer = m->layer_of[i]; /* from 1 */
        if (elements >= least && elements <= most) {
            l.sizes[l.count++] = elements;
            if (layer < 2 || layer > gone + 1)
                l.wanted[l.wanted_count++] = elements;
            of_first += layer == 1;
        }
        if (layer == 1 &&
            (i + 1 == r->parameter_count || m->layer_of[i + 1] != 1))
            list_repeat(&l, of_first, extra);
    }
    return l;
}

/* --- lists of tensors ----------------------------------------------------- */

static struct list_place place_of(const struct layer_after *a)
{
    return (struct list_place){a->rewrite->records, a->marks->ops, a->end};
}

static struct trace_launch *launch_at(const struct layer_after *a, size_t op)
{
    const struct list_place place = place_of(a);

    return list_launch_at(&place, op);
}

/* Changes the launches from OP on where they are LIST, cut as VARIANT does.
 * Returns how many they are; 0: they are not. */
static size_t try_variant(const struct layer_after *a, size_t op,
                          const struct list *list, unsigned variant)
{
    const struct list_place place = place_of(a);
    size_t count =
        list_launches_find(&place, op, list->sizes, list->count, variant);

    if (count)
        list_launches_replace(a->rewrite, op, count, list->wanted,
                              list->wanted_count, variant);
    return count;
}

/* The same with the variant that the kernel should have, else another. */
static size_t try_list(const struct layer_after *a, size_t op,
                       const struct list *list)
{
    const struct records *r = a->rewrite->records;
    unsigned expected = list_variant(
        trace_names_get(&r->names, launch_at(a, op)->name), r->torch);
    size_t count = 0;

    for (unsigned i = 0; !count && i < LIST_VARIANTS; i++)
        count = try_variant(a, op, list, expected ^ i);
    return count;
}

static size_t try_limits(const struct layer_after *a, size_t op, uint64_t least,
                         uint64_t most)
{
    struct list list = list_make(a, least, most);
    size_t count = list.count ? try_list(a, op, &list) : 0;

    list_fini(&list);
    return count;
}

/* A number of each parameter, as the fused optimizers' steps. */
static size_t try_numbers(const struct layer_after *a, size_t op)
{
    struct list list = list_make(a, 0, UINT64_MAX);

    for (size_t i = 0; i < list.count; i++)
        list.sizes[i] = 1;
    for (size_t i = 0; i < list.wanted_count; i++)
        list.wanted[i] = 1;
    size_t count = try_list(a, op, &list);
    list_fini(&list);
    return count;
}

/* All parameters; else those above or below some size, as where weights decay
 * and biases do not. */
static size_t change_list(const struct layer_after *a, size_t op)
{
    const struct records *r = a->rewrite->records;
    size_t count = try_limits(a, op, 0, UINT64_MAX);

    if (!count)
        count = try_numbers(a, op);

    for (size_t i = 0; !count && i < r->parameter_count; i++) {
        uint64_t elements = r->parameters[i].elements;
        count = try_limits(a, op, elements, UINT64_MAX);
        if (!count)
            count = try_limits(a, op, 0, elements);
    }
    return count;
}

/* --- a value of each tensor ----------------------------------------------- */

static uint64_t blocks_of(uint64_t elements)
{
    return (elements + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
}

/* Makes *L, which works on NOW values, work on WANTED. False: it does not. */
static bool values_set(struct trace_launch *l, uint64_t now, uint64_t wanted)
{
    uint32_t x = (uint32_t)l->grid_x_y, y = (uint32_t)(l->grid_x_y >> 32);
    uint32_t rule = (uint32_t)(l->shared_bytes_rule >> 32);

    if (rule == TRACE_RULE_FOREACH)
        return false;
    if (x == now) { /* a block for each */
        l->grid_x_y = trace_pack((uint32_t)wanted, y);
        return true;
    }
    if (l->a != now)
        return false;
    l->a = wanted;
    if (rule == TRACE_RULE_CAT && l->b == now && y == now) {
        l->b = wanted;
        l->grid_x_y = trace_pack(x, (uint32_t)wanted);
    } else if (rule == TRACE_RULE_ELEMENTWISE && x == blocks_of(now)) {
        l->grid_x_y = trace_pack((uint32_t)blocks_of(wanted), y);
    }
    return true;
}

static bool change_values(const struct layer_after *a, size_t op, uint64_t now,
                          uint64_t wanted)
{
    struct rewrite *w = a->rewrite;
    size_t record = a->marks->ops[op];
    struct edit edit = {EDIT_REPLACE, record, record + 1, 1, 0, 0, 0};
    struct record like = w->records->all[record];
    uint64_t fields[TRACE_FIELDS_MAX];

    memcpy(fields, records_fields(w->records, &like), sizeof fields);
    if (like.kind != TRACE_LAUNCH ||
        !values_set((struct trace_launch *)fields, now, wanted))
        return false;
    edit.first = records_add(w->records, &like, fields, "");
    rewrite_add(w, &edit);
    return true;
}

/* Gathers the values of NOW tensors, CAT_TENSORS with each launch. Returns the
 * launches from OP on that do; 0: they do something else. */
static size_t change_gather(const struct layer_after *a, size_t op,
                            uint64_t now, uint64_t wanted)
{
    size_t count = 0;
    uint64_t gathered = 0;

    while (op + count < a->end && gathered < now) {
        const struct trace_launch *l = launch_at(a, op + count);
        uint64_t most =
            now - gathered < CAT_TENSORS ? now - gathered : CAT_TENSORS;
        if (!l || l->shared_bytes_rule >> 32 != TRACE_RULE_CAT || l->b != most)
            return 0;
        gathered += most;
        count++;
    }
    if (gathered != now)
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct rewrite *w = a->rewrite;
        size_t record = a->marks->ops[op + i];
        struct edit edit = {EDIT_REPLACE,      record, record + 1, 0,
                            w->records->count, 0, 0};
        while (wanted && (!edit.copies || i + 1 == count)) {
            uint64_t most = wanted < CAT_TENSORS ? wanted : CAT_TENSORS;
            struct record like = w->records->all[record];
            uint64_t fields[TRACE_FIELDS_MAX];
            struct trace_launch *l = (struct trace_launch *)fields;
            memcpy(fields, records_fields(w->records, &like), sizeof fields);
            l->a = l->a / l->b * most;
            l->b = most;
            l->grid_x_y = trace_pack((uint32_t)l->grid_x_y, (uint32_t)most);
            records_add(w->records, &like, fields, "");
            edit.copies++;
            wanted -= most;
        }
        rewrite_add(w, &edit);
    }
    return count;
}

/* --- the segment ---------------------------------------------------------- */

static int op_refuse(const struct layer_after *a, size_t op, struct err *err)
{
    const struct trace_launch *l = launch_at(a, op);

    return err_set(err,
                   "--change: layers cannot be changed in this recording: a "
                   "kernel of the optimizer takes a list of %" PRIu64
                   " tensors that is not known (%.60s). `memsim run' of the "
                   "changed script needs no GPU",
                   l->b, trace_names_get(&a->rewrite->records->names, l->name));
}

int layer_after_change(const struct layer_after *a, struct err *err)
{
    struct list all = list_make(a, 0, UINT64_MAX);
    uint64_t now = all.count, wanted = all.wanted_count;

    list_fini(&all);
    for (size_t op = a->first; op < a->end;) {
        size_t count =
            list_launch_is(launch_at(a, op)) ? change_list(a, op) : 0;
        if (!count && list_launch_is(launch_at(a, op))) {
            if (!a->warm_up)
                return op_refuse(a, op, err);
            count = 1;
        }
        if (!count)
            count = change_gather(a, op, now, wanted);
        if (!count)
            change_values(a, op, now, wanted);
        op += count ? count : 1;
    }
    return 0;
}

/* --- profiles ------------------------------------------------------------- */

uint32_t layer_scale_lists(struct rewrite *w, const struct layer_marks *m,
                           size_t first, size_t end, double factor)
{
    struct records *r = w->records;
    uint32_t scaled = 0;

    for (size_t op = first; op < end; op++) {
        size_t at = m->ops[op];
        const struct trace_work *work =
            (const struct trace_work *)records_fields(r, &r->all[at]);
        struct edit edit = {EDIT_REPLACE, at - 1, at, 1, 0, 0, 0};
        if (!at || r->all[at].kind != TRACE_LAUNCH ||
            r->all[at - 1].kind != TRACE_MEASURED ||
            !strstr(trace_names_get(&r->names, work->name),
                    "multi_tensor_apply"))
            continue;
        struct record like = r->all[at - 1];
        uint64_t fields[TRACE_FIELDS_MAX];
        struct trace_measured *measured = (struct trace_measured *)fields;
        memcpy(fields, records_fields(r, &like), sizeof fields);
        measured->duration_ns =
            (uint64_t)((double)measured->duration_ns * factor);
        edit.first = records_add(r, &like, fields, "");
        rewrite_add(w, &edit);
        scaled++;
    }
    return scaled;
}
