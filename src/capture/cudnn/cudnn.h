/* SPDX-License-Identifier: Apache-2.0
 * What the files of the fake cuDNN share: handles, descriptor objects, and the
 * way into the trace. */
#ifndef MEMSIM_CAPTURE_CUDNN_CUDNN_H
#define MEMSIM_CAPTURE_CUDNN_CUDNN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/run/record.h"
#include "capture/cudnn/text.h"

/* What a cudnnHandle_t points to. */
struct cudnn {
    int device;
    uint64_t stream;
};

/* HANDLE's, or NULL where it is not a live one. */
struct cudnn *cudnn_get(cudnnHandle_t handle);

/* A core status as cuDNN says it. */
cudnnStatus_t cudnn_status(int rc);

/* Every descriptor object starts with its class, so that one class passed for
 * another is told apart. */
enum cudnn_class {
    CLASS_BACKEND = 0x4e4401, /* far from other libraries' small numbers */
    CLASS_TENSOR,
    CLASS_FILTER,
    CLASS_CONVOLUTION,
    CLASS_ACTIVATION,
    CLASS_DROPOUT,
    CLASS_POOLING,
    CLASS_CTC,
    CLASS_RNN,
    CLASS_RNN_DATA,
    CLASS_TRANSFORMER,
};

/* A zeroed object of BYTES in *OBJECT, behind the API's own pointer type. */
cudnnStatus_t cudnn_object_create(enum cudnn_class class, size_t bytes,
                                  void *object);
cudnnStatus_t cudnn_object_destroy(enum cudnn_class class, void *object);

/* OBJECT where it is a live one of CLASS, else NULL. */
void *cudnn_object_get(enum cudnn_class class, const void *object);

/* Bytes of one element; 0 for what is no type. Types of less than a byte
 * count as one. */
uint32_t cudnn_type_bytes(cudnnDataType_t type);

/* "half", "float", ...; "?" for what is no type. */
const char *cudnn_type_name(cudnnDataType_t type);

/* The trace's LIBRARY_CALL. VALUES are its six numbers. */
struct cudnn_call {
    uint32_t name;
    uint64_t workspace_bytes;
    uint64_t values[6];
    struct text detail;
};

void cudnn_call_record(const struct cudnn *cudnn,
                       const struct cudnn_call *call);

/* The same for a pass over memory: its values are BYTES read and written. */
cudnnStatus_t cudnn_pass_record(cudnnHandle_t handle, uint32_t name,
                                const uint64_t bytes[2],
                                const struct text *detail);

#endif
