/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/time/timing_internal.h"

/* The host's times of a step differ by so much from run to run and from
 * machine to machine; see doc/time.md. */
#define HOST_ERROR 0.3

/* A job of many GPUs takes what no price has: GPUs and hosts that differ, links
 * that others use. So four of five published steps are in the band; see
 * doc/evidence/truth-distributed.md. A profile has all that. */
#define MANY_ERROR 0.06

/* Device time of one step, by family, for the band. */
struct step_sum {
    double ns[WORK_FAMILIES];
    double below[WORK_FAMILIES], above[WORK_FAMILIES];
    double link_bytes[SIM_LINKS];
};

struct reading {
    const struct simulation *timeline;
    struct timing *t;
    struct step_sum *sums; /* by step */
    size_t sum_count;
    struct module_table modules;
    struct trace_names names;
    struct tally by_module, by_operator, forward; /* the last by module */
    struct map examples; /* struct simulation_op by operator_key + 1 */
    struct path path;
    struct busy busy;
    double basis_ns[COST_BASES], flop_ns;
    uint64_t ops, unknown_ops; /* of the steps that are counted */
    uint64_t steady; /* steps that are counted */
    bool prepared;
    const struct gpu *gpu;
    struct cost_gpu limits;
};

/* --- while the trace is read ---------------------------------------------- */

static bool is_counted(const struct reading *r, uint32_t step)
{
    const struct step_list *l = &r->timeline->steps;

    return step < l->count && (!l->steps[step].warm_up || !r->steady);
}

/* The steps are known before the first operation. */
static void prepare_reading(struct reading *r)
{
    const struct step_list *l = &r->timeline->steps;

    if (r->prepared)
        return;
    r->prepared = true;
    r->sums = xcalloc(l->count + 1, sizeof *r->sums);
    for (size_t i = 0; i < l->count; i++)
        r->steady += !l->steps[i].warm_up;
    r->path.step = l->count ? (uint32_t)l->count - 1 : SIMULATION_NO_STEP - 1;
}

/* What of the bands of single prices is left in a step, whose shapes err to
 * both sides: so that four of five steps are in the band, of 44 on GPUs with
 * fits of their own, and of the 307 that the estimates are from. Borrowed
 * prices of kernels that memory bounds are of those; all other errors of a
 * borrowed price, and of a roofline, are those of all shapes. So are those of
 * kernels that only training has: none of the 307 trains. See doc/time.md. */
#define LEFT_FITTED    0.7
#define LEFT_ESTIMATED 0.55

static bool is_memory_bound(enum work_family family)
{
    return family >= WORK_ELEMENTWISE && family <= WORK_POOL;
}

static bool is_of_training(enum work_family family)
{
    return family == WORK_NORM_BACKWARD || family == WORK_SOFTMAX_BACKWARD ||
           family == WORK_ATTENTION_BACKWARD || family == WORK_OPTIMIZER ||
           family == WORK_CONVOLUTION_DGRAD ||
           family == WORK_CONVOLUTION_WGRAD;
}

static double band_left(const struct price *p)
{
    double estimated = is_of_training(p->family) ? 1 : LEFT_ESTIMATED;

    switch (p->answer.basis) {
    case COST_MEASURED:
    case COST_FITTED:
        return LEFT_FITTED;
    case COST_ESTIMATED:
        return estimated;
    case COST_BORROWED:
        return is_memory_bound(p->family) ? estimated : 1;
    default:
        return 1;
    }
}

static void band_add(struct step_sum *s, const struct price *p)
{
    const struct cost_answer *a = &p->answer;
    double left = band_left(p);

    s->ns[p->family] += (double)a->ns;
    s->link_bytes[p->link] += p->link_bytes;
    if (a->low_ns < a->ns)
        s->below[p->family] += left * (double)(a->ns - a->low_ns);
    if (a->high_ns > a->ns)
        s->above[p->family] += left * (double)(a->high_ns - a->ns);
}

