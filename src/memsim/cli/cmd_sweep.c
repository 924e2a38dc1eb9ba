/* SPDX-License-Identifier: Apache-2.0
 * memsim sweep: a command with each combination of values, side by side. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/hash.h"
#include "common/base/json_text.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"
#include "fits/cluster.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/compare_output.h"
#include "memsim/study/input_run.h"
#include "memsim/run/job_start.h"
#include "memsim/study/job_time.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/study/sweep_delay.h"
#include "memsim/report/text/scaling.h"
#include "memsim/run/batch.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/ended.h"
#include "memsim/run/ranks.h"
#include "memsim/run/spawn.h"
#include "memsim/study/scratch.h"
#include "memsim/run/sweep.h"
#include "memsim/run/warm.h"
#include "memsim/run/workers.h"
#include "memsim/study/run_study.h"

struct sweep_options {
    struct job_options job;
    struct launch_options launch;
    const char *cache, *nodes;
    bool no_cache;
    uint32_t jobs, limit_s;
    struct compare_output output;
};

#define SWEEP_JOBS 256
#define LATE       "timed out"

#define ROW(field) .offset = offsetof(struct sweep_options, field)

static const struct option_row rows[] = {
    {"cache", 0, OPTION_STRING, "DIR", ROW(cache), .group = "Runs",
     .help = "keep the runs' JSON in this directory (default:\n"
             "memsim/sweep in $XDG_CACHE_HOME or ~/.cache)"},
    {"no-cache", 0, OPTION_FLAG, NULL, ROW(no_cache),
     .help = "run every combination again, and keep no results"},
    {"jobs", 'j', OPTION_COUNT, "N", ROW(jobs), .minimum = 1,
     .maximum = SWEEP_JOBS,
     .help = "run N combinations at a time, each on its part of this\n"
             "machine's CPUs (default 1)"},
    TRIAL_ROWS(struct sweep_options, limit_s),
    {"nodes", 0, OPTION_STRING, "N,N...", ROW(nodes),
     .help = "run each combination on so many nodes, and show the\n"
             "efficiency; {nnodes} in COMMAND is the number"},
    COMPARE_OUTPUT_ROWS(struct sweep_options, output),
    JOB_ROWS(struct sweep_options, job),
    LAUNCH_ROWS(struct sweep_options, launch),
    {"cluster", 0, OPTION_STRING, "NAME|FILE.json",
     ROW(output.common.study.cluster), .group = "Step time",
     .help = "predict NCCL's collectives on this cluster"},
    {"delay", 0, OPTION_LIST, "WHAT=AMOUNT[,COND]...",
     ROW(output.common.study.delay),
     .help = "calls come later, as for `memsim run'; {delay} is the\n"
             "value of delay=... (default: nccl={delay}, all NCCL\n"
             "calls)"},
    {"host-speed", 0, OPTION_STRING, "X", ROW(output.common.study.host_speed),
     .help = "speed of the host relative to this machine (default\n"
             "1); with 0 the host takes no time"},
    {0},
};

static const struct options options = {
    .command = "memsim sweep",
    .operands = "[NAME=VALUE,...]... -- COMMAND [ARGUMENT]...",
    .summary =
        "Runs COMMAND with each combination of values in place of {NAME} in "
        "its\narguments, as `memsim run' does, and shows the runs side by "
        "side. The values of\ngpu=... are GPUs for --gpu. Those of "
        "delay=... (a list, or FROM..TO[:STEP]) are\ndelays of calls; the "
        "command runs once for them. What ran before is not run\nagain.\n\n"
        "Exit status:\n"
        "    0  every combination was run; some may be out of memory\n"
        "  125  memsim failed, or COMMAND failed for another reason than "
        "memory",
    .examples = "  memsim sweep --chart a.svg batch=1,2 dtype=fp32,bf16 -- \\\n"
                "      python train.py {batch} {dtype}\n"
                "  memsim sweep gpu=l4,a10,h100 -- python train.py\n"
                "  memsim sweep delay=0..5ms --nproc-per-node 8 -- "
                "python train.py",
    .rows = rows,
    .wanted = "give NAME=VALUE,VALUE..., then -- and a command",
    .operands_min = 1,
    .command_follows = true,
    .assignments_first = true,
};

struct sweep_run {
    const struct sweep_options *options;
    struct sweep sweep;
    struct job job;
    char **command;  /* with its {name} */
    size_t nodes;    /* the axis of --nodes, where that was given */
    struct sweep_delay delay;
    struct launch_options launch;
    char *programs;  /* memsim's own files */
    char *directory; /* of the JSON; removed afterwards if temporary */
    bool temporary;
    struct input_run *runs; /* by combination; name NULL: it was not run */
    bool *ran; /* by combination: its JSON was written, by a worker or with
                  another delay */
    bool *late; /* by combination: its run was ended, --trial-timeout */
    size_t failed, known;
};

