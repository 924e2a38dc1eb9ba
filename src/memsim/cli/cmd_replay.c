/* SPDX-License-Identifier: Apache-2.0
 * memsim replay: recorded allocator calls on another GPU, or under other
 * settings. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_gpus.h"
#include "memsim/advice/advice_run.h"
#include "memsim/advice/change.h"
#include "memsim/change/pipe_schedule.h"
#include "memsim/change/pipe_split.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/kept_options.h"
#include "memsim/cli/output.h"
#include "memsim/cli/output_files.h"
#include "memsim/cli/output_time.h"
#include "memsim/cli/replay_what_if.h"
#include "memsim/cli/replay_changed.h"
#include "memsim/cli/replay_stages.h"
#include "memsim/report/replay_report.h"

#define DEFAULT_GPU "h100-sxm-80gb"

struct replay_options {
    const char *gpu;
    uint64_t memory_bytes;  /* 0: the GPU's */
    const char *alloc_conf; /* the last; all are in `confs` */
    const char *torch;
    const char *sweep;
    const char *what_if;
    const char *second;
    int addresses;
    double fail_above_percent;
    bool models, gpu_asked; /* --gpu was given, not a cluster's taken */
    uint32_t data_parallel; /* 0: as recorded */
    uint32_t microbatches, node_ranks;
    const char *schedule;
    struct output_options output;
    const char **confs;
    size_t conf_count, conf_capacity;
};

#define ROW(field) .offset = offsetof(struct replay_options, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json", ROW(gpu), .group = "Replay",
     .help = "GPU to replay on, see `memsim gpus' (default: that\n"
             "of the recording; for a snapshot " DEFAULT_GPU ")"},
    {"memory", 0, OPTION_BYTES, "SIZE", ROW(memory_bytes),
     .help = "memory of the GPU: 80GiB, 80GB, 85899345920"},
    {"alloc-conf", 0, OPTION_STRING, "CONF", ROW(alloc_conf),
     .help = "PYTORCH_CUDA_ALLOC_CONF to use in place of the\n"
             "recording's; repeat it to compare several"},
    {"sweep", 0, OPTION_STRING, "memory=LEAST..MOST", ROW(sweep),
     .help = "find the least memory that is enough, to 2 MiB"},
    {"what-if", 0, OPTION_STRING, "CHANGE[,CHANGE]...", ROW(what_if),
     .help = "replay a changed program: bf16-optimizer or\n"
             "8bit-optimizer, its state in bf16 or 8 bits;\n"
             "fused-optimizer; shard-optimizer=N, its state over N\n"
             "GPUs; fsdp=N, parameters and gradients, too;\n"
             "chunked-loss=N, last layer and loss in N parts;\n"
             "set-to-none, zero_grad() frees the gradients;\n"
             "no-autocast-cache, no copies of weights are kept;\n"
             "checkpoint=LIST[+LIST]..., activation checkpointing of\n"
             "the modules in a list (checkpoint=model.layers)"},
    {"torch", 0, OPTION_STRING, "VERSION", ROW(torch),
     .help = "PyTorch version whose allocator to use (default: that\n"
             "of the recording)"},
    {"addresses", 0, OPTION_CHOICE, "recorded|linux|ascending", ROW(addresses),
     .help = "where cudaMalloc places allocations (default\n"
             "recorded: a snapshot's addresses while it asks for\n"
             "the same segments, else linux)"},
    {"fail-above", 0, OPTION_PERCENT, "PCT", ROW(fail_above_percent),
     .help = "exit with 121 if the peak used of a GPU is above this\n"
             "percentage of its memory"},
    {"dp", 0, OPTION_COUNT, "N", ROW(data_parallel), .minimum = 2,
     .maximum = 1 << 20,
     .help = "predict the step with gradients averaged over N\n"
             "ranks (data parallel without shards)"},
    {"change", 0, OPTION_STRING, "CHANGE[,CHANGE]...", ROW(output.change),
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
        "  125  memsim failed",
    .examples =
        "  memsim replay --gpu a100-sxm-80gb out\n"
        "  memsim replay --sweep memory=16GiB..80GiB out",
    .rows = rows,
    .wanted = "give one trace, directory or snapshot",
    .operands_min = 1,
    .operands_max = 1,
};