static void on_op(void *context, const struct simulation_op *op)
{
    struct reading *r = context;
    uint64_t key = operator_key(op);
    double ns = (double)op->price.answer.ns;

    prepare_reading(r);
    path_add_op(&r->path, op);
    busy_add(&r->busy, op);
    if (op->step < r->timeline->steps.count)
        band_add(&r->sums[op->step], &op->price);
    if (!is_counted(r, op->step))
        return;
    tally_add(&r->by_module, op->module, ns);
    tally_add(&r->by_operator, key, ns);
    if (op->phase == TRACE_PHASE_FORWARD)
        tally_add(&r->forward, op->module, ns);
    if (!map_get(&r->examples, key + 1)) {
        struct simulation_op *example = xmalloc(sizeof *example);
        *example = *op;
        map_put(&r->examples, key + 1, example);
    }
    r->basis_ns[op->price.answer.basis] += ns;
    r->ops++;
    r->unknown_ops += op->price.answer.basis == COST_FALLBACK;
    double peak = r->limits.tflops[op->price.type];
    if (op->price.family >= WORK_GEMM &&
        op->price.family <= WORK_CONVOLUTION_WGRAD && peak > 0)
        r->flop_ns += op->price.flops / (peak * 1e3);
}

static void on_call(void *context, const struct simulation_call *call)
{
    struct reading *r = context;

    prepare_reading(r);
    path_add_call(&r->path, call);
}

static void on_record(void *context, const struct trace_item *item, uint64_t ns)
{
    struct reading *r = context;
    uint32_t parent;

    (void)ns;
    trace_names_add(&r->names, item);
    if (item->head.kind != TRACE_MODULE)
        return;
    const struct trace_module *m = trace_as_module(item);
    module_table_name(&r->modules, (uint32_t)m->module, (uint32_t)m->root,
                      trace_names_get(&r->names, m->name), &parent);
}

/* --- steps ---------------------------------------------------------------- */

/* The device that computed most in all. */
static uint32_t main_device(const struct simulation *t)
{
    uint64_t most = 0;
    uint32_t found = 0;

    for (uint32_t d = 0; t->steps.count && d < t->device_count; d++) {
        const uint64_t *use = t->ends[t->steps.count - 1].use_ns[d];
        if (use[SIM_USE_COMPUTE] > most) {
            most = use[SIM_USE_COMPUTE];
            found = d;
        }
    }
    return found;
}

static uint64_t time_used(const struct simulation *t, size_t step,
                          uint32_t device, enum sim_use use)
{
    uint64_t from = t->begins[step].use_ns[device][use];
    uint64_t to = t->ends[step].use_ns[device][use];

    return to > from ? to - from : 0;
}

static uint64_t part_take(uint64_t *left, uint64_t wanted)
{
    uint64_t taken = wanted < *left ? wanted : *left;

    *left -= taken;
    return taken;
}

static void step_uses(const struct simulation *t, size_t i, uint32_t d,
                      struct timing_step *step)
{
    uint64_t left = step->duration_ns;

    step->overlapped_comm_ns = time_used(t, i, d, SIM_USE_COMPUTE_COMM);
    step->compute_ns =
        part_take(&left, time_used(t, i, d, SIM_USE_COMPUTE) +
                             time_used(t, i, d, SIM_USE_COMPUTE_COMM) +
                             time_used(t, i, d, SIM_USE_COMPUTE_COPY));
    step->bubble_ns = part_take(&left, time_used(t, i, d, SIM_USE_BUBBLE));
    step->peers_ns = part_take(&left, time_used(t, i, d, SIM_USE_PEERS));
    step->exposed_comm_ns =
        step->peers_ns + part_take(&left, time_used(t, i, d, SIM_USE_COMM));
    step->exposed_copy_ns = part_take(&left, time_used(t, i, d, SIM_USE_COPY));
    step->host_bound_ns = part_take(&left, time_used(t, i, d, SIM_USE_HOST));
    step->other_ns = left;
}

static bool has_links(const struct step_sum *s)
{
    for (int k = 0; k < SIM_LINKS; k++)
        if (s->link_bytes[k] > 0)
            return true;
    return false;
}

/* Errors of one family go the same way, those of different ones do not; while
 * the GPU waits for the host, only the host's count. */
static void step_band(const struct step_sum *s, bool is_profile,
                      struct timing_step *step)
{
    double below = 0, above = 0, all = 0, duration = (double)step->duration_ns;
    double busy = duration - (double)step->host_bound_ns;
    double host = HOST_ERROR * (double)step->host_bound_ns;
    double many = has_links(s) && !is_profile ? busy : 0;

