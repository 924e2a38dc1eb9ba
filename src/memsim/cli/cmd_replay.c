/* SPDX-License-Identifier: Apache-2.0
 * memsim replay: recorded allocator calls on another GPU, or under other
 * settings. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_gpus.h"
#include "memsim/advice/advice_run.h"
#include "memsim/change/pipe_schedule.h"
#include "memsim/change/pipe_split.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/input_kind.h"
#include "memsim/study/kept_options.h"
#include "memsim/cli/output.h"
#include "memsim/cli/output_files.h"
#include "memsim/study/replay_changed.h"
#include "memsim/cli/replay_gpus.h"
#include "memsim/cli/replay_options.h"
#include "memsim/cli/replay_show.h"
#include "memsim/study/replay_memory.h"
#include "memsim/study/replay_replicas.h"
#include "memsim/study/replay_stages.h"
#include "memsim/report/replay_report.h"
#include "memsim/study/run_study.h"

#define ROW(field) .offset = offsetof(struct replay_options, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json", ROW(gpu), .group = "Replay",
     .help = "GPU to replay on, see `memsim gpus' (default: that\n"
             "of the recording; for a snapshot " REPLAY_GPU ");\n"
             "all, or several with commas between them: a table"},
    {"price", 0, OPTION_STRING, "PRICE", ROW(price),
     .help = "prices of an hour of one GPU, for the table: a file\n"
             "like {\"h100\": 2.99, \"l4\": 0.71}, or one price: 2.99, or\n"
             "98.5/8 of a node of 8"},
    {"budget", 0, OPTION_NUMBER, "PRICE", ROW(budget),
     .help = "leave out GPUs whose hour costs more (see --price)"},
    {"memory", 0, OPTION_BYTES, "SIZE", ROW(memory.memory_bytes),
     .help = "memory of the GPU: 80GiB, 80GB, 85899345920"},
    {"alloc-conf", 0, OPTION_STRING, "CONF", ROW(alloc_conf),
     .help = "PYTORCH_CUDA_ALLOC_CONF to use in place of the\n"
             "recording's; repeat it to compare several"},
    {"sweep", 0, OPTION_STRING, "memory=LEAST..MOST", ROW(memory.sweep),
     .help = "find the least memory that is enough, to 2 MiB"},
    {"what-if", 0, OPTION_STRING, "CHANGE[,CHANGE]...", ROW(memory.what_if),
     .help = "replay a changed program: bf16-optimizer or\n"
             "8bit-optimizer, its state in bf16 or 8 bits;\n"
             "fused-optimizer; shard-optimizer=N, its state over N\n"
             "GPUs; fsdp=N, parameters and gradients, too;\n"
             "chunked-loss=N, last layer and loss in N parts;\n"
             "set-to-none, zero_grad() frees the gradients;\n"
             "no-autocast-cache, no copies of weights are kept;\n"
             "no-grad, in evaluation; kept-on-cpu, what lists keep;\n"
             "checkpoint=LIST[+LIST]..., activation checkpointing of\n"
             "the modules in a list (checkpoint=model.layers)"},
    {"torch", 0, OPTION_STRING, "VERSION", ROW(memory.torch),
     .help = "PyTorch version whose allocator to use (default: that\n"
             "of the recording)"},
    {"addresses", 0, OPTION_CHOICE, "recorded|linux|ascending",
     ROW(memory.addresses),
     .help = "where cudaMalloc places allocations (default\n"
             "recorded: a snapshot's addresses while it asks for\n"
             "the same segments, else linux)"},
    {"fail-above", 0, OPTION_PERCENT, "PCT", ROW(memory.fail_above_percent),
     .help = "exit with 121 if the peak used of a GPU is above this\n"
             "percentage of its memory"},
    {"dp", 0, OPTION_COUNT, "N", ROW(memory.data_parallel), .minimum = 2,
     .maximum = 1 << 20,
     .help = "predict the step with gradients averaged over N\n"
             "ranks (data parallel without shards)"},
    {"average", 0, OPTION_STRING, "GROUP", ROW(average),
     .help = "for --dp: the process group of an imported profile that\n"
             "averages gradients"},
    {"change", 0, OPTION_STRING, "CHANGE[,CHANGE]...", ROW(output.study.change),
     .help = "change the job: time:NAME=X, operations with NAME in\n"
             "their name take X of their time; overlap:NAME, they run\n"
             "beside what waited for them; layers=N, the model has N\n"
             "layers; hidden, seq or batch=OLD:NEW, with --second, a\n"
             "size is NEW; stages=P[xV], a pipeline of P ranks with V\n"
             "stages of the layers each; precision=OLD:NEW, of fp16,\n"
             "bf16 or fp32, tf32 (times alone)"},
    {"second", 0, OPTION_STRING, "SIZE=TRACE|DIR", ROW(second),
     .help = "for hidden, seq or batch: a recording of the same\n"
             "script at another size"},
    {"microbatches", 0, OPTION_COUNT, "N", ROW(microbatches), .minimum = 1,
     .maximum = PIPE_MICROBATCHES_MAX,
     .help = "for stages: microbatches of a step (default: those of\n"
             "the recording)"},
    {"schedule", 0, OPTION_STRING, "NAME", ROW(schedule),
     .help = "for stages: gpipe, 1f1b (default) or, with V above 1,\n"
             "interleaved"},
    {"nproc-per-node", 0, OPTION_COUNT, "N", ROW(node_ranks), .minimum = 1,
     .maximum = PIPE_RANKS_MAX,
     .help = "for stages: ranks of a node (default: a node's GPUs)"},
    {"models", 0, OPTION_FLAG, NULL, ROW(models),
     .help = "for an imported profile: use the times of the cost\n"
             "models, not the measured ones"},
    {"without-profiler", 0, OPTION_FLAG, NULL, ROW(without_profiler),
     .help = "for an imported profile: take the profiler's time out\n"
             "of the host's"},
    OUTPUT_ROWS(struct replay_options, output),
    {0},
};

static const struct options options = {
    .command = "memsim replay",
    .operands = "TRACE|DIR|SNAPSHOT.pickle",
    .summary =
        "Replays recorded allocator calls with another GPU or other settings. "
        "Reads a\ntrace, the directory of `memsim run -o DIR', or a snapshot "
        "that\ntorch.cuda.memory._dump_snapshot() wrote on a real GPU. The "
        "summary goes to\nstdout.\n\n"
        "Exit status:\n"
        "    0  the job fits, with at least one of the settings\n"
        "  120  the job does not fit\n"
        "  121  a limit was exceeded (--fail-above, --fail-slower)\n"
        "  122  unknown: the recording is not of the whole job\n"
        "  123  memory grows and runs out before the job ends (--steps)\n"
        "  125  memsim failed",
    .examples =
        "  memsim replay --gpu a100-sxm-80gb out\n"
        "  memsim replay --gpu all out\n"
        "  memsim replay --sweep memory=16GiB..80GiB out",
    .rows = rows,
    .wanted = "give one trace, directory or snapshot",
    .operands_min = 1,
    .operands_max = 1,
};

#define REPLAYED \
    (INPUT_RUN | INPUT_PROFILE | INPUT_TRACE | INPUT_SNAPSHOT)

static void conf_add(struct replay_options *o, const char *conf)
{
    xgrow(&o->memory.confs, o->memory.conf_count, &o->memory.conf_capacity,
          sizeof *o->memory.confs);
    o->memory.confs[o->memory.conf_count++] = conf;
}

/* The option table keeps the last of an option; this one may be repeated. */
static void confs_collect(struct replay_options *o, int argc, char **argv)
{
    const char name[] = "--alloc-conf";
    size_t length = sizeof name - 1;

    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (strncmp(argv[i], name, length))
            continue;
        if (argv[i][length] == '=')
            conf_add(o, argv[i] + length + 1);
        else if (!argv[i][length] && i + 1 < argc)
            conf_add(o, argv[++i]);
    }
}

