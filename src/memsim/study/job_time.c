/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/job_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "memsim/collectives/batch_groups.h"
#include "memsim/collectives/collate.h"
#include "memsim/collectives/comm_width.h"
#include "memsim/report/export/chakra.h"
#include "memsim/report/text/time_report.h"
#include "memsim/result/result_verdict.h"
#include "memsim/study/delay_options.h"
#include "memsim/study/job_network.h"
#include "memsim/study/job_timelines.h"
#include "memsim/study/job_together.h"
#include "memsim/time/flow_plan.h"

static bool has_more(const struct timing *a, const struct timing *b)
{
    if (!b || (a->step_count && !b->step_count))
        return true;
    return (a->step_count || !b->step_count) && a->device_ns > b->device_ns;
}

/* --- the ranks of a job --------------------------------------------------- */

void study_members_add(struct study_members *m, struct result_rank *rank,
                       uint32_t process, const char *path,
                       const struct simulation_plan *plan)
{
    xgrow(&m->all, m->count, &m->capacity, sizeof *m->all);
    m->all[m->count++] = (struct study_member){
        .rank = rank, .process = process, .path = xstrdup(path), .plan = plan};
}

void study_members_fini(struct study_members *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->all[i].path);
    free(m->all);
    *m = (struct study_members){.all = NULL};
}

/* How slow the GPU of RANK is, or the slowest of those it stands for. */
static double slow_of(const struct study_job *j, const struct result_rank *rank)
{
    const struct stragglers *s = &j->t->timeline.stragglers;

    if (!(s->spread > 0) || j->result->emulated)
        return 0;
    return stragglers_of(s, rank->rank, &rank->members);
}

/* Says which GPU the job waits for. */
static void note_stragglers(const struct study_job *j)
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

static void job_add(struct study_job *j, const struct study_member *m)
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
    j->ranks[j->count] =
        (struct simulation_rank){.path = m->path,
                                 .plan = m->plan ? m->plan : own,
                                 .slow = slow_of(j, m->rank)};
    j->ranks[j->count].who =
        (struct delay_ranks){.rank = m->rank->rank,
                             .members = m->rank->members,
                             .local = j->ranks[j->count].plan->comms.local};
    j->processes[j->count] = m->process;
    j->of[j->count++] = m->rank;
}

/* Which of the ranks that ran stands for each; none where each ran. */
static struct comm_classes classes_make(const struct study_job *j)
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

