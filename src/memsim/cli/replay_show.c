/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/replay_show.h"

#include <math.h>

#include "common/base/status.h"
#include "memsim/cli/output_files.h"
#include "memsim/report/text/time_report.h"

#define STEPS_SHOWN 8 /* of each rank */

struct errors {
    double sum, worst; /* relative, without sign */
    size_t count;
};

static void errors_add(struct errors *e, const struct timing_step *s,
                       double *difference)
{
    *difference = (double)s->duration_ns / (double)s->measured_ns - 1;
    e->sum += fabs(*difference);
    e->worst = fmax(e->worst, fabs(*difference));
    e->count++;
}

static void print_rank(const struct result_rank *rank, struct errors *errors,
                       FILE *out)
{
    for (size_t i = 0; rank->timing && i < rank->timing->step_count; i++) {
        const struct timing_step *s = &rank->timing->steps[i];
        double difference;

        if (!s->measured_ns)
            continue;
        errors_add(errors, s, &difference);
        if (i < STEPS_SHOWN)
            fprintf(out, "  %4u  %4zu  %10.3f ms  %10.3f ms  %+7.2f%%\n",
                    rank->rank, i, (double)s->measured_ns / 1e6,
                    (double)s->duration_ns / 1e6, 100 * difference);
        else if (i == STEPS_SHOWN)
            fprintf(out, "  %4u  ... %zu more steps; --json has all\n",
                    rank->rank, rank->timing->step_count - i);
    }
}

static void print_title(const struct replay_profile *p,
                        const struct replayed *r,
                        const struct output_options *o, FILE *out)
{
    fprintf(out, "memsim: %s of %zu rank%s, %s, ",
            p->why ? "a recording" : "a profile", r->ranks,
            r->ranks == 1 ? "" : "s", r->result.gpu.device_name);
    if (r->changed)
        fprintf(out, "with %s\n", r->changed);
    else
        fprintf(out, "replayed with %s\n",
                o->study.change || o->study.scale ? "changes"
                : r->models                       ? "the cost models' times"
                : r->simulated                    ? "memsim's own times"
                : p->gpu                          ? "the measured times, scaled"
                                                  : "the measured durations");
    if (p->why)
        fprintf(out, "  times alone: %s\n", p->why);
}

static bool is_measured(const struct result *result)
{
    const struct timing *t = time_slowest(result);

    for (size_t i = 0; t && i < t->step_count; i++)
        if (t->steps[i].measured_ns)
            return true;
    return false;
}

static void print_steps(const struct result *result, FILE *out)
{
    struct errors errors = {0};

    if (!is_measured(result))
        return;
    fprintf(out, "  %4s  %4s  %13s  %13s  %8s\n", "rank", "step", "measured",
            "replayed", "error");
    for (size_t i = 0; i < result->rank_count; i++)
        print_rank(&result->ranks[i], &errors, out);
    if (errors.count)
        fprintf(out, "  error of %zu steps: mean %.2f%%, worst %.2f%%\n",
                errors.count, 100 * errors.sum / (double)errors.count,
                100 * errors.worst);
    if (time_slowest(result))
        time_measured_write(time_slowest(result), out);
}

static void print_summary(const struct replay_profile *p,
                          const struct replayed *r,
                          const struct output_options *o, FILE *out)
{
    const struct result *result = &r->result;
    const struct time_style style = {"", "", o->verbose, 0};

    print_title(p, r, o, out);
    print_steps(result, out);
    time_text_write_step(result, out);
    time_text_write(result, &style, out);
    for (size_t i = 0; i < result->note_count; i++)
        fprintf(out, "  note: %s\n", result->notes[i]);
}

int replay_show(const struct replay_profile *p, const struct replayed *r,
                const struct output_options *o, struct err *err)
{
    static const struct output_writers writers = {&report_json, &report_html,
                                                  &report_perfetto, NULL};
    FILE *out = output_summary_stream(o);

    if (!o->quiet)
        print_summary(p, r, o, out);
    return output_files(o, &writers, &r->result, err) ? CMD_RUN_FAILED
                                                      : r->result.exit_status;
}
