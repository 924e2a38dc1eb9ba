/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/diff_profile.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/simulated.h"
#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "memsim/study/input_run.h"
#include "memsim/study/replay_profile.h"
#include "memsim/study/scratch.h"
#include "memsim/import/profile_write.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/time_diff.h"

#define HEAD_BYTES   256 /* of a file of memsim's, which has "schema" there */
#define ROWS         15
#define NAME_COLUMNS 40

/* --- what is compared ----------------------------------------------------- */

struct side {
    const char *name;
    bool is_profile;
    bool simulated;         /* a profile that memsim made */
    struct input_run input; /* of a run */
    struct run run;         /* of a profile */
    struct scratch scratch; /* that it was imported into */
    struct replayed replayed; /* likewise */
};

static bool is_imported(const char *directory)
{
    struct err err = {""};
    struct run run;
    bool found = false;

    if (!run_open(&run, directory, &err) && run.count)
        found = replay_is_profile(run.traces[0].path);
    run_close(&run);
    return found;
}

bool diff_is_profile(const char *path)
{
    char head[HEAD_BYTES] = "";
    struct stat st;

    if (stat(path, &st))
        return false;
    if (S_ISDIR(st.st_mode))
        return is_imported(path);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[length] = '\0';
    bool zipped = length > 2 && !memcmp(head, "\x1f\x8b", 2);
    return zipped || profile_is_database(path) ||
           (length && strchr("{[", *head) && !strstr(head, "\"schema\":"));
}

/* Imports the trace of SIDE into a directory of its own. */
static int side_import(struct side *side, struct err *err)
{
    char path[PATH_MAX];
    struct profile p;

    if (scratch_make(&side->scratch, err))
        return -1;
    run_trace_path(side->scratch.path, 0, path, sizeof path);
    int rc = profile_read(&p, side->name, 0, err);
    if (!rc) {
        profile_link(&p);
        const struct profile_target target = {
            .path = path,
            .gpu = p.info.gpu,
            .capacity_bytes = p.info.memory_bytes,
            .origin_ns = profile_origin(&p),
            .ranks = 1};
        rc = profile_write(&p, &target, err);
    }
    profile_fini(&p);
    return rc;
}

static int profile_open(struct side *side, struct err *err)
{
    static const struct study_options plain = {0};
    const struct replay_profile replay = {.run = &side->run, .options = &plain};
    struct stat st;
    bool directory = !stat(side->name, &st) && S_ISDIR(st.st_mode);

    if (!directory && side_import(side, err))
        return -1;
    if (run_open(&side->run, directory ? side->name : side->scratch.path, err))
        return -1;
    side->simulated = replay_is_simulated(side->run.traces[0].path);
    return replay_profile(&replay, &side->replayed, err);
}

static void side_close(struct side *side)
{
    if (!side->is_profile) {
        input_run_close(&side->input);
        return;
    }
    replayed_fini(&side->replayed);
    run_close(&side->run);
    scratch_remove(&side->scratch);
}

/* Returns 0 with *SIDE to be given to side_close, or -1. */
static int side_open(struct side *side, const char *name, struct err *err)
{
    *side = (struct side){.name = name, .is_profile = diff_is_profile(name)};
    side->input.name = name;
    if (!side->is_profile)
        return input_run_open(&side->input, err);
    int rc = profile_open(side, err);
    if (rc)
        side_close(side);
    return rc;
}

static const struct result *side_result(const struct side *side)
{
    return side->is_profile ? &side->replayed.result : &side->input.file.result;
}

static const char *side_title(const struct side *side)
{
    return side->is_profile ? "profile" : "estimate";
}

/* --- the report ----------------------------------------------------------- */

struct comparison {
    const struct side *before, *after;
    const struct timing *a, *b;
    struct time_diff time;
};

static double percent(double before, double after)
{
    return after > 0 ? 100 * (before / after - 1) : 0;
}

