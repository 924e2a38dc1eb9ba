/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/output_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "common/base/json_text.h"
#include "fits/cost_fit.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/output_delay.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/cluster/batch_groups.h"
#include "memsim/cluster/collate.h"
#include "memsim/cluster/comm_width.h"
#include "memsim/report/chakra.h"
#include "memsim/report/kineto_write.h"
#include "memsim/report/result_read.h"
#include "memsim/report/result_verdict.h"
#include "memsim/report/time_diff.h"
#include "memsim/report/time_report.h"
#include "memsim/run/rundir.h"
#include "memsim/time/dependencies.h"
#include "memsim/time/flow_plan.h"
#include "memsim/time/time_job.h"

#define HOST_SPEED_MAX     1e6
#define DEPENDENCIES_SHOWN 5

/* 0: the host takes no time. */
static int host_factor(const char *text, double *factor, struct err *err)
{
    char *end;

    *factor = 1;
    if (!text)
        return 0;
    double speed = strtod(text, &end);
    if (end == text || *end || !(speed >= 0) || speed > HOST_SPEED_MAX)
        return err_set(err, "--host-speed: '%s' is no number from 0 to %g",
                       text, HOST_SPEED_MAX);
    *factor = speed > 0 ? 1 / speed : 0;
    return 0;
}

int output_time_quantile(const struct output_options *options,
                         double *quantile, struct err *err)
{
    const char *text = options->quantile;
    char *end;

    *quantile = 0;
    if (!text)
        return 0;
    *quantile = strtod(text, &end);
    if (end == text || *end || !(*quantile >= 0.5) || *quantile > 0.99)
        return err_set(err, "--quantile: '%s' is no number from 0.5 to 0.99",
                       text);
    return 0;
}

/* The step time of --base, as a result to compare with. */
static int base_read(const char *path, struct result_file *base,
                     struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = result_read(text, length, path, base, err);
    free(text);
    if (rc)
        return -1;
    if (time_slowest(&base->result))
        return 0;
    result_file_fini(base);
    return err_set(err, "--base: %s has no step time", path);
}

static int check_gate(const struct output_options *o, struct err *err)
{
    struct result_file base;
    double percent;

    if (!o->fail_slower != !o->base)
        return err_set(err, "--fail-slower and --base need each other");
    if (!o->base)
        return 0;
    if (time_limit_parse("fail-slower", o->fail_slower, &percent, err) ||
        base_read(o->base, &base, err))
        return -1;
    result_file_fini(&base);
    return 0;
}

int output_time_gate(const struct output_options *o, struct result *result,
                     struct err *err)
{
    struct result_file base;
    struct time_diff diff;
    double limit;

    if (!o->base || result->verdict != VERDICT_FITS)
        return 0;
    if (time_limit_parse("fail-slower", o->fail_slower, &limit, err) ||
        base_read(o->base, &base, err))
        return -1;
    time_diff_make(&diff, &base.result, result);
    double slower = time_gate_percent(&diff);
    int rc = diff.known ? 0
                        : err_set(err, "--fail-slower: no training step was "
                                       "found whose time could be compared");
    if (!rc && slower > limit) {
        result->verdict = VERDICT_OVER_LIMIT;
        result->exit_status = CMD_RUN_OVER_LIMIT;
        result->slower_percent = slower;
        result_note(result,
                    "%s takes %.2f ms, %.1f%% longer than in %s (%.2f ms): "
                    "more than --fail-slower %g%%",
                    time_gate_words(&diff), diff.gate_after_ns / 1e6, slower,
                    o->base, diff.gate_before_ns / 1e6, limit);
    }
    time_diff_fini(&diff);
    result_file_fini(&base);
    return rc;
}

/* Are --change, --stragglers and --delay as they should be? */
static int check_job(const struct output_options *o, struct err *err)
{
    struct job_changes changes;
    struct stragglers stragglers;
    struct simulation_delays opened;
    struct delays delays;

    if (output_delay_read(o, &delays, err) ||
        output_delay_open(&delays, &opened, err))
        return -1;
    if (o->stragglers && stragglers_parse(o->stragglers, &stragglers, err))
        return -1;
    return o->change ? job_changes_parse(o->change, &changes, err) : 0;
}

