/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/xmalloc.h"
#include "common/trace/session_table.h"

#define PROCESS "process-" /* how SESSION_TRACE begins */

bool run_is_process(const char *name, uint32_t *process)
{
    char again[64];

    if (sscanf(name, PROCESS "%" SCNu32, process) != 1)
        return false;
    snprintf(again, sizeof again, SESSION_TRACE, *process);
    return !strcmp(name, again);
}

bool run_is_trace(const char *name)
{
    size_t length = strlen(name), end = strlen(SESSION_TRACE_END);

    return length > end && !strcmp(name + length - end, SESSION_TRACE_END);
}

void run_trace_path(const char *directory, uint32_t process, char *path,
                    size_t size)
{
    session_trace_path(directory, process, path, size);
}

/* PATH is the run's from here on. */
static void add_trace(struct run *run, char *path)
{
    const char *slash = strrchr(path, '/');
    uint32_t process;

    if (!run_is_process(slash ? slash + 1 : path, &process))
        process = RUN_NO_PROCESS;
    xgrow(&run->traces, run->count, &run->capacity, sizeof *run->traces);
    run->traces[run->count++] = (struct run_trace){process, path};
}

static const char *name_of(const struct run_trace *trace)
{
    return strrchr(trace->path, '/') + 1;
}

/* Names of the user's stand before or behind all processes. */
static int compare_traces(const void *one, const void *other)
{
    const struct run_trace *a = one, *b = other;
    bool by_process = a->process != RUN_NO_PROCESS;

    if (by_process && b->process != RUN_NO_PROCESS)
        return (a->process > b->process) - (a->process < b->process);
    if (by_process)
        return strcmp(PROCESS, name_of(b));
    if (b->process != RUN_NO_PROCESS)
        return strcmp(name_of(a), PROCESS);
    return strcmp(name_of(a), name_of(b));
}

static int list_directory(struct run *run, const char *path, struct err *err)
{
    DIR *dir = opendir(path);

    if (!dir)
        return err_set(err, "%s: %s", path, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (run_is_trace(entry->d_name))
            add_trace(run, xasprintf("%s/%s", path, entry->d_name));
    closedir(dir);
    if (run->count)
        qsort(run->traces, run->count, sizeof *run->traces, compare_traces);
    return 0;
}

int run_open(struct run *run, const char *path, struct err *err)
{
    struct stat st;

    *run = (struct run){NULL, 0, 0, NULL};
    if (stat(path, &st))
        return err_set(err, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        run->directory = xstrdup(path);
        return list_directory(run, path, err);
    }
    add_trace(run, xstrdup(path));
    return 0;
}

void run_close(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->traces[i].path);
    free(run->traces);
    free(run->directory);
    *run = (struct run){NULL, 0, 0, NULL};
}

const struct run_trace *run_next(const struct run *run,
                                 const struct run_trace *before)
{
    size_t next = before ? (size_t)(before - run->traces) + 1 : 0;

    return next < run->count ? &run->traces[next] : NULL;
}

const struct run_trace *run_next_process(const struct run *run,
                                         const struct run_trace *before)
{
    const struct run_trace *trace = run_next(run, before);

    while (trace && trace->process == RUN_NO_PROCESS)
        trace = run_next(run, trace);
    return trace;
}