static void write_part(FILE *out, const char *name, uint64_t before,
                       uint64_t after)
{
    if (before || after)
        fprintf(out, "  %-34s %10.3f ms %10.3f ms %+8.1f%%\n", name,
                (double)before / 1e6, (double)after / 1e6,
                percent((double)before, (double)after));
}

/* A file of --json has the step's time alone. */
static void write_parts(const struct comparison *c, FILE *out)
{
    const struct timing_step *a = &c->a->steps[c->a->typical];
    const struct timing_step *b = &c->b->steps[c->b->typical];

    fprintf(out, "  %-34s %13s %13s %9s\n", "a step", side_title(c->before),
            side_title(c->after), "off by");
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
static void write_rows(const struct comparison *c, bool in_work, FILE *out)
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
                    side_title(c->before), side_title(c->after), "ms", "ms");
        write_row(&d->operators[i], out);
    }
    if (more)
        fprintf(out, "  ... and %zu more; --json has all\n", more);
    if (!rows && in_work)
        fputs("  the same operations in a step, operator by operator\n", out);
}

static void write_pauses(const struct comparison *c, FILE *out)
{
    for (size_t i = 0; i < c->time.operator_count; i++)
        if (is_pause(&c->time.operators[i]))
            fprintf(out,
                    "  pauses of streams that the profile does not explain: "
                    "%.3f ms and %.3f ms\n",
                    c->time.operators[i].before / 1e6,
                    c->time.operators[i].after / 1e6);
}

static void write_simulated(const struct side *side, FILE *out)
{
    if (side->simulated)
        fprintf(out, "  note: " SIMULATED_NOTE "\n", side->name);
}

static void write_text(const struct comparison *c, FILE *out)
{
    fprintf(out,
            "memsim: a step takes %.3f ms in %s, %.3f ms in %s (%+.1f%%)\n",
            c->time.before_ns / 1e6, c->before->name, c->time.after_ns / 1e6,
            c->after->name, percent(c->time.before_ns, c->time.after_ns));
    write_parts(c, out);
    write_rows(c, true, out);
    write_rows(c, false, out);
    write_pauses(c, out);
    write_simulated(c->before, out);
    write_simulated(c->after, out);
}

static void write_json(const void *what, FILE *out)
{
    const struct comparison *c = what;
    cJSON *root = cJSON_CreateObject();

    schema_add_version(root, "diff_schema");
    cJSON_AddStringToObject(root, "before", c->before->name);
    cJSON_AddStringToObject(root, "after", c->after->name);
    cJSON_AddBoolToObject(root, "before_simulated", c->before->simulated);
    cJSON_AddBoolToObject(root, "after_simulated", c->after->simulated);
    time_diff_json(root, &c->time);
    schema_print("diff_profile", root, out);
}

static int report(const struct comparison *c,
                  const struct output_options *options, struct err *err)
{
    FILE *out = output_summary_stream(options);

    if (!options->quiet)
        write_text(c, out);
    if (!options->quiet && output_summary_check(out, err))
        return -1;
    return options->json ? file_write(write_json, c, options->json, err) : 0;
}

static int compare(const struct side *before, const struct side *after,
                   const struct output_options *options, struct err *err)
{
    struct comparison c = {.before = before,
                           .after = after,
                           .a = time_slowest(side_result(before)),
                           .b = time_slowest(side_result(after))};

    if (!c.a || !c.b)
        return err_set(err, "%s: no training step was found in it",
                       c.a ? after->name : before->name);
    time_diff_make(&c.time, side_result(before), side_result(after));
    int rc = report(&c, options, err);
    time_diff_fini(&c.time);
    return rc;
}

int diff_profile(const char *estimate, const char *trace,
                 const struct output_options *options, struct err *err)
{
    struct side before, after;
    int rc = -1;

    if (side_open(&before, estimate, err))
        return CMD_RUN_FAILED;
    if (!side_open(&after, trace, err)) {
        rc = compare(&before, &after, options, err);
        side_close(&after);
    }
    side_close(&before);
    return rc ? CMD_RUN_FAILED : CMD_OK;
}
