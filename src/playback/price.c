/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "kernels/kernel.h"
#include "runtime/cost/cost_image.h"
#include "runtime/cost/cost_memo.h"
#include "runtime/sim/sim_cost.h"
#include "playback/launch_memo.h"

#define SCALE_MAX 1e6
#define GEMM_TILE 128 /* rows and columns of a block: cuBLAS' usual tile */

/* A link's share of its data sheet that NCCL reaches on large messages, and the
 * time of a small one; used where no cluster is named. The band says the rest.
 */
#define LINK_EFFICIENCY 0.75
#define LINK_LATENCY_US 15
#define LINK_BAND       1.5
#define SMALL_BYTES     8 /* of a collective that is all latency */

_Static_assert(COST_GAP_NS == SIM_GAP_NS, "gaps inside a call are as others");
_Static_assert(COST_LAUNCH_NS == SIM_LAUNCH_NS, "and so are launches");

/* A kernel's name, as it was read once. */
struct kernel {
    struct work_kernel work;
    uint64_t hash;
};

struct pricer {
    struct price_options options;
    struct cost_gpu limits;
    struct map kernels; /* struct kernel by the name's id + 1 */
    struct cost_memo memo;
    struct launch_memo launches;
    uint32_t comm_fill; /* SMs that a collective takes, of SIM_WHOLE */
};

struct pricer *pricer_create(const struct price_options *options)
{
    struct pricer *p = xcalloc(1, sizeof *p);
    struct sim_gpu sim;

    p->options = *options;
    cost_gpu_set(options->gpu, &p->limits);
    sim_gpu_set(&sim, options->gpu->sm_count, options->gpu->nccl_channels, 0,
                0);
    p->comm_fill = sim.comm_takes;
    return p;
}

void pricer_destroy(struct pricer *p)
{
    size_t cursor = 0;

    for (void *kernel; (kernel = map_next(&p->kernels, &cursor));)
        xfree(kernel);
    map_fini(&p->kernels);
    xfree(p);
}

void pricer_slow(struct pricer *p, double slow)
{
    p->options.slow = slow;
}

/* --- collectives ---------------------------------------------------------- */

static double factor_of(const struct pricer *p, enum sim_link link)
{
    double factor = p->options.link[link];

    return factor > 0 ? factor : 1;
}

/* Bus bytes over the link, at the data sheet's rate. */
static double link_us(const struct pricer *p, enum fit_coll coll, double bytes,
                      uint32_t ranks)
{
    double gbps = p->limits.nvlink_gbps > 0 ? p->limits.nvlink_gbps
                                            : p->limits.pcie_gbps;

    if (ranks < 2 || !(gbps > 0))
        return 0;
    return LINK_LATENCY_US + fit_coll_factor(coll, ranks) * bytes /
                                 (1e3 * gbps * LINK_EFFICIENCY *
                                  factor_of(p, SIM_LINK_NODE));
}

/* The bytes' part of ANSWER at another speed of its link: what is above the
 * time of a few bytes. With a faster network what remains of it is at least the
 * time inside a node. */
static void link_scale(const struct pricer *p, const struct cost_nccl_query *q,
                       struct cost_nccl_answer *answer)
{
    const struct fit *fit = &p->options.cluster->fit;
    enum sim_link link = q->nodes > 1 ? SIM_LINK_NODES : SIM_LINK_NODE;
    struct cost_nccl_query small = *q, inside = *q;
    struct cost_nccl_answer least, floor;
    double factor = factor_of(p, link);

    small.bytes = SMALL_BYTES;
    inside.nodes = 1;
    if (factor == 1 || q->bytes <= SMALL_BYTES ||
        cost_nccl(fit, &small, &least))
        return;
    double us = least.us + fmax(answer->us - least.us, 0) / factor;
    if (link == SIM_LINK_NODES && inside.gpus_per_node > 1 &&
        !cost_nccl(fit, &inside, &floor))
        us = fmax(us, fmin(answer->us, floor.us / factor_of(p, SIM_LINK_NODE)));
    double ratio = us / answer->us;
    answer->us = us;
    answer->low_us *= ratio;
    answer->high_us *= ratio;
}

