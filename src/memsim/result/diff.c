/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/diff.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

/* --- modules -------------------------------------------------------------- */

/* A module under the name by which two runs' are the same one. */
struct key {
    char *name;
    size_t module;
};

struct keys {
    struct key *rows; /* by name */
    size_t count;
};

static int key_compare(const void *x, const void *y)
{
    const struct key *a = x, *b = y;

    return strcmp(a->name, b->name);
}

static size_t root_of(const struct attribution *a, size_t module)
{
    while (a->modules[module].parent != SIZE_MAX)
        module = a->modules[module].parent;
    return module;
}

/* How many modules have something below them and nothing above: models. */
static size_t models_count(const struct attribution *a, size_t *last)
{
    bool *above = xcalloc(a->module_count + 1, sizeof *above);
    size_t count = 0;

    for (size_t i = 0; i < a->module_count; i++)
        if (a->modules[i].parent != SIZE_MAX)
            above[a->modules[i].parent] = true;
    for (size_t i = 0; i < a->module_count; i++)
        if (above[i] && a->modules[i].parent == SIZE_MAX) {
            *last = i;
            count++;
        }
    free(above);
    return count;
}

/* "MODEL.path", though a run with one model alone calls it "path". */
static char *full_name(const struct attribution *a, size_t module)
{
    const char *name = a->modules[module].name;
    const char *root = a->modules[root_of(a, module)].name;
    size_t length = strlen(root);

    if (a->modules[module].parent == SIZE_MAX ||
        (!strncmp(name, root, length) && name[length] == '.'))
        return xstrdup(name);
    return xasprintf("%s.%s", root, name);
}

/* Where each run has one model, those are the same one, whatever their classes
 * are called. */
static void keys_init(struct keys *k, const struct attribution *a, bool single,
                      size_t model)
{
    k->count = a->module_count;
    k->rows = xcalloc(k->count + 1, sizeof *k->rows);
    for (size_t i = 0; i < k->count; i++) {
        k->rows[i].module = i;
        if (!single)
            k->rows[i].name = full_name(a, i);
        else
            k->rows[i].name = xstrdup(i == model ? "" : a->modules[i].name);
    }
    qsort(k->rows, k->count, sizeof *k->rows, key_compare);
}

static void keys_fini(struct keys *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->rows[i].name);
    free(k->rows);
}

/* Both runs' modules, and where each lies in the diff. */
struct merge {
    const struct attribution *a, *b;
    size_t *place_a, *place_b;
    struct diff_device *to;
};

static void module_put(struct merge *m, const struct key *a,
                       const struct key *b)
{
    struct diff_module *to = &m->to->modules[m->to->module_count];

    to->parent = SIZE_MAX;
    to->was = a != NULL;
    to->is = b != NULL;
    if (a) {
        const struct attribution_module *was = &m->a->modules[a->module];
        to->name = was->name;
        to->held.before = was->bytes_at_peak;
        to->self.before = was->self_bytes;
        m->place_a[a->module] = m->to->module_count;
    }
    if (b) {
        const struct attribution_module *is = &m->b->modules[b->module];
        to->name = is->name;
        to->held.after = is->bytes_at_peak;
        to->self.after = is->self_bytes;
        m->place_b[b->module] = m->to->module_count;
    }
    m->to->module_count++;
}

