/* SPDX-License-Identifier: Apache-2.0
 * memsim run: runs a command on simulated GPUs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/text_begins.h"
#include "fits/cluster.h"
#include "fits/placement.h"
#include "memsim/advice/advice_run.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/batch_guess.h"
#include "memsim/study/batch_find.h"
#include "memsim/cli/cmd.h"
#include "memsim/study/corrections.h"
#include "memsim/run/job_start.h"
#include "memsim/study/kept_options.h"
#include "memsim/cli/live.h"
#include "memsim/run/job.h"
#include "memsim/run/ranks.h"
#include "memsim/cli/output.h"
#include "memsim/study/job_time.h"
#include "memsim/cli/run_emulate.h"
#include "memsim/cli/run_real.h"
#include "memsim/cli/run_seeds.h"
#include "memsim/run/routing.h"
#include "memsim/study/run_study.h"
#include "playback/image.h"

#define SCAN_SECONDS 300

struct run_options {
    struct job_options job;
    struct launch_options launch;
    const char *directory;
    bool force;
    uint64_t trace_limit_bytes;
    uint32_t stop_after;
    int stacks;
    bool no_modules, real_init, real_clock, local_clock, late_frees;
    bool kill_with_memsim, live;
    bool real, emulates, scan_data;
    uint32_t scan_seconds;
    const char *routing;
    uint32_t seed, seeds;
    uint64_t cap_bytes;
    const char *corrections;
    struct output_options output;
};

#define ROW(field) .offset = offsetof(struct run_options, field)

static const struct option_row rows[] = {
    JOB_ROWS(struct run_options, job),
    LAUNCH_ROWS(struct run_options, launch),
    {"real", 0, OPTION_FLAG, NULL, ROW(real), .group = "Real GPUs",
     .help = "run COMMAND on this machine's GPUs and record what it\n"
             "does, with their times, instead of simulating"},
    {"cap", 0, OPTION_BYTES, "SIZE", ROW(cap_bytes),
     .help = "with --real: each GPU has no more memory than this"},
    {"corrections", 0, OPTION_STRING, "FILE.json", ROW(corrections),
     .help = "what a real run taught of the GPU: memory of context\n"
             "and libraries, factors of times (memsim diff --truth)"},
    {"no-modules", 0, OPTION_FLAG, NULL, ROW(no_modules),
     .group = "Run",
     .help = "do not record which module, phase and operator each\n"
             "allocation belongs to"},
    {"stacks", 0, OPTION_CHOICE, "kept|none|large|all", ROW(stacks),
     .help = "record the Python stack of each allocation: of those\n"
             "like others that outlived their step (default), of\n"
             "none, of those of 1 MiB and more, or of all"},
    {"real-clock", 0, OPTION_FLAG, NULL, ROW(real_clock),
     .help = "COMMAND sees this machine's time, not the predicted one"},
    {"local-clock", 0, OPTION_FLAG, NULL, ROW(local_clock),
     .help = "the clock of a rank does not wait for the other ranks\n"
             "in collectives, sends and receives"},
    {"late-frees", 0, OPTION_FLAG, NULL, ROW(late_frees),
     .help = "delay frees of blocks used on another stream\n"
             "(record_stream) until that stream is done"},
    {"real-init", 0, OPTION_FLAG, NULL, ROW(real_init),
     .help = "draw the random initial values of large host tensors"},
    {"stop-after", 0, OPTION_COUNT, "N", ROW(stop_after), .minimum = 1,
     .maximum = UINT32_MAX,
     .help = "end each Python program of COMMAND with status 0 after\n"
             "N steps of a PyTorch optimizer"},
    {"scan-data", 0, OPTION_FLAG, NULL, ROW(scan_data),
     .help = "read all batches of the data loaders that COMMAND uses:\n"
             "the longest sample, the largest batch"},
    {"scan-seconds", 0, OPTION_COUNT, "N", ROW(scan_seconds), .minimum = 1,
     .maximum = UINT32_MAX,
     .help = "read each data loader for N seconds at most (default\n"
             "300)"},
    {"routing", 0, OPTION_STRING, "even|zipf[:S]|power:A|FILE", ROW(routing),
     .help = "how often a topk of values that memsim does not compute\n"
             "chooses each expert (default even); FILE has a share\n"
             "for each"},
    {"seed", 0, OPTION_COUNT, "N", ROW(seed), .maximum = UINT32_MAX,
     .help = "draw other experts for --routing (default 0)"},
    {"seeds", 0, OPTION_COUNT, "N", ROW(seeds), .minimum = 2,
     .maximum = 10000,
     .help = "run COMMAND with N seeds, from --seed on: the peak at\n"
             "the 95th percentile; exit with 123 if it does not fit"},
    {"kill-with-memsim", 0, OPTION_FLAG, NULL, ROW(kill_with_memsim),
     .help = "kill COMMAND when memsim is killed"},
    {"live", 0, OPTION_FLAG, NULL, ROW(live),
     .help = "on a terminal: show memory, step and verdict so far\n"
             "while COMMAND runs"},
    {"output", 'o', OPTION_STRING, "DIR", ROW(directory),
     .help = "keep the run in this directory, for `memsim report',\n"
             "replay, diff and trace"},
    {"force", 0, OPTION_FLAG, NULL, ROW(force),
     .help = "replace the earlier run in DIR"},
    {"trace-limit", 0, OPTION_BYTES, "SIZE", ROW(trace_limit_bytes),
     .help = "largest size of each process's trace (default 8GiB)"},
    OUTPUT_ROWS(struct run_options, output),
    {0},
};

static const struct options options = {
    .command = "memsim run",
    .operands = "[--] COMMAND [ARGUMENT]...",
    .summary =
        "Runs COMMAND on simulated GPUs. Reports how much GPU memory it uses, "
        "for what,\nand how long a training step takes. The summary goes to "
        "stderr.\n\n"
        "The exit status is that of COMMAND, except:\n"
        "  120  COMMAND, or a process of it, ran out of GPU memory\n"
        "  121  a limit was exceeded (--fail-above, --fail-slower)\n"
        "  123  memory grows and runs out before the job ends (--steps), or "
        "the largest\n       input does not fit (--input-max, --worst-batch)\n"
        "  124  the host's memory does not suffice (--host-memory)\n"
        "  125  memsim failed, --require-gpu found no use of a GPU, a rank\n"
        "       that memsim started died of a signal, or a process of\n"
        "       COMMAND failed, and COMMAND ended with 0\n"
        "  126  COMMAND cannot be executed\n"
        "  127  COMMAND was not found",
    .examples =
        "  memsim run -- python train.py\n"
        "  memsim run --gpus 8 -- torchrun --nproc-per-node 8 train.py\n"
        "  memsim run --nnodes 16 --nproc-per-node 8 -- python train.py\n"
        "  memsim run --gpu l4 --html page.html --advice -- python train.py",
    .rows = rows,
    .wanted = "no command given",
    .operands_min = 1,
    .command_follows = true,
};

static const struct options emulate_options = {
    .command = "memsim emulate",
    .operands = "[--] COMMAND [ARGUMENT]...",
    .summary =
        "Runs one rank of a job on this machine's GPU, or a few (--ranks), as "
        "if the\njob's other ranks were there. NCCL and the place where ranks "
        "meet are memsim's;\nall else is real. A collective holds the GPU for "
        "as long as the model of the\ncluster says. The exit status is that of "
        "`memsim run'.",
    .examples =
        "  memsim emulate --nproc-per-node 8 -- python train.py\n"
        "  memsim emulate --nnodes 16 --nproc-per-node 8 -- python train.py\n"
        "  memsim emulate --nnodes 4 --nproc-per-node 8 --ranks 0,1 -- python "
        "train.py",
    .rows = rows,
    .wanted = "no command given",
    .operands_min = 1,
    .command_follows = true,
};

static int fail_errno(const char *command, int error)
{
    struct err err = {""};

    err_set(&err, "%s: %s", command, strerror(error));
    return cmd_fail(
        error == ENOENT ? CMD_RUN_NOT_FOUND : CMD_RUN_NOT_EXECUTABLE, &err);
}

static int run_nested(const char *session, char **command)
{
    cmd_note("already inside a memsim run (%s): %s joins it, and "
             "this run's options are ignored",
             session, command[0]);
    execvp(command[0], command);
    return fail_errno(command[0], errno);
}

/* Left behind by a test on the host, as often as not. */
static void note_hidden_cards(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (visible && (!*visible || *visible == '-'))
        cmd_note("CUDA_VISIBLE_DEVICES=%s hides every GPU from "
                 "the command; unset it to have one",
                 visible);
}