static int job_init(struct study_job *j, const struct study_time *t,
                    struct result *result, const struct study_members *members,
                    struct err *err)
{
    *j = (struct study_job){
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
    if (!t->options->beside) {
        j->joined = simulation_join(j->ranks, j->count,
                                    j->classes.world ? &j->classes : NULL);
        return 0;
    }
    if (job_together_add(j, err))
        return -1;
    const struct simulation_peers peers = job_peers(j);
    j->joined = job_beside_join(&peers, &j->all);
    return 0;
}

/* The logs of J's ranks, and of those beside it; to be freed. */
static const struct comm_log **job_logs(const struct study_job *j)
{
    size_t count = j->count + j->beside.count;
    const struct comm_log **logs =
        xcalloc(count + 1, sizeof(const struct comm_log *));

    for (size_t i = 0; i < count; i++)
        logs[i] = &j->ranks[i].plan->comms;
    return logs;
}

static int write_chakra(const struct study_job *j, struct err *err)
{
    const struct comm_log **logs = job_logs(j);
    const struct chakra_job job = {j->result, logs, j->count,
                                   j->t->options->chakra};
    int rc = chakra_write(&job, err);

    free(logs);
    return rc;
}

/* Of WORLD ranks, LOCAL on each node. */
static void note_nodes(const struct study_job *j, uint32_t world,
                       uint32_t local)
{
    const struct cluster *c = &j->t->cluster;
    uint32_t width = cluster_width(c, local);

    if (!c->measured && local > width)
        result_note(j->result,
                    "--cluster %s: a node has %" PRIu32 " GPUs, and the job "
                    "had %" PRIu32 " ranks on each: they fill nodes of the "
                    "cluster",
                    c->name, width, local);
    if (!c->network && placement_jobs(&j->placement, world) > 1)
        result_note(j->result,
                    "--placement has several jobs, and --cluster %s no network "
                    "that they share: they slow nobody down",
                    c->name);
}

/* Where the ranks are on the cluster, and what its network has to do with their
 * collectives. */
static int job_network(struct study_job *j, struct err *err)
{
    const struct cluster *c = &j->t->cluster;
    const struct comm_log **logs = job_logs(j);
    const struct comm_classes *classes =
        j->beside.count        ? &j->all
        : j->classes.world ? &j->classes
                           : NULL;
    uint32_t world = classes == &j->all ? j->all.world : job_own_world(j);
    uint32_t local = 0;
    int rc = 0;

    j->timeline = j->t->timeline;
    j->timeline.as_measured = j->result->real;
    for (size_t i = 0; i < j->count; i++)
        local = logs[i]->local > local ? logs[i]->local : local;
    if (j->t->has_cluster && j->count) {
        rc = placement_make(&j->placement, j->t->options->placement, world,
                            cluster_width(c, local), err);
        j->timeline.placement = rc ? NULL : &j->placement;
    }
    if (!rc && j->t->has_cluster)
        note_nodes(j, world, local);
    if (!rc && j->timeline.placement && c->network) {
        const struct job_network network = {
            .flows = {logs, j->count + j->beside.count, classes, c,
                      &j->placement},
            .placement = j->t->options->placement,
            .average = j->timeline.average,
            .data_parallel = j->timeline.data_parallel};
        rc = job_network_plan(&network, j->result, &j->flows, err);
        j->timeline.flow_plan = j->flows;
    }
    free(logs);
    return rc;
}

/* What never came from ranks that failed, or were stopped for that, is no fault
 * of the program's collectives. */
static void failed_ranks_excuse(struct result *result)
{
    for (size_t i = 0; i < result->failure_count; i++)
        if (result->failures[i].ranks)
            collation_drop_waits(result->collation, result->failures[i].rank);
}

/* What the result says of collectives that do not match. */
static void job_collate(const struct study_job *j)
{
    struct result *result = j->result;
    const struct comm_log **logs = job_logs(j);

    collation_destroy(result->collation);
    result->collation = collation_create(j->joined, logs);
    failed_ranks_excuse(result);
    free(logs);
}

/* Says of the ranks that others wait for which ones ended by themselves, and do
 * not wait for anybody. */
static void ended_ranks_tell(const struct study_job *j,
                             const struct timing_rank *timed)
{
    for (size_t i = 0; i < j->count; i++)
        if (!timed[i].timing.stuck && j->ranks[i].plan->comms.ended)
            collation_tell_ended(j->result->collation,
                                 &j->ranks[i].plan->comms);
}

/* Adds the calls in which ranks wait for what never comes. What is missing of a
 * recording does come, and a rank that --delay lets die is waited for. */
static void job_endless(const struct study_job *j,
                        const struct timing_rank *timed)
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
                        "rank %u: a stream waits for an event or collective "
                        "that never happens; step times after it are missing",
                        j->of[i]->rank);
    }
    failed_ranks_excuse(result);
    if (whole)
        ended_ranks_tell(j, timed);
    result->endless |= whole && collation_has_missing(result->collation);
}

/* A job that never ends does not fit, whatever memory it takes. */
static void job_judge(const struct study_job *j)
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

static void job_fini(struct study_job *j)
{
    for (size_t i = 0; i < j->own_count; i++)
        simulation_plan_fini(&j->own[i]);
    comm_job_destroy(j->joined);
    flow_plan_destroy(j->flows);
    placement_fini(&j->placement);
    job_beside_fini(&j->beside);
    free(j->classes.stands);
    free(j->all.stands);
    free(j->ranks);
    free(j->of);
    free(j->processes);
    free(j->own);
}

/* Member I's TIMING becomes its rank's, where it has the most work. Returns
 * whether it did. */
static bool rank_take(const struct study_job *j, size_t i,
                      struct timing_rank *timed)
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

/* Gives the ranks their timings, and sets OWNS: the member that a rank's is
 * of. */
