/* SPDX-License-Identifier: Apache-2.0
 * What benchmarks measured, gathered from any number of files: for each
 * collective, node count, width, size and placement its times. Memory is
 * bounded by the number of such points, not by the length of the files. */
#ifndef MEMSIM_COMMFIT_BENCH_H
#define MEMSIM_COMMFIT_BENCH_H

#include "common/base/err.h"
#include "runtime/nccl/fit.h"

#include <stdint.h>
#include <stdio.h>

#define BENCH_SAMPLES     256 /* kept of one point, the rest by chance */
#define BENCH_POINTS_MAX  (1u << 20)
#define BENCH_DROPS_SHOWN 20

/* Whether US can have been measured: 1 ns to 30 years. */
static inline bool bench_is_time(double us)
{
    return us >= 1e-3 && us <= 1e15;
}

struct bench_point {
    enum fit_coll coll;
    uint32_t nodes;
    uint32_t gpus; /* a node */
    uint64_t bytes;
    bool in_place;
    bool by_rank;   /* samples are single ranks' or iterations' times */
    uint64_t count; /* measured */
    uint32_t kept;
    uint32_t capacity;
    double *us;
};

/* Why a row does not count. */
enum bench_reason {
    BENCH_UNREADABLE, /* not the columns of a table */
    BENCH_NOT_FINITE, /* N/A, nan, inf */
    BENCH_NO_TIME,  /* no bench_is_time() */
    BENCH_EMPTY,    /* size 0: nothing was sent */
    BENCH_WRONG,    /* the program itself found wrong results */
    BENCH_ALGBW,    /* algbw is not size / time */
    BENCH_UNITS,    /* ... by a factor that units would explain */
    BENCH_BUSBW,    /* busbw / algbw fits no, or another, rank count */
    BENCH_WORLD,    /* ranks do not divide over the nodes */
    BENCH_ONE_RANK, /* nothing is communicated */
    BENCH_UNKNOWN,  /* the collective cannot be told */
    BENCH_ALONE,    /* the only size of its curve */
    BENCH_REASONS,
};

struct bench_drop {
    enum bench_reason reason;
    uint64_t line;
    char source[64];
    char text[80];
};

struct bench {
    struct bench_point *points;
    size_t point_count, point_capacity;
    uint32_t *slots; /* open addressing over points; index + 1 */
    size_t slot_count;
    uint64_t rows; /* taken */
    uint64_t dropped[BENCH_REASONS];
    struct bench_drop drops[BENCH_DROPS_SHOWN]; /* the first lines */
    uint32_t drops_shown;
    uint64_t drops_told; /* rows that those lines hold */
    uint64_t drop_count;
    uint64_t random; /* state; fixed seed */
    char gpu[64];    /* the first that a file names */
    uint32_t node_gpus; /* of a node, where a file does not say; 8 */
    bool takes_simulated; /* files that memsim made, too */
    struct bench_note {
        char text[160];
    } notes[16];       /* assumptions made while reading */
    char failure[160]; /* what a run that failed said first, or empty */
    size_t note_count;
    char sources[64][64]; /* base names of the files */
    size_t source_count;
};

/* One measurement, as it stands in a file. */
struct bench_row {
    enum fit_coll coll;
    uint32_t nodes, gpus;
    uint64_t bytes;
    double us;
    bool in_place;
    bool by_rank;
};

void bench_init(struct bench *b);
void bench_fini(struct bench *b);

/* Takes ROW in. Returns 0, or -1 where there are too many different points. */
int bench_add(struct bench *b, const struct bench_row *row, struct err *err);

/* Remembers that LINE of SOURCE does not count. TEXT may hold anything. */
void bench_drop(struct bench *b, enum bench_reason reason, const char *source,
                uint64_t line, const char *text);

/* Remembers an assumption, once. */
void bench_note(struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* FILE has the mark of common/base/simulated.h: a note, or -1 with ERR set. */
int bench_simulated(struct bench *b, const char *file, struct err *err);

/* Remembers that a run ended early, as LINE of SOURCE says in TEXT. */
void bench_fail(struct bench *b, const char *source, uint64_t line,
                const char *text);

/* Sorts the points by collective, width, nodes, size and placement; nothing
 * can be added afterwards. */
void bench_sort(struct bench *b);

/* Sorts COUNT times or errors, the least first. */
void bench_sort_values(double *values, size_t count);

/* Reads PATH ("-": standard input), whatever it is: also compressed by gzip,
 * and of a directory every file that holds rows. Returns 0, or -1 where there
 * is no usable row. */
int bench_read(struct bench *b, const char *path, struct err *err);

const char *bench_reason_text(enum bench_reason reason);

#endif
