/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_MS 500

struct line {
    uint64_t next_ms; /* when to write it again; 0: at no time so far */
    bool written;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void line_tell(const struct trace_reader *r, void *context)
{
    struct line *line = context;
    uint64_t now = now_ms();

    if (!line->next_ms)
        line->next_ms = now + PROGRESS_MS;
    if (now < line->next_ms)
        return;
    line->next_ms = now + PROGRESS_MS;
    line->written = true;
    fprintf(stderr, "\rmemsim: reading the trace, %3.0f%%",
            100.0 * (double)r->read_bytes /
                (double)(r->file_bytes > r->read_bytes ? r->file_bytes
                                                       : r->read_bytes));
}

static void line_end(void *context)
{
    struct line *line = context;

    if (line->written)
        fputs("\r\033[K", stderr);
    *line = (struct line){0};
}

const struct study_progress *progress_line(void)
{
    static struct line line;
    static const struct study_progress progress = {line_tell, line_end, &line};

    return isatty(STDERR_FILENO) ? &progress : NULL;
}
