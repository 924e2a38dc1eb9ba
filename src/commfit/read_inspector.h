/* SPDX-License-Identifier: Apache-2.0
 * What NCCL's Inspector writes of a running job (NVIDIA/nccl,
 * plugins/profiler/inspector): JSON objects, one a collective, or Prometheus
 * text. */
#ifndef MEMSIM_COMMFIT_READ_INSPECTOR_H
#define MEMSIM_COMMFIT_READ_INSPECTOR_H

#include "commfit/read.h"

/* Whether a file that begins with HEAD is one of either kind. */
bool inspector_is_json(const char *head);
bool inspector_is_text(const char *head);

/* Reads a stream of JSON objects, on lines or not. Times are of one rank each:
 * of equal calls the fastest counts, which waited for nobody. Returns 0, or -1
 * where it cannot be read. */
int read_inspector_json(struct bench *b, FILE *file, const char *path,
                        const char *source, struct err *err);

/* Reads Prometheus text: the size is what bandwidth and time say together, as
 * the text has a range alone. */
int read_inspector_text(struct bench *b, struct lines *lines, struct err *err);

#endif
