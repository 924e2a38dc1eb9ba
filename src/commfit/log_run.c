/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/log_run.h"
#include "common/base/hash.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 1e6

void run_init(struct log_run *run, struct bench *bench, const char *source)
{
    *run = (struct log_run){
        .bench = bench,
        .source = source,
        .hosts = xcalloc(RUN_HOSTS, sizeof *run->hosts),
        .rows = xcalloc(RUN_ROWS, sizeof *run->rows),
    };
}

void run_fini(struct log_run *run)
{
    free(run->hosts);
    free(run->rows);
}

void run_reset(struct log_run *run)
{
    *run = (struct log_run){
        .bench = run->bench,
        .source = run->source,
        .hosts = run->hosts,
        .rows = run->rows,
    };
}

static void add_host(struct log_run *run, const char *host)
{
    uint64_t hash = hash_text(HASH_START, host);

    for (uint32_t i = run->host_count; i-- > 0;) /* the last is likeliest */
        if (run->hosts[i] == hash)
            return;
    if (run->host_count < RUN_HOSTS)
        run->hosts[run->host_count++] = hash;
}

void run_add_device(struct log_run *run, uint32_t rank, uint32_t device,
                    const char *host)
{
    run->listed++;
    run->firsts += rank == 0;
    run->zeros += device == 0;
    if (device + 1 > run->devices)
        run->devices = device + 1;
    if (rank + 1 > run->highest)
        run->highest = rank + 1;
    if (*host)
        add_host(run, host);
}

/* Rows that COLL among RANKS would have printed. */
static size_t rows_fitting(const struct log_run *run, enum fit_coll coll,
                           double ranks)
{
    size_t fitting = 0;

    for (size_t i = 0; i < run->row_count; i++)
        fitting += printed_fits(&run->rows[i].row.place[0], coll, ranks);
    return fitting;
}

/* The median row's busbw / algbw, of those that print enough digits. */
static double middle_factor(const struct log_run *run)
{
    double factors[RUN_ROWS];
    size_t count = 0;

    for (size_t i = 0; i < run->row_count; i++) {
        const struct printed_row *p = &run->rows[i].row.place[0];

        if (p->algbw.present && p->busbw.present &&
            p->algbw.value > 50 * p->algbw.half)
            factors[count++] = p->busbw.value / p->algbw.value;
    }
    if (!count)
        return NAN;
    bench_sort_values(factors, count);
    return factors[count / 2];
}

/* What can be told from a table alone: nccl-tests prints the same columns for
 * all its programs. */
static bool guess_coll(const struct log_run *run, enum fit_coll *coll)
{
    const struct log_row *row = &run->rows[run->row_count / 2].row;
    bool reduces = row->redop[0] && strcmp(row->redop, "none");
    bool rooted = row->has_root && row->root >= 0;
    double factor = middle_factor(run);
    bool per_rank = row->count * log_type_bytes(row->type) < row->bytes;

    if (isnan(factor))
        return false;
    bool whole = fabs(factor - 1) < 0.005;
    if (rooted)
        *coll = !whole ? FIT_GATHER : reduces ? FIT_REDUCE : FIT_BROADCAST;
    else if (reduces)
        *coll = per_rank ? FIT_REDUCE_SCATTER : FIT_ALL_REDUCE;
    else if (whole)
        *coll = FIT_SENDRECV;
    else
        *coll = row->placements == 2 && row->unchecked[1] && !row->unchecked[0]
                    ? FIT_ALLTOALL /* which cannot check in place */
                    : FIT_ALL_GATHER;
    return true;
}

/* A collective that the file's name speaks of. */
static bool name_in_path(const char *path, enum fit_coll *coll)
{
    static const char *const words[] = {
        "all_reduce", "allreduce",      "all_gather", "allgather",
        "alltoall",   "reduce_scatter", "sendrecv",   "broadcast",
        "gather",     "scatter",        "reduce",
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(path, words[i]))
            return fit_coll_find(words[i], coll) == 0;
    *coll = FIT_BROADCAST;
    return strcasestr(path, "bcast") != NULL;
}

