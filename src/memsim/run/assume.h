/* SPDX-License-Identifier: Apache-2.0
 * --assume: what single lines of a program read from the GPU. */
#ifndef MEMSIM_MEMSIM_RUN_ASSUME_H
#define MEMSIM_MEMSIM_RUN_ASSUME_H

#include "common/base/err.h"
#include "common/trace/session.h"

/* Reads TEXT, "train.py:12=0.01,model.py:40=3", into SESSION; NULL: nothing.
 * Returns 0, or -1 with ERR set. */
int assume_parse(const char *text, struct session *session, struct err *err);

/* Leaves a note in SESSION, of a run that has ended, for each line that read
 * nothing unknown. */
void assume_unused(struct session *session);

#endif
