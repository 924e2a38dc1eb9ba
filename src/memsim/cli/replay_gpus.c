/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/replay_gpus.h"

#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/status.h"
#include "memsim/study/replay_many.h"

/* What the table has no place for. */
static int check_options(const struct replay_options *o, struct err *err)
{
    const struct output_options *to = &o->output;
    const struct {
        bool given;
        const char *name;
    } wrong[] = {
        {o->ask.memory.sweep, "--sweep"},
        {o->ask.memory.conf_count > 1, "--alloc-conf (more than once)"},
        {o->output.study.advice, "--advice"},
        {to->html, "--html"},
        {to->perfetto, "--perfetto"},
        {to->study.kineto, "--kineto"},
        {to->study.chakra, "--chakra"},
        {to->flame, "--flame"},
        {to->snapshot, "--snapshot"},
        {to->study.depends, "--depends"},
        {to->study.fail_slower, "--fail-slower"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].given)
            return err_set(err,
                           "--gpu %s gives a table; %s needs one GPU: "
                           "--gpu NAME",
                           o->ask.gpu, wrong[i].name);
    return 0;
}

static void show_progress(size_t at, size_t count, const char *gpu)
{
    fprintf(stderr, "\r\033[K  %zu of %zu GPUs: %s", at + 1, count, gpu);
}

static int table_write(const struct gpu_table *table,
                       const struct output_options *to, struct err *err)
{
    FILE *out = output_summary_stream(to);
    const struct report_style style = {.color = output_color(to, out)};

    if (!to->quiet)
        gpu_table_text(table, &style, out);
    if (to->json && file_write(gpu_table_json, table, to->json, err))
        return CMD_RUN_FAILED;
    return output_summary_check(out, err) ? CMD_RUN_FAILED
                                          : table->exit_status;
}

int replay_gpus(const struct replay_options *o, const struct run *run,
                struct err *err)
{
    bool live = isatty(STDERR_FILENO) && !o->output.quiet;
    const struct replay_many q = {.ask = &o->ask,
                                  .run = run,
                                  .price = o->price,
                                  .budget = o->budget,
                                  .steps = o->output.study.steps,
                                  .begins = live ? show_progress : NULL};
    struct gpu_table table;

    if (check_options(o, err))
        return CMD_RUN_FAILED;
    int rc = replay_many(&q, &table, err);
    if (live)
        fputs("\r\033[K", stderr);
    int status = rc ? CMD_RUN_FAILED : table_write(&table, &o->output, err);
    gpu_table_fini(&table);
    return status;
}
