/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/image.h"

#include <string.h>

#include "common/base/xmalloc.h"
#include "fits/placement.h"
#include "runtime/cost/cost_image.h"

#define MAGIC   UINT64_C(0x31656d69746d656d) /* "memtime1" */
#define ALIGN   UINT64_C(16)
#define MANY    (1u << 20) /* families, curves, knots */

struct playback_image {
    uint64_t magic, bytes;
    uint64_t size_of_options; /* of another build: not ours */
    uint64_t cost_at, cost_bytes; /* 0: none */
    uint64_t cluster_at;          /* 0: none */
    uint64_t delays_at;           /* likewise */
    uint64_t placement_at;        /* likewise */
    struct stragglers stragglers;
    double host_factor;
    double scale[WORK_FAMILIES];
    double link[SIM_LINKS];
    double quantile, slow;
    struct gpu gpu;
};

/* --- making --------------------------------------------------------------- */

struct maker {
    char *text;
    size_t used, capacity;
};

/* A copy of BYTES at FROM in the image; returns where. */
static uint64_t bytes_put(struct maker *m, const void *from, size_t bytes)
{
    uint64_t at = (m->used + ALIGN - 1) & ~(ALIGN - 1);

    if (at + bytes > m->capacity) {
        m->capacity = (at + bytes) * 2;
        m->text = xreallocarray(m->text, m->capacity, 1);
    }
    memset(m->text + m->used, 0, at - m->used);
    if (bytes)
        memcpy(m->text + at, from, bytes);
    m->used = at + bytes;
    return at;
}

