/* SPDX-License-Identifier: Apache-2.0
 * memsim import: profilers' traces, one for each rank, as a recording. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/simulated.h"
#include "common/base/xmalloc.h"
#include "common/trace/session.h"
#include "memsim/cli/cmd.h"
#include "memsim/import/profile_write.h"
#include "memsim/run/run.h"

#define RANKS_MAX 4096

struct import_options {
    const char *directory;
    bool quiet;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_STRING, "DIR",
     offsetof(struct import_options, directory),
     .help = "directory for the recording; new or empty"},
    {"quiet", 'q', OPTION_FLAG, NULL, offsetof(struct import_options, quiet),
     .help = "print errors only"},
    {0},
};

static const struct options options = {
    .command = "memsim import",
    .operands = "TRACE.json[.gz]|TRACE.sqlite|DIR...",
    .summary = "Makes a recording from traces of PyTorch's profiler (Kineto) "
               "or from SQLite\nexports of Nsight Systems. Give one file for "
               "each rank, in the order of ranks,\nor a directory with them: "
               "rank-2 comes before rank-10. An export may have\nseveral "
               "processes, each of which is a rank. `memsim replay DIR' "
               "replays it.",
    .rows = rows,
    .wanted = "no profiler trace given",
    .operands_min = 1,
    .operands_max = RANKS_MAX,
};

/* Makes DIR, or takes an empty one. */
static int directory_make(const char *dir, struct err *err)
{
    if (mkdir(dir, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return err_set(err, "%s: %m", dir);
    if (rmdir(dir) == 0 && mkdir(dir, 0700) == 0)
        return 0;
    return err_set(err,
                   "%s: is there already and not empty; name a new directory",
                   dir);
}

static unsigned count_steps(const struct profile *p)
{
    unsigned count = 0;

    for (size_t i = 0; i < p->marks_count; i++)
        count += profile_is_step(p->names[p->marks[i].name]);
    return count;
}

static double percent_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* All streams' time from the first operation, or the pause that is kept before
 * it, to the last. The pauses of a stream do not overlap: their sum is at most
 * this. */
static int64_t stream_time(const struct profile *p, int64_t *span_ns)
{
    int64_t first = p->ops[0].start_ns, last = first, pause = first;

    for (size_t i = 0; i < p->ops_count; i++) {
        const struct profile_op *op = &p->ops[i];

        if (profile_op_end(op) > last)
            last = profile_op_end(op);
        if (op->start_ns - op->gap_ns < pause)
            pause = op->start_ns - op->gap_ns;
    }
    *span_ns = last - first;
    return (last - pause) * (int64_t)p->streams_count;
}

static void print_doubts(const struct profile *p, int64_t streams_ns)
{
    if (p->info.simulated)
        printf("    " SIMULATED_NOTE "\n", "the profile");
    if (p->info.truncated)
        puts("    the file ends in the middle: what is whole was imported");
    if (p->untimed)
        printf("    %" PRIu64 " events of the GPU have no time, or one that "
               "cannot be: left out\n",
               p->untimed);
    if (p->skew_ns)
        printf("    the GPU's clock ran %.1f us behind the host's: shifted\n",
               (double)p->skew_ns / 1e3);
    if (p->dropped_calls)
        printf("    %" PRIu64 " operations have no call in the file: they "
               "follow the one before them\n",
               p->dropped_calls);
    printf("    waits found by their times: %" PRIu64 " between streams, "
           "%" PRIu64 " of the host for the GPU,\n    %" PRIu64
           " between threads\n",
           p->inferred_streams, p->inferred_waits, p->inferred_joins);
    printf("    shapes of operations with %.1f%% of the device time\n",
           percent_of(p->shaped_ns, p->device_ns));
    if (p->profiler_ns)
        printf("    the profiler took up to %.1f us for each operator, %.0f%% "
               "of the host's time:\n    `memsim replay "
               "--without-profiler' leaves it out\n",
               (double)p->operator_ns / 1e3,
               percent_of(p->profiler_ns, p->host_ns));
    if (p->gaps)
        printf("    %" PRIu64 " operations start later than the file explains: "
               "these pauses, %.1f%% of the\n    streams' time, are kept as "
               "measured\n",
               p->gaps, percent_of(p->gaps_ns, streams_ns));
}

static void print_rank(const struct profile *p, uint32_t rank)
{
    int64_t span_ns, streams_ns = stream_time(p, &span_ns);

    printf("  rank %" PRIu32 "  %s\n", rank,
           p->info.gpu[0] ? p->info.gpu : "GPU not named");
    printf("    %zu operations on %zu streams, %zu calls of %zu threads, "
           "%.3f ms\n",
           p->ops_count, p->streams_count, p->calls_count, p->threads_count,
           (double)span_ns / 1e6);
    printf("    %u profiler steps\n", count_steps(p));
    print_doubts(p, streams_ns);
}

static char *trace_path(const char *dir, uint32_t rank)
{
    size_t size = strlen(dir) + sizeof SESSION_TRACE + 16;
    char *path = xcalloc(1, size);

    run_trace_path(dir, rank, path, size);
    return path;
}

static int write_rank(const struct import_options *values,
                      struct profile *p, uint32_t rank, uint32_t ranks,
                      struct err *err)
{
    char *path = trace_path(values->directory, rank);
    struct profile_target target = {
        .path = path,
        .gpu = p->info.gpu,
        .capacity_bytes = p->info.memory_bytes,
        .origin_ns = profile_origin(p),
        .rank = rank,
        .ranks = ranks,
    };
    int rc = profile_write(p, &target, err);

    free(path);
    return rc;
}

/* Is NAME that of a profiler's trace? */
static bool is_trace_name(const char *name)
{
    static const char *const ends[] = {".json", ".json.gz", ".sqlite"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && !strcmp(name + length - end, ends[i]))
            return true;
    }
    return false;
}

static int trace_filter(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && is_trace_name(entry->d_name);
}

struct file_list {
    char **names;
    size_t count, capacity;
};

static void file_add(struct file_list *l, char *name)
{
    xgrow(&l->names, l->count, &l->capacity, sizeof *l->names);
    l->names[l->count++] = name;
}

/* The traces in the directory DIR, in the order of the numbers in their names.
 */
static int directory_add(struct file_list *l, const char *dir, struct err *err)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, trace_filter, versionsort);

    if (count < 0)
        return err_set(err, "%s: %m", dir);
    for (int i = 0; i < count; i++) {
        file_add(l, xasprintf("%s/%s", dir, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    return count ? 0
                 : err_set(err, "%s: no trace in it (.json, .json.gz, .sqlite)",
                           dir);
}

/* The files of the OPERANDS, those of directories among them. */
static int files_find(struct file_list *l, const struct operands *operands,
                      struct err *err)
{
    struct stat st;

    for (int i = 0; i < operands->count; i++) {
        char *name = operands->values[i];
        if (!stat(name, &st) && S_ISDIR(st.st_mode)) {
            if (directory_add(l, name, err))
                return -1;
        } else {
            file_add(l, xstrdup(name));
        }
    }
    return 0;
}

static void file_list_fini(struct file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->names[i]);
    free(l->names);
}

/* A rank of a file among all. */
struct place {
    uint32_t in_file, rank, ranks;
};

static int import_rank(const struct import_options *values, const char *file,
                       const struct place *at, struct err *err)
{
    struct profile p;
    int rc = profile_read(&p, file, at->in_file, err);

    if (rc == 0) {
        profile_link(&p);
        rc = write_rank(values, &p, at->rank, at->ranks, err);
    }
    if (rc == 0 && !values->quiet)
        print_rank(&p, at->rank);
    profile_fini(&p);
    return rc;
}

/* Imports every rank of the files. */
static int import_all(const struct import_options *values,
                      const struct file_list *files, uint32_t ranks,
                      struct err *err)
{
    struct place at = {.ranks = ranks};

    for (size_t i = 0; i < files->count; i++) {
        uint32_t in_file;
        if (profile_ranks(files->names[i], &in_file, err))
            return -1;
        for (at.in_file = 0; at.in_file < in_file; at.in_file++, at.rank++)
            if (import_rank(values, files->names[i], &at, err))
                return -1;
    }
    return 0;
}

static int count_ranks(const struct file_list *files, uint32_t *ranks,
                       struct err *err)
{
    *ranks = 0;
    for (size_t i = 0; i < files->count; i++) {
        uint32_t in_file;
        if (profile_ranks(files->names[i], &in_file, err))
            return -1;
        *ranks += in_file;
    }
    if (*ranks > RANKS_MAX)
        return err_set(err, "more than %d ranks in the files", RANKS_MAX);
    return 0;
}

/* Removes the traces of RANKS ranks, and the directory where nothing else is
 * in it. */
static void undo_import(const char *dir, uint32_t ranks)
{
    for (uint32_t i = 0; i < ranks; i++) {
        char *path = trace_path(dir, i);
        unlink(path);
        free(path);
    }
    rmdir(dir);
}

static int import_files(const struct import_options *values,
                        const struct file_list *files)
{
    struct err err = {""};
    uint32_t ranks;

    if (count_ranks(files, &ranks, &err) ||
        directory_make(values->directory, &err))
        return cmd_fail(CMD_FAILED, &err);
    if (!values->quiet)
        printf("memsim: importing %" PRIu32 " rank%s into %s\n", ranks,
               ranks == 1 ? "" : "s", values->directory);
    if (import_all(values, files, ranks, &err)) {
        undo_import(values->directory, ranks);
        return cmd_fail(CMD_FAILED, &err);
    }
    if (!values->quiet)
        printf("memsim: `memsim replay %s' plays it\n", values->directory);
    return CMD_OK;
}

int cmd_import(int argc, char **argv)
{
    struct import_options values = {0};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &values, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (!values.directory) {
        err_set(&err, "-o DIR is missing: where the recording goes");
        return cmd_usage(&options, CMD_USAGE, &err);
    }
    struct file_list files = {.names = NULL};
    status = files_find(&files, &operands, &err)
                 ? cmd_fail(CMD_FAILED, &err)
                 : import_files(&values, &files);
    file_list_fini(&files);
    return status;
}