int output_time_check(const struct output_options *options, struct err *err)
{
    double scale[WORK_FAMILIES] = {0}, link[SIM_LINKS] = {0}, factor;

    if (options->scale && price_scale_parse(options->scale, scale, err))
        return -1;
    if (check_job(options, err) || check_gate(options, err) ||
        (options->link && price_link_parse(options->link, link, err)) ||
        output_time_quantile(options, &factor, err))
        return -1;
    if ((options->link || options->quantile || options->placement) &&
        !options->cluster)
        return err_set(err, "--link, --quantile and --placement need "
                            "--cluster: the data sheet of a GPU has no "
                            "network");
    return host_factor(options->host_speed, &factor, err);
}

/* --stragglers, --delay and --change. */
static int init_job(struct output_time *t,
                    const struct output_options *options, struct err *err)
{
    if (options->stragglers &&
        stragglers_parse(options->stragglers, &t->timeline.stragglers, err))
        return -1;
    if (output_delay_read(options, &t->delay_table, err) ||
        output_delay_open(&t->delay_table, &t->delays, err))
        return -1;
    if (t->delay_table.count || *t->delay_table.library)
        t->timeline.delays = &t->delays;
    if (options->change && job_changes_parse(options->change, &t->changes, err))
        return -1;
    if (options->change)
        job_changes_apply(&t->changes, &t->timeline);
    return 0;
}

int output_time_init(struct output_time *t,
                     const struct output_options *options,
                     const struct gpu *gpu, struct err *err)
{
    struct price_options *price = &t->timeline.price;

    *t = (struct output_time){.options = options};
    price->gpu = gpu;
    t->timeline.host_as_recorded = options->host_times != 0;
    if ((options->scale &&
         price_scale_parse(options->scale, price->scale, err)) ||
        host_factor(options->host_speed, &t->timeline.host_factor, err))
        return -1;
    if ((options->link && price_link_parse(options->link, price->link, err)) ||
        output_time_quantile(options, &price->quantile, err))
        return -1;
    if (init_job(t, options, err))
        return -1;
    t->image = cost_fit_load(gpu, options->fit, err);
    if (!t->image)
        return -1;
    price->image = t->image;
    if (!options->cluster)
        return 0;
    if (cluster_load(options->cluster, &t->cluster, err)) {
        free(t->image);
        return -1;
    }
    t->has_cluster = true;
    price->cluster = &t->cluster;
    return 0;
}

void output_time_fini(struct output_time *t)
{
    job_changes_fini(&t->changes);
    if (t->has_cluster)
        cluster_fini(&t->cluster);
    free(t->image);
}

int output_time_gpu(const char *path, struct gpu *gpu, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    char name[64] = "";
    int rc = 0;

    if (trace_reader_open(&reader, path, err))
        return -1;
    while (!*name && (rc = trace_reader_next(&reader, &item, err)) > 0)
        if (item.head.kind == TRACE_DEVICE)
            snprintf(name, sizeof name, "%.*s", (int)item.head.text_bytes,
                     item.text);
    trace_reader_close(&reader);
    if (!*name)
        return rc ? -1 : err_set(err, "%s: it used no GPU", path);
    return rundir_gpu(path, name, gpu) ? 0 : gpu_load(name, gpu, err);
}

static bool has_more(const struct timing *a, const struct timing *b)
{
    if (!b || (a->step_count && !b->step_count))
        return true;
    return (a->step_count || !b->step_count) && a->device_ns > b->device_ns;
}

/* --- the ranks of a job --------------------------------------------------- */

void output_members_add(struct output_members *m, struct result_rank *rank,
                        uint32_t process, const char *path,
                        const struct simulation_plan *plan)
{
    xgrow(&m->all, m->count, &m->capacity, sizeof *m->all);
    m->all[m->count++] = (struct output_member){
        .rank = rank, .process = process, .path = xstrdup(path), .plan = plan};
}

void output_members_fini(struct output_members *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->all[i].path);
    free(m->all);
    *m = (struct output_members){.all = NULL};
}

/* Members whose traces can be read, with plans. */
struct job {
    const struct output_time *t;
    struct result *result;
    struct simulation_rank *ranks;
    struct result_rank **of; /* the result's ranks */
    uint32_t *processes;
    struct simulation_plan *own;
    size_t count, own_count;
    struct comm_job *joined;
    struct comm_classes classes;
    struct simulation_options timeline; /* with what is of this job alone */
    struct placement placement;
    struct flow_plan *flows;
};

