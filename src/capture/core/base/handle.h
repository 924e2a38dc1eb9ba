/* SPDX-License-Identifier: Apache-2.0
 * The libraries' handles: pointers to objects in memsim's own pools. So a
 * stale, foreign or invented handle can be distinguished from a live one
 * without reading its memory. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_HANDLE_H
#define MEMSIM_CAPTURE_CORE_BASE_HANDLE_H

#include <stdbool.h>

#include "capture/core/base/core.h"

enum handle_kind {
    HANDLE_CONTEXT = 1,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_KERNEL,
    HANDLE_MODULE,
    HANDLE_POOL,
    HANDLE_CUBLAS,
    HANDLE_CUBLASLT,
    HANDLE_CUDNN,
    HANDLE_CURAND,
    HANDLE_CUFFT,
    HANDLE_CUSOLVER,
    HANDLE_CUSPARSE,
    HANDLE_NCCL,
    HANDLE_NCCL_WINDOW,
    HANDLE_NVRTC,
    HANDLE_DESCRIPTOR, /* any library's descriptor object */
    HANDLE_GRAPH,
    HANDLE_GRAPH_EXEC,
    HANDLE_PHYSICAL, /* cuMemCreate */
    HANDLE_FUNCTION, /* of a module loaded at run time */
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_BODY,
    HANDLE_GRAPH_WORK,
    HANDLE_LINK, /* the just-in-time linker */
    HANDLE_KINDS,
};

#define HANDLE_BYTES_MAX 496 /* with its slot's head, a power of two */

/* A zeroed object of BYTES (at most HANDLE_BYTES_MAX), or NULL where host
 * address space has run out. */
CORE_API void *memsim_handle_new(enum handle_kind kind, size_t bytes);

/* HANDLE where it is a live object of KIND, else NULL. Never faults. */
CORE_API void *memsim_handle_get(enum handle_kind kind, const void *handle);

/* True where HANDLE was a live object of KIND once, or is one. */
CORE_API bool memsim_handle_was(enum handle_kind kind, const void *handle);

/* Calls SEE for every live object of KIND, which it may end. */
CORE_API void memsim_handle_each(enum handle_kind kind,
                                 void (*see)(void *handle, void *data),
                                 void *data);

/* Ends a live object. Its slot is used again as late as possible, so that
 * later uses are detected. Returns 0 or CORE_INVALID_HANDLE. */
CORE_API int memsim_handle_free(enum handle_kind kind, void *handle);

#endif