static void conf_add(struct replay_options *o, const char *conf)
{
    xgrow(&o->confs, o->conf_count, &o->conf_capacity, sizeof *o->confs);
    o->confs[o->conf_count++] = conf;
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

/* "memory=16GiB..80GiB" */
static int sweep_parse(const char *text, uint64_t *least, uint64_t *most,
                       struct err *err)
{
    const char *dots = strstr(text, "..");
    char first[64];

    if (strncmp(text, "memory=", 7) || !dots || dots - text - 7 > 63)
        return err_set(err,
                       "--sweep: '%s' is not of the form "
                       "memory=16GiB..80GiB",
                       text);
    snprintf(first, sizeof first, "%.*s", (int)(dots - text - 7), text + 7);
    if (units_parse_bytes(first, least) || units_parse_bytes(dots + 2, most) ||
        *least > *most || !*most)
        return err_set(err, "--sweep: '%s': not a range of sizes", text + 7);
    return 0;
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

/* Is there enough in the cache at the peak for other settings to matter? */
static bool is_wasteful(const struct whatif *w)
{
    const struct replay_result *r = &w->rows[0].result;
    const struct replay_device *d = &r->devices[w->device];

    return !r->fits || d->peak_reserved_bytes - d->peak_allocated_bytes >
                           d->peak_reserved_bytes / 10;
}

/* What the job needs at least, where more than that is not known. */
static int ask_least(struct recording *rec, struct err *err)
{
    struct whatif *w = &rec->whatif;

    if (whatif_outcome(w, &w->rows[0].result) != WHATIF_UNKNOWN)
        return 0;
    return whatif_least(w, recording_capacity(rec), err);
}

static int ask(struct recording *rec, const struct replay_options *o,
               struct err *err)
{
    struct whatif *w = &rec->whatif;
    uint64_t least, most;

    for (size_t i = 0; i < o->conf_count; i++)
        if (whatif_add(w, o->confs[i], false, err))
            return -1;
    if (!o->conf_count && whatif_add(w, rec->info.alloc_conf, false, err))
        return -1;
    if (!o->conf_count && is_wasteful(w) && whatif_advise(w, err))
        return -1;
    if (ask_least(rec, err))
        return -1;
    if (!o->sweep)
        return 0;
    if (sweep_parse(o->sweep, &least, &most, err))
        return -1;
    return whatif_sweep(w, w->rows[0].conf, least, most, err);
}

/* Traces have collectives; snapshots have not. */
static int price(const struct replay_options *o, struct replay_report *r,
                 const struct run *run, struct err *err)
{
    if (o->output.cluster && !run_is_trace(run->traces[0].path))
        return err_set(err,
                       "%s: a snapshot has no collectives to price; "
                       "--cluster takes a trace",
                       run->traces[0].path);
    return output_price(&o->output, run, &r->result, err);
}

/* Times the ranks, which are those of the recordings that are used, in order.
 * Snapshots have no work. */
static int time_all(const struct replay_options *o, struct replay_report *r,
                    const struct recording *recordings, const struct gpu *gpu,
                    struct err *err)
{
    struct output_time time;
    struct output_members members = {.all = NULL};
    struct gpu recorded;
    size_t rank = 0;

    if (!r->count || !run_is_trace(recordings[0].path))
        return 0;
    if (!gpu && output_time_gpu(recordings[0].path, &recorded, err)) {
        result_note(&r->result, "its time is not known: %s", err->text);
        err->text[0] = '\0';
        return 0;
    }
    if (output_time_init(&time, &o->output, gpu ? gpu : &recorded, err))
        return -1;
    time.timeline.data_parallel = o->data_parallel;
    time.changes_memory = o->what_if != NULL;
    for (size_t i = 0; i < r->count; i++)
        if (recordings[i].whatif.row_count)
            output_members_add(&members, &r->result.ranks[rank++],
                               (uint32_t)i, recordings[i].path, NULL);
    int rc = output_time_job(&time, &r->result, &members, err);
    output_members_fini(&members);
    output_time_fini(&time);
    return rc;
}

/* What is replayed: the recordings, and what --what-if makes of them. */
struct inputs {
    struct recording *recordings;
    struct changed *changed; /* zeroed without --what-if */
};

/* The same of a job that --what-if changes. */
static int time_inputs(const struct replay_options *o, struct replay_report *r,
                       const struct inputs *in, const struct gpu *gpu,
                       struct err *err)
{
    if (time_all(o, r, in->recordings, gpu, err))
        return -1;
    for (size_t i = 0; o->what_if && i < r->count; i++)
        if (in->recordings[i].whatif.row_count) {
            replay_what_if_time(&r->result, &in->changed[i]);
            break;
        }
    return 0;
}

static int report(const struct replay_options *o, struct replay_report *r,
                  struct err *err)
{
    static const struct output_writers writers = {
        &replay_report_json, &replay_report_html, &replay_report_perfetto,
        &replay_report_flame};
    FILE *out = output_summary_stream(&o->output);
    struct report_style style = {.color = output_color(&o->output, out),
                                 .verbose = o->output.verbose};

    if (r->worst && (!r->worst->trace || o->output.flame))
        replay_report_lines(r);
    if (!o->output.quiet) {
        report_summary.write(&r->result, &style, out);
        replay_report_text(r, out);
    }
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

    for (size_t i = 0; o->output.advice && i < r->count; i++)
        if (recordings[i].whatif.row_count)
            advice_recording(&r->result, &r->result.ranks[rank++],
                             &recordings[i], recordings[i].path);
    if (o->output.advice && r->result.verdict == VERDICT_OOM)
        advice_gpus(&r->result);
}

static int open_one(struct inputs *in, size_t i, char *path,
                    const struct replay_options *o,
                    const struct recording_options *ro, struct err *err)
{
    struct recording *rec = &in->recordings[i];

    if (recording_open(rec, path, ro, err))
        return -1;
    if (!recording_is_used(rec))
        return 0;
    if (o->what_if && changed_apply(&in->changed[i], rec, o->what_if, err))
        return -1;
    return ask(rec, o, err);
}

static int open_all(struct inputs *in, const struct run *run,
                    const struct replay_options *o,
                    const struct recording_options *ro, struct err *err)
{
    for (size_t i = 0; i < run->count; i++)
        if (open_one(in, i, run->traces[i].path, o, ro, err))
            return -1;
    return 0;
}

static void close_all(struct inputs *in, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        recording_close(&in->recordings[i]);
        changed_fini(&in->changed[i]);
    }
    free(in->recordings);
    free(in->changed);
}

/* The GPU that is asked for, or a snapshot's stand-in; false: none. */
static int find_gpu(const struct replay_options *o, const char *path,
                    struct gpu *gpu, bool *found, struct err *err)
{
    *found = o->gpu != NULL;
    if (!o->gpu && run_is_trace(path))
        return 0;
    *found = true;
    return gpu_load(o->gpu ? o->gpu : DEFAULT_GPU, gpu, err);
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
    } wrong[] = {{o->memory_bytes != 0, "--memory"},
                 {o->conf_count != 0, "--alloc-conf"},
                 {o->sweep != NULL, "--sweep"},
                 {o->what_if != NULL, "--what-if"},
                 {o->torch != NULL, "--torch"},
                 {o->fail_above_percent > 0, "--fail-above"},
                 {o->output.snapshot != NULL, "--snapshot"},
                 {o->output.advice, "--advice"}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].given)
            return err_set(err, "%s is about memory, and %s has times alone",
                           wrong[i].name, what);
    return 0;
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
        .data_parallel = o->data_parallel,
        .output = &o->output,
        .command = command,
        .why = imported ? NULL
                        : "the memory of a changed job needs a run of the "
                          "changed script (`memsim run')"};

    if (times_check(o, imported ? "an imported profile" : "a changed recording",
                    err))
        return CMD_RUN_FAILED;
    if (imported && o->data_parallel) {
        err_set(err, "--dp: a profile does not say which collectives average "
                     "gradients");
        return CMD_RUN_FAILED;
    }
    if (change && change->kind == CHANGE_STAGES)
        return replay_stages(&profile,
                             &(struct replay_stages){change->name, o->schedule,
                                                     o->microbatches,
                                                     o->node_ranks},
                             err);
    return change ? replay_changed(&profile, change, o->second, err)
                  : replay_profile(&profile, err);
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

