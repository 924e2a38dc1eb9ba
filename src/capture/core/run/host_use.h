/* SPDX-License-Identifier: Apache-2.0
 * What this process has of the host's memory, as the job would have it on a
 * machine with GPUs.
 *
 * memsim leaves out much of a job's work on the host: initial values are not
 * drawn, copies from the GPU are not carried out, a checkpoint is mapped. So a
 * page of a tensor is often not in memory, and would be in a real job. What is
 * known (tensors of 1 MiB and more, pinned memory) counts with all its bytes;
 * of the rest counts what is resident:
 *
 *     peak = resident - (pages of known ranges that are) + (known ranges)
 *
 * The resident pages are looked at when that would be a higher peak and the
 * known ranges are a sixteenth more than at the last look, or a 64th where the
 * heap has much that is free, and from time to time; in between, the rest is
 * what it was. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_HOST_USE_H
#define MEMSIM_CAPTURE_CORE_RUN_HOST_USE_H

#include <stdint.h>

#include "capture/core/base/core.h"
#include "common/trace/session.h"

/* BYTES at ADDRESS are in use as KIND from now on, and not any more. Unknown
 * addresses are ignored. */
CORE_API void memsim_host_takes(enum session_host_kind kind, uint64_t address,
                                uint64_t bytes);
CORE_API void memsim_host_gives(uint64_t address);

/* The process has its parameters, gradients and optimizer state on the host:
 * so many bytes of each (objects.py). */
CORE_API void memsim_host_state(uint64_t parameters, uint64_t gradients,
                                uint64_t optimizer);

/* This process does what is no work of the job: it does not count (scan.py). */
CORE_API void memsim_host_leave(void);

/* Bytes in use as KIND at present. */
uint64_t host_use_level(enum session_host_kind kind);

/* A round ends, and the next one begins (kept.h). Returns the bytes of tensors
 * that have outlived it: what was made in it, as a batch for the next one, is
 * not among them. */
uint64_t host_use_round(void);

/* This process is to be counted, though it may have no tensor. */
void host_use_join(void);

/* For process.c: it is in SESSION; it ends; it is a child that was forked. */
void host_use_begin(struct session *session);
void host_use_end(void);
void host_use_after_fork(void);
/* What this process shares with the one that it was forked from is its own. */
void host_use_alone(void);

#endif