    for (int f = 0; f < WORK_FAMILIES; f++) {
        below += s->below[f] * s->below[f];
        above += s->above[f] * s->above[f];
        all += s->ns[f];
    }
    double part = all > busy ? busy / all : 1; /* the rest is hidden */
    double low = duration - hypot(part * sqrt(below), MANY_ERROR * many) - host;
    step->low_ns = low > 0 ? (uint64_t)low : 0;
    step->high_ns = (uint64_t)(
        duration + hypot(part * sqrt(above), MANY_ERROR * many) + host);
}

static void steps_conclude(struct reading *r)
{
    const struct simulation *l = r->timeline;
    struct timing *t = r->t;
    uint32_t device = main_device(l);

    t->rule = l->steps.rule;
    t->imported = l->imported;
    t->step_count = l->steps.count;
    t->steps = xcalloc(t->step_count + 1, sizeof *t->steps);
    for (size_t i = 0; i < t->step_count; i++) {
        struct timing_step *step = &t->steps[i];
        step->duration_ns = l->ends[i].ns > l->begins[i].ns
                                ? l->ends[i].ns - l->begins[i].ns
                                : 0;
        if (l->imported)
            step->measured_ns =
                l->ends[i].measured_ns - l->begins[i].measured_ns;
        step->warm_up = l->steps.steps[i].warm_up;
        step->calls = l->steps.steps[i].calls;
        step->input = l->steps.steps[i].input;
        step_uses(l, i, device, step);
        step_band(&r->sums[i], l->imported, step);
        for (int k = 0; k < SIM_LINKS; k++)
            step->link_bytes[k] = (uint64_t)r->sums[i].link_bytes[k];
    }
}