/* How slow the GPU of RANK is, or the slowest of those it stands for. */
static double slow_of(const struct job *j, const struct result_rank *rank)
{
    const struct stragglers *s = &j->t->timeline.stragglers;

    if (!(s->spread > 0) || j->result->emulated)
        return 0;
    return stragglers_of(s, rank->rank, &rank->members);
}

/* Says which GPU the job waits for. */
static void note_stragglers(const struct job *j)
{
    double most = 0;
    uint32_t rank = 0;

    for (size_t i = 0; i < j->count; i++)
        if (j->ranks[i].slow > most) {
            most = j->ranks[i].slow;
            rank = j->of[i]->rank;
        }
    if (most > 0)
        result_note(j->result,
                    "--stragglers %s: the slowest GPU takes %.2f times as long "
                    "as the median (rank %u or one it stands for)",
                    j->t->options->stragglers, most, rank);
}

static void job_add(struct job *j, const struct output_member *m)
{
    enum simulation_keep keep =
        j->t->options->kineto ? SIMULATION_KEEP_ALL : SIMULATION_KEEP_WORK;
    struct simulation_plan *own = &j->own[j->own_count];
    struct err why = {""};

    if (!m->plan && simulation_plan_read(own, m->path, keep, &why)) {
        result_note(j->result, "its time is not known: %s", why.text);
        return;
    }
    j->own_count += !m->plan;
    j->ranks[j->count] = (struct simulation_rank){
        .path = m->path,
        .plan = m->plan ? m->plan : own,
        .slow = slow_of(j, m->rank)};
    j->ranks[j->count].who = (struct delay_ranks){
        .rank = m->rank->rank,
        .members = m->rank->members,
        .local = j->ranks[j->count].plan->comms.local};
    j->processes[j->count] = m->process;
    j->of[j->count++] = m->rank;
}

/* Which of the ranks that ran stands for each; none where each ran. */
static struct comm_classes classes_make(const struct job *j)
{
    struct comm_classes classes = {.world = 0};
    uint32_t last = 0;
    bool stands = false;

    for (size_t i = 0; i < j->count; i++) {
        last = j->of[i]->rank > last ? j->of[i]->rank : last;
        for (uint32_t r = 0; rank_set_next(&j->of[i]->members, r, &r); r++) {
            stands |= r != j->of[i]->rank;
            last = r > last ? r : last;
        }
    }
    if (!stands)
        return classes;
    classes.world = last + 1;
    classes.stands = xcalloc(classes.world, sizeof *classes.stands);
    memset(classes.stands, 0xff, classes.world * sizeof *classes.stands);
    for (size_t i = 0; i < j->count; i++) {
        for (uint32_t r = 0; rank_set_next(&j->of[i]->members, r, &r); r++)
            classes.stands[r] = j->of[i]->rank;
        classes.stands[j->of[i]->rank] = j->of[i]->rank;
    }
    return classes;
}

static void job_init(struct job *j, const struct output_time *t,
                     struct result *result,
                     const struct output_members *members)
{
    *j = (struct job){
        .t = t,
        .result = result,
        .ranks = xcalloc(members->count + 1, sizeof *j->ranks),
        .of = xcalloc(members->count + 1, sizeof(struct result_rank *)),
        .processes = xcalloc(members->count + 1, sizeof *j->processes),
        .own = xcalloc(members->count + 1, sizeof *j->own)};
    for (size_t i = 0; i < members->count; i++)
        job_add(j, &members->all[i]);
    note_stragglers(j);
    j->classes = classes_make(j);
    j->joined = simulation_join(j->ranks, j->count,
                                j->classes.world ? &j->classes : NULL);
}

/* The logs of J's ranks, to be freed. */
static const struct comm_log **job_logs(const struct job *j)
{
    const struct comm_log **logs =
        xcalloc(j->count + 1, sizeof(const struct comm_log *));

    for (size_t i = 0; i < j->count; i++)
        logs[i] = &j->ranks[i].plan->comms;
    return logs;
}

static int write_chakra(const struct job *j, struct err *err)
{
    const struct comm_log **logs = job_logs(j);
    const struct chakra_job job = {j->result, logs, j->count,
                                   j->t->options->chakra};
    int rc = chakra_write(&job, err);

    free(logs);
    return rc;
}

