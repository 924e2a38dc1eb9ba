/* SPDX-License-Identifier: Apache-2.0
 * What collectives take on a cluster: a table over sizes, node counts and
 * widths, for people, as JSON and as a plot. */
#ifndef MEMSIM_COMMFIT_PREDICT_H
#define MEMSIM_COMMFIT_PREDICT_H

#include <stdio.h>

#include "common/base/err.h"
#include "runtime/nccl/cost_nccl.h"

struct cJSON;

#define PREDICT_LIST_MAX 256 /* sizes, node counts, widths: each */

/* Numbers of one kind: "64", "1,2,8", "1..64" (doubling). */
struct predict_list {
    size_t count;
    double values[PREDICT_LIST_MAX];
};

struct predict_request {
    enum fit_coll coll;
    struct predict_list bytes, nodes, gpus;
    enum fit_model model;
    enum cost_algo algo;
    double quantile, users;
    bool in_place;
};

/* One line of the table. */
struct prediction {
    enum fit_coll coll;
    double bytes;
    uint32_t nodes, gpus;
    struct cost_nccl_answer answer;
    double busbw_gbps;
    bool answered; /* false: the fit has nothing that could */
};

struct predictions {
    size_t count;
    struct prediction *items;
};

/* Reads TEXT into *LIST; IS_SIZE: with units. WHAT is for the message. Returns
 * 0 or -1. */
int predict_list_read(const char *what, const char *text, bool is_size,
                      struct predict_list *list, struct err *err);

/* Answers REQUEST for each width, node count and size, in this order. The
 * caller frees OUT->items. */
void predict_all(const struct fit *fit, const struct predict_request *request,
                 struct predictions *out);

/* The table, and what its notes mean. */
void predict_print(const struct predictions *p, const char *cluster, FILE *out);

/* {"schema", "cluster", "predictions": [...]}; the caller deletes it. */
struct cJSON *predict_to_json(const struct predictions *p, const char *cluster);

/* One of PREDICTIONS alone. */
struct cJSON *prediction_to_json(const struct prediction *p);

/* Time and bus bandwidth against size, or against the node count where that
 * varies alone. Returns 0 or -1. */
int predict_plot(const struct predictions *p, const char *cluster,
                 const char *path, struct err *err);

#endif
