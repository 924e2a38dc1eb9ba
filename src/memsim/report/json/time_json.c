/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/base/json_add.h"
#include "memsim/report/text/time_report.h"

#define STEPS_ALIKE 0.005

static uint64_t waits_ns(const struct timing *t)
{
    const struct timing_step *s = &t->steps[t->typical];

    return s->bubble_ns + s->peers_ns;
}

/* Ranks that wait for each other have steps of about the same length: of those
 * the slowest is the one that waits least. */
const struct result_rank *time_slowest_rank(const struct result *result)
{
    const struct result_rank *found = NULL;
    double most = 0;

    for (size_t i = 0; i < result->rank_count; i++)
        if (result->ranks[i].timing)
            most = fmax(most, (double)timing_step_ns(result->ranks[i].timing));
    for (size_t i = 0; i < result->rank_count; i++) {
        const struct timing *t = result->ranks[i].timing;
        if (!t || !timing_step_ns(t) ||
            (double)timing_step_ns(t) < most * (1 - STEPS_ALIKE))
            continue;
        if (!found || waits_ns(t) < waits_ns(found->timing) ||
            (waits_ns(t) == waits_ns(found->timing) &&
             timing_step_ns(t) > timing_step_ns(found->timing)))
            found = &result->ranks[i];
    }
    return found;
}

const struct timing *time_slowest(const struct result *result)
{
    const struct result_rank *rank = time_slowest_rank(result);

    return rank ? rank->timing : NULL;
}

/* What an imported profile has of a step. */
static void add_measured(cJSON *step, const struct timing_step *s)
{
    const struct span_parts *m = &s->measured;

    json_add_uint(step, "measured_ns", s->measured_ns);
    cJSON *measured = cJSON_AddObjectToObject(step, "measured");
    json_add_uint(measured, "compute_ns", m->compute_ns);
    json_add_uint(measured, "exposed_comm_ns", m->exposed_comm_ns);
    json_add_uint(measured, "overlapped_comm_ns", m->overlapped_comm_ns);
    json_add_uint(measured, "exposed_copy_ns", m->exposed_copy_ns);
    json_add_uint(measured, "other_ns", m->idle_ns);
    if (s->measured_sm_utilization >= 0)
        cJSON_AddNumberToObject(measured, "sm_utilization",
                                s->measured_sm_utilization);
    cJSON_AddNumberToObject(measured, "sm_utilization_error",
                            s->sm_utilization_error);
}

static void add_shares(cJSON *to, const char *name, const double *shares,
                       size_t count)
{
    cJSON *list = shares ? cJSON_AddArrayToObject(to, name) : NULL;

    for (size_t i = 0; shares && i < count; i++) /* 3 digits say it */
        cJSON_AddItemToArray(
            list, cJSON_CreateNumber((double)(int)(shares[i] * 1e3 + 0.5) /
                                     1e3));
}

/* TO is a rank, or the job's time, which has that of the slowest one. */
static void add_utilization(cJSON *to, const struct timing_utilization *u)
{
    if (!u->count)
        return;
    cJSON *object = cJSON_AddObjectToObject(to, "utilization");
    json_add_uint(object, "window_ns", u->window_ns);
    add_shares(object, "windows", u->windows, u->count);
    add_shares(object, "measured", u->measured, u->count);
    add_shares(object, "busy", u->busy, u->count);
    add_shares(object, "measured_busy", u->measured_busy, u->count);
}

