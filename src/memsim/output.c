/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/output.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/trace_read.h"
#include "memsim/cmd.h"
#include "memsim/peak.h"
#include "memsim/report_html.h"

#define PROGRESS_MS 500

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

bool output_color(const struct output_options *options, FILE *out)
{
    const char *no_color = getenv("NO_COLOR"); /* no-color.org */

    if (options->color != COLOR_AUTO)
        return options->color == COLOR_ALWAYS;
    return isatty(fileno(out)) && !(no_color && *no_color);
}

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

int output_check(const struct output_options *options, struct err *err)
{
    if (options->html && report_html_check(err))
        return -1;
    if (is_stdout(options->json) && is_stdout(options->html))
        return err_set(err, "--json and --html: one of them only can be -");
    return 0;
}

FILE *output_summary_stream(const struct output_options *options)
{
    return is_stdout(options->json) || is_stdout(options->html) ? stderr
                                                                : stdout;
}

int output_files(const struct output_options *options,
                 const struct output_writers *writers,
                 const struct result *result, struct err *err)
{
    if (options->json &&
        report_write(writers->json, result, options->json, err))
        return -1;
    if (!options->html)
        return 0;
    if (report_write(writers->html, result, options->html, err))
        return -1;
    if (!options->quiet && !is_stdout(options->html))
        fprintf(stderr, "memsim: the report's page is %s\n", options->html);
    return 0;
}

static void things_tell(struct result *result, unsigned slot, struct peak *peak)
{
    for (size_t i = 0; i < result->rank_count; i++)
        for (size_t j = 0; j < result->ranks[i].device_count; j++) {
            struct result_device *d = &result->ranks[i].devices[j];
            if (d->slot == slot && d->index < SESSION_DEVICES)
                peak_tell(&peak->cards[d->index], d);
        }
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Long traces only: a line on the terminal, which goes when all is read. */
struct progress {
    uint64_t next_ms; /* when to write it again */
    bool written;
};

static void progress_tell(const struct trace_reader *r, void *context)
{
    struct progress *p = context;
    uint64_t now = now_ms();

    if (now < p->next_ms)
        return;
    p->next_ms = now + PROGRESS_MS;
    p->written = true;
    fprintf(stderr, "\rmemsim: reading the trace, %3.0f%%",
            100.0 * (double)r->read_bytes /
                (double)(r->file_bytes > r->read_bytes ? r->file_bytes
                                                       : r->read_bytes));
}

static void progress_clear(const struct progress *p)
{
    if (p->written)
        fputs("\r\033[K", stderr);
}

/* What was in memory at the peaks of one process's cards; a trace that cannot
 * be read costs these only. */
static void things_read(struct result *result, const struct rundir *dir,
                        unsigned slot)
{
    char path[PATH_MAX];
    struct progress progress = {.next_ms = now_ms() + PROGRESS_MS};
    struct trace_reader reader;
    struct peak peak;
    struct err err = {""};

    rundir_trace(dir, slot, path, sizeof path);
    if (!trace_reader_open(&reader, path, &err)) {
        if (isatty(STDERR_FILENO)) {
            reader.progress = progress_tell;
            reader.context = &progress;
        }
        if (!peak_read(&peak, &reader, &err)) {
            things_tell(result, slot, &peak);
            peak_fini(&peak);
        }
        progress_clear(&progress);
        trace_reader_close(&reader);
    }
    if (err.text[0])
        result_note(result, "what was in memory is not known: %s", err.text);
}

static void things_read_all(struct result *result, const struct rundir *dir)
{
    for (size_t i = 0; i < result->rank_count; i++)
        for (size_t j = 0; j < result->ranks[i].device_count; j++)
            if (!result->ranks[i].devices[j].things)
                things_read(result, dir, result->ranks[i].devices[j].slot);
}

int output_run(const struct rundir *dir, char *const *command,
               const struct output_options *options, FILE *out, bool *told)
{
    static const struct output_writers writers = {&report_json, &report_html};
    struct report_style style = {.color = output_color(options, out),
                                 .depth = options->depth,
                                 .top = options->top};
    struct result result;
    struct err err = {""};

    result_init(&result, dir->session, command);
    if (!dir->temporary)
        result.directory = dir->path;
    if (!options->quiet || options->json || options->html)
        things_read_all(&result, dir);
    int status = result.exit_status;
    if (!options->quiet)
        report_summary.write(&result, &style, out);
    *told = !output_files(options, &writers, &result, &err);
    if (!*told)
        status = cmd_fail(CMD_RUN_FAILED, &err);
    result_fini(&result);
    return status;
}