/* PATH, or the traces in the directory PATH: one at least. */
static int run_find(struct run *run, const char *path, struct err *err)
{
    if (run_open(run, path, err))
        return -1;
    if (!run->count)
        return err_set(err,
                       "%s: no traces in it; `memsim run -o DIR' leaves "
                       "some",
                       path);
    return 0;
}

/* Traces have collectives; snapshots have not. */
static int price(const struct replay_options *o, struct replay_report *r,
                 const struct run *run, struct err *err)
{
    if (o->output.study.cluster && !run_is_trace(run->traces[0].path))
        return err_set(err,
                       "%s: a snapshot has no collectives to price; "
                       "--cluster takes a trace",
                       run->traces[0].path);
    return study_price(&o->output.study, run, &r->result, err);
}

static int report(const struct replay_options *o, struct replay_report *r,
                  struct err *err)
{
    static const struct output_writers writers = {
        &replay_report_json, &replay_report_html, &replay_report_perfetto,
        &replay_report_flame};
    FILE *out = output_summary_stream(&o->output);
    struct report_style style = {.color = output_color(&o->output, out),
                                 .verbose = o->output.verbose,
                                 .more = replay_report_text,
                                 .more_of = r};

    if (r->worst && (!r->worst->trace || o->output.flame))
        replay_report_lines(r);
    if (!o->output.quiet)
        report_summary.write(&r->result, &style, out);
    if (output_files(&o->output, &writers, r, err))
        return -1;
    if (!o->output.snapshot || !r->worst)
        return 0;
    return recording_write_snapshot(r->worst, r->worst->whatif.rows[0].conf,
                                    o->output.snapshot, err);
}