static int replay_memory(const struct replay_options *o, const struct run *run,
                         char **command, struct err *err)
{
    struct inputs in = {
        xcalloc(run->count, sizeof *in.recordings),
        xcalloc(run->count, sizeof *in.changed),
    };
    struct recording_options ro = {.torch = o->torch,
                                   .memory_bytes = o->memory_bytes,
                                   .modelled = o->addresses > 0,
                                   .addresses = o->addresses == 2
                                                    ? VASPACE_ASCENDING
                                                    : VASPACE_CHUNKS};
    struct gpu gpu = {.name = "recorded", .device_name = "as recorded"};
    struct replay_report r;
    bool has_gpu;
    int status = CMD_RUN_FAILED;

    if (!find_gpu(o, run->traces[0].path, &gpu, &has_gpu, err)) {
        ro.gpu = has_gpu ? &gpu : NULL;
        if (!open_all(&in, run, o, &ro, err)) {
            replay_report_init(&r, in.recordings, run->count, &gpu,
                               o->fail_above_percent, command);
            if (o->sweep)
                replay_report_sweep(&r);
            note_whole(&r.result, run->traces[0].path);
            advise(o, &r, in.recordings);
            status = price(o, &r, run, err) ||
                             time_inputs(o, &r, &in, ro.gpu, err) ||
                             report(o, &r, err)
                         ? CMD_RUN_FAILED
                         : r.result.exit_status;
            replay_report_fini(&r);
        }
    }
    close_all(&in, run->count);
    return status;
}