static int duration_compare(const void *a, const void *b)
{
    const struct timing_step *x = *(struct timing_step *const *)a;
    const struct timing_step *y = *(struct timing_step *const *)b;

    if (x->duration_ns != y->duration_ns)
        return x->duration_ns < y->duration_ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void typical_find(struct timing *t)
{
    struct timing_step **sorted =
        xcalloc(t->step_count + 1, sizeof(struct timing_step *));
    size_t count = 0;

    for (size_t i = 0; i < t->step_count; i++)
        if (!t->steps[i].warm_up)
            sorted[count++] = &t->steps[i];
    qsort(sorted, count, sizeof(struct timing_step *), duration_compare);
    t->typical = count ? (size_t)(sorted[(count - 1) / 2] - t->steps) : 0;
    free(sorted);
}

/* --- lists ---------------------------------------------------------------- */

static void operators_conclude(struct reading *r, double steps)
{
    struct timing *t = r->t;
    char text[256];

    t->operators = xcalloc(r->by_operator.count + 1, sizeof *t->operators);
    for (size_t i = 0; i < r->by_operator.count; i++) {
        const struct tally_row *row = &r->by_operator.rows[i];
        size_t at = 0;
        operator_name(map_get(&r->examples, row->key + 1), &r->names, text,
                      sizeof text);
        while (at < t->operator_count && strcmp(t->operators[at].name, text))
            at++;
        if (at == t->operator_count)
            t->operators[t->operator_count++].name = xstrdup(text);
        t->operators[at].ns += row->ns / steps;
        t->operators[at].calls += row->calls / steps;
    }
    t->operator_count = rows_finish(t->operators, t->operator_count);
}

/* Adds to TOTAL what OWN has, to each module with what lies below it. */
static void modules_add(const struct reading *r, const struct tally *own,
                        struct tally *total)
{
    for (size_t i = 0; i < own->count; i++) {
        uint32_t id = (uint32_t)own->rows[i].key;
        for (unsigned depth = 0; id && id < r->modules.count && depth < 1000;
             depth++) {
            tally_add(total, id, own->rows[i].ns);
            id = r->modules.rows[id].parent;
        }
    }
}

static void modules_conclude(struct reading *r, double steps)
{
    struct timing *t = r->t;
    struct tally total = {.count = 0}, forward = {.count = 0};

    modules_add(r, &r->by_module, &total);
    modules_add(r, &r->forward, &forward);
    module_table_count(&r->modules);
    t->modules = xcalloc(total.count + 1, sizeof *t->modules);
    for (size_t i = 0; i < total.count; i++) {
        const struct tally_row *row = &total.rows[i];
        t->modules[t->module_count++] = (struct timing_row){
            .name = module_table_title(&r->modules, (uint32_t)row->key),
            .ns = row->ns / steps,
            .forward_ns = tally_get(&forward, row->key) / steps,
        };
    }
    t->module_count = rows_finish(t->modules, t->module_count);
    tally_fini(&total);
    tally_fini(&forward);
}

static void input_conclude(struct reading *r)
{
    struct timing *t = r->t;
    uint64_t id = t->step_count ? t->steps[t->typical].input.module : 0;

    if (id && id < r->modules.count)
        t->input_module = module_table_title(&r->modules, (uint32_t)id);
}

static void basis_conclude(struct reading *r, double steps)
{
    double all = 0;

    for (int i = 0; i < COST_BASES; i++)
        all += r->basis_ns[i];
    r->t->device_ns = all / steps;
    for (int i = 0; all > 0 && i < COST_BASES; i++)
        r->t->basis[i] = r->basis_ns[i] / all;
    if (r->timeline->measured_ns)
        r->t->unmodelled = (double)r->timeline->unmodelled_ns /
                           (double)r->timeline->measured_ns;
    r->t->unknown = r->ops ? (double)r->unknown_ops / (double)r->ops : 0;
}

static void conclude_reading(struct reading *r)
{
    struct timing *t = r->t;
    double steps;

    steps_conclude(r);
    typical_find(t);
    busy_conclude(&r->busy, r->timeline,
                  r->timeline->devices[main_device(r->timeline)], t);
    steps = (double)(r->steady ? r->steady : t->step_count);
    steps = steps > 0 ? steps : 1;
    basis_conclude(r, steps);
    operators_conclude(r, steps);
    modules_conclude(r, steps);
    input_conclude(r);
    if (timing_step_ns(t))
        t->mfu = r->flop_ns / steps / (double)timing_step_ns(t);
    if (t->step_count)
        path_find(&r->path, &r->names, t);
    t->ops = r->timeline->ops;
    t->end_ns = r->timeline->end_ns;
    t->host_ns = r->timeline->host_ns;
    t->seen_ns = r->timeline->seen_ns;
    t->network_users = r->timeline->network_users;
    t->stuck = r->timeline->stuck;
    t->stuck_place = r->timeline->stuck_place;
    memcpy(t->delayed, r->timeline->delayed, sizeof t->delayed);
    memcpy(t->delay_ns, r->timeline->delay_ns, sizeof t->delay_ns);
    t->library_calls = r->timeline->library_calls;
    t->dead_rank = r->timeline->dead_rank;
    t->dead_step = r->timeline->dead_step;
}

static void reading_fini(struct reading *r)
{
    size_t cursor = 0;

    for (void *example; (example = map_next(&r->examples, &cursor));)
        free(example);
    map_fini(&r->examples);
    tally_fini(&r->by_module);
    tally_fini(&r->by_operator);
    tally_fini(&r->forward);
    module_table_fini(&r->modules);
    trace_names_fini(&r->names);
    path_fini(&r->path);
    busy_fini(&r->busy);
    free(r->sums);
}

static struct simulation_sink reading_init(struct reading *r, struct timing *t,
                                           const struct simulation *timeline,
                                           const struct gpu *gpu)
{
    *r = (struct reading){.t = t, .timeline = timeline, .gpu = gpu};
    *t = (struct timing){.rule = STEP_NONE};
    cost_gpu_set(gpu, &r->limits);
    return (struct simulation_sink){
        .op = on_op, .call = on_call, .record = on_record, .context = r};
}

int timing_read(struct timing *t, const char *path,
                const struct simulation_options *options, struct err *err)
{
    struct simulation timeline;
    struct reading r;
    const struct simulation_sink sink =
        reading_init(&r, t, &timeline, options->price.gpu);

    int rc = simulation_run(&timeline, path, options, &sink, NULL, err);
    if (!rc) {
        prepare_reading(&r);
        conclude_reading(&r);
        simulation_fini(&timeline);
    }
    reading_fini(&r);
    return rc;
}

/* What the simulation of RANK has told. */
static void rank_conclude(struct timing_rank *rank, struct reading *r,
                          struct simulation_rank *simulated)
{
    rank->failed = simulated->failed;
    rank->err = simulated->err;
    if (!rank->failed) {
        prepare_reading(r);
        conclude_reading(r);
        simulation_fini(&simulated->result);
    }
    reading_fini(r);
}

static void job_read(struct timing_rank *ranks,
                     const struct simulation_peers *peers,
                     const struct simulation_options *options)
{
    size_t all = peers->count + peers->beside;
    struct simulation_rank *simulated = xcalloc(all + 1, sizeof *simulated);
    struct reading *readings = xcalloc(peers->count + 1, sizeof *readings);

    memcpy(simulated, peers->ranks, all * sizeof *simulated);
    for (size_t i = 0; i < peers->count; i++)
        simulated[i].sink =
            reading_init(&readings[i], &ranks[i].timing, &simulated[i].result,
                         options->price.gpu);
    simulation_job(simulated, all, peers->job, options);
    for (size_t i = 0; i < peers->count; i++)
        rank_conclude(&ranks[i], &readings[i], &simulated[i]);
    simulation_ranks_fini(simulated + peers->count, peers->beside);
    free(readings);
    free(simulated);
}

/* Whether the GPU of any rank waits for its host, as far as that can be taken
 * away. */
static bool is_host_bound(const struct timing_rank *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct timing *t = &ranks[i].timing;
        if (!ranks[i].failed && t->step_count && !t->imported &&
            t->steps[t->typical].host_bound_ns)
            return true;
    }
    return false;
}

