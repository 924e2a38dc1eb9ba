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
#include "memsim/study/input_kind.h"
#include "memsim/study/kept_options.h"
#include "memsim/cli/output.h"
#include "memsim/cli/output_files.h"
#include "memsim/study/replay_changed.h"
#include "memsim/cli/replay_gpus.h"
#include "memsim/study/replay_many.h"
#include "memsim/cli/replay_options.h"
#include "memsim/cli/replay_show.h"
#include "memsim/study/replay_memory.h"
#include "memsim/study/replay_replicas.h"
#include "memsim/study/replay_stages.h"
#include "memsim/report/text/replay_report.h"
#include "memsim/study/clusters.h"
#include "memsim/study/run_study.h"

#define ROW(field) .offset = offsetof(struct replay_options, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json", ROW(ask.gpu), .group = "Replay",
     .help = "GPU to replay on, see `memsim gpus' (default: that\n"
             "of the recording; for a snapshot " REPLAY_GPU ");\n"
             "all, or several with commas between them: a table"},
    {"price", 0, OPTION_STRING, "PRICE", ROW(price),
     .help = "prices of an hour of one GPU, for the table: a file\n"
             "like {\"h100\": 2.99, \"l4\": 0.71}, or one price: 2.99, or\n"
             "98.5/8 of a node of 8"},
    {"budget", 0, OPTION_NUMBER, "PRICE", ROW(budget),
     .help = "leave out GPUs whose hour costs more (see --price)"},
    {"memory", 0, OPTION_BYTES, "SIZE", ROW(ask.memory.memory_bytes),
     .help = "memory of the GPU: 80GiB, 80GB, 85899345920"},
    {"alloc-conf", 0, OPTION_STRING, "CONF", ROW(alloc_conf),
     .help = "PYTORCH_CUDA_ALLOC_CONF to use in place of the\n"
             "recording's; repeat it to compare several"},
    {"sweep", 0, OPTION_STRING, "memory=LEAST..MOST", ROW(ask.memory.sweep),
     .help = "find the least memory that is enough, to 2 MiB"},
    {"what-if", 0, OPTION_STRING, "CHANGE[,CHANGE]...", ROW(ask.memory.what_if),
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
    {"torch", 0, OPTION_STRING, "VERSION", ROW(ask.memory.torch),
     .help = "PyTorch version whose allocator to use (default: that\n"
             "of the recording)"},
    {"addresses", 0, OPTION_CHOICE, "recorded|linux|ascending",
     ROW(ask.memory.addresses),
     .help = "where cudaMalloc places allocations (default\n"
             "recorded: a snapshot's addresses while it asks for\n"
             "the same segments, else linux)"},
    {"fail-above", 0, OPTION_PERCENT, "PCT", ROW(ask.memory.fail_above_percent),
     .help = "exit with 121 if the peak used of a GPU is above this\n"
             "percentage of its memory"},
    {"dp", 0, OPTION_COUNT, "N", ROW(ask.memory.data_parallel), .minimum = 2,
     .maximum = 1 << 20,
     .help = "predict the step with gradients averaged over N\n"
             "ranks (of a recording: data parallel without shards)"},
    {"average", 0, OPTION_STRING, "GROUP", ROW(ask.average),
     .help = "for --dp: the process group of an imported profile that\n"
             "averages gradients"},
    {"fsdp", 0, OPTION_FLAG, NULL, ROW(ask.shards),
     .help = "for --dp and the profile of one GPU: put in what FSDP\n"
             "does (fully_shard of each layer) in place of DDP"},
    {"change", 0, OPTION_LIST, "CHANGE[,CHANGE]...", ROW(output.study.change),
     .help = "change the job: time:NAME=X, operations with NAME in\n"
             "their name take X of their time; overlap:NAME, they run\n"
             "beside what waited for them; layers=N, the model has N\n"
             "layers; hidden, seq or batch=OLD:NEW, with --second, a\n"
             "size is NEW; stages=P[xV], a pipeline of P ranks with V\n"
             "stages of the layers each; precision=OLD:NEW, of fp16,\n"
             "bf16 or fp32, tf32 (times alone)"},
    {"second", 0, OPTION_STRING, "SIZE=TRACE|DIR", ROW(ask.second),
     .help = "for hidden, seq or batch: a recording of the same\n"
             "script at another size"},
    {"microbatches", 0, OPTION_COUNT, "N", ROW(ask.microbatches), .minimum = 1,
     .maximum = PIPE_MICROBATCHES_MAX,
     .help = "for stages: microbatches of a step (default: those of\n"
             "the recording)"},
    {"schedule", 0, OPTION_STRING, "NAME", ROW(ask.schedule),
     .help = "for stages: gpipe, 1f1b (default) or, with V above 1,\n"
             "interleaved"},
    {"nproc-per-node", 0, OPTION_COUNT, "N", ROW(ask.node_ranks), .minimum = 1,
     .maximum = PIPE_RANKS_MAX,
     .help = "for stages: ranks of a node (default: a node's GPUs)"},
    {"models", 0, OPTION_FLAG, NULL, ROW(ask.models),
     .help = "for an imported profile: use the times of the cost\n"
             "models, not the measured ones"},
    {"without-profiler", 0, OPTION_FLAG, NULL, ROW(ask.without_profiler),
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
    xgrow(&o->ask.memory.confs, o->ask.memory.conf_count,
          &o->ask.memory.conf_capacity, sizeof *o->ask.memory.confs);
    o->ask.memory.confs[o->ask.memory.conf_count++] = conf;
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

static int write_reports(const struct replay_options *o,
                         struct replay_report *r, struct err *err)
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

/* What WHAT, which has times alone, cannot answer. */
static int times_check(const struct replay_options *o, const char *what,
                       struct err *err)
{
    const struct {
        bool given;
        const char *name;
    } wrong[] = {{o->ask.memory.memory_bytes != 0, "--memory"},
                 {o->ask.memory.conf_count != 0, "--alloc-conf"},
                 {o->ask.memory.sweep != NULL, "--sweep"},
                 {o->ask.memory.what_if != NULL, "--what-if"},
                 {o->ask.memory.torch != NULL, "--torch"},
                 {o->ask.memory.fail_above_percent > 0, "--fail-above"},
                 {o->output.snapshot != NULL, "--snapshot"},
                 {o->output.study.steps != 0, "--steps"},
                 {o->output.study.input_max != NULL, "--input-max"},
                 {o->output.study.worst_batch, "--worst-batch"},
                 {o->output.study.advice, "--advice"}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].given)
            return err_set(err, "%s is about memory, and %s has times alone",
                           wrong[i].name, what);
    return 0;
}

/* CHANGE is of the recording; NULL: it stays as it is. */
static int replay_times(const struct replay_options *o, const struct run *run,
                        const struct job_change *change, struct err *err)
{
    const struct replay_profile p = study_replay_profile(&o->ask, run);
    struct replayed r = {.changed = NULL};
    int status = CMD_RUN_FAILED;

    if (!times_check(o, p.why ? "a changed recording" : "an imported profile",
                     err) &&
        !study_replay_times(&o->ask, &p, change, &r, err))
        status = replay_show(&p, &r, &o->output, err);
    replayed_fini(&r);
    return status;
}

static int replay_on_one(const struct replay_options *o, const struct run *run,
                         struct err *err)
{
    struct replay_memory m;
    int status = CMD_RUN_FAILED;

    if (study_replay_memory(&o->ask, run, &m, err))
        return status;
    if (!write_reports(o, &m.report, err))
        status = m.report.result.exit_status;
    replay_memory_close(&m);
    return status;
}

static int replay_each(const struct replay_options *o, const struct run *run,
                       struct err *err)
{
    bool many = replay_many_asked(o->ask.gpu), times;
    const struct job_change *change;
    struct job_changes changes;

    if (study_replay_check(&o->ask, &changes, err))
        return CMD_RUN_FAILED;
    change = job_changes_recording(&changes);
    times = study_replay_is_times(run, change);
    if (many && times)
        return err_set(err,
                       "--gpu %s needs a recording of memory; here give "
                       "one GPU",
                       o->ask.gpu),
               CMD_RUN_FAILED;
    if (!many && (o->price || o->budget > 0))
        return err_set(err, "--price and --budget are for --gpu all, or "
                            "several GPUs"),
               CMD_RUN_FAILED;
    if (o->budget > 0 && !o->price)
        return err_set(err, "--budget needs --price"), CMD_RUN_FAILED;
    if (times)
        return replay_times(o, run, change, err);
    return many ? replay_gpus(o, run, err) : replay_on_one(o, run, err);
}

/* What PATH's run was predicted with, unless it is given. */
static int recall_options(struct replay_options *o, struct kept_options *kept,
                          const char *path, struct err *err)
{
    bool given = o->output.study.cluster != NULL;

    if (kept_options_recall_beside(kept, path, o->ask.gpu, &o->output.study,
                                   err))
        return -1;
    if (!given && o->ask.gpu_asked)
        study_cluster_follow(&o->output.study, o->ask.gpu);
    return 0;
}

int cmd_replay(int argc, char **argv)
{
    struct replay_options o = {0};
    struct operands operands;
    struct run run = {.count = 0};
    struct kept_options kept = {.words = NULL};
    struct err err = {""};

    o.ask.invocation = cmd_invocation(argc, argv);
    o.ask.command = o.ask.invocation + 1;
    confs_collect(&o, argc, argv);
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);
    if (status < 0) {
        status = CMD_RUN_FAILED;
        o.ask.gpu_asked = o.ask.gpu != NULL;
        if (!o.ask.gpu)
            o.ask.gpu = output_cluster_gpu(&o.output, NULL);
        if (o.ask.memory.what_if && o.output.study.advice)
            err_set(&err, "--what-if and --advice: one of them, please");
        else if (!recall_options(&o, &kept, operands.values[0], &err) &&
                 !output_check(&o.output, &err) &&
                 !output_check_input(&o.output, o.ask.gpu, &err) &&
                 !output_check_input(&o.output, operands.values[0], &err) &&
                 !input_kind_check(operands.values[0], REPLAYED, &err) &&
                 !run_find(&run, operands.values[0], &err)) {
            const struct study_options study = output_study(&o.output);
            o.ask.memory.options = &study;
            o.ask.memory.settings_alone = replay_many_asked(o.ask.gpu);
            status = replay_each(&o, &run, &err);
        }
        if (err.text[0])
            cmd_fail(status, &err);
        run_close(&run);
    }
    kept_options_fini(&kept);
    free(o.ask.memory.confs);
    free(o.ask.invocation);
    return status;
}
