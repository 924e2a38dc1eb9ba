/* SPDX-License-Identifier: Apache-2.0
 * Records in the trace the work that a vendor library does on a stream, and
 * sets the results of such work that the program can read. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_LIBRARY_CALL_H
#define MEMSIM_CAPTURE_CORE_WORK_LIBRARY_CALL_H

#include <stdbool.h>

#include "capture/core/base/core.h"

struct call {
    uint32_t name; /* a memsim_name() */
    uint64_t stream;
    uint64_t workspace_bytes;
    uint64_t values[6]; /* dimensions, types: what the library's file says */
};

/* Records the call. CORE_OK, or why the stream cannot take it. */
CORE_API int memsim_call(const struct call *call);

/* A program asked how much memory a library needs and was told BYTES. The GPU's
 * own answer is from LEAST to MOST bytes; the same: it is known. */
CORE_API void memsim_call_size(int device, uint64_t bytes, uint64_t least,
                               uint64_t most);

/* Whether there are workspaces that a run on a real GPU has shown. */
CORE_API bool memsim_workspaces_learnt(void);

/* What a real GPU's cuDNN asks for where memsim would say BYTES for the
 * convolution with that KEY (common/trace/convolution_key.h): as a run on one
 * has shown (`memsim run --corrections'), else BYTES. MEMSIM_WORKSPACES has it
 * by key and, for other convolutions, by size: "#KEY=REAL,BYTES=REAL,...". */
CORE_API uint64_t memsim_call_workspace(uint64_t key, uint64_t bytes);

/* A result that is not known, on the host or on a device: zeros. NULL is
 * nothing. For an info code, zero is success. */
CORE_API void memsim_call_result(void *result, uint64_t bytes);

/* Work on STREAM writes ROWS pieces of BYTES, STEP bytes apart, from ADDRESS
 * on, and what it writes is not known. */
CORE_API void memsim_call_writes(uint64_t stream, uint64_t address,
                                 uint64_t bytes, uint64_t rows, uint64_t step);

#endif