static void modules_merge(struct merge *m, const struct keys *a,
                          const struct keys *b)
{
    size_t i = 0, j = 0;

    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : key_compare(&a->rows[i], &b->rows[j]);
        module_put(m, order <= 0 ? &a->rows[i] : NULL,
                   order >= 0 ? &b->rows[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
}

/* A module that both have is where the run after has it; one that is gone is
 * below what was above it. */
static void parents_merge(struct merge *m)
{
    struct diff_module *to = m->to->modules;

    for (size_t i = 0; i < m->a->module_count; i++) {
        size_t parent = m->a->modules[i].parent;
        if (!to[m->place_a[i]].is && parent != SIZE_MAX)
            to[m->place_a[i]].parent = m->place_a[parent];
    }
    for (size_t i = 0; i < m->b->module_count; i++) {
        size_t parent = m->b->modules[i].parent;
        if (parent != SIZE_MAX)
            to[m->place_b[i]].parent = m->place_b[parent];
    }
}

/* What one layer lost and another gained is told, though the model holds as
 * much as before. */
static void moves_sum(struct diff_device *d)
{
    for (size_t i = 0; i < d->module_count; i++) {
        uint64_t bytes = diff_distance(&d->modules[i].self);
        for (size_t at = i; bytes && at != SIZE_MAX; at = d->modules[at].parent)
            d->modules[at].moved_bytes += bytes;
    }
}

static void attribution_merge(struct diff_device *to,
                              const struct attribution *a,
                              const struct attribution *b)
{
    struct merge m = {
        .a = a,
        .b = b,
        .place_a = xcalloc(a->module_count + 1, sizeof *m.place_a),
        .place_b = xcalloc(b->module_count + 1, sizeof *m.place_b),
        .to = to,
    };
    size_t model_a = 0, model_b = 0;
    bool single =
        models_count(a, &model_a) == 1 && models_count(b, &model_b) == 1;
    struct keys keys_a, keys_b;

    to->modules =
        xcalloc(a->module_count + b->module_count + 1, sizeof *to->modules);
    keys_init(&keys_a, a, single, model_a);
    keys_init(&keys_b, b, single, model_b);
    modules_merge(&m, &keys_a, &keys_b);
    parents_merge(&m);
    moves_sum(to);
    keys_fini(&keys_a);
    keys_fini(&keys_b);
    free(m.place_a);
    free(m.place_b);
}

static uint64_t outside_bytes(const struct attribution *a)
{
    uint64_t bytes = 0, owned = 0;

    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
        bytes += a->at_peak.bytes[c];
    for (size_t i = 0; i < a->module_count; i++)
        owned += a->modules[i].self_bytes;
    return owned < bytes ? bytes - owned : 0;
}

/* --- GPUs ---------------------------------------------------------------- */

static void device_merge(struct diff_device *to, unsigned rank,
                         const struct result_device *a,
                         const struct result_device *b)
{
    *to = (struct diff_device){
        .rank = rank,
        .index = b->index,
        .allocated = {a->peak_allocated_bytes, b->peak_allocated_bytes},
        .reserved = {a->peak_reserved_bytes, b->peak_reserved_bytes},
        .used = {a->peak_used_bytes, b->peak_used_bytes},
        .headroom = {a->headroom_bytes, b->headroom_bytes},
        .attributed = a->attribution && b->attribution,
    };
    if (!to->attributed)
        return;
    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
        to->categories[c] = (struct diff_pair){
            a->attribution->at_peak.bytes[c], b->attribution->at_peak.bytes[c]};
    to->outside = (struct diff_pair){outside_bytes(a->attribution),
                                     outside_bytes(b->attribution)};
    attribution_merge(to, a->attribution, b->attribution);
}

static size_t devices_count(const struct result *r)
{
    size_t count = 0;

    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        count++;
    return count;
}

void diff_make(struct diff *diff, const struct result *before,
               const struct result *after)
{
    size_t count = devices_count(after);

    *diff = (struct diff){.before = before, .after = after};
    diff->devices = xcalloc(count + 1, sizeof *diff->devices);
    for (struct result_walk w = {NULL}; result_walk_next(after, &w);) {
        const struct result_device *a =
            result_device_find(before, w.rank->rank, w.device->index);
        if (a)
            device_merge(&diff->devices[diff->device_count++], w.rank->rank, a,
                         w.device);
    }
    diff->after_alone = count - diff->device_count;
    count = devices_count(before);
    diff->before_alone =
        count > diff->device_count ? count - diff->device_count : 0;
}

void diff_fini(struct diff *diff)
{
    for (size_t i = 0; i < diff->device_count; i++)
        free(diff->devices[i].modules);
    free(diff->devices);
}

/* --- the limit ------------------------------------------------------------ */

int diff_limit_parse(const char *text, struct diff_limit *limit,
                     struct err *err)
{
    char *end;

    *limit = (struct diff_limit){.given = true};
    limit->percent = strtod(text, &end);
    if (isdigit((unsigned char)*text) && !strcmp(end, "%") &&
        limit->percent <= 1e6) {
        limit->relative = true;
        return 0;
    }
    if (!units_parse_bytes(text, &limit->bytes))
        return 0;
    return err_set(err,
                   "--fail-above: '%s' is neither a size such as 512MiB "
                   "nor a percentage such as 2%%",
                   text);
}

static bool is_past(const struct diff_pair *p, const struct diff_limit *limit)
{
    if (p->after <= p->before)
        return false;
    if (!limit->relative)
        return p->after - p->before > limit->bytes;
    return (double)(p->after - p->before) * 100 >
           limit->percent * (double)p->before;
}

static void excess_offer(struct diff_excess *excess,
                         const struct diff_device *d, const char *figure,
                         const struct diff_pair *p,
                         const struct diff_limit *limit)
{
    if (!is_past(p, limit) ||
        (excess->device && diff_distance(p) <= diff_distance(&excess->bytes)))
        return;
    *excess = (struct diff_excess){.device = d, .figure = figure, .bytes = *p};
}

bool diff_is_past(const struct diff *diff, const struct diff_limit *limit,
                  struct diff_excess *excess)
{
    enum verdict before = diff->before->verdict, after = diff->after->verdict;

    *excess = (struct diff_excess){
        .worse = after == VERDICT_FAILED ||
                 (after == VERDICT_OOM && before != VERDICT_OOM)};
    if (excess->worse)
        return true;
    for (size_t i = 0; i < diff->device_count; i++) {
        const struct diff_device *d = &diff->devices[i];
        excess_offer(excess, d, "peak allocated", &d->allocated, limit);
    }
    for (size_t i = 0; !excess->device && i < diff->device_count; i++) {
        const struct diff_device *d = &diff->devices[i];
        excess_offer(excess, d, "peak used", &d->used, limit);
    }
    return excess->device != NULL;
}

/* --- the culprit ---------------------------------------------------------- */

static int64_t pair_growth(const struct diff_pair *p)
{
    return (int64_t)(p->after - p->before);
}

static size_t child_that_grew_most(const struct diff_device *d, size_t parent)
{
    size_t most = SIZE_MAX;

    for (size_t i = 0; i < d->module_count; i++)
        if (d->modules[i].parent == parent &&
            (most == SIZE_MAX || pair_growth(&d->modules[i].held) >
                                     pair_growth(&d->modules[most].held)))
            most = i;
    return most;
}

struct diff_culprit diff_culprit_find(const struct diff_device *d)
{
    struct diff_culprit found = {.bytes = d->outside, .name = ""};
    size_t at = SIZE_MAX;

    for (;;) {
        size_t child = child_that_grew_most(d, at);
        int64_t below =
            child == SIZE_MAX ? 0 : pair_growth(&d->modules[child].held);
        const struct diff_pair *self =
            at == SIZE_MAX ? &d->outside : &d->modules[at].self;
        int64_t most = pair_growth(self) > below ? pair_growth(self) : below;
        if (at != SIZE_MAX && 2 * most < pair_growth(&d->modules[at].held))
            break; /* spread over several */
        if (below <= 0 || pair_growth(self) >= below) {
            found.itself = child != SIZE_MAX;
            found.bytes = *self;
            break;
        }
        at = child;
        found.name = d->modules[at].name;
        found.bytes = d->modules[at].held;
    }
    if (pair_growth(&found.bytes) <= 0)
        found.name = NULL;
    return found;
}

bool diff_devices_alike(const struct diff_device *a,
                        const struct diff_device *b)
{
    return a->index == b->index &&
           !memcmp(&a->allocated, &b->allocated, sizeof a->allocated) &&
           !memcmp(&a->reserved, &b->reserved, sizeof a->reserved) &&
           !memcmp(&a->used, &b->used, sizeof a->used);
}