/* --- what ran before ------------------------------------------------------ */

static char *entry_path(const struct sweep_run *s, const char *key,
                        const char *end)
{
    return xasprintf("%s/%016" PRIx64 "%s", s->directory,
                     hash_text(HASH_START, key), end);
}

static bool is_known(const struct sweep_run *s, const char *key)
{
    struct err err = {""};
    size_t length;
    char *path = entry_path(s, key, ".key");
    char *text = json_text_read(path, &length, &err);
    bool known = text && !strcmp(text, key);

    free(text);
    free(path);
    return known;
}

static void keep_outcome(const struct sweep_run *s, const char *key)
{
    struct err err = {""};
    char *path = entry_path(s, key, ".key");

    if (file_write_text(key, strlen(key), path, &err))
        cmd_note("%s; this run is not kept", err.text);
    free(path);
}

/* What the JSON of S->job, which is combination AT, depends on. */
static char *combination_key(const struct sweep_run *s, size_t at)
{
    const struct output_options *o = &s->options->output.common;
    char *job = batch_key(&s->job, s->programs, environ);
    char *delay = sweep_delay_text(&s->delay, &s->sweep, at);
    const char *const more[][2] = {{"cluster", o->study.cluster},
                                   {"delay", delay},
                                   {"host-speed", o->study.host_speed}};

    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (!more[i][1])
            continue;
        char *key = xasprintf("%s%s %s\n", job, more[i][0], more[i][1]);
        free(job);
        job = key;
    }
    free(delay);
    return job;
}

/* --- running -------------------------------------------------------------- */

static char *words_of(const struct sweep *s, size_t at)
{
    char *text = xstrdup("");

    for (size_t i = 0; i < s->axis_count; i++) {
        char *longer = xasprintf("%s%s%s=%s", text, i ? " " : "",
                                 s->axes[i].name, sweep_value(s, at, i));
        free(text);
        text = longer;
    }
    return text;
}

/* Writes the JSON of DIR, a run of S->job, with the delay of combination AT to
 * PATH. Returns the report's status. */
static int report_one(const struct sweep_run *s, struct rundir *dir, size_t at,
                      const char *path, bool *told)
{
    const struct output_options *given = &s->options->output.common;
    char *delay = sweep_delay_text(&s->delay, &s->sweep, at);
    struct output_options output = {.json = path, .quiet = true};
    const struct study_sources sources = {0};
    struct cluster assumed;

    output.study = (struct study_options){
        .cluster = given->study.cluster,
        .delay = delay,
        .host_speed = given->study.host_speed,
    };
    if (!output.study.cluster) {
        output.study.cluster = output_cluster_of_job(&s->job, &assumed);
        if (output.study.cluster)
            cluster_fini(&assumed);
    }
    int outcome =
        output_run(dir, &sources, s->job.command, &output, stderr, told);
    free(delay);
    return outcome;
}

/* What of the job that combination AT is of was run is written: with its delay,
 * and with those behind it. *FAILED: the command did, for another reason than
 * memory. Returns 0, or memsim's exit status with ERR set. */