/* Ranks of a communicator whose places are not known fill nodes in order. */
static int cluster_us(const struct pricer *p, struct cost_nccl_query *q,
                      uint32_t ranks, const struct price_place *place,
                      struct cost_nccl_answer *answer)
{
    const struct cluster *c = p->options.cluster;
    uint32_t width = c->gpus_per_node ? c->gpus_per_node : 8;

    if (place && place->nodes) {
        q->gpus_per_node = place->gpus_per_node;
        q->nodes = place->nodes;
        q->users = place->users;
    } else {
        q->gpus_per_node = ranks < width ? ranks : width;
        q->nodes = (ranks + width - 1) / width;
    }
    q->quantile = p->options.quantile;
    if (cost_nccl(&c->fit, q, answer))
        return -1;
    link_scale(p, q, answer);
    return 0;
}

static void price_band(struct cost_answer *a, double us, double error)
{
    a->ns = (uint64_t)llround(us * 1e3);
    a->low_ns = (uint64_t)llround(us * 1e3 / (1 + error));
    a->high_ns = (uint64_t)llround(us * 1e3 * (1 + error));
}

static void price_collective(const struct pricer *p, const char *name,
                             const struct trace_collective *c,
                             const struct price_place *place,
                             struct price *price)
{
    uint32_t ranks =
        place && place->ranks ? place->ranks : (uint32_t)c->ranks;
    struct cost_nccl_query q = {.coll = FIT_SENDRECV,
                                .bytes = (double)c->bytes,
                                .in_place = c->send == c->receive};
    struct cost_nccl_answer answer;

    fit_coll_of_call(name, &q.coll);
    price->family = WORK_COLLECTIVE;
    price->engine = SIM_COMM;
    price->fill = p->comm_fill;
    if (ranks < 2)
        return;
    price->link_bytes = fit_coll_factor(q.coll, ranks) * q.bytes;
    if (p->options.cluster && !cluster_us(p, &q, ranks, place, &answer)) {
        price->link = q.nodes > 1 ? SIM_LINK_NODES : SIM_LINK_NODE;
        price->answer.basis = p->options.cluster->measured && !answer.flags
                                  ? COST_FITTED
                                  : COST_ROOFLINE;
        price->answer.ns = (uint64_t)llround(answer.us * 1e3);
        price->answer.low_ns = (uint64_t)llround(answer.low_us * 1e3);
        price->answer.high_ns = (uint64_t)llround(answer.high_us * 1e3);
        return;
    }
    price->answer.basis = COST_FALLBACK;
    price_band(&price->answer, link_us(p, q.coll, q.bytes, ranks),
               LINK_BAND - 1);
}

/* --- work ----------------------------------------------------------------- */

static const struct kernel *kernel_get(struct pricer *p, uint32_t name,
                                       const struct trace_names *names)
{
    struct kernel *kernel = map_get(&p->kernels, (uint64_t)name + 1);

    if (kernel)
        return kernel;
    kernel = xcalloc(1, sizeof *kernel);
    work_kernel_read(trace_names_get(names, name), &kernel->work);
    kernel->hash = hash_text(HASH_START, trace_names_get(names, name));
    map_put(&p->kernels, (uint64_t)name + 1, kernel);
    return kernel;
}

static enum sim_engine engine_of(const struct op *op, const struct work *work)
{
    if (op->kind == OP_HOST_FUNCTION)
        return SIM_STREAM_ONLY;
    if (op->kind != OP_COPY)
        return SIM_COMPUTE;
    switch (work->direction) {
    case TRACE_HOST_TO_DEVICE:
        return SIM_COPY_IN;
    case TRACE_DEVICE_TO_HOST:
        return SIM_COPY_OUT;
    default:
        return SIM_COMPUTE; /* within a GPU a copy is the memory's work */
    }
}

static uint64_t count_tiles(uint64_t extent)
{
    return (extent + GEMM_TILE - 1) / GEMM_TILE;
}