void time_json_steps(cJSON *rank, const struct timing *timing)
{
    cJSON *steps = cJSON_AddArrayToObject(rank, "steps");

    if (timing_step_ns(timing))
        json_add_uint(rank, "step_index", timing->typical);
    add_utilization(rank, &timing->utilization);
    for (size_t i = 0; i < timing->step_count; i++) {
        const struct timing_step *s = &timing->steps[i];
        cJSON *step = json_add_object(steps);
        json_add_uint(step, "index", i);
        json_add_uint(step, "duration_ns", s->duration_ns);
        json_add_uint(step, "low_ns", s->low_ns);
        json_add_uint(step, "high_ns", s->high_ns);
        json_add_uint(step, "compute_ns", s->compute_ns);
        json_add_uint(step, "exposed_comm_ns", s->exposed_comm_ns);
        json_add_uint(step, "overlapped_comm_ns", s->overlapped_comm_ns);
        json_add_uint(step, "exposed_copy_ns", s->exposed_copy_ns);
        json_add_uint(step, "host_bound_ns", s->host_bound_ns);
        json_add_uint(step, "other_ns", s->other_ns);
        if (s->bubble_ns)
            json_add_uint(step, "bubble_ns", s->bubble_ns);
        if (s->peers_ns)
            json_add_uint(step, "peers_ns", s->peers_ns);
        if (s->link_bytes[SIM_LINK_NODE])
            json_add_uint(step, "intra_node_bytes",
                          s->link_bytes[SIM_LINK_NODE]);
        if (s->link_bytes[SIM_LINK_NODES])
            json_add_uint(step, "inter_node_bytes",
                          s->link_bytes[SIM_LINK_NODES]);
        if (s->measured_ns)
            add_measured(step, s);
        if (s->sm_utilization >= 0)
            cJSON_AddNumberToObject(step, "sm_utilization",
                                    s->sm_utilization);
        cJSON_AddBoolToObject(step, "warm_up", s->warm_up);
        if (s->input.samples)
            json_add_uint(step, "samples", s->input.samples);
        if (s->input.tokens)
            json_add_uint(step, "tokens", s->input.tokens);
    }
}

static void add_rows(cJSON *to, const char *name, const char *what,
                     const struct timing_row *rows, size_t count)
{
    static const struct json_column columns[] = {
        {"ns", offsetof(struct timing_row, ns)},
        {"operations", offsetof(struct timing_row, calls)},
        {NULL, 0}};
    const struct json_rows list = {rows, count, sizeof *rows};

    json_add_rows(to, name, what, &list, columns);
}

void time_json_add(cJSON *root, const struct result *result)
{
    const struct timing *t = time_slowest(result);

    if (!t)
        return;
    const struct timing_step *step = &t->steps[t->typical];
    cJSON *time = cJSON_AddObjectToObject(root, "time");
    json_add_uint(time, "step_ns", step->duration_ns);
    json_add_uint(time, "low_ns", step->low_ns);
    json_add_uint(time, "high_ns", step->high_ns);
    if (t->keeps_up_ns) {
        json_add_uint(time, "keeps_up_ns", t->keeps_up_ns);
        json_add_uint(time, "host_steps", t->host_steps);
        cJSON_AddNumberToObject(time, "host_spread", t->host_spread);
        if (t->host_busy.known) {
            cJSON_AddNumberToObject(time, "host_waited", t->host_busy.waited);
            cJSON_AddNumberToObject(time, "host_others", t->host_busy.others);
        }
    }
    json_add_uint(time, "step_index", t->typical);
    json_add_uint(time, "slowest_rank", time_slowest_rank(result)->rank);
    cJSON_AddStringToObject(time, "step_is", step_rule_name(t->rule));
    json_add_uint(time, "called_ns", t->host_ns);
    if (t->seen_ns)
        json_add_uint(time, "seen_ns", t->seen_ns);
    if (t->network_users > 0)
        cJSON_AddNumberToObject(time, "network_users", t->network_users);
    cJSON_AddNumberToObject(time, "device_ns", t->device_ns);
    cJSON_AddNumberToObject(time, "mfu", t->mfu);
    time_throughput_json(time, result);
    time_energy_json(time, result);
    cJSON_AddNumberToObject(time, "unknown", t->unknown);
    cJSON *basis = cJSON_AddObjectToObject(time, "basis");
    for (int i = 0; i < COST_BASES; i++)
        cJSON_AddNumberToObject(basis, cost_basis_name((enum cost_basis)i),
                                t->basis[i]);
    add_rows(time, "by_module", "module", t->modules, t->module_count);
    add_rows(time, "by_operator", "operator", t->operators, t->operator_count);
    add_rows(time, "critical_path", "what", t->path, t->path_count);
    add_utilization(time, &t->utilization);
}