static int report_all(struct sweep_run *s, struct rundir *dir, size_t at,
                      bool *failed, struct err *err)
{
    size_t end = at - at % s->delay.count + s->delay.count;
    int status = 0;

    for (size_t k = at; k < end && !status; k++) {
        char *key = combination_key(s, k);
        char *path = entry_path(s, key, ".json");
        bool told = false;
        int outcome = report_one(s, dir, k, path, &told);
        *failed = (outcome || dir->late) && outcome != CMD_RUN_OOM &&
                  outcome != CMD_RUN_OVER_LIMIT;
        s->late[k] = *failed && dir->late;
        if (!told)
            status = (err_set(err, "%s: the report was not written", path),
                      CMD_RUN_FAILED);
        else if (!*failed && !spawn_interrupted() && !s->temporary)
            keep_outcome(s, key);
        if (s->late[k])
            unlink(path); /* what there is of it says nothing */
        s->ran[k] = s->ran[k] || (k > at && !status);
        free(path);
        free(key);
    }
    return status;
}

/* Runs S->job, which is combination AT, and writes its JSON, as above. */
static int run_one(struct sweep_run *s, size_t at, bool *failed,
                   struct err *err)
{
    struct rundir dir;

    s->job.output = scratch_file();
    if (s->job.output < 0)
        return err_set(err, "cannot write to a temporary file; set TMPDIR"),
               CMD_RUN_FAILED;
    int status = job_start(&s->job, &dir, err);
    if (!status) {
        status = report_all(s, &dir, at, failed, err);
        if (*failed && !spawn_interrupted())
            quiet_show(s->job.output);
        rundir_remove(&dir);
    }
    close(s->job.output);
    return status;
}

static int select_gpu(struct sweep_run *s, size_t at, struct err *err)
{
    for (size_t i = 0; i < s->sweep.axis_count; i++)
        if (!strcmp(s->sweep.axes[i].name, SWEEP_GPU))
            s->job.options.gpu = sweep_value(&s->sweep, at, i);
    return job_gpu(&s->job.options, &s->job.gpu, err);
}

/* The nodes of combination AT, which the command may tell its launcher. */
static void select_nodes(struct sweep_run *s, size_t at)
{
    s->launch = s->options->launch;
    for (char **word = s->command; *word; word++)
        if (strstr(*word, "{" SWEEP_NODES "}"))
            return;
    if (s->options->nodes)
        s->launch.nodes = (uint32_t)strtoul(
            sweep_value(&s->sweep, at, s->nodes), NULL, 10);
}

static void note_progress(const struct sweep_run *s, size_t at, bool known)
{
    char *words = words_of(&s->sweep, at);
    const struct result *r = &s->runs[at].file.result;
    char shown[256];

    text_quote(shown, sizeof shown, words);
    fprintf(stderr, "  %zu/%zu  %s: %s%s\n", at + 1, s->sweep.combinations,
            shown, result_verdict_name(r->verdict), known ? ", before" : "");
    free(words);
}

static void note_late(const struct sweep_run *s, size_t at)
{
    char *words = words_of(&s->sweep, at);
    char shown[256];

    text_quote(shown, sizeof shown, words);
    fprintf(stderr, "  %zu/%zu  %s: " LATE ", ended after %" PRIu32 " s\n",
            at + 1, s->sweep.combinations, shown, s->options->limit_s);
    free(words);
}

/* Sets S->job to the combination AT; combination_end() undoes it. */
static int combination_begin(struct sweep_run *s, size_t at, struct err *err)
{
    if (select_gpu(s, at, err))
        return CMD_RUN_FAILED;
    s->job.command = sweep_command(&s->sweep, at, s->command);
    select_nodes(s, at);
    if (!launch_find(&s->job.launch, &s->launch, s->job.command, err))
        return 0;
    launch_fini(&s->job.launch);
    batch_command_free(s->job.command);
    return CMD_RUN_FAILED;
}

static void combination_end(struct sweep_run *s)
{
    launch_fini(&s->job.launch);
    batch_command_free(s->job.command);
}