/* How many of WORK's blocks the GPU holds at a time. */
static double blocks_held(const struct gpu *gpu, const struct work *work)
{
    double of_sm = work->family == WORK_GEMM || !work->threads
                       ? 1
                       : gpu->max_threads_per_sm / work->threads;

    if (gpu->max_blocks_per_sm && of_sm > gpu->max_blocks_per_sm)
        of_sm = gpu->max_blocks_per_sm;
    return gpu->sm_count * (of_sm < 1 ? 1 : of_sm);
}

static uint32_t share_of(const struct pricer *p, const struct work *work)
{
    double blocks = (double)work->blocks;

    if (work->family == WORK_GEMM && !work->blocks)
        blocks =
            (double)(count_tiles(work->gemm.m) * count_tiles(work->gemm.n)) *
            (double)(work->gemm.batch ? work->gemm.batch : 1);
    double share = blocks / blocks_held(p->options.gpu, work);
    if (!(blocks > 0) || share >= 1)
        return SIM_WHOLE;
    return (uint32_t)(share * SIM_WHOLE) + 1;
}

/* The key under which a fit may have OP's launch. */
static uint64_t launch_key(const struct op *op, const struct kernel *kernel)
{
    const struct trace_launch *l = op_as_launch(op);
    const uint32_t grid[] = {(uint32_t)l->grid_x_y,
                             (uint32_t)(l->grid_x_y >> 32),
                             (uint32_t)l->grid_z_block_x};
    const uint32_t block[] = {(uint32_t)(l->grid_z_block_x >> 32),
                              (uint32_t)l->block_y_z,
                              (uint32_t)(l->block_y_z >> 32)};

    return cost_kernel_key(kernel->hash, grid, block);
}

static void price_model(struct pricer *p, const struct kernel *kernel,
                        const struct work *work, struct cost_answer *answer)
{
    const struct cost_image *image = p->options.image;

    cost_memo_price(&p->memo, image, &p->limits, work, answer);
    if (kernel && image && image->kernel_count)
        cost_correct_kernel(image, cost_name_key(kernel->hash), work, answer);
}

/* A kernel that stands for a collective on a real GPU (capture/emulate) lasts
 * as long as its launch says, and is in others' way as that would be. One that
 * stands for a delay is in nobody's. */
static void price_told(const struct pricer *p, const struct work *work,
                       struct price *price)
{
    bool talks = work->family == WORK_COLLECTIVE;

    price->engine = talks ? SIM_COMM : SIM_STREAM_ONLY;
    price->fill = talks ? p->comm_fill : 0;
    price->link = talks && work->between_nodes ? SIM_LINK_NODES : SIM_LINK_NODE;
    price->longer_parts = work->told_parts;
    price->answer = (struct cost_answer){.ns = work->told_ns,
                                         .low_ns = work->told_ns,
                                         .high_ns = work->told_ns,
                                         .basis = COST_MEASURED};
}

static void price_work(struct pricer *p, const struct op *op,
                       const struct trace_names *names, struct price *price)
{
    const struct cost_image *image = p->options.image;
    const struct kernel *kernel = NULL;
    struct work work = {.family = WORK_NOTHING};

    if (op->kind == OP_LAUNCH)
        kernel = kernel_get(p, op->name, names);
    if (kernel)
        work_describe_launch(op, &kernel->work, &work);
    else
        work_describe(op, trace_names_get(names, op->name), &work);
    price->family = work.family;
    price->type = work.type;
    price->flops = work.is_part ? 0 : work.flops;
    price->is_part = work.is_part;
    price->launches = work.launches;
    if (work.family == WORK_NOTHING)
        return;
    if (!kernel || !image || !image->kernel_count ||
        cost_price_kernel(image, launch_key(op, kernel), &price->answer))
        price_model(p, kernel, &work, &price->answer);
    if (work.told_ns) {
        price_told(p, &work, price);
        return;
    }
    price->engine = engine_of(op, &work);
    price->share = share_of(p, &work);
    price->fill = price->engine == SIM_COMPUTE ? price->share : 0;
}

void price_scale(struct cost_answer *a, double scale)
{
    a->ns = (uint64_t)llround((double)a->ns * scale);
    a->low_ns = (uint64_t)llround((double)a->low_ns * scale);
    a->high_ns = (uint64_t)llround((double)a->high_ns * scale);
}

