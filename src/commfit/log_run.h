/* SPDX-License-Identifier: Apache-2.0
 * One run of an nccl-tests program inside a log: what it says about itself,
 * and its first rows, from which collective, ranks and nodes are made out. */
#ifndef MEMSIM_COMMFIT_LOG_RUN_H
#define MEMSIM_COMMFIT_LOG_RUN_H

#include "commfit/log_row.h"

#define RUN_ROWS  1024 /* kept until the run is made out */
#define RUN_HOSTS 16384

struct run_row {
    struct log_row row;
    uint64_t line;
    char text[80];
};

struct log_run {
    struct bench *bench;
    const char *source;
    bool named; /* COLL is what the program itself says */
    enum fit_coll coll;
    bool hinted; /* a command line above it names HINT */
    enum fit_coll hint;
    uint32_t gpus_each; /* nThread x nGpus: a process's GPUs */
    /* of the list of devices: */
    uint32_t listed;  /* lines */
    uint32_t highest; /* rank, + 1 */
    uint32_t firsts;  /* lines of rank 0: jobs that share the file */
    uint32_t zeros;   /* lines of device 0 */
    uint32_t devices; /* highest device, + 1 */
    bool elided;
    bool over; /* its last line has come */
    uint64_t *hosts; /* hashes of distinct names */
    uint32_t host_count;
    /* once made out: */
    bool resolved;
    bool usable;
    enum bench_reason reason; /* where it is not */
    uint32_t nodes, gpus;
    struct run_row *rows;
    size_t row_count;
};

void run_init(struct log_run *run, struct bench *bench, const char *source);
void run_fini(struct log_run *run);

/* Begins anew. */
void run_reset(struct log_run *run);

void run_add_device(struct log_run *run, uint32_t rank, uint32_t device,
                    const char *host);

/* Takes a row; after RUN_ROWS of them the run is made out and rows go on to
 * the bench. Returns 0 or -1. */
int run_add_row(struct log_run *run, const struct log_row *row, uint64_t line,
                const char *text, struct err *err);

/* Makes the run out, if it was not, and hands its rows on. Returns 0 or -1. */
int run_flush(struct log_run *run, struct err *err);

#endif