/* Whether a table that looks like GUESS may be one of NAME: programs without a
 * reduction print the same. */
static bool may_be(enum fit_coll guess, enum fit_coll name)
{
    static const bool alike[FIT_COLL_COUNT] = {
        [FIT_ALL_GATHER] = true,
        [FIT_ALLTOALL] = true,
        [FIT_GATHER] = true,
        [FIT_SCATTER] = true,
    };

    return guess == name || (alike[guess] && alike[name]);
}

/* The program's own word; else a name from around, unless the table says that
 * it cannot be (names lie); else what the table looks like. */
static bool find_coll(struct log_run *run)
{
    enum fit_coll guess, name = run->hint;

    if (run->named)
        return true;
    bool hinted = run->hinted || name_in_path(run->source, &name);
    if (!guess_coll(run, &guess)) {
        run->coll = name;
        return hinted;
    }
    run->coll = hinted && may_be(guess, name) ? name : guess;
    return true;
}

/* Of the whole numbers from LOW to HIGH the one that jobs are likeliest to
 * have: a power of two, else a multiple of eight, else the middle. */
static uint32_t likeliest_ranks(double low, double high)
{
    double power = exp2(floor(log2(high + 0.01)));
    double eights = 8 * round((low + high) / 16);

    if (power >= low - 0.01)
        return (uint32_t)power;
    if (eights >= low - 0.01 && eights <= high + 0.01)
        return (uint32_t)eights;
    return (uint32_t)round((low + high) / 2);
}

/* The rank count that most rows allow; 0 where they do not tell. */
static uint32_t ranks_from_rows(const struct log_run *run)
{
    double low = 1, high = RANKS_MAX;
    bool any = false;

    for (size_t i = 0; i < run->row_count; i++) {
        double l = low, h = high;

        if (!printed_ranks(&run->rows[i].row.place[0], run->coll, &l, &h))
            continue;
        any = true;
        if (l <= h + 0.02) { /* a row that excludes all others is odd */
            low = l;
            high = h;
        }
    }
    return any && high < 2 * low ? likeliest_ranks(low, high) : 0;
}

static uint32_t find_ranks(struct log_run *run)
{
    if (run->highest &&
        10 * rows_fitting(run, run->coll, run->highest) >= 9 * run->row_count)
        return run->highest;
    uint32_t ranks = ranks_from_rows(run);
    if (ranks && run->highest && ranks != run->highest)
        bench_note(run->bench,
                   "%s: %u ranks are listed, busbw / algbw says %u: taken",
                   run->source, run->highest, ranks);
    return ranks;
}

/* GPUs in a node as the device list or the options say; 0: they do not. */
static uint32_t find_width(const struct log_run *run)
{
    uint32_t jobs = run->firsts ? run->firsts : 1;

    if (run->host_count) {
        uint32_t hosts = run->host_count / jobs ? run->host_count / jobs : 1;

        if (run->elided && run->devices > 1)
            return run->devices;
        if (run->elided)
            return run->highest % hosts ? 0 : run->highest / hosts;
        uint32_t listed = run->listed / jobs;
        return listed % hosts ? 0 : listed / hosts;
    }
    if (run->zeros && run->highest)
        return run->highest * jobs % run->zeros
                   ? 0
                   : run->highest * jobs / run->zeros;
    return run->gpus_each > 1 ? run->gpus_each : 0;
}

/* No list of devices: up to so many ranks are one node, more are such nodes. */
static uint32_t assume_width(struct log_run *run, uint32_t ranks)
{
    uint32_t node = run->bench->node_gpus;
    uint32_t width = ranks <= node ? ranks : node;

    bench_note(run->bench,
               "%s: no list of devices; %u ranks taken as %u node%s of %u",
               run->source, ranks, (ranks + width - 1) / width,
               ranks > width ? "s" : "", width);
    return width;
}