static int check_trace_limit(uint64_t bytes, struct err *err)
{
    char text[16];

    if (bytes >= JOB_TRACE_LIMIT_MIN)
        return 0;
    return err_set(err, "--trace-limit: %s is too little; at least 2MiB",
                   units_format_bytes(bytes, text, sizeof text));
}

/* An option of ours that COMMAND was given; NULL: none. */
static const char *misplaced_option(char *const *command)
{
    for (size_t i = 1; command[0] && command[i]; i++)
        for (const struct option_row *row = rows; row->name; row++) {
            size_t length = strlen(row->name);
            const char *word = command[i];
            if (text_begins(word, "--") &&
                !strncmp(word + 2, row->name, length) &&
                (!word[2 + length] || word[2 + length] == '='))
                return row->name;
        }
    return NULL;
}

/* argparse and others end with this for an option that they do not know. */
#define STATUS_USAGE 2

static void note_misplaced(const struct session *s, char *const *command)
{
    const char *name = misplaced_option(command);

    if (s->exit_status == STATUS_USAGE && name)
        cmd_note("the command was given --%s; memsim's own options go before "
                 "the command: memsim run --%s ... -- %s",
                 name, name, command[0]);
}

static int write_reports(struct rundir *dir,
                         const struct study_sources *sources,
                         const struct run_options *o, char **command)
{
    bool told;
    int status = output_run(dir, sources, command, &o->output, stderr, &told);

    bool can_say = !ferror(stderr); /* where a trace was kept */
    if (dir->temporary && (told || !can_say) && !dir->session->background) {
        rundir_remove(dir);
        return status;
    }
    if (dir->temporary)
        cmd_note("the run's trace is kept in %s", dir->path);
    rundir_close(dir);
    return status;
}

