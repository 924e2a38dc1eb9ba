/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/library/questions.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_run.h"
#include "memsim/report/report.h"
#include "memsim/study/clusters.h"
#include "memsim/study/diff_study.h"
#include "memsim/study/input_kind.h"
#include "memsim/study/kept_options.h"
#include "memsim/study/option_rows.h"
#include "memsim/study/replay_study.h"
#include "memsim/study/run_study.h"

/* What any question may have. */
struct asked {
    struct study_options study;
    struct replay_question replay;
    struct diff_question diff;
    const char *alloc_conf;
};

struct library_question {
    struct options options;
    int (*answer)(struct asked *asked, const char *const *operands, FILE *out,
                  struct err *err);
};

static const struct report_style plain = {.depth = 0};

/* Can STUDY be read, and is there such a cluster? */
static int check_study(const struct study_options *study, struct err *err)
{
    struct cluster cluster;

    if (study->cluster && cluster_load(study->cluster, &cluster, err))
        return -1;
    if (study->cluster)
        cluster_fini(&cluster);
    return study_options_check(study, err);
}

/* --- report --------------------------------------------------------------- */

static int write_report(const struct asked *asked, const struct rundir *dir,
                        FILE *out, struct err *err)
{
    struct rundir unlimited;
    struct err none = {""};
    char **command = rundir_command(dir, err);
    char *path = xasprintf("%s" ADVICE_UNLIMITED_END, dir->path);
    bool again = asked->study.advice && !rundir_open(&unlimited, path, &none);
    const struct study_sources sources = {again ? &unlimited : NULL, 0, NULL,
                                          NULL};
    const struct run_question question = {
        .options = &asked->study, .sources = &sources, .traces = true};
    struct run_study s;
    int rc = -1;

    if (command) {
        study_run_open(&s, dir, command);
        rc = study_run_ask(&s, &question, err);
        if (!rc)
            report_json.write(&s.result, &plain, out);
        study_run_close(&s);
    }
    if (again)
        rundir_close(&unlimited);
    free(path);
    free(command);
    return rc;
}

static int answer_report(struct asked *asked, const char *const *operands,
                         FILE *out, struct err *err)
{
    struct kept_options kept = {.words = NULL};
    struct rundir dir;
    int rc = -1;

    if (!input_kind_check(operands[0], INPUT_RUN, err) &&
        !rundir_open(&dir, operands[0], err)) {
        if (!kept_options_recall(&kept, dir.path, false, &asked->study, err) &&
            !check_study(&asked->study, err))
            rc = write_report(asked, &dir, out, err);
        kept_options_fini(&kept);
        rundir_close(&dir);
    }
    return rc;
}

/* --- replay --------------------------------------------------------------- */

static int replay_times(const struct replay_question *q, const struct run *run,
                        const struct job_change *change, FILE *out,
                        struct err *err)
{
    const struct replay_profile p = study_replay_profile(q, run);
    struct replayed r = {.changed = NULL};
    int rc = study_replay_times(q, &p, change, &r, err);

    if (!rc)
        report_json.write(&r.result, &plain, out);
    replayed_fini(&r);
    return rc;
}

static int replay_memory(const struct replay_question *q, const struct run *run,
                         FILE *out, struct err *err)
{
    struct replay_memory m;

    if (study_replay_memory(q, run, &m, err))
        return -1;
    if (m.report.worst && !m.report.worst->trace)
        replay_report_lines(&m.report);
    replay_report_json.write(&m.report, &plain, out);
    replay_memory_close(&m);
    return 0;
}

static int replay_any(struct asked *asked, const struct run *run, FILE *out,
                      struct err *err)
{
    const struct replay_question *q = &asked->replay;
    struct job_changes changes;

    if (!run->count)
        return err_set(err, "%s: no traces in it", run->directory);
    if (study_replay_check(q, &changes, err))
        return -1;
    const struct job_change *change = job_changes_recording(&changes);
    int rc = study_replay_is_times(run, change)
                 ? replay_times(q, run, change, out, err)
                 : replay_memory(q, run, out, err);
    job_changes_fini(&changes);
    return rc;
}

/* What follows from other options. */
static int replay_prepare(struct asked *asked, struct kept_options *kept,
                          const char *path, struct err *err)
{
    struct replay_question *q = &asked->replay;
    bool given = asked->study.cluster != NULL;
    struct err ignored = {""};

    q->gpu_asked = q->gpu != NULL;
    if (!q->gpu)
        q->gpu = study_cluster_gpu(&asked->study, NULL, &ignored);
    q->memory.options = &asked->study;
    if (asked->alloc_conf) {
        q->memory.confs = &asked->alloc_conf;
        q->memory.conf_count = 1;
    }
    if (kept_options_recall_beside(kept, path, q->gpu, &asked->study, err))
        return -1;
    if (!given && q->gpu_asked)
        study_cluster_follow(&asked->study, q->gpu);
    return check_study(&asked->study, err);
}

static int answer_replay(struct asked *asked, const char *const *operands,
                         FILE *out, struct err *err)
{
    struct kept_options kept = {.words = NULL};
    struct run run = {.count = 0};
    int rc = -1;

    if (!replay_prepare(asked, &kept, operands[0], err) &&
        !input_kind_check(
            operands[0],
            INPUT_RUN | INPUT_PROFILE | INPUT_TRACE | INPUT_SNAPSHOT, err) &&
        !run_open(&run, operands[0], err))
        rc = replay_any(asked, &run, out, err);
    run_close(&run);
    kept_options_fini(&kept);
    return rc;
}

