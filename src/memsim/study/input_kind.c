/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/input_kind.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "common/trace/session.h"
#include "common/trace/trace.h"
#include "memsim/snapshot/snapshot.h"

#define START_BYTES (64 << 10) /* that tell what a file is */
#define FIRST_TRACE "process-0000.trace"

static bool has_file(const char *directory, const char *name)
{
    char *path = xasprintf("%s/%s", directory, name);
    bool there = !access(path, F_OK);

    free(path);
    return there;
}

static enum input_kind kind_of_directory(const char *path)
{
    if (has_file(path, SESSION_FILE))
        return INPUT_RUN;
    return has_file(path, FIRST_TRACE) ? INPUT_PROFILE : INPUT_OTHER;
}

/* TEXT is the terminated beginning of a JSON document. */
static enum input_kind kind_of_json(const char *text)
{
    static const struct {
        const char *member;
        enum input_kind kind;
    } members[] = {{"\"traceEvents\"", INPUT_PROFILER},
                   {"\"deviceProperties\"", INPUT_PROFILER},
                   {"\"verdict\"", INPUT_REPORT}};

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strstr(text, members[i].member))
            return members[i].kind;
    return INPUT_OTHER;
}

/* Of the LENGTH bytes of START, the beginning of a file, terminated. */
static enum input_kind kind_of_start(const char *start, size_t length)
{
    static const struct {
        const char *bytes;
        size_t length;
        enum input_kind kind;
    } magics[] = {{TRACE_MAGIC, 8, INPUT_TRACE},
                  {"\x1f\x8b", 2, INPUT_PROFILER}, /* gzip: nothing else is */
                  {"SQLite format 3", 15, INPUT_PROFILER}};

    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (length >= magics[i].length &&
            !memcmp(start, magics[i].bytes, magics[i].length))
            return magics[i].kind;
    if (snapshot_is_pickle(start, length))
        return INPUT_SNAPSHOT;
    return *start == '{' || *start == '[' ? kind_of_json(start) : INPUT_OTHER;
}

static bool is_script(const char *path)
{
    const char *end = strrchr(path, '.');

    return end && !strcmp(end, ".py");
}

static enum input_kind kind_of_file(const char *path)
{
    enum input_kind kind = INPUT_OTHER;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *start = xcalloc(START_BYTES + 1, 1);
    ssize_t n = fd < 0 ? -1 : read(fd, start, START_BYTES);

    if (is_script(path))
        kind = INPUT_SCRIPT;
    else if (n > 0)
        kind = kind_of_start(start, (size_t)n);
    free(start);
    if (fd >= 0)
        close(fd);
    return kind;
}

enum input_kind input_kind_find(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return INPUT_OTHER;
    if (S_ISDIR(st.st_mode))
        return kind_of_directory(path);
    return S_ISREG(st.st_mode) ? kind_of_file(path) : INPUT_OTHER;
}

int input_kind_check(const char *path, unsigned accepted, struct err *err)
{
    static const struct {
        enum input_kind kind;
        const char *what, *commands;
    } rows[] = {
        {INPUT_RUN, "the directory of a run",
         "`memsim report' and `memsim replay' take it"},
        {INPUT_PROFILE, "an imported profile, which has times alone",
         "`memsim replay' shows them"},
        {INPUT_TRACE, "the trace of a process",
         "`memsim replay' plays it, `memsim trace' prints it, and `memsim "
         "report' takes its directory"},
        {INPUT_SNAPSHOT, "a memory snapshot", "`memsim replay' plays it"},
        {INPUT_PROFILER, "a profiler's trace",
         "`memsim import' reads it, and `memsim replay' plays what that "
         "writes"},
        {INPUT_REPORT, "a report of --json",
         "`memsim diff' and `memsim compare' read it"},
        {INPUT_SCRIPT, "a Python script",
         "`memsim run -o DIR -- python FILE' runs it and leaves a recording "
         "in DIR"},
    };
    enum input_kind kind = input_kind_find(path);

    if (kind == INPUT_OTHER || kind & accepted)
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind)
            return err_set(err, "%s: %s; %s", path, rows[i].what,
                           rows[i].commands);
    return 0;
}