static bool ran_out(const struct rundir *dir, char **command)
{
    struct result result;

    result_init(&result, dir->session, command);
    bool ran_out = result.verdict == VERDICT_OOM;
    result_fini(&result);
    return ran_out;
}

/* Runs JOB, which did not fit, on a GPU that it fits on, and silently. Where
 * the first run is kept, so is this, beside it. */
static int run_unlimited(const struct job *job, const struct rundir *first,
                         struct rundir *dir)
{
    struct job again = *job;
    struct err err = {""};
    char *name = xasprintf("%s" ADVICE_UNLIMITED_END, first->path);

    again.options.memory_bytes = ADVICE_UNLIMITED_BYTES;
    again.view = NULL;
    again.directory = first->temporary ? NULL : name;
    again.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fputs("memsim: running it again on a GPU without a limit, for the "
          "advice\n",
          stderr);
    int rc =
        job_gpu(&again.options, &again.gpu, &err) || job_run(&again, dir, &err);
    if (rc)
        cmd_note("no advice: %s", err.text);
    if (again.output >= 0)
        close(again.output);
    free(name);
    return rc;
}

/* The largest batch of TEMPLATE is searched for. */
static uint64_t search_batch(const struct job *job, char *const *template)
{
    fputs("memsim: looking for the largest batch that fits, for the advice\n",
          stderr);
    struct err err = {""};
    uint64_t largest = batch_find_largest(job, template, &err);

    if (!largest && err.text[0])
        cmd_note("the largest batch is not known: %s", err.text);
    return largest;
}

/* What fit-batch knows of JOB's command, or finds out where SEARCH, or how to
 * ask it; BATCH_COMMAND and BATCH_OPTION are to be freed. */