/* --- diff ----------------------------------------------------------------- */

static int answer_diff(struct asked *asked, const char *const *operands,
                       FILE *out, struct err *err)
{
    struct diff_study d;

    asked->diff.before = operands[0];
    asked->diff.after = operands[1];
    if (diff_study_open(&d, &asked->diff, err))
        return -1;
    diff_report_json(&d.report, out);
    diff_study_close(&d);
    return 0;
}

/* --- options -------------------------------------------------------------- */

#define ROW(field) .offset = offsetof(struct asked, field)
#define TEXT(name, field)                                                      \
    {                                                                          \
        name, 0, OPTION_STRING, "TEXT", ROW(field)                             \
    }
#define NUMBER(name, field)                                                    \
    {                                                                          \
        name, 0, OPTION_COUNT, "N", ROW(field), .minimum = 1,                  \
                                                .maximum = UINT32_MAX          \
    }
#define FLAG(name, field)                                                      \
    {                                                                          \
        name, 0, OPTION_FLAG, NULL, ROW(field)                                 \
    }
#define JOB_ROWS                                                               \
    NUMBER("steps", study.steps), FLAG("whole-job", study.whole_job),          \
        TEXT("input-max", study.input_max),                                    \
        FLAG("worst-batch", study.worst_batch), FLAG("advice", study.advice)

static const struct option_row report_rows[] = {
    JOB_ROWS, STUDY_TIME_ROWS(struct asked, study), {0}};

static const struct option_row replay_rows[] = {
    TEXT("gpu", replay.gpu),
    {"memory", 0, OPTION_BYTES, "SIZE", ROW(replay.memory.memory_bytes)},
    TEXT("alloc-conf", alloc_conf),
    TEXT("sweep", replay.memory.sweep),
    TEXT("what-if", replay.memory.what_if),
    TEXT("torch", replay.memory.torch),
    {"addresses", 0, OPTION_CHOICE, "recorded|linux|ascending",
     ROW(replay.memory.addresses)},
    {"fail-above", 0, OPTION_PERCENT, "PCT",
     ROW(replay.memory.fail_above_percent)},
    NUMBER("dp", replay.memory.data_parallel),
    TEXT("average", replay.average),
    FLAG("fsdp", replay.shards),
    TEXT("change", study.change),
    TEXT("second", replay.second),
    NUMBER("microbatches", replay.microbatches),
    TEXT("schedule", replay.schedule),
    NUMBER("nproc-per-node", replay.node_ranks),
    FLAG("models", replay.models),
    FLAG("without-profiler", replay.without_profiler),
    JOB_ROWS,
    STUDY_TIME_ROWS(struct asked, study),
    {0}};

static const struct option_row diff_rows[] = {
    TEXT("fail-above", diff.fail_above),
    TEXT("fail-slower", diff.fail_slower),
    FLAG("peaks", diff.peaks),
    {0}};

const struct library_question library_report = {
    {.command = "memsim report", .rows = report_rows}, answer_report};
const struct library_question library_replay = {
    {.command = "memsim replay", .rows = replay_rows}, answer_replay};
const struct library_question library_diff = {
    {.command = "memsim diff", .rows = diff_rows}, answer_diff};

/* WORDS as a command line: of long options alone. */
static int read_options(const struct options *options, const char *const *words,
                        char **argv, struct asked *asked, struct err *err)
{
    struct operands none;
    int argc = 1;

    argv[0] = (char *)options->command;
    for (size_t i = 0; words && words[i]; i++)
        argv[argc++] = xasprintf("--%s", words[i]);
    switch (options_parse(options, argc, argv, asked, &none, err)) {
    case OPTIONS_OK:
        return none.count ? err_set(err, "'%s' is no option", none.values[0])
                          : 0;
    case OPTIONS_HELP:
        return err_set(err, "help is no option here; man memsim has it");
    default:
        return -1;
    }
}

/* The command line that asks the same, NULL-terminated; ARGV's words are
 * borrowed. */
static char **invocation_make(const struct options *options, char *const *argv,
                              size_t count, const char *operand)
{
    static char memsim[] = "memsim";
    char **words = xcalloc(count + 4, sizeof *words);

    words[0] = memsim;
    words[1] = strchr(options->command, ' ') + 1;
    for (size_t i = 0; i < count; i++)
        words[2 + i] = argv[1 + i];
    words[2 + count] = (char *)operand;
    return words;
}

int library_ask(const struct library_question *question,
                const char *const *operands, const char *const *options,
                FILE *out, struct err *err)
{
    struct asked asked = {.alloc_conf = NULL};
    size_t count = 0;

    while (options && options[count])
        count++;
    char **argv = xcalloc(count + 2, sizeof *argv);
    int rc = read_options(&question->options, options, argv, &asked, err);
    char **words =
        invocation_make(&question->options, argv, count, operands[0]);
    asked.replay.invocation = words;
    asked.replay.command = words + 1;
    if (!rc)
        rc = question->answer(&asked, operands, out, err);
    for (size_t i = 1; i <= count; i++)
        free(argv[i]);
    free(words);
    free(argv);
    return rc;
}
