/* SPDX-License-Identifier: Apache-2.0
 * What a run came to. The command's own status is not enough: a pipe, a script
 * and a launcher hide that a process below them failed. */
#ifndef MEMSIM_MEMSIM_RESULT_RESULT_VERDICT_H
#define MEMSIM_MEMSIM_RESULT_RESULT_VERDICT_H

#include "memsim/result/result.h"

/* Sets R's verdict, exit status, failures and count of refused requests; its
 * ranks are known. */
void result_verdict_reach(struct result *r, const struct session *s);

/* R's memory is known, and does not decide, for WHY (borrowed). */
void result_verdict_unknown(struct result *r, const char *why);

/* Whether the figures of R are those of all that was to be run. */
bool result_is_whole(const struct result *r);

/* Whether the last refusal of process P is what it, or the command, failed
 * of; the verdict is reached. */
bool result_process_is_fatal(const struct result *r, const struct session *s,
                             const struct session_process *p);

/* A gate that measured nothing is not passed. */
bool result_is_unmeasured(const struct result *r, const struct session *s);

/* The failure that makes R's verdict where the command hides it, or NULL. */
const struct result_failure *result_failure_decisive(const struct result *r);

/* Notes of the processes that failed. */
void result_failure_notes(struct result *r);

#endif