static void note_network(const struct job *j)
{
    const struct cluster *c = &j->t->cluster;
    struct flow_plan_size size = flow_plan_size(j->flows);

    result_note(j->result,
                "--cluster %s: collectives between nodes share its network "
                "(%s); they use it in %" PRIu32 " ways, which %" PRIu32
                " kinds of links limit",
                c->name, c->network->about, size.patterns, size.rows);
    if (size.unknown)
        result_note(j->result,
                    "of %" PRIu64 " collectives it is not known which links "
                    "they use: they slow nobody down",
                    size.unknown);
}

/* Where the ranks are on the cluster, and what its network has to do with their
 * collectives. */
static int job_network(struct job *j, struct err *err)
{
    const struct cluster *c = &j->t->cluster;
    const struct comm_log **logs = job_logs(j);
    uint32_t world = j->classes.world, local = 0;
    int rc = 0;

    j->timeline = j->t->timeline;
    j->timeline.as_measured = j->result->real;
    for (size_t i = 0; i < j->count; i++) {
        world = logs[i]->world > world ? logs[i]->world : world;
        local = logs[i]->local > local ? logs[i]->local : local;
    }
    if (j->t->has_cluster && j->count) {
        rc = placement_make(&j->placement, j->t->options->placement, world,
                            cluster_width(c, local), err);
        j->timeline.placement = rc ? NULL : &j->placement;
    }
    if (!rc && j->timeline.placement && c->network &&
        !j->timeline.data_parallel) {
        const struct flow_job flows = {
            logs, j->count, j->classes.world ? &j->classes : NULL, c,
            &j->placement};
        j->flows = flow_plan_create(&flows, err);
        j->timeline.flow_plan = j->flows;
        rc = j->flows ? 0 : -1;
        if (!rc)
            note_network(j);
    }
    free(logs);
    return rc;
}

/* What the result says of collectives that do not match. */
static void job_collate(const struct job *j)
{
    struct result *result = j->result;
    const struct comm_log **logs = job_logs(j);

    collation_destroy(result->collation);
    result->collation = collation_create(j->joined, logs);
    free(logs);
}

/* Adds the calls in which ranks wait for what never comes. What is missing of a
 * recording does come, and a rank that --delay lets die is waited for. */
static void job_endless(const struct job *j, const struct timing_rank *timed)
{
    struct result *result = j->result;
    bool whole = !result->cut_short;

    for (size_t i = 0; i < j->count; i++)
        if (timed[i].timing.dead_rank)
            return; /* it is known why */
    for (size_t i = 0; i < j->count; i++)
        whole &= !timed[i].failed && !j->ranks[i].plan->comms.imported;
    for (size_t i = 0; i < j->count; i++) {
        const struct timing *timing = &timed[i].timing;
        if (timed[i].failed || !timing->stuck)
            continue;
        result->endless |= whole;
        if (whole && timing->stuck_place != SIMULATION_NO_PLACE)
            collation_add_endless(result->collation, &j->ranks[i].plan->comms,
                                  (uint32_t)timing->stuck_place);
        else
            result_note(result,
                        "rank %u: something waits for work that never comes; "
                        "its times end there",
                        j->of[i]->rank);
    }
    result->endless |= whole && collation_has_missing(result->collation);
}

/* A job that never ends does not fit, whatever memory it takes. */
static void job_judge(const struct job *j)
{
    struct result *result = j->result;

    if (result->exit_status)
        return;
    if (j->t->options->check_collectives && result->collation->count) {
        result->collectives_fail = true;
        result->verdict = VERDICT_OVER_LIMIT;
        result->exit_status = CMD_RUN_OVER_LIMIT;
    } else if (result->endless) {
        result_verdict_unknown(result, "a rank waits for what never comes");
    }
}

static void job_fini(struct job *j)
{
    for (size_t i = 0; i < j->own_count; i++)
        simulation_plan_fini(&j->own[i]);
    comm_job_destroy(j->joined);
    flow_plan_destroy(j->flows);
    placement_fini(&j->placement);
    free(j->classes.stands);
    free(j->ranks);
    free(j->of);
    free(j->processes);
    free(j->own);
}

/* Member I's TIMING becomes its rank's, where it has the most work. Returns
 * whether it did. */
static bool rank_take(const struct job *j, size_t i, struct timing_rank *timed)
{
    struct result_rank *rank = j->of[i];

    if (timed->failed) {
        result_note(j->result, "its time is not known: %s", timed->err.text);
        return false;
    }
    if (!timed->timing.ops || !has_more(&timed->timing, rank->timing)) {
        timing_fini(&timed->timing);
        return false;
    }
    timing_destroy(rank->timing);
    rank->timing = xmalloc(sizeof *rank->timing);
    *rank->timing = timed->timing;
    return true;
}