static int combination_run(struct sweep_run *s, size_t at, struct err *err)
{
    int status = combination_begin(s, at, err);

    if (status)
        return status;
    char *key = combination_key(s, at);
    char *path = entry_path(s, key, ".json");
    bool known = !s->ran[at] && is_known(s, key), failed = false;
    if (!known && !s->ran[at])
        status = run_one(s, at, &failed, err);
    s->failed += failed;
    s->known += known;
    s->runs[at].name = path;
    bool cut = s->late[at] || (!s->ran[at] && spawn_interrupted());
    if (!status && !cut)
        status = input_run_open(&s->runs[at], err) ? CMD_RUN_FAILED : 0;
    if (status || cut) {
        s->runs[at].name = NULL;
        unlink(path);
        free(path);
        if (s->late[at])
            note_late(s, at);
    } else if (!s->options->output.common.quiet && !s->ran[at]) {
        note_progress(s, at, known);
    }
    free(key);
    combination_end(s);
    return status;
}

/* --- several at a time ---------------------------------------------------- */

#define WORKER_FAILED 1 /* the command did, for another reason than memory */
#define WORKER_LATE   2 /* it was ended: its time was over */

/* Runs the combination AT in a process of its own, which ends afterwards. */
static int worker_run(void *context, size_t at)
{
    struct sweep_run *s = context;
    struct err err = {""};
    int status = combination_run(s, at, &err);

    if (spawn_interrupted())
        return ended_by(spawn_signal());
    return status        ? cmd_fail(status, &err)
           : s->late[at] ? WORKER_LATE
           : s->failed   ? WORKER_FAILED
                         : 0;
}

static int worker_ended(void *context, size_t at, int status)
{
    struct sweep_run *s = context;

    for (size_t i = 0; i < s->delay.count; i++) {
        s->late[at + i] = status == WORKER_LATE;
        s->ran[at + i] = status == 0 || (!i && status == WORKER_FAILED);
    }
    s->failed += status == WORKER_FAILED || status == WORKER_LATE;
    return !s->ran[at] && !s->late[at];
}

/* Whether the combination AT is to be run. A second one with the same KEY, of
 * COUNT KEYS, is not: it is known afterwards. */
static bool is_wanted(const struct sweep_run *s, char *const *keys,
                      size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(keys[i], key))
            return false;
    return !is_known(s, key);
}

/* Sets AT to the combinations that have to be run, *COUNT of them. */
static int wanted_find(struct sweep_run *s, size_t *at, size_t *count,
                       struct err *err)
{
    size_t all = s->sweep.combinations;
    char **keys = xcalloc(all, sizeof *keys);
    int status = 0;

    *count = 0;
    for (size_t i = 0; i < all && !status; i += s->delay.count) {
        if ((status = combination_begin(s, i, err)))
            break;
        char *key = combination_key(s, i);
        combination_end(s);
        if (is_wanted(s, keys, *count, key)) {
            at[*count] = i;
            keys[(*count)++] = key;
        } else {
            free(key);
        }
    }
    for (size_t i = 0; i < *count; i++)
        free(keys[i]);
    free(keys);
    return status;
}

/* Runs what is not known in several processes. Afterwards it is in their JSON
 * files. */
static int run_ahead(struct sweep_run *s, struct err *err)
{
    const struct workers w = {.most = s->options->jobs,
                              .work = worker_run,
                              .ended = worker_ended,
                              .context = s};
    size_t count, *at = xcalloc(s->sweep.combinations, sizeof *at);
    int status = wanted_find(s, at, &count, err), error = 0;

    if (!status)
        error = workers_run(&w, at, count);
    if (error)
        status = (err_set(err, "no process for a run: %s", strerror(error)),
                  CMD_RUN_FAILED);
    for (size_t i = 0; i < count && !status; i++)
        if (!s->ran[at[i]] && !s->late[at[i]] && !spawn_interrupted())
            status = CMD_RUN_FAILED; /* it said why */
    free(at);
    return status;
}

/* --- the table ------------------------------------------------------------ */