/* The ranks are those of the recordings that are used, in order. */
static void advise(const struct replay_options *o, struct replay_report *r,
                   struct recording *recordings)
{
    size_t rank = 0;

    for (size_t i = 0; o->output.study.advice && i < r->count; i++)
        if (recordings[i].whatif.row_count)
            advice_recording(&r->result, &r->result.ranks[rank++],
                             &recordings[i], recordings[i].path);
    if (o->output.study.advice && r->result.verdict == VERDICT_OOM)
        advice_gpus(&r->result);
}

/* Where the whole job can be asked. */
static void note_whole(struct result *result, const char *path)
{
    const char *slash = strrchr(path, '/');
    int length = slash && run_is_trace(path) ? (int)(slash - path) : 0;
    char *whole = xasprintf("%.*s" ADVICE_UNLIMITED_END, length, path);

    if (result->verdict != VERDICT_UNKNOWN)
        length = -1;
    if (length > 0 && !access(whole, R_OK))
        result_note(result,
                    "%s is the same job on a GPU without a limit: `memsim "
                    "replay %s' shows whether it fits",
                    whole, whole);
    else if (length >= 0)
        result_note(result,
                    "run the job on a GPU that it fits on: `memsim run "
                    "--advice -o DIR -- COMMAND' records the whole job in "
                    "DIR" ADVICE_UNLIMITED_END);
    free(whole);
}

/* What WHAT, which has times alone, cannot answer. */
static int times_check(const struct replay_options *o, const char *what,
                       struct err *err)
{
    const struct {
        bool given;
        const char *name;
    } wrong[] = {{o->memory.memory_bytes != 0, "--memory"},
                 {o->memory.conf_count != 0, "--alloc-conf"},
                 {o->memory.sweep != NULL, "--sweep"},
                 {o->memory.what_if != NULL, "--what-if"},
                 {o->memory.torch != NULL, "--torch"},
                 {o->memory.fail_above_percent > 0, "--fail-above"},
                 {o->output.snapshot != NULL, "--snapshot"},
                 {o->output.study.advice, "--advice"}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].given)
            return err_set(err, "%s is about memory, and %s has times alone",
                           wrong[i].name, what);
    return 0;
}

static int ask_times(const struct replay_options *o,
                     const struct replay_profile *profile,
                     const struct job_change *change, struct replayed *r,
                     struct err *err)
{
    const struct replay_stages stages = {change ? change->name : NULL,
                                         o->schedule, o->microbatches,
                                         o->node_ranks};

    if (!profile->why && o->memory.data_parallel && !change)
        return replay_replicas(profile, r, err);
    if (change && change->kind == CHANGE_STAGES)
        return replay_stages(profile, &stages, r, err);
    return change ? replay_changed(profile, change, o->second, r, err)
                  : replay_profile(profile, r, err);
}

/* CHANGE is of the recording; NULL: it stays as it is. */
static int replay_times(const struct replay_options *o, const struct run *run,
                        char **command, const struct job_change *change,
                        struct err *err)
{
    bool imported = replay_is_profile(run->traces[0].path);
    const struct replay_profile profile = {
        .run = run,
        .gpu = imported && !o->gpu_asked ? NULL : o->gpu,
        .models = o->models,
        .without_profiler = o->without_profiler,
        .data_parallel = o->memory.data_parallel,
        .average = o->average,
        .options = o->memory.options,
        .command = command,
        .invocation = o->invocation,
        .why = imported ? NULL
                        : "the memory of a changed job needs a run of the "
                          "changed script (`memsim run')"};

    struct replayed r = {.changed = NULL};
    int status = CMD_RUN_FAILED;

    if (!times_check(
            o, imported ? "an imported profile" : "a changed recording", err) &&
        !ask_times(o, &profile, change, &r, err))
        status = replay_show(&profile, &r, &o->output, err);
    replayed_fini(&r);
    return status;
}