/* --- timelines ------------------------------------------------------------ */

/* What is written of each member's timeline. */
struct writing {
    struct time_want *wants; /* by member */
    struct kineto_job *kineto_jobs;
    struct kineto_writer **kineto; /* NULL: none of that member */
    struct simulation_sink *sinks;
};

/* Says what is wanted of member I, whose timing is its rank's if OWNS. */
static int writing_add(struct writing *w, const struct job *j, size_t i,
                       bool owns, struct err *err)
{
    const struct output_options *o = j->t->options;
    const struct timing *timing = j->of[i]->timing;
    struct time_want *want = &w->wants[i];

    want->whole = o->perfetto || o->chakra;
    want->one = owns && timing->step_count && (o->html || o->depends);
    want->step = want->one ? (uint32_t)timing->typical : 0;
    if (!owns || !o->kineto)
        return 0;
    w->kineto_jobs[i] =
        (struct kineto_job){j->result, j->of[i], j->t->timeline.price.gpu};
    int fd = quiet_output();
    FILE *events = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!events)
        return err_set(err,
                       "--kineto: cannot write to a temporary file: %s; "
                       "set TMPDIR",
                       strerror(errno));
    w->kineto[i] = kineto_begin(&w->kineto_jobs[i], events, &w->sinks[i]);
    want->sink = &w->sinks[i];
    return 0;
}

/* What --depends asks for of LOG, a typical step. */
static void list_dependencies(const struct job *j, const struct timing *timing,
                              const struct time_log *log)
{
    struct result *result = j->result;
    size_t size;

    if (!j->t->options->depends || result->dependencies || !log)
        return;
    FILE *out = open_memstream(&result->dependencies, &size);
    if (!out)
        return;
    size_t count = dependencies_print(log, j->t->options->depends,
                                      DEPENDENCIES_SHOWN, out);
    if (count > DEPENDENCIES_SHOWN)
        fprintf(out, "  (%zu more have it in their name)\n",
                count - DEPENDENCIES_SHOWN);
    if (!count)
        fprintf(out,
                "  no operation of step %zu has '%s' in its name, "
                "operator or module\n",
                timing->typical, j->t->options->depends);
    fclose(out);
}

/* The timeline of member I for --kineto. */
static int write_kineto(struct writing *w, const struct job *j, size_t i,
                        struct err *err)
{
    const struct output_time *t = j->t;
    struct time_want *want = &w->wants[i];
    char *path = kineto_path(j->result, j->of[i], t->options->kineto);
    int rc = kineto_end(w->kineto[i], want->failed ? NULL : &want->result, path,
                        err);

    w->kineto[i] = NULL;
    if (!rc && want->failed)
        rc = err_set(err, "%s", want->err.text);
    if (!rc && !t->options->quiet && strcmp(path, "-"))
        fprintf(stderr, "memsim: the predicted timeline of rank %u is %s\n",
                j->of[i]->rank, path);
    free(path);
    return rc;
}

/* Hands on what came of member I. */
static int writing_take(struct writing *w, const struct job *j, size_t i,
                        struct err *err)
{
    struct time_want *want = &w->wants[i];
    struct result_rank *rank = j->of[i];

    if (want->whole_log && want->whole_log->op_count) {
        result_timeline_add(j->result, rank->rank, j->processes[i],
                            want->whole_log);
        want->whole_log = NULL;
    }
    list_dependencies(j, rank->timing, want->one_log);
    if (want->one_log && j->t->options->html) {
        time_log_destroy(rank->step);
        rank->step = want->one_log;
        want->one_log = NULL;
    }
    return w->kineto[i] ? write_kineto(w, j, i, err) : 0;
}

/* Simulates the job again for all that is written of its timelines. OWNS says
 * for each member whether its timing is its rank's. */
static int write_timelines(const struct job *j, const bool *owns,
                           struct err *err)
{
    const struct simulation_peers peers = {j->ranks, j->count, j->joined};
    struct writing w = {
        .wants = xcalloc(j->count + 1, sizeof *w.wants),
        .kineto_jobs = xcalloc(j->count + 1, sizeof *w.kineto_jobs),
        .kineto = xcalloc(j->count + 1, sizeof(struct kineto_writer *)),
        .sinks = xcalloc(j->count + 1, sizeof *w.sinks),
    };
    int rc = 0;

