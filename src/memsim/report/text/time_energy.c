/* SPDX-License-Identifier: Apache-2.0
 * Energy of a step: an estimate by two watts of the catalogue. A GPU draws
 * power_watts while it computes and idle_watts else. What it draws in between,
 * as for memory, communication or few SMs, is not known. */
#include <stdio.h>

#include "common/base/json_add.h"
#include "memsim/report/text/time_report.h"

/* Of a GPU that computes for COMPUTE_NS of STEP_NS. */
static double step_joules(const struct gpu *gpu, double step_ns,
                          double compute_ns)
{
    double more = gpu->power_watts > gpu->idle_watts
                      ? (double)(gpu->power_watts - gpu->idle_watts)
                      : 0;

    return (gpu->idle_watts * step_ns + more * compute_ns) / 1e9;
}

/* Of all GPUs of the job, each of which takes a step of STEP_NS. */
static double job_joules(const struct result *result, double step_ns)
{
    double sum = 0;

    for (size_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *r = &result->ranks[i];
        uint64_t members = r->members.count ? r->members.count : 1;
        if (r->timing && r->timing->step_count)
            sum += (double)members *
                   step_joules(
                       &result->gpu, step_ns,
                       (double)r->timing->steps[r->timing->typical].compute_ns);
    }
    return sum;
}

void time_energy_json(cJSON *time, const struct result *result)
{
    const struct timing *t = time_slowest(result);
    const struct timing_step *s = &t->steps[t->typical];
    const struct gpu *gpu = &result->gpu;
    double whole = (double)s->duration_ns;

    if (!s->duration_ns || !gpu->power_watts)
        return;
    double own = step_joules(gpu, whole, (double)s->compute_ns);
    cJSON *energy = cJSON_AddObjectToObject(time, "energy_estimate");
    cJSON_AddNumberToObject(energy, "joules", own);
    cJSON_AddNumberToObject(energy, "watts", own / whole * 1e9);
    cJSON_AddNumberToObject(energy, "job_joules", job_joules(result, whole));
    json_add_uint(energy, "idle_watts", gpu->idle_watts);
    json_add_uint(energy, "load_watts", gpu->power_watts);
}

void time_energy_write(const struct result *result, FILE *out)
{
    const struct timing *t = time_slowest(result);
    const struct timing_step *s = &t->steps[t->typical];
    const struct gpu *gpu = &result->gpu;

    if (!s->duration_ns || !gpu->power_watts)
        return;
    double own =
        step_joules(gpu, (double)s->duration_ns, (double)s->compute_ns);
    fprintf(out,
            "  energy of a step (estimate): %.3g J a GPU, %.3g J the job; at "
            "%u W without\n    work and %u W while the GPU computes\n",
            own, job_joules(result, (double)s->duration_ns), gpu->idle_watts,
            gpu->power_watts);
}
