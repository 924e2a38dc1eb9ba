/* SPDX-License-Identifier: Apache-2.0
 * What every library has for its handles, under names of its own. A library's
 * file says first what these rows are made with:
 *
 *   LIBRARY_STATUS     the type of what its functions return
 *   LIBRARY_HANDLE     the type of its handle
 *   LIBRARY_GET        the function that finds what a handle points to
 *   LIBRARY_OK         a status
 *   LIBRARY_NO_HANDLE  and what is returned for a handle that is none */
#ifndef MEMSIM_CAPTURE_CORE_WORK_LIBRARY_H
#define MEMSIM_CAPTURE_CORE_WORK_LIBRARY_H

#include "capture/core/work/stream.h"

/* The setter and the getter of a field. */
#define LIBRARY_FIELD(set_name, get_name, T, field)                            \
    LIBRARY_STATUS set_name(LIBRARY_HANDLE handle, T value)                    \
    {                                                                          \
        __typeof__(LIBRARY_GET(handle)) object = LIBRARY_GET(handle);          \
                                                                               \
        if (!object)                                                           \
            return LIBRARY_NO_HANDLE;                                          \
        object->field = value;                                                 \
        return LIBRARY_OK;                                                     \
    }                                                                          \
    LIBRARY_STATUS get_name(LIBRARY_HANDLE handle, T *value)                   \
    {                                                                          \
        __typeof__(LIBRARY_GET(handle)) object = LIBRARY_GET(handle);          \
                                                                               \
        if (!object)                                                           \
            return LIBRARY_NO_HANDLE;                                          \
        *value = object->field;                                                \
        return LIBRARY_OK;                                                     \
    }

/* Those of the stream that work goes to. */
#define LIBRARY_STREAM(set_name, get_name)                                     \
    LIBRARY_STATUS set_name(LIBRARY_HANDLE handle, cudaStream_t stream)        \
    {                                                                          \
        __typeof__(LIBRARY_GET(handle)) object = LIBRARY_GET(handle);          \
        int device;                                                            \
                                                                               \
        if (!object ||                                                         \
            memsim_stream_given((uint64_t)stream, &device, __func__))          \
            return LIBRARY_NO_HANDLE;                                          \
        object->stream = (uint64_t)stream;                                     \
        return LIBRARY_OK;                                                     \
    }                                                                          \
    LIBRARY_STATUS get_name(LIBRARY_HANDLE handle, cudaStream_t *stream)       \
    {                                                                          \
        __typeof__(LIBRARY_GET(handle)) object = LIBRARY_GET(handle);          \
                                                                               \
        if (!object || !stream)                                                \
            return LIBRARY_NO_HANDLE;                                          \
        *stream = (cudaStream_t)object->stream;                                \
        return LIBRARY_OK;                                                     \
    }

#endif