    for (size_t i = 0; !rc && i < j->count; i++)
        rc = writing_add(&w, j, i, owns[i], err);
    if (!rc)
        time_job_read(w.wants, &peers, &j->timeline);
    for (size_t i = 0; !rc && i < j->count; i++)
        rc = writing_take(&w, j, i, err);
    for (size_t i = 0; i < j->count; i++)
        if (w.kineto[i])
            kineto_end(w.kineto[i], NULL, NULL, err);
    time_job_fini(w.wants, j->count);
    free(w.wants);
    free(w.kineto_jobs);
    free(w.kineto);
    free(w.sinks);
    return rc;
}

/* Gives the ranks their timings, and sets OWNS: the member that a rank's is
 * of. */
static void ranks_take(const struct job *j, struct timing_rank *timed,
                       bool *owns)
{
    for (size_t i = 0; i < j->count; i++) {
        owns[i] = rank_take(j, i, &timed[i]);
        for (size_t k = 0; owns[i] && k < i; k++)
            owns[k] = owns[k] && j->of[k] != j->of[i];
    }
}

/* Which ranks work on one batch. */
static void job_batches(const struct job *j, const bool *owns)
{
    const struct comm_log **logs = job_logs(j);
    unsigned *knows = xcalloc(j->count + 1, sizeof *knows);
    uint64_t *groups = xcalloc(j->count + 1, sizeof *groups);
    bool known = j->count > 0;

    for (size_t i = 0; i < j->count; i++) {
        known &= !logs[i]->imported && logs[i]->world > 0;
        knows[i] = owns[i] ? time_input_known(j->of[i]->timing) : 0;
    }
    if (known)
        j->result->batch_groups =
            batch_groups(logs, j->count,
                         j->classes.world ? &j->classes : NULL, knows, groups);
    for (size_t i = 0; i < j->count; i++)
        j->of[i]->batches += groups[i];
    free(groups);
    free(knows);
    free(logs);
}

/* Can the data-parallel width be another one? Says what that changes. */
static int job_widen(const struct job *j, struct err *err)
{
    uint32_t wanted = j->t->timeline.data_parallel, ranks = 0, own;
    int rc = 0;

    for (size_t i = 0; wanted && !rc && i < j->count; i++) {
        const struct comm_log *log = &j->ranks[i].plan->comms;
        bool *is_data = xcalloc(log->comm_count + 1, sizeof *is_data);
        rc = comm_width_find(log, j->t->timeline.average, is_data, &own, err);
        ranks = own > ranks ? own : ranks;
        free(is_data);
    }
    if (wanted && !rc && !ranks)
        return err_set(err, "--dp: the job has no collectives");
    if (wanted && !rc)
        result_note(j->result,
                    "--dp %u: gradients are averaged over %u ranks, not %u; "
                    "each rank does the same work, and memory is the same: "
                    "nothing is sharded over them",
                    wanted, wanted, ranks);
    return rc;
}

int output_time_job(const struct output_time *t, struct result *result,
                    const struct output_members *members, struct err *err)
{
    struct job j;

    job_init(&j, t, result, members);
    int rc = job_widen(&j, err) || job_network(&j, err);
    if (rc) {
        job_fini(&j);
        return -1;
    }
    job_collate(&j);
    const struct simulation_peers peers = {j.ranks, j.count, j.joined};
    struct timing_rank *timed = xcalloc(j.count + 1, sizeof *timed);
    timing_read_job(timed, &peers, &j.timeline);
    job_endless(&j, timed);
    job_judge(&j);
    bool *owns = xcalloc(j.count + 1, sizeof *owns);
    ranks_take(&j, timed, owns);
    job_batches(&j, owns);
    if (!t->changes_memory)
        time_notes(result);
    rc = write_timelines(&j, owns, err);
    free(owns);
    for (size_t i = 0; i < t->changes.count; i++)
        if (!t->changes.found[i] &&
            !job_change_is_of_recording(&t->changes.all[i]))
            result_note(result, "--change: no operation has '%s' in its name",
                        t->changes.all[i].name);
    if (t->timeline.delays && output_delay_conclude(&t->delay_table, timed,
                                                    j.count, result, err))
        rc = -1;
    if (!rc && t->options->chakra)
        rc = write_chakra(&j, err);
    free(timed);
    job_fini(&j);
    return rc ? -1 : 0;
}