static void find_batch(const struct job *job, bool search,
                       struct study_sources *sources, char **batch_command,
                       char **batch_option)
{
    char **template = batch_guess(job->command);
    char *dir = batch_cache_directory(getenv("XDG_CACHE_HOME"), getenv("HOME"));
    struct err err = {""};
    char *programs = job_programs(&err);

    *batch_command = *batch_option = NULL;
    if (template) {
        sources->batch_option = *batch_option = batch_guess_option(template);
        *batch_command = batch_guess_text(job, template);
        sources->batch_command = *batch_command;
        const struct batch_past past = {dir, programs, environ};
        if (dir && programs)
            sources->largest_batch = batch_known(&past, job, template);
        if (search && !sources->largest_batch)
            sources->largest_batch = search_batch(job, template);
        batch_command_free(template);
    }
    free(programs);
    free(dir);
}

static int run_command(struct run_options *o, struct job *job)
{
    struct result_seeds seeds = {.routing = o->routing ? o->routing : "even"};
    struct study_sources sources = {0};
    struct err err = {""};
    struct rundir dir, unlimited;
    char *batch_command, *batch_option;
    int status = job_start(job, &dir, &err);

    if (status)
        return cmd_fail(status, &err);
    if (o->real)
        run_real_end(&dir, o->output.quiet);
    if (!o->real && o->output.study.advice && ran_out(&dir, job->command) &&
        !run_unlimited(job, &dir, &unlimited))
        sources.unlimited = &unlimited;
    note_misplaced(dir.session, job->command);
    if (o->seeds && run_seeds(job, &dir, o->seeds, &seeds, &err)) {
        if (dir.temporary)
            rundir_remove(&dir);
        else
            rundir_close(&dir);
        return cmd_fail(CMD_RUN_FAILED, &err);
    }
    o->output.study.seeds = o->seeds ? &seeds : NULL;
    find_batch(job, sources.unlimited != NULL, &sources, &batch_command,
               &batch_option);
    status = write_reports(&dir, &sources, o, job->command);
    free(batch_command);
    free(batch_option);
    if (sources.unlimited && unlimited.temporary)
        rundir_remove(&unlimited);
    else if (sources.unlimited)
        rundir_close(&unlimited);
    return status;
}

/* Gives JOB what the command's clock is simulated with. Where that cannot be
 * made, the report says why, and the command sees this machine's time. */
static void *clock_make(const struct run_options *o, struct job *job)
{
    struct study_time times;
    struct err ignored = {""};

    if (o->real_clock ||
        study_time_init(&times, &o->output.study, &job->gpu, &ignored))
        return NULL;
    if (job->emulates)
        times.timeline.price.slow = run_emulate_slowest(job, &o->output);
    struct placement placement = {.ranks = 0};
    if (times.has_cluster && job->launch.world &&
        !placement_make(
            &placement, o->output.study.placement, job->launch.world,
            cluster_width(&times.cluster, job->launch.local), &ignored))
        times.timeline.placement = &placement;
    void *image = playback_image_make(&times.timeline, &job->clock_bytes);
    placement_fini(&placement);
    study_time_fini(&times);
    job->clock_image = image;
    return image;
}

/* Several nodes have a network. Where none is named, the usual one of such
 * GPUs is assumed. */
static void assume_cluster(struct run_options *o, const struct job *job)
{
    struct cluster cluster;

    if (o->output.study.cluster || o->real_clock)
        return;
    o->output.study.cluster = output_cluster_of_job(job, &cluster);
    if (!o->output.study.cluster)
        return;
    if (!o->output.quiet)
        cmd_note("the job has several nodes, and no --cluster: %s (%s)",
                 cluster.about, cluster.name);
    cluster_fini(&cluster);
}

/* Has each of WORLD ranks a place on C, whose nodes have WIDTH GPUs for it? */
static int check_places(const struct run_options *o, const struct cluster *c,
                        uint32_t world, uint32_t width, struct err *err)
{
    struct placement places;

    if (placement_make(&places, o->output.study.placement, world, width, err))
        return -1;
    uint32_t nodes = placement_nodes(&places, world);
    placement_fini(&places);
    if (!c->network || nodes <= c->network->nodes)
        return 0;
    return err_set(err,
                   "--cluster %s: its network has %u nodes, and %u ranks, %u "
                   "on each, take %u",
                   o->output.study.cluster, c->network->nodes, world, width,
                   nodes);
}