/* Options that say more about a change that is not asked for. */
static int check_change(const struct replay_options *o,
                        const struct job_change *change, struct err *err)
{
    bool stages = change && change->kind == CHANGE_STAGES;

    if (o->second && (!change || stages))
        return err_set(err,
                       "--second is for --change with hidden, seq or batch");
    if ((o->microbatches || o->schedule || o->node_ranks) && !stages)
        return err_set(err, "--microbatches, --schedule and --nproc-per-node "
                            "are for --change stages=P");
    return 0;
}

static int replay_on_one(const struct replay_options *o, const struct run *run,
                         char **command, struct err *err)
{
    struct replay_memory m;
    struct result *result = &m.report.result;
    struct gpu gpu;

    if ((o->gpu && gpu_load(o->gpu, &gpu, err)) ||
        replay_memory_open(&m, &o->memory, run, o->gpu ? &gpu : NULL, command,
                           err))
        return CMD_RUN_FAILED;
    if (o->memory.sweep)
        replay_report_sweep(&m.report);
    result->invocation = o->invocation;
    note_whole(result, run->traces[0].path);
    replay_memory_outlook(&m);
    advise(o, &m.report, m.recordings);
    int status = price(o, &m.report, run, err) ||
                         replay_memory_time(&m, err) ||
                         report(o, &m.report, err)
                     ? CMD_RUN_FAILED
                     : result->exit_status;
    replay_memory_close(&m);
    return status;
}

static int replay(const struct replay_options *o, const struct run *run,
                  char **command, struct err *err)
{
    bool is_trace = run_is_trace(run->traces[0].path);
    bool many = replay_gpus_asked(o->gpu);
    struct job_changes changes = {.count = 0};

    if (o->output.study.change &&
        job_changes_parse(o->output.study.change, &changes, err))
        return CMD_RUN_FAILED;
    const struct job_change *change = job_changes_recording(&changes);
    if (check_change(o, change, err))
        return CMD_RUN_FAILED;
    bool times = is_trace && (change || replay_is_profile(run->traces[0].path));
    if (many && times)
        return err_set(err, "--gpu %s needs a recording of memory; here give "
                            "one GPU", o->gpu),
               CMD_RUN_FAILED;
    if (!many && (o->price || o->budget > 0))
        return err_set(err, "--price and --budget are for --gpu all, or "
                            "several GPUs"),
               CMD_RUN_FAILED;
    if (o->budget > 0 && !o->price)
        return err_set(err, "--budget needs --price"), CMD_RUN_FAILED;
    if (times)
        return replay_times(o, run, command, change, err);
    return many ? replay_gpus(o, run, command, err)
                : replay_on_one(o, run, command, err);
}

/* What PATH's run was predicted with, unless it is given. */
static int recall(struct replay_options *o, struct kept_options *kept,
                  const char *path, struct err *err)
{
    bool given = o->output.study.cluster != NULL;

    if (kept_options_recall_beside(kept, path, o->gpu, &o->output.study, err))
        return -1;
    if (!given && o->gpu_asked)
        output_cluster_follow(&o->output, o->gpu);
    return 0;
}

int cmd_replay(int argc, char **argv)
{
    struct replay_options o = {0};
    struct operands operands;
    struct run run = {.count = 0};
    struct kept_options kept = {.words = NULL};
    struct err err = {""};

    o.invocation = cmd_invocation(argc, argv);
    confs_collect(&o, argc, argv);
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);
    if (status < 0) {
        status = CMD_RUN_FAILED;
        o.gpu_asked = o.gpu != NULL;
        if (!o.gpu)
            o.gpu = output_cluster_gpu(&o.output, NULL);
        if (o.memory.what_if && o.output.study.advice)
            err_set(&err, "--what-if and --advice: one of them, please");
        else if (!recall(&o, &kept, operands.values[0], &err) &&
                 !output_check(&o.output, &err) &&
                 !output_check_input(&o.output, o.gpu, &err) &&
                 !output_check_input(&o.output, operands.values[0], &err) &&
                 !input_kind_check(operands.values[0], REPLAYED, &err) &&
                 !run_find(&run, operands.values[0], &err)) {
            const struct study_options study = output_study(&o.output);
            o.memory.options = &study;
            o.memory.settings_alone = replay_gpus_asked(o.gpu);
            status = replay(&o, &run, o.invocation + 1, &err);
        }
        if (err.text[0])
            cmd_fail(status, &err);
        run_close(&run);
    }
    kept_options_fini(&kept);
    free(o.memory.confs);
    free(o.invocation);
    return status;
}