static int write_reports(const struct sweep_run *s, struct err *err)
{
    const struct sweep *sweep = &s->sweep;
    struct compare_report r = {.title_count = sweep->axis_count};
    struct prices prices;

    r.titles = xcalloc(sweep->axis_count + 1, sizeof *r.titles);
    for (size_t i = 0; i < sweep->axis_count; i++)
        r.titles[i] = sweep->axes[i].name;
    r.rows = xcalloc(sweep->combinations, sizeof *r.rows);
    for (; r.row_count < sweep->combinations; r.row_count++) {
        struct compare_row *row = &r.rows[r.row_count];
        const struct input_run *run = &s->runs[r.row_count];
        row->cells = xcalloc(sweep->axis_count + 1, sizeof *row->cells);
        for (size_t i = 0; i < sweep->axis_count; i++)
            row->cells[i] = (char *)sweep_value(sweep, r.row_count, i);
        row->result = run->name ? &run->file.result : NULL;
        row->why = s->late[r.row_count] ? LATE : "not run";
    }
    struct compare_delays delays = {
        s->delay.axis, xcalloc(sweep->combinations, sizeof *delays.ns)};
    for (size_t i = 0; s->delay.given && i < sweep->combinations; i++)
        delays.ns[i] = sweep_delay_ns(&s->delay, sweep, i);
    r.delays = s->delay.given ? &delays : NULL;
    int rc = compare_output_terms(&s->options->output, &r, &prices, err);
    if (!rc && s->options->nodes) {
        r.nodes = &s->nodes;
        scaling_find(&r, s->nodes);
    }
    if (!rc)
        rc = compare_output_write(&s->options->output, &r, err);
    prices_fini(&prices);
    free(delays.ns);
    for (size_t i = 0; i < r.row_count; i++)
        free(r.rows[i].cells);
    free(r.rows);
    free(r.titles);
    return rc;
}

/* Runs what has to be run. Returns 0, or memsim's exit status with ERR set. */
static int run_all(struct sweep_run *s, struct err *err)
{
    int status = s->options->jobs > 1 ? run_ahead(s, err) : 0;
    bool interrupted = spawn_interrupted();

    for (size_t at = 0; !status && at < s->sweep.combinations; at++) {
        if (!s->late[at] && (!interrupted || s->ran[at]))
            status = combination_run(s, at, err);
        if (spawn_interrupted() && !interrupted)
            break;
    }
    return status;
}

static int sweep_all(struct sweep_run *s, struct err *err)
{
    warm_begin();
    int status = run_all(s, err);
    warm_end();
    if (status)
        return status;
    if (write_reports(s, err))
        return CMD_RUN_FAILED;
    if (spawn_interrupted()) {
        cmd_note("interrupted; the same command goes on from here");
        return ended_by(spawn_signal());
    }
    return s->failed ? CMD_RUN_FAILED : CMD_OK;
}

static char *cache_directory(void)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (xdg && *xdg == '/')
        return xasprintf("%s/memsim/sweep", xdg);
    return home && *home ? xasprintf("%s/.cache/memsim/sweep", home) : NULL;
}

static int temporary_directory(struct sweep_run *s, struct err *err)
{
    const char *place = getenv("TMPDIR");

    free(s->directory);
    s->directory =
        xasprintf("%s/memsim-sweep-XXXXXX", place && *place ? place : "/tmp");
    s->temporary = true;
    return mkdtemp(s->directory)
               ? 0
               : err_set(err, "%s: %s", s->directory, strerror(errno));
}

static int find_directory(struct sweep_run *s, struct err *err)
{
    s->directory =
        s->options->cache ? xstrdup(s->options->cache) : cache_directory();
    if (s->options->no_cache || !s->directory)
        return temporary_directory(s, err);
    for (char *p = s->directory + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(s->directory, 0700); /* the last one tells */
            *p = '/';
        }
    if (!mkdir(s->directory, 0700) || errno == EEXIST)
        return 0;
    cmd_note("%s: %s; what is found is not kept: see --cache", s->directory,
             strerror(errno));
    return temporary_directory(s, err);
}

static void sweep_run_fini(struct sweep_run *s)
{
    for (size_t i = 0; s->runs && i < s->sweep.combinations; i++) {
        if (!s->runs[i].name)
            continue;
        input_run_close(&s->runs[i]);
        if (s->temporary)
            unlink(s->runs[i].name);
        free((char *)s->runs[i].name);
    }
    if (s->temporary)
        rmdir(s->directory);
    free(s->runs);
    free(s->ran);
    free(s->late);
    free(s->directory);
    free(s->programs);
    sweep_fini(&s->sweep);
}