bool timing_is_busy(const struct timing *t)
{
    return t->host_busy.waited > TIMING_FIRM_WAITED ||
           t->host_busy.others > TIMING_FIRM_OTHERS;
}

bool timing_is_unsure(const struct timing *t)
{
    return t->keeps_up_ns && t->keeps_up_ns < timing_step_ns(t) &&
           (t->host_steps < TIMING_FIRM_STEPS ||
            t->host_spread > TIMING_FIRM_SPREAD || timing_is_busy(t));
}

/* The step of the slowest of RANKS: which one is slowest with this machine's
 * host may differ from run to run. */
static uint64_t slowest_ns(const struct timing_rank *ranks, size_t count)
{
    uint64_t most = 0;

    for (size_t i = 0; i < count; i++)
        if (!ranks[i].failed && timing_step_ns(&ranks[i].timing) > most)
            most = timing_step_ns(&ranks[i].timing);
    return most;
}

/* Gives T what KEEPS, the same with a host that takes no time, says of it; STEP
 * is that of the job. */
static void keeps_up_take(struct timing *t, const struct timing *keeps,
                          uint64_t step)
{
    t->keeps_up_ns = timing_step_ns(keeps) ? step : 0;
    for (size_t i = 0;
         timing_is_unsure(t) && i < t->step_count && i < keeps->step_count; i++)
        if (keeps->steps[i].low_ns < t->steps[i].low_ns)
            t->steps[i].low_ns = keeps->steps[i].low_ns;
}

void timing_read_job(struct timing_rank *ranks,
                     const struct simulation_peers *peers,
                     const struct simulation_options *options)
{
    struct simulation_options without = *options;

    job_read(ranks, peers, options);
    for (size_t i = 0; i < peers->count; i++) {
        ranks[i].timing.host_steps = peers->ranks[i].plan->times.steps;
        ranks[i].timing.host_spread = peers->ranks[i].plan->times.spread;
        ranks[i].timing.host_busy = peers->ranks[i].plan->times.busy;
        if (!ranks[i].failed && !ranks[i].timing.imported)
            ranks[i].timing.keeps_up_ns = timing_step_ns(&ranks[i].timing);
    }
    without.host_factor = 0;
    if (!(options->host_factor > 0) || !is_host_bound(ranks, peers->count))
        return;
    struct timing_rank *keeps = xcalloc(peers->count + 1, sizeof *keeps);
    job_read(keeps, peers, &without);
    uint64_t step = slowest_ns(keeps, peers->count);
    for (size_t i = 0; i < peers->count; i++) {
        if (!ranks[i].failed && !keeps[i].failed && !ranks[i].timing.imported)
            keeps_up_take(&ranks[i].timing, &keeps[i].timing, step);
        if (!keeps[i].failed)
            timing_fini(&keeps[i].timing);
    }
    free(keeps);
}

void timing_fini(struct timing *t)
{
    rows_free(t->modules, t->module_count);
    rows_free(t->operators, t->operator_count);
    rows_free(t->path, t->path_count);
    free(t->utilization.windows);
    free(t->utilization.measured);
    free(t->utilization.busy);
    free(t->utilization.measured_busy);
    free(t->steps);
    free(t->input_module);
    *t = (struct timing){.rule = STEP_NONE};
}

void timing_destroy(struct timing *t)
{
    if (t)
        timing_fini(t);
    free(t);
}

uint64_t timing_step_ns(const struct timing *t)
{
    return t->step_count ? t->steps[t->typical].duration_ns : 0;
}
