/* SPDX-License-Identifier: Apache-2.0
 * The code that the fake libraries share: libmemsim.so. Its functions return
 * the codes that have the same number in the runtime (cudaError_t) and in the
 * driver (CUresult); each library maps the few that differ.
 *
 * Rules of this folder: no exit, abort or print to stdout; no malloc (the heap
 * is the user's and may be interposed: handles and tables come from mmap);
 * safe from any thread, and in a forked child. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_CORE_H
#define MEMSIM_CAPTURE_CORE_BASE_CORE_H

#include <stddef.h>
#include <stdint.h>

#define CORE_API __attribute__((visibility("default")))

enum core_status {
    CORE_OK = 0,
    CORE_INVALID_VALUE = 1,
    CORE_OUT_OF_MEMORY = 2,
    CORE_NOT_INITIALIZED = 3, /* also: in a child forked after the start */
    CORE_INVALID_CONFIGURATION = 9, /* the driver answers 1 */
    CORE_INVALID_PITCH = 12,        /* likewise */
    CORE_INVALID_DIRECTION = 21,    /* likewise */
    CORE_NO_DEVICE = 100,
    CORE_INVALID_DEVICE = 101,
    CORE_INVALID_CONTEXT = 201,
    CORE_NO_KERNEL_IMAGE = 209,
    CORE_UNSUPPORTED_LIMIT = 215,
    CORE_PEER_UNSUPPORTED = 217,
    CORE_INVALID_HANDLE = 400,
    CORE_ILLEGAL_STATE = 401,
    CORE_NOT_FOUND = 500,
    CORE_NOT_READY = 600,
    CORE_ILLEGAL_ADDRESS = 700,
    CORE_PEER_ENABLED = 704,
    CORE_PEER_NOT_ENABLED = 705,
    CORE_CONTEXT_DESTROYED = 709, /* also: a handle used after its end */
    CORE_ASSERT = 710,
    CORE_HOST_REGISTERED = 712,
    CORE_HOST_NOT_REGISTERED = 713,
    CORE_COOPERATIVE_TOO_LARGE = 720,
    CORE_NOT_SUPPORTED = 801,
    CORE_CAPTURE_UNSUPPORTED = 900,
    CORE_CAPTURE_INVALIDATED = 901,
    CORE_CAPTURE_MERGE = 902,
    CORE_CAPTURE_UNMATCHED = 903,
    CORE_CAPTURE_UNJOINED = 904,
    CORE_CAPTURE_ISOLATION = 905,
    CORE_CAPTURE_IMPLICIT = 906,
    CORE_CAPTURED_EVENT = 907,
    CORE_CAPTURE_WRONG_THREAD = 908,
    CORE_GRAPH_UPDATE_FAILURE = 910,
};

#endif