static void ranks_take(const struct study_job *j, struct timing_rank *timed,
                       bool *owns)
{
    for (size_t i = 0; i < j->count; i++) {
        owns[i] = rank_take(j, i, &timed[i]);
        for (size_t k = 0; owns[i] && k < i; k++)
            owns[k] = owns[k] && j->of[k] != j->of[i];
    }
}

/* Which ranks work on one batch. */
static void job_batches(const struct study_job *j, const bool *owns)
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
            batch_groups(logs, j->count, j->classes.world ? &j->classes : NULL,
                         knows, groups);
    for (size_t i = 0; i < j->count; i++)
        j->of[i]->batches += groups[i];
    free(groups);
    free(knows);
    free(logs);
}

/* Can the data-parallel width be another one? Says what that changes. */
static int job_widen(const struct study_job *j, struct comm_width *all,
                     struct err *err)
{
    uint32_t wanted = j->t->timeline.data_parallel;
    struct comm_width own;
    int rc = 0;

    *all = (struct comm_width){.ranks = 0};

    for (size_t i = 0; wanted && !rc && i < j->count; i++) {
        const struct comm_log *log = &j->ranks[i].plan->comms;
        bool *is_data = xcalloc(log->comm_count + 1, sizeof *is_data);
        rc = comm_width_find(log, j->t->timeline.average, is_data, &own, err);
        *all = own.ranks > all->ranks ? own : *all;
        free(is_data);
    }
    if (wanted && !rc && !all->ranks)
        return err_set(err, "--dp: the job has no collectives");
    if (wanted && !rc && !all->shards)
        result_note(j->result,
                    "--dp %u: gradients are averaged over %u ranks, not %u; "
                    "each rank does the same work, and memory is the same: "
                    "nothing is sharded over them",
                    wanted, wanted, all->ranks);
    return rc;
}

/* Of a profile whose rank has a part of the parameters, WIDTH: the smaller the
 * part, the less kernels on lists of such parts do. */
static void job_reshard(struct study_job *j, const struct comm_width *width)
{
    uint32_t wanted = j->t->timeline.data_parallel;
    double *scale = &j->timeline.price.scale[WORK_OPTIMIZER];

    if (wanted) {
        j->result->wider.ranks = wanted;
        j->result->wider.recorded = width->ranks;
    }
    if (!wanted || !width->shards)
        return;
    *scale = (*scale > 0 ? *scale : 1) * width->ranks / wanted;
    result_note(j->result,
                "--dp %" PRIu32 ": parameters are gathered and gradients "
                "scattered over %" PRIu32 " ranks, not %" PRIu32 "; kernels on "
                "lists of tensors, as the optimizer's, take %" PRIu32
                "/%" PRIu32 " of their time",
                wanted, wanted, width->ranks, width->ranks, wanted);
}

int study_time_job(const struct study_time *t, struct result *result,
                   const struct study_members *members, struct err *err)
{
    struct comm_width width;
    struct study_job j;

    int rc = job_init(&j, t, result, members, err) ||
             job_widen(&j, &width, err) || job_network(&j, err);
    if (rc) {
        job_fini(&j);
        return -1;
    }
    job_reshard(&j, &width);
    job_collate(&j);
    if (j.beside.count)
        job_together_align(&j);
    const struct simulation_peers peers = job_peers(&j);
    struct timing_rank *timed = xcalloc(j.count + 1, sizeof *timed);
    timing_read_job(timed, &peers, &j.timeline);
    job_endless(&j, timed);
    job_judge(&j);
    bool *owns = xcalloc(j.count + 1, sizeof *owns);
    ranks_take(&j, timed, owns);
    job_batches(&j, owns);
    if (!t->changes_memory)
        time_notes(result);
    rc = study_timelines_write(&j, owns, err);
    free(owns);
    for (size_t i = 0; i < t->changes.count; i++)
        if (!t->changes.found[i] &&
            !job_change_is_of_recording(&t->changes.all[i]))
            result_note(result, "--change: no operation has '%s' in its name",
                        t->changes.all[i].name);
    if (t->timeline.delays &&
        study_delay_conclude(&t->delay_table, timed, j.count, result, err))
        rc = -1;
    if (!rc && t->options->chakra)
        rc = write_chakra(&j, err);
    free(timed);
    job_fini(&j);
    return rc ? -1 : 0;
}
