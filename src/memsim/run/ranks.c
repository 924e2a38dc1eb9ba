/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/file_write.h"
#include "common/base/xmalloc.h"
#include "common/trace/trace_read.h"

#define HEAD_RECORDS 64 /* PROCESS is the first that a process records */

/* The place of RANK in RANKS, or where it would be inserted. */
static size_t rank_place(const struct run_ranks *ranks, uint32_t rank)
{
    return BISECT(i, ranks->count, ranks->all[i].rank < rank);
}

static struct run_rank *rank_get(struct run_ranks *ranks, uint32_t rank)
{
    size_t at = rank_place(ranks, rank);

    if (at < ranks->count && ranks->all[at].rank == rank)
        return &ranks->all[at];
    xgrow(&ranks->all, ranks->count, &ranks->capacity, sizeof *ranks->all);
    memmove(&ranks->all[at + 1], &ranks->all[at],
            (ranks->count - at) * sizeof *ranks->all);
    ranks->count++;
    ranks->all[at] = (struct run_rank){.rank = rank};
    return &ranks->all[at];
}

static void world_raise(struct run_ranks *ranks, uint64_t world)
{
    if (world > ranks->world && world <= RUN_RANKS_MAX)
        ranks->world = (uint32_t)world;
}

/* --- the file of classes -------------------------------------------------- */

void run_classes_add(struct run_ranks *classes, uint32_t rank,
                     const struct rank_set *members)
{
    struct rank_set *to = &rank_get(classes, rank)->members;
    uint32_t member;

    rank_set_merge(to, members);
    for (uint32_t r = 0; rank_set_next(members, r, &member); r = member + 1)
        world_raise(classes, (uint64_t)member + 1);
}

static int line_read(struct run_ranks *classes, char *line, const char *origin,
                     struct err *err)
{
    struct rank_set members;
    char *text;
    unsigned long rank = strtoul(line, &text, 10);

    line[strcspn(line, "\n")] = '\0';
    if (text == line || *text != ' ' || rank >= RUN_RANKS_MAX)
        return err_set(err, "%s: '%s' is no rank and its members", origin,
                       line);
    if (rank_set_parse(&members, text + 1, RUN_RANKS_MAX, origin, err))
        return -1;
    run_classes_add(classes, (uint32_t)rank, &members);
    bool itself = rank_set_has(&members, (uint32_t)rank);
    rank_set_fini(&members);
    return itself ? 0
                  : err_set(err, "%s: rank %lu is not among its members",
                            origin, rank);
}

static int lines_read(struct run_ranks *classes, FILE *file, const char *path,
                      struct err *err)
{
    size_t capacity = 0, number = 0;
    char *line = NULL;
    int rc = 0;

    while (!rc && getline(&line, &capacity, file) > 0) {
        char *origin = xasprintf("%s:%zu", path, ++number);
        rc = line_read(classes, line, origin, err);
        free(origin);
    }
    free(line);
    return rc;
}

int run_classes_read(struct run_ranks *classes, const char *directory,
                     struct err *err)
{
    char *path = xasprintf("%s/" RUN_RANKS, directory);
    FILE *file = fopen(path, "re");
    int rc = 0;

    *classes = (struct run_ranks){.count = 0};
    if (file) {
        rc = lines_read(classes, file, path, err);
        fclose(file);
    } else if (errno != ENOENT) {
        rc = err_set(err, "%s: %s", path, strerror(errno));
    }
    free(path);
    return rc;
}

static void classes_print(const void *what, FILE *out)
{
    const struct run_ranks *classes = what;

    for (size_t i = 0; i < classes->count; i++) {
        char *members = rank_set_text(&classes->all[i].members);
        fprintf(out, "%" PRIu32 " %s\n", classes->all[i].rank, members);
        free(members);
    }
}

int run_classes_write(const struct run_ranks *classes, const char *directory,
                      struct err *err)
{
    char *path = xasprintf("%s/" RUN_RANKS, directory);
    int rc = file_write(classes_print, classes, path, err);

    free(path);
    return rc;
}

/* --- traces --------------------------------------------------------------- */

/* Sets *RANK and *WORLD as the head of the trace PATH says. False: it does not,
 * or cannot be read; whoever reads all of it says why. */
static bool head_read(const char *path, uint64_t *rank, uint64_t *world)
{
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    bool found = false;

    if (trace_reader_open(&reader, path, &err))
        return false;
    for (int i = 0; i < HEAD_RECORDS && !found &&
                    trace_reader_next(&reader, &item, &err) > 0;
         i++) {
        if (item.head.kind != TRACE_PROCESS)
            continue;
        found = true;
        *rank = trace_as_process(&item)->rank;
        *world = trace_as_process(&item)->world_size;
    }
    trace_reader_close(&reader);
    return found && *rank < RUN_RANKS_MAX;
}

static void trace_add(struct run_ranks *ranks, const struct run_trace *trace)
{
    uint64_t rank, world = 0;

    if (!head_read(trace->path, &rank, &world))
        rank = trace->process < RUN_RANKS_MAX ? trace->process : 0;
    struct run_rank *to = rank_get(ranks, (uint32_t)rank);
    to->traces = xreallocarray(to->traces, to->trace_count + 1,
                               sizeof *to->traces);
    to->traces[to->trace_count++] = trace;
    world_raise(ranks, world);
}

/* A rank without a class stands for itself; a class of which no rank ran is of
 * another run. */
static void ranks_conclude(struct run_ranks *ranks)
{
    size_t kept = 0;

    for (size_t i = 0; i < ranks->count; i++) {
        struct run_rank *rank = &ranks->all[i];
        if (!rank->trace_count) {
            rank_set_fini(&rank->members);
            continue;
        }
        if (!rank->members.count)
            rank_set_add(&rank->members, rank->rank);
        world_raise(ranks, (uint64_t)rank->rank + 1);
        ranks->all[kept++] = *rank;
    }
    ranks->count = kept;
}

int run_ranks_read(struct run_ranks *ranks, const struct run *run,
                   struct err *err)
{
    *ranks = (struct run_ranks){.count = 0};
    if (run->directory && run_classes_read(ranks, run->directory, err))
        return -1;
    for (size_t i = 0; i < run->count; i++)
        trace_add(ranks, &run->traces[i]);
    ranks_conclude(ranks);
    return 0;
}

void run_ranks_fini(struct run_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++) {
        rank_set_fini(&ranks->all[i].members);
        free(ranks->all[i].traces);
    }
    free(ranks->all);
    *ranks = (struct run_ranks){.count = 0};
}

const struct run_rank *run_next_rank(const struct run_ranks *ranks,
                                     const struct run_rank *before)
{
    size_t next = before ? (size_t)(before - ranks->all) + 1 : 0;

    return next < ranks->count ? &ranks->all[next] : NULL;
}

const struct run_rank *run_rank_for(const struct run_ranks *ranks,
                                    uint32_t rank)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (rank_set_has(&ranks->all[i].members, rank))
            return &ranks->all[i];
    return NULL;
}
