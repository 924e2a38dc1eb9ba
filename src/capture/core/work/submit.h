/* SPDX-License-Identifier: Apache-2.0
 * All work that a program submits to a device, and the calls that order it
 * (events, waits, synchronisations), pass here. If the stream is captured, the
 * work becomes a node of the graph. It is recorded, and the record also goes
 * to the simulation (run/live.h). */
#ifndef MEMSIM_CAPTURE_CORE_WORK_SUBMIT_H
#define MEMSIM_CAPTURE_CORE_WORK_SUBMIT_H

#include "capture/core/base/core.h"
#include "capture/core/base/launch.h"
#include "common/trace/trace.h"

/* Submits a record of KIND that op_of_record() knows, with FIELDS, all of its
 * kind's, and a text. */
CORE_API void memsim_submit(enum trace_kind kind, const uint64_t *fields,
                            size_t count, const char *text, size_t text_bytes);

/* SUBMIT(COPY, .device = d, .stream = s, ...): as RECORD, of what is work. */
#define SUBMIT(kind, ...)                                                      \
    memsim_submit(TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),                \
                  TRACE_WORD_COUNT(kind), NULL, 0)
#define SUBMIT_TEXT(kind, text, text_bytes, ...)                               \
    memsim_submit(TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),                \
                  TRACE_WORD_COUNT(kind), text, text_bytes)

/* The same for L, a launch on DEVICE of the kernel known as NAME, of whose
 * arguments RULE says what WORDS are. */
void submit_launch(uint32_t name, int device, const struct kernel_launch *l,
                   enum trace_rule rule,
                   const uint64_t words[TRACE_LAUNCH_WORDS]);

#endif
