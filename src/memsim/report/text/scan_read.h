/* SPDX-License-Identifier: Apache-2.0
 * What --scan-data found in the data loaders of a run: the file SESSION_SCAN,
 * which capture/py/scan.py writes. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_SCAN_READ_H
#define MEMSIM_MEMSIM_REPORT_TEXT_SCAN_READ_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* How the inputs of the model that learns relate to a loader's batches. */
enum scan_state {
    SCAN_UNUSED,  /* no model that learns was called with them */
    SCAN_SAME,    /* they are as large */
    SCAN_SHIFTED, /* samples have SHIFT tokens more */
    SCAN_OTHER,   /* otherwise */
    SCAN_STATES,
};

struct scan_most {
    uint64_t n;     /* 0: not known */
    int64_t batch;  /* of the first epoch, from 0; -1: of a later one */
    int64_t sample; /* its index in the data set; -1: not known */
};

struct scan {
    uint32_t pid, loader;
    enum scan_state state;
    int64_t shift;
    uint64_t batches, read, total; /* samples; total 0: not known */
    struct scan_most most[PEAK_LAW_DIMENSIONS]; /* of the loader's batches */
    char lacks[256]; /* why not all was read; "": it was */
};

/* Reads what the run in DIRECTORY has; the caller frees R's scans. */
void scan_read(struct result *r, const char *directory);

/* R's largest input becomes that of its loaders (--worst-batch). */
void scan_want(struct result *r);

void scan_text_write(const struct result *r, FILE *out);
void scan_json_add(cJSON *root, const struct result *r);

#endif
