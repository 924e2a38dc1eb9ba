/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/diff_profile.h"

#include <math.h>
#include <string.h>

#include "common/base/file_write.h"
#include "common/base/simulated.h"
#include "common/base/status.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/study/profile_diff.h"

#define ROWS         15
#define NAME_COLUMNS 40

static const char *side_title(const struct profile_side *side)
{
    return side->is_profile ? "profile" : "estimate";
}

static double percent_off(double before, double after)
{
    return after > 0 ? 100 * (before / after - 1) : 0;
}

static void write_part(FILE *out, const char *name, uint64_t before,
                       uint64_t after)
{
    if (before || after)
        fprintf(out, "  %-34s %10.3f ms %10.3f ms %+8.1f%%\n", name,
                (double)before / 1e6, (double)after / 1e6,
                percent_off((double)before, (double)after));
}

/* A file of --json has the step's time alone. */
static void write_parts(const struct profile_diff *c, FILE *out)
{
    const struct timing_step *a = &c->a->steps[c->a->typical];
    const struct timing_step *b = &c->b->steps[c->b->typical];

    fprintf(out, "  %-34s %13s %13s %9s\n", "a step", side_title(&c->before),
            side_title(&c->after), "off by");
    write_part(out, "all", a->duration_ns, b->duration_ns);
    if (!a->compute_ns || !b->compute_ns)
        return;
    write_part(out, "compute", a->compute_ns, b->compute_ns);
    write_part(out, "communication, exposed", a->exposed_comm_ns,
               b->exposed_comm_ns);
    write_part(out, "  beside compute", a->overlapped_comm_ns,
               b->overlapped_comm_ns);
    write_part(out, "copies, exposed", a->exposed_copy_ns, b->exposed_copy_ns);
    write_part(out, "waits for the host", a->host_bound_ns, b->host_bound_ns);
    write_part(out, "gaps and waits of streams", a->other_ns, b->other_ns);
}

static bool differs_in_work(const struct time_change *c)
{
    return fabs(c->before_calls - c->after_calls) >= 0.5;
}

/* A pause that one of the profiles does not explain is no work. */
static bool is_pause(const struct time_change *c)
{
    return !strcmp(c->name, TIMING_PAUSE);
}

static void write_row(const struct time_change *c, FILE *out)
{
    fprintf(out, "  %8.1f %8.1f %10.3f %10.3f  ", c->before_calls,
            c->after_calls, c->before / 1e6, c->after / 1e6);
    text_write_end(out, c->name, NAME_COLUMNS);
    fputc('\n', out);
}

/* The operators that differ in work, or those that do not. */
static void write_rows(const struct profile_diff *c, bool in_work, FILE *out)
{
    const struct time_diff *d = &c->time;
    size_t rows = 0, more = 0;

    for (size_t i = 0; i < d->operator_count; i++) {
        if (is_pause(&d->operators[i]) ||
            differs_in_work(&d->operators[i]) != in_work)
            continue;
        if (rows++ >= ROWS) {
            more++;
            continue;
        }
        if (rows == 1)
            fprintf(out, "  %s\n  %8s %8s %10s %10s\n",
                    in_work ? "operators with more or fewer operations in a "
                              "step: count and ms of each"
                            : "operators with the same count: ms of a step",
                    side_title(&c->before), side_title(&c->after), "ms", "ms");
        write_row(&d->operators[i], out);
    }
    if (more)
        fprintf(out, "  ... and %zu more; --json has all\n", more);
    if (!rows && in_work)
        fputs("  the same operations in a step, operator by operator\n", out);
}

static void write_pauses(const struct profile_diff *c, FILE *out)
{
    for (size_t i = 0; i < c->time.operator_count; i++)
        if (is_pause(&c->time.operators[i]))
            fprintf(out,
                    "  pauses of streams that the profile does not explain: "
                    "%.3f ms and %.3f ms\n",
                    c->time.operators[i].before / 1e6,
                    c->time.operators[i].after / 1e6);
}

static void write_simulated(const struct profile_side *side, FILE *out)
{
    if (side->simulated)
        fprintf(out, "  note: " SIMULATED_NOTE "\n", side->name);
}

static void write_text(const struct profile_diff *c, FILE *out)
{
    fprintf(out,
            "memsim: a step takes %.3f ms in %s, %.3f ms in %s (%+.1f%%)\n",
            c->time.before_ns / 1e6, c->before.name, c->time.after_ns / 1e6,
            c->after.name, percent_off(c->time.before_ns, c->time.after_ns));
    write_parts(c, out);
    write_rows(c, true, out);
    write_rows(c, false, out);
    write_pauses(c, out);
    write_simulated(&c->before, out);
    write_simulated(&c->after, out);
}

static void write_json(const void *what, FILE *out)
{
    const struct profile_diff *c = what;
    cJSON *root = cJSON_CreateObject();

    schema_add_version(root, "diff_schema");
    cJSON_AddStringToObject(root, "before", c->before.name);
    cJSON_AddStringToObject(root, "after", c->after.name);
    cJSON_AddBoolToObject(root, "before_simulated", c->before.simulated);
    cJSON_AddBoolToObject(root, "after_simulated", c->after.simulated);
    time_diff_json(root, &c->time);
    schema_print("diff_profile", root, out);
}

static int diff_write(const struct profile_diff *c,
                      const struct output_options *options, struct err *err)
{
    FILE *out = output_summary_stream(options);

    if (!options->quiet)
        write_text(c, out);
    if (!options->quiet && output_summary_check(out, err))
        return -1;
    return options->json ? file_write(write_json, c, options->json, err) : 0;
}

int diff_profile(const char *estimate, const char *trace,
                 const struct output_options *options, struct err *err)
{
    struct profile_diff d;

    if (profile_diff_open(&d, estimate, trace, err))
        return CMD_RUN_FAILED;
    int rc = diff_write(&d, options, err);
    profile_diff_close(&d);
    return rc ? CMD_RUN_FAILED : CMD_OK;
}
