/* SPDX-License-Identifier: Apache-2.0
 * A job on several GPUs, a row for each: does it fit, how fast, for how
 * much. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_GPU_TABLE_H
#define MEMSIM_MEMSIM_REPORT_TEXT_GPU_TABLE_H

#include "memsim/report/report.h"
#include "memsim/report/text/time_report.h"

/* The job on one GPU. Bytes are those of the fullest GPU of the job. */
struct gpu_row {
    struct gpu gpu;
    enum verdict verdict;
    int exit_status; /* of a replay on this GPU alone */
    uint64_t used_bytes, headroom_bytes;
    uint64_t lasts_steps; /* where memory grows, at least; 0: it does not */
    uint64_t step_ns, low_ns, high_ns; /* 0: not known */
    struct time_rate rate;
    enum cost_basis basis; /* of most of the device time, if a step is known */
    bool kernels_differ;   /* PyTorch has others on it: figures are guesses */
    bool waits_for_cpu;    /* the step is not the GPU's time alone */
    double price;          /* for an hour of one GPU; 0: not known */
};

/* Rows that fit come first, the cheapest for the work or else the fastest
 * first. */
struct gpu_table {
    struct gpu_row *rows;
    size_t count, capacity;
    bool no_steps; /* the recording has none: where it fits is unknown */
    size_t without_code;  /* GPUs that the job has no code for: no rows */
    size_t without_price; /* of no known price, where there is a budget */
    size_t over_budget;
    uint32_t gpus;        /* that the job uses */
    bool has_prices;
    char *const *command; /* of memsim */
    int exit_status;
};

/* What RESULT comes to on GPU, whose hour costs PRICE (0: not known). */
void gpu_table_add(struct gpu_table *t, const struct result *result,
                   const struct gpu *gpu, double price, bool kernels_differ);

/* What a step of the whole job costs on ROW's GPU; 0: not known. */
double gpu_row_step_price(const struct gpu_table *t, const struct gpu_row *row);

/* To be called after the last row: puts them in order. */
void gpu_table_sort(struct gpu_table *t);
void gpu_table_fini(struct gpu_table *t);

/* For people, at most 80 columns wide. */
void gpu_table_text(const struct gpu_table *t, const struct report_style *style,
                    FILE *out);

/* For file_write; TABLE is a struct gpu_table. */
void gpu_table_json(const void *table, FILE *out);

#endif