/* Does a host of the cluster have a GPU for each of its ranks, its network the
 * nodes, and each rank a place? Of a measured one it is only known how many
 * were measured. */
static int check_width(const struct run_options *o, const struct launch *launch,
                       struct err *err)
{
    const char *name = o->output.study.cluster;
    struct cluster cluster;

    if (!name || !launch->world)
        return 0;
    if (cluster_load(name, &cluster, err))
        return -1;
    int rc = cluster.measured || launch->local <= cluster.gpus_per_node
                 ? check_places(o, &cluster, launch->world,
                                cluster_width(&cluster, launch->local), err)
                 : err_set(err,
                           "--cluster %s: a node has %u GPUs, but there are "
                           "%u ranks on each (--nproc-per-node)",
                           name, cluster.gpus_per_node, launch->local);
    cluster_fini(&cluster);
    return rc;
}

static int check_scan(const struct run_options *o, struct err *err)
{
    bool scan = o->scan_data || o->output.study.worst_batch;

    if (scan && o->no_modules)
        return err_set(err, "--scan-data and --worst-batch need what "
                            "--no-modules turns off");
    return scan && o->real
               ? err_set(err, "--scan-data and --worst-batch are for simulated "
                              "GPUs, not for --real")
               : 0;
}

static int check_routing(const struct run_options *o, struct err *err)
{
    if (o->seeds && !o->routing)
        return err_set(err, "--seeds needs --routing: without it, nothing "
                            "depends on the seed");
    return o->routing && o->real
               ? err_set(err, "--routing is for values that a simulated GPU "
                              "does not compute, not for --real")
               : 0;
}

static int check_stop(const struct run_options *o, struct err *err)
{
    return o->stop_after && o->no_modules
               ? err_set(err, "--stop-after counts steps by what --no-modules "
                              "turns off")
               : 0;
}

static int check_clock(const struct run_options *o, struct err *err)
{
    return o->late_frees && o->real_clock
               ? err_set(err, "--late-frees needs the predicted time, which "
                              "--real-clock turns off")
               : 0;
}

/* Whether the options of JOB go together. Returns 0 or -1. */
static int check_options(const struct run_options *o, const struct job *job,
                         struct err *err)
{
    return output_check(&o->output, err) || check_clock(o, err) ||
                   check_stop(o, err) || check_scan(o, err) ||
                   check_routing(o, err) ||
                   run_real_check(o->real, o->cap_bytes, job, err) ||
                   (job->emulates && run_emulate_check(job, &o->output, err)) ||
                   check_width(o, &job->launch, err) ||
                   output_check_input(&o->output, o->job.gpu, err) ||
                   check_trace_limit(o->trace_limit_bytes, err)
               ? -1
               : 0;
}

/* What --corrections says of JOB's GPU, of libraries' workspaces, and of the
 * times unless --scale or --fit was given; *SCALE is to be freed. Returns 0 or
 * -1. */
static int correct_scale(struct run_options *o, struct job *job, char **scale,
                         struct err *err)
{
    struct corrections c;

    *scale = NULL;
    if (!o->corrections)
        return 0;
    if (o->real)
        return err_set(err, "--corrections are for simulated GPUs, not for "
                            "--real");
    if (corrections_read(&c, o->corrections, err))
        return -1;
    if (corrections_apply(&c, &job->gpu, err)) {
        corrections_fini(&c);
        return -1;
    }
    *scale = o->output.study.scale ? NULL : corrections_scale(&c);
    if (*scale)
        o->output.study.scale = *scale;
    if (!o->output.study.fit)
        o->output.study.fit = o->corrections;
    char *workspaces = corrections_workspaces(&c);
    if (workspaces) /* core/work/library_call.h */
        setenv("MEMSIM_WORKSPACES", workspaces, true);
    free(workspaces);
    corrections_fini(&c);
    return 0;
}

