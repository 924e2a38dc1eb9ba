/* SPDX-License-Identifier: Apache-2.0
 * Which GPU is whose: the ones that a rank has for itself, and those of other
 * ranks that it puts memory on. */
#ifndef MEMSIM_MEMSIM_RESULT_RESULT_CARDS_H
#define MEMSIM_MEMSIM_RESULT_RESULT_CARDS_H

#include "memsim/result/result.h"

/* Whether CARD is the GPU that P, one of several ranks, has for itself. */
bool result_is_own_card(const struct session *s,
                        const struct session_process *p, unsigned card);

/* Fills in, for each GPU of R, the processes that used it in the time of its
 * own process. */
void result_others_collect(struct result *r, const struct session *s);

/* What they are, in TEXT: "7 other processes on the GPU (python)". */
const char *result_others_text(const struct result_device *device, char *text,
                               size_t size);

/* Fills R's strays: ranks that use the GPU of another rank, which uses it, too,
 * or was not run. */
void result_strays_collect(struct result *r, const struct session *s);

/* Whether ranks that were not run have memory on a GPU that is not theirs: then
 * no peak is known. */
bool result_strays_hide(const struct result *r, const struct session *s);

/* Notes of the strays. */
void result_strays_note(struct result *r);

#endif