static void *as_pointer(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static uint64_t put_curves(struct maker *m, const struct fit_family *f)
{
    uint64_t at = bytes_put(m, f->curves, f->curve_count * sizeof *f->curves);

    for (uint32_t i = 0; i < f->curve_count; i++) {
        const struct fit_curve *c = &f->curves[i];
        uint64_t knots =
            c->knot_count
                ? bytes_put(m, c->knots, c->knot_count * sizeof *c->knots)
                : 0;
        ((struct fit_curve *)(m->text + at))[i].knots = as_pointer(knots);
    }
    return at;
}

static uint64_t put_cluster(struct maker *m, const struct cluster *cluster)
{
    const struct fit *fit = &cluster->fit;
    uint64_t at = bytes_put(m, cluster, sizeof *cluster);
    uint64_t families =
        bytes_put(m, fit->families, fit->family_count * sizeof *fit->families);

    for (uint32_t i = 0; i < fit->family_count; i++) {
        uint64_t curves = put_curves(m, &fit->families[i]);
        ((struct fit_family *)(m->text + families))[i].curves =
            as_pointer(curves);
    }
    ((struct cluster *)(m->text + at))->fit.families = as_pointer(families);
    ((struct cluster *)(m->text + at))->network = NULL; /* of all ranks */
    return at;
}

static uint64_t put_placement(struct maker *m, const struct placement *p)
{
    size_t bytes = p->ranks * sizeof *p->node;
    const struct placement placed = {
        .width = p->width,
        .ranks = p->ranks,
        .node = as_pointer(bytes_put(m, p->node, bytes)),
        .gpu = as_pointer(bytes_put(m, p->gpu, bytes))};

    return bytes_put(m, &placed, sizeof placed);
}

static uint64_t put_delays(struct maker *m, const struct delays *table)
{
    const struct simulation_delays delays = {
        .table = as_pointer(bytes_put(m, table, sizeof *table))};

    return bytes_put(m, &delays, sizeof delays);
}

void *playback_image_make(const struct simulation_options *options,
                          size_t *bytes)
{
    const struct price_options *price = &options->price;
    struct playback_image head = {.magic = MAGIC,
                                  .size_of_options = sizeof *options,
                                  .host_factor = options->host_factor,
                                  .stragglers = options->stragglers,
                                  .gpu = *price->gpu};
    struct maker m = {NULL, 0, 0};

    memcpy(head.scale, price->scale, sizeof head.scale);
    memcpy(head.link, price->link, sizeof head.link);
    head.quantile = price->quantile;
    head.slow = price->slow;
    bytes_put(&m, &head, sizeof head);
    if (price->image) {
        head.cost_bytes = price->image->bytes;
        head.cost_at = bytes_put(&m, price->image, head.cost_bytes);
    }
    if (price->cluster)
        head.cluster_at = put_cluster(&m, price->cluster);
    if (options->placement && options->placement->ranks)
        head.placement_at = put_placement(&m, options->placement);
    if (options->delays)
        head.delays_at = put_delays(&m, options->delays->table);
    head.bytes = m.used;
    memcpy(m.text, &head, sizeof head);
    *bytes = m.used;
    return m.text;
}

/* --- opening -------------------------------------------------------------- */

struct opened {
    char *text;
    uint64_t bytes;
};

/* COUNT things of SIZE bytes AT; NULL: they are not all in the image. */
static void *image_at(const struct opened *o, uint64_t at, uint64_t count,
                      uint64_t size)
{
    if (at % ALIGN || at > o->bytes || !count || count > MANY ||
        count * size > o->bytes - at)
        return NULL;
    return o->text + at;
}

static uint64_t as_offset(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static int open_family(const struct opened *o, struct fit_family *f)
{
    f->curves =
        image_at(o, as_offset(f->curves), f->curve_count, sizeof *f->curves);
    for (uint32_t i = 0; f->curves && i < f->curve_count; i++) {
        struct fit_curve *c = &f->curves[i];
        c->knots = c->knot_count ? image_at(o, as_offset(c->knots),
                                            c->knot_count, sizeof *c->knots)
                                 : NULL;
        if (c->knot_count && !c->knots)
            return -1;
    }
    return f->curves ? 0 : -1;
}

static const char *open_cluster(const struct opened *o, uint64_t at,
                                struct price_options *price)
{
    struct cluster *cluster = image_at(o, at, 1, sizeof *cluster);
    struct fit *fit = cluster ? &cluster->fit : NULL;

    if (!fit)
        return "its cluster is cut";
    fit->families = image_at(o, as_offset(fit->families), fit->family_count,
                             sizeof *fit->families);
    if (fit->family_count && !fit->families)
        return "its cluster is cut";
    for (uint32_t i = 0; i < fit->family_count; i++)
        if (open_family(o, &fit->families[i]))
            return "its cluster is cut";
    price->cluster = cluster;
    return NULL;
}

static const char *open_cost(const struct opened *o,
                             const struct playback_image *head,
                             struct price_options *price)
{
    if (head->cost_bytes > o->bytes || head->cost_at % ALIGN ||
        head->cost_at > o->bytes - head->cost_bytes)
        return "its fit is cut";
    price->image = (const struct cost_image *)(o->text + head->cost_at);
    return cost_image_check(price->image, head->cost_bytes);
}

static const char *open_placement(const struct opened *o, uint64_t at,
                                  struct simulation_options *options)
{
    struct placement *p = image_at(o, at, 1, sizeof *p);

    if (p) {
        p->node = image_at(o, as_offset(p->node), p->ranks, sizeof *p->node);
        p->gpu = image_at(o, as_offset(p->gpu), p->ranks, sizeof *p->gpu);
    }
    if (!p || !p->node || !p->gpu)
        return "its placement is cut";
    options->placement = p;
    return NULL;
}

static bool is_table(const struct delays *table)
{
    if (table->count > DELAYS_MAX || table->library[DELAY_PATH - 1])
        return false;
    for (uint32_t i = 0; i < table->count; i++)
        if (!table->all[i].every ||
            table->all[i].name[sizeof table->all[i].name - 1])
            return false;
    return true;
}

static const char *open_delays(const struct opened *o, uint64_t at,
                               struct simulation_options *options)
{
    struct simulation_delays *delays = image_at(o, at, 1, sizeof *delays);

    if (delays)
        *delays = (struct simulation_delays){
            .table = image_at(o, as_offset(delays->table), 1,
                              sizeof *delays->table)};
    if (!delays || !delays->table || !is_table(delays->table))
        return "its table of delays is cut";
    options->delays = delays;
    return NULL;
}

int playback_image_open(void *image, size_t bytes,
                        struct simulation_options *options, struct err *err)
{
    const struct opened o = {image, bytes};
    const struct playback_image *head = image;
    const char *wrong = NULL;

    if (bytes < sizeof *head || head->magic != MAGIC || head->bytes != bytes ||
        head->size_of_options != sizeof *options)
        return err_set(err, "it is not of this version of memsim");
    *options = (struct simulation_options){
        .host_factor = head->host_factor,
        .host_as_recorded = true,
        .stragglers = head->stragglers,
        .price.gpu = &head->gpu,
    };
    memcpy(options->price.scale, head->scale, sizeof head->scale);
    memcpy(options->price.link, head->link, sizeof head->link);
    options->price.quantile = head->quantile;
    options->price.slow = head->slow;
    if (head->cost_at)
        wrong = open_cost(&o, head, &options->price);
    if (!wrong && head->cluster_at)
        wrong = open_cluster(&o, head->cluster_at, &options->price);
    if (!wrong && head->placement_at)
        wrong = open_placement(&o, head->placement_at, options);
    if (!wrong && head->delays_at)
        wrong = open_delays(&o, head->delays_at, options);
    if (wrong)
        return err_set(err, "%s", wrong);
    return 0;
}