static int replay(const struct replay_options *o, const struct run *run,
                  char **command, struct err *err)
{
    bool is_trace = run_is_trace(run->traces[0].path);
    struct job_changes changes = {.count = 0};

    if (o->output.change && job_changes_parse(o->output.change, &changes, err))
        return CMD_RUN_FAILED;
    const struct job_change *change = job_changes_recording(&changes);
    if (check_change(o, change, err))
        return CMD_RUN_FAILED;
    if (is_trace && (change || replay_is_profile(run->traces[0].path)))
        return replay_times(o, run, command, change, err);
    return replay_memory(o, run, command, err);
}

int cmd_replay(int argc, char **argv)
{
    struct replay_options o = {0};
    struct operands operands;
    struct run run = {.count = 0};
    struct kept_options kept = {.words = NULL};
    struct err err = {""};
    char **command = xcalloc((size_t)argc + 1, sizeof *command);

    memcpy(command, argv, (size_t)argc * sizeof *command);
    confs_collect(&o, argc, argv);
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);
    if (status < 0) {
        status = CMD_RUN_FAILED;
        o.gpu_asked = o.gpu != NULL;
        if (!o.gpu)
            o.gpu = output_cluster_gpu(&o.output, NULL);
        if (o.what_if && o.output.advice)
            err_set(&err, "--what-if and --advice: one of them, please");
        else if (!kept_options_recall_beside(&kept, operands.values[0], o.gpu,
                                             &o.output, &err) &&
                 !output_check(&o.output, &err) &&
                 !output_check_input(&o.output, o.gpu, &err) &&
                 !output_check_input(&o.output, operands.values[0], &err) &&
                 !run_find(&run, operands.values[0], &err))
            status = replay(&o, &run, command, &err);
        if (err.text[0])
            cmd_fail(status, &err);
        run_close(&run);
    }
    kept_options_fini(&kept);
    free(o.confs);
    free(command);
    return status;
}