static bool resolve_run(struct log_run *run, enum bench_reason *reason)
{
    *reason = BENCH_UNKNOWN;
    if (!find_coll(run))
        return false;
    *reason = BENCH_BUSBW;
    uint32_t ranks = find_ranks(run);
    if (!ranks)
        return false;
    *reason = BENCH_ONE_RANK;
    if (ranks == 1)
        return false;
    *reason = BENCH_WORLD;
    uint32_t width = find_width(run);
    if (!width && !run->listed)
        width = assume_width(run, ranks);
    if (width && width < run->gpus_each) /* the list was cut short */
        width = run->gpus_each;
    if (!width || (ranks > width && ranks % width))
        return false;
    run->gpus = width < ranks ? width : ranks;
    run->nodes = ranks / run->gpus;
    return true;
}

static int hand_on_placement(struct log_run *run, const struct run_row *r,
                             unsigned place, struct err *err)
{
    const struct printed_row *p = &r->row.place[place];
    struct bench_row row = {
        .coll = run->coll,
        .nodes = run->nodes,
        .gpus = run->gpus,
        .bytes = p->bytes,
        .us = p->us.value,
        .in_place = place,
    };
    enum bench_reason reason = run->reason;
    bool good = run->usable;

    if (good)
        good = printed_check(p, &reason);
    if (good && r->row.wrong[place]) {
        reason = BENCH_WRONG;
        good = false;
    }
    if (good && !printed_fits(p, run->coll, (double)run->nodes * run->gpus)) {
        reason = BENCH_BUSBW;
        good = false;
    }
    if (good)
        return bench_add(run->bench, &row, err);
    bench_drop(run->bench, reason, run->source, r->line, r->text);
    return 0;
}

static int hand_on(struct log_run *run, const struct run_row *r,
                   struct err *err)
{
    for (unsigned i = 0; i < r->row.placements; i++)
        if (hand_on_placement(run, r, i, err))
            return -1;
    return 0;
}

/* The median row's busbw / algbw of some of the rows. */
static double factor_between(struct log_run *run, size_t from, size_t to)
{
    struct log_run part = *run;

    part.rows = run->rows + from;
    part.row_count = to - from;
    return middle_factor(&part);
}

/* Where the next table begins that is of another job: sizes begin anew, and
 * busbw / algbw is that of other ranks. */
static size_t table_end(struct log_run *run)
{
    for (size_t i = 1, start = 0; i < run->row_count; i++) {
        size_t end = i + 1;

        if (run->rows[i].row.bytes >= run->rows[i - 1].row.bytes)
            continue;
        while (end < run->row_count &&
               run->rows[end].row.bytes >= run->rows[end - 1].row.bytes)
            end++;
        double before = factor_between(run, start, i);
        double after = factor_between(run, i, end);
        if (fabs(before - after) > 0.005 * before)
            return i;
    }
    return run->row_count;
}

/* What the list of devices said was of the table before. */
static void forget_devices(struct log_run *run)
{
    run->listed = run->highest = run->firsts = 0;
    run->zeros = run->devices = run->host_count = run->gpus_each = 0;
    run->elided = run->named = false;
}

int run_flush(struct log_run *run, struct err *err)
{
    int rc = 0;

    while (!run->resolved && run->row_count && !rc) {
        size_t all = run->row_count, end = table_end(run);

        run->row_count = end;
        run->usable = resolve_run(run, &run->reason);
        for (size_t i = 0; i < end && !rc; i++)
            rc = hand_on(run, &run->rows[i], err);
        memmove(run->rows, run->rows + end, (all - end) * sizeof *run->rows);
        run->row_count = all - end;
        if (run->row_count)
            bench_note(run->bench, "%s: line %llu begins another job's table",
                       run->source, (unsigned long long)run->rows[0].line);
        if (run->row_count)
            forget_devices(run);
    }
    run->resolved = true;
    for (size_t i = 0; i < run->row_count && !rc; i++)
        rc = hand_on(run, &run->rows[i], err);
    run->row_count = 0;
    return rc;
}

int run_add_row(struct log_run *run, const struct log_row *row, uint64_t line,
                const char *text, struct err *err)
{
    struct run_row *r = &run->rows[run->row_count++];

    r->row = *row;
    r->line = line;
    snprintf(r->text, sizeof r->text, "%s", text);
    if (run->resolved || run->row_count == RUN_ROWS)
        return run_flush(run, err);
    return 0;
}
