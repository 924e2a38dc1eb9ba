/* SPDX-License-Identifier: Apache-2.0
 * DistributedDataParallel's buckets in a recording that is changed. A bucket's
 * all-reduce comes when its last gradient is ready, wherever that is:
 *
 *   backward  g g g [reduce] g g g g g [reduce] ...  wait copy copy  wait copy
 *
 * So the buckets are taken out, the rest is changed, and the buckets that DDP
 * makes of the changed gradients are put in. */
#ifndef MEMSIM_MEMSIM_CHANGE_BUCKETS_H
#define MEMSIM_MEMSIM_CHANGE_BUCKETS_H

#include "common/base/err.h"

struct buckets;

/* Takes the buckets out of the recording FROM and writes the rest to TO, a new
 * file. Returns 0 with *BUCKETS to be given to buckets_destroy, or NULL and no
 * file where FROM has none that follow DDP's rule; -1 with ERR set: FROM cannot
 * be read, or TO cannot be written. */
int buckets_take(const char *from, const char *to, struct buckets **buckets,
                 struct err *err);

/* Writes FROM, what was taken from TO's recording after its change, with
 * buckets, to TO, a new file. Returns 0, or -1 with ERR set. */
int buckets_put(const struct buckets *b, const char *from, const char *to,
                struct err *err);

void buckets_destroy(struct buckets *b);

#endif
