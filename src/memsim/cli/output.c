/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/share.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/output_files.h"
#include "memsim/cli/progress.h"
#include "memsim/report/export/flame.h"
#include "memsim/report/page/report_html.h"
#include "memsim/report/text/law_report.h"
#include "memsim/run/job.h"
#include "memsim/study/clusters.h"
#include "memsim/study/run_study.h"

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

bool output_color(const struct output_options *options, FILE *out)
{
    const char *no_color = getenv("NO_COLOR"); /* no-color.org */

    if (options->color != COLOR_AUTO)
        return options->color == COLOR_ALWAYS;
    return isatty(fileno(out)) && !(no_color && *no_color);
}

int output_check_input(const struct output_options *options, const char *input,
                       struct err *err)
{
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);

    return output_targets_any(options)
               ? output_targets_check_input(list, count, input, err)
               : 0;
}

static int check_cluster(const char *name, struct err *err)
{
    struct cluster cluster;

    if (cluster_load(name, &cluster, err))
        return -1;
    cluster_fini(&cluster);
    return 0;
}

int output_check(const struct output_options *options, struct err *err)
{
    if (options->study.cluster && check_cluster(options->study.cluster, err))
        return -1;
    struct result_wanted wanted;
    if (options->study.worst_batch && options->study.input_max)
        return err_set(err, "--input-max and --worst-batch both say what the "
                            "largest input is: give one of them");
    if (study_options_check(&options->study, err) ||
        law_wanted_parse(options->study.input_max, &wanted, err))
        return -1;
    if (options->html && report_html_check(err))
        return -1;
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);
    return output_targets_check(list, count, err) ||
                   output_check_input(options, options->study.cluster, err)
               ? -1
               : 0;
}

/* The number that the environment has as NAME; 0: none. */
static uint32_t environment_number(const char *name)
{
    const char *text = getenv(name);
    unsigned long number = text ? strtoul(text, NULL, 10) : 0;

    return number <= RUN_RANKS_MAX ? (uint32_t)number : 0;
}

const char *output_cluster_of_job(const struct job *job,
                                  struct cluster *cluster)
{
    const struct launch *l = &job->launch;
    uint32_t world = l->world, local = l->local;

    if (!world) {
        world = environment_number("WORLD_SIZE");
        local = environment_number("LOCAL_WORLD_SIZE");
    }
    if (!local || world <= local)
        return NULL;
    return study_cluster_assumed(
        share_is_path(job->options.gpu) ? job->options.gpu : job->gpu.name,
        local, cluster);
}

const char *output_cluster_gpu(const struct output_options *options,
                               const char *gpu)
{
    struct err why = {""};

    gpu = study_cluster_gpu(&options->study, gpu, &why);
    if (why.text[0])
        cmd_note("%s; --gpu selects one", why.text);
    return gpu;
}

FILE *output_summary_stream(const struct output_options *options)
{
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);

    return output_targets_use_stdout(list, count) ? stderr : stdout;
}

int output_summary_check(FILE *out, struct err *err)
{
    errno = 0;
    if (!fflush(out) && !ferror(out))
        return 0;
    return err_set(err, "standard %s: cannot write it: %s",
                   out == stdout ? "output" : "error",
                   strerror(errno ? errno : EIO));
}

/* Of the terminal that OUT is; 0: it is none. */
static int output_columns(FILE *out)
{
    struct winsize size;

    return isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size)
               ? size.ws_col
               : 0;
}

static int write_summary(const struct output_options *options,
                         const struct result *result, FILE *out,
                         struct err *err)
{
    const struct report_style style = {.color = output_color(options, out),
                                       .timeline = options->timeline,
                                       .verbose = options->verbose,
                                       .columns = output_columns(out),
                                       .depth = options->depth,
                                       .top = options->top};

    if (options->quiet)
        return 0;
    report_summary.write(result, &style, out);
    return output_summary_check(out, err);
}

static void timeline_written(uint32_t rank, const char *path)
{
    fprintf(stderr, "memsim: the predicted timeline of rank %u is %s\n", rank,
            path);
}

struct study_options output_study(const struct output_options *options)
{
    struct study_options study = options->study;

    study.whole_log = options->perfetto != NULL;
    study.step_log = options->html != NULL;
    study.written = options->quiet ? NULL : timeline_written;
    return study;
}

/* What OPTIONS ask for beside the summary. */
static int write_files(const struct output_options *options,
                       const struct run_study *s, struct err *err)
{
    static const struct output_writers writers = {
        &report_json, &report_html, &report_perfetto, &report_flame};

    if (output_files(options, &writers, &s->result, err))
        return -1;
    return options->snapshot ? study_snapshot(s, options->snapshot, err) : 0;
}

int output_run(const struct rundir *dir, const struct study_sources *sources,
               char *const *command, const struct output_options *options,
               FILE *out, bool *told)
{
    const struct study_options study = output_study(options);
    const struct run_question question = {.options = &study,
                                          .sources = sources,
                                          .traces = !options->quiet ||
                                                    output_targets_any(options),
                                          .events = options->perfetto != NULL,
                                          .snapshot = options->snapshot != NULL,
                                          .progress = progress_line()};
    struct run_study s;
    struct err err = {""};

    study_run_open(&s, dir, command);
    *told = !study_run_ask(&s, &question, &err);
    int status = *told ? s.result.exit_status : cmd_fail(CMD_RUN_FAILED, &err);
    if (write_summary(options, &s.result, out, &err) ||
        (*told && (output_check_input(options, dir->path, &err) ||
                   write_files(options, &s, &err)))) {
        *told = false;
        status = cmd_fail(CMD_RUN_FAILED, &err);
    }
    study_run_close(&s);
    return status;
}