/* The command in WORDS, behind *AXES assignments; there may be none of these
 * with --nodes NODES. NULL: it lacks something. */
static char **command_find(char **words, const char *nodes, size_t *axes)
{
    if (nodes && words[0] && !strchr(words[0], '='))
        return words;
    while (words[*axes] && strcmp(words[*axes], "--"))
        ++*axes;
    return *axes && words[*axes] && words[*axes + 1] ? words + *axes + 1
                                                     : NULL;
}

/* Whether LIST is numbers of nodes, with commas between. */
static int nodes_check(const char *list, struct err *err)
{
    for (const char *at = list;; at++) {
        char *end;
        unsigned long nodes = strtoul(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end && *end != ',') || !nodes ||
            nodes > RUN_RANKS_MAX)
            return err_set(err,
                           "--nodes: '%s' is not a list of numbers from 1 to "
                           "%u, as 1,2,4",
                           list, RUN_RANKS_MAX);
        if (!*(at = end))
            return 0;
    }
}

/* The axes of WORDS, and behind them that of --nodes. */
static int axes_parse(struct sweep_run *s, char **words, size_t count,
                      struct err *err)
{
    const char *nodes = s->options->nodes;

    if (!nodes)
        return sweep_parse(&s->sweep, words, count, err);
    if (nodes_check(nodes, err))
        return -1;
    char **all = xcalloc(count + 2, sizeof *all);
    memcpy(all, words, count * sizeof *all);
    all[count] = xasprintf(SWEEP_NODES "=%s", nodes);
    int rc = sweep_parse(&s->sweep, all, count + 1, err);
    s->nodes = count;
    free(all[count]);
    free(all);
    return rc;
}

/* Whether the options of times are as they should be, and which delays there
 * are. Returns 0 or -1. */
static int check_times(struct sweep_run *s, struct err *err)
{
    struct study_options times = {
        .host_speed = s->options->output.common.study.host_speed};
    const char *delay = s->options->output.common.study.delay;

    if (sweep_delay_find(&s->delay, &s->sweep, &s->nodes, s->command, delay,
                         err))
        return -1;
    times.delay = s->delay.given ? NULL : delay;
    return study_options_check(&times, err);
}

static int run_sweep(const struct sweep_options *o, char **words,
                     struct err *err)
{
    struct sweep_run s = {
        .options = o,
        .job = {.options = o->job,
                .trace_limit_bytes = JOB_TRACE_LIMIT,
                .limit_s = o->limit_s}};
    size_t axes = 0;
    int status = CMD_RUN_FAILED;

    s.command = command_find(words, o->nodes, &axes);
    if (!s.command) {
        err_set(err, "%s", options.wanted);
        return cmd_usage(&options, CMD_RUN_FAILED, err);
    }
    if (axes_parse(&s, words, axes, err))
        return cmd_fail(status, err);
    if (check_times(&s, err))
        return sweep_run_fini(&s), cmd_fail(status, err);
    s.job.command = s.command;
    if (!compare_output_check(&o->output, NULL, err) &&
        !sweep_check(&s.sweep, s.command, s.delay.given ? SWEEP_DELAY : NULL,
                     err) &&
        !quiet_check_outer("sweep", err) && !select_gpu(&s, 0, err) &&
        (s.programs = job_programs(err)) && !find_directory(&s, err)) {
        s.runs = xcalloc(s.sweep.combinations, sizeof *s.runs);
        s.ran = xcalloc(s.sweep.combinations, sizeof *s.ran);
        s.late = xcalloc(s.sweep.combinations, sizeof *s.late);
        status = cmd_check_job(&s.job);
        if (!status)
            status = sweep_all(&s, err);
    }
    sweep_run_fini(&s);
    return err->text[0] ? cmd_fail(status, err) : status;
}

int cmd_sweep(int argc, char **argv)
{
    struct sweep_options o = {.job = JOB_DEFAULTS};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    return status >= 0 ? status : run_sweep(&o, operands.values, &err);
}