/* The factor of --scale. */
static void price_factor(const struct pricer *p, struct price *price)
{
    double scale = p->options.scale[price->family];

    if (scale > 0)
        price_scale(&price->answer, scale);
}

void pricer_collective(struct pricer *p, const char *name,
                       const struct trace_collective *c,
                       const struct price_place *place, struct price *price)
{
    *price = (struct price){.engine = SIM_COMPUTE, .share = SIM_WHOLE};
    price_collective(p, name, c, place, price);
    price_factor(p, price);
}

static void price_new(struct pricer *p, const struct op *op,
                      const struct trace_names *names,
                      const struct price_place *place, struct price *price)
{
    if (op->kind == OP_COLLECTIVE) {
        pricer_collective(p, trace_names_get(names, op->name),
                          (const struct trace_collective *)op->fields, place,
                          price);
        return;
    }
    *price = (struct price){.engine = SIM_COMPUTE, .share = SIM_WHOLE};
    price_work(p, op, names, price);
    price_factor(p, price);
    if (p->options.slow > 0 && price->engine == SIM_COMPUTE)
        price_scale(&price->answer, p->options.slow);
}

void pricer_price(struct pricer *p, const struct op *op,
                  const struct trace_names *names,
                  const struct price_place *place, struct price *price)
{
    uint64_t key = op->kind == OP_LAUNCH ? launch_memo_key(op) : 0;
    const struct price *known =
        key ? launch_memo_find(&p->launches, key) : NULL;

    if (known) {
        *price = *known;
        return;
    }
    price_new(p, op, names, place, price);
    if (key)
        launch_memo_put(&p->launches, key, price);
}

enum work_family pricer_family(struct pricer *p, uint32_t name,
                               const struct trace_names *names)
{
    return kernel_family(&kernel_get(p, name, names)->work);
}

/* --- --scale -------------------------------------------------------------- */

static int scale_one(const char *text, size_t length,
                     double scale[WORK_FAMILIES], struct err *err)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : 0;
    char *end;

    if (!equals)
        return err_set(err, "--scale: '%.*s' is not of the form gemm=0.8",
                       (int)length, text);
    double factor = strtod(equals + 1, &end);
    if (end == equals + 1 || end != text + length || !(factor > 0) ||
        factor > SCALE_MAX)
        return err_set(err,
                       "--scale: '%.*s' is no factor: above 0, at most %g",
                       (int)(length - name - 1), equals + 1, SCALE_MAX);
    for (int i = 0; i < WORK_FAMILIES; i++) {
        const char *known = work_family_name((enum work_family)i);
        if (strlen(known) == name && !memcmp(known, text, name)) {
            scale[i] = factor;
            return 0;
        }
    }
    return err_set(err,
                   "--scale: no family is called '%.*s'; gemm, "
                   "elementwise, copy, collective are (memsim(1) lists "
                   "all)",
                   (int)name, text);
}

int price_scale_parse(const char *text, double scale[WORK_FAMILIES],
                      struct err *err)
{
    while (*text) {
        size_t length = strcspn(text, ",");
        if (scale_one(text, length, scale, err))
            return -1;
        text += length + (text[length] == ',');
    }
    return 0;
}

/* --- --link --------------------------------------------------------------- */

int price_link_parse(const char *text, double link[SIM_LINKS], struct err *err)
{
    static const char *const names[SIM_LINKS] = {
        [SIM_LINK_NODE] = "intra", [SIM_LINK_NODES] = "inter"};

    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, "=,");
        int found = 0;
        char *end;
        while (found < SIM_LINKS && (strlen(names[found]) != name ||
                                     memcmp(names[found], at, name)))
            found++;
        double factor = at[name] == '=' ? strtod(at + name + 1, &end) : 0;
        if (found == SIM_LINKS || !(factor > 0) || factor > SCALE_MAX ||
            end + (*end == 'x') != at + length)
            return err_set(err,
                           "--link: '%.*s' is not of the form inter=2x; links "
                           "are intra and inter",
                           (int)length, at);
        link[found] = factor;
        at += length + (at[length] == ',');
    }
    return 0;
}