/* Runs JOB, with the clock that its command sees, and shows it meanwhile. */
static int run_watched(struct run_options *o, struct job *job,
                       char *const *invocation)
{
    note_hidden_cards();
    assume_cluster(o, job);
    o->output.study.step_mark = o->job.step_mark;
    void *image =
        o->real && !o->emulates ? NULL : clock_make(o, job);
    if (o->emulates) /* they are in what is recorded */
        o->output.study.delay = o->output.study.delay_lib = NULL;
    struct live *live = o->live ? live_create() : NULL;
    job->view = live_view(live);
    char **kept = kept_options_words(&o->output.study);
    job->kept = *kept ? kept : NULL;
    job->invocation = invocation;
    int status = run_command(o, job);
    kept_options_words_free(kept);
    live_destroy(live);
    free(image);
    return status;
}

/* What `memsim emulate' is beside a run of a real GPU. */
static void set_emulation(struct run_options *o)
{
    o->real = o->emulates = true;
    if (!o->launch.ranks)
        o->launch.ranks = EMULATE_RANK;
}

static struct job describe_job(const struct run_options *o, char **command,
                               bool emulates)
{
    bool scans = o->scan_data || o->output.study.worst_batch;

    return (struct job){.options = o->job,
                        .command = command,
                        .directory = o->directory,
                        .force = o->force,
                        .trace_limit_bytes = o->trace_limit_bytes,
                        .cap_bytes = o->cap_bytes,
                        .stop_after = o->stop_after,
                        .no_modules = o->no_modules,
                        .scan_seconds = scans ? o->scan_seconds : 0,
                        .seed = o->seed,
                        .real_init = o->real_init,
                        .late_frees = o->late_frees,
                        .local_clock = o->local_clock,
                        .emulates = emulates,
                        .stacks = o->stacks,
                        .kill_with_memsim = o->kill_with_memsim,
                        .output = -1};
}

/* On the card, where the run is of one, and with what was learnt of one. */
static int run_job(struct run_options *o, struct job *job,
                   char *const *invocation)
{
    struct real_cards cards;
    struct err err = {""};
    char *scale;
    int status;

    if ((o->real && run_real_start(job, &cards, o->output.quiet, &err)) ||
        (job->emulates && run_emulate_cards(job, &cards, &err)) ||
        correct_scale(o, job, &scale, &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    status = run_watched(o, job, invocation);
    free(scale);
    return status;
}

/* INVOCATION is the whole command line. EMULATES: `memsim emulate'. */
static int start_command(bool emulates, int argc, char **argv,
                         char *const *invocation)
{
    struct run_options o = {.job = JOB_DEFAULTS,
                            .trace_limit_bytes = JOB_TRACE_LIMIT,
                            .scan_seconds = SCAN_SECONDS};
    struct operands operands;
    struct err err = {""};
    const char *default_gpu = o.job.gpu;
    char *routing = NULL;
    int status = cmd_start(emulates ? &emulate_options : &options, argc, argv,
                           &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    if (emulates)
        set_emulation(&o);
    if (o.job.gpu == default_gpu)
        o.job.gpu = output_cluster_gpu(&o.output, o.job.gpu);
    struct job job = describe_job(&o, operands.values, emulates);

    if (launch_find(&job.launch, &o.launch, operands.values, &err) ||
        check_options(&o, &job, &err) ||
        (o.routing && routing_parse(o.routing, &routing, &err)))
        return cmd_fail(CMD_RUN_FAILED, &err);
    job.routing = routing;
    status = cmd_check_job(&job);
    if (status)
        return status;
    const char *outer = getenv("MEMSIM_SESSION");
    if (!o.real && outer && rundir_is_live(outer))
        return run_nested(outer, operands.values);
    status = run_job(&o, &job, invocation);
    free(routing);
    launch_fini(&job.launch);
    return status;
}

static int invoke_run(bool emulates, int argc, char **argv)
{
    char **invocation = cmd_invocation(argc, argv); /* start moves ARGV's words
                                                     */
    int status = start_command(emulates, argc, argv, invocation);

    free(invocation);
    return status;
}

int cmd_run(int argc, char **argv)
{
    return invoke_run(false, argc, argv);
}

int cmd_emulate(int argc, char **argv)
{
    return invoke_run(true, argc, argv);
}
