/* SPDX-License-Identifier: Apache-2.0
 * Dropout descriptors, whose states live in the program's memory. */
#include "capture/core/memory/device.h"
#include "capture/cudnn/cudnn.h"

struct dropout {
    uint32_t class; /* CLASS_DROPOUT */
    float probability;
    void *states;
    unsigned long long seed;
};

/* One XORWOW generator of cuRAND (curand_kernel.h, 48 bytes) for each of 1024
 * threads of every SM. A model: no measured size is published beyond "a few
 * MBs" (awslabs/raf#39). */
#define GENERATOR_BYTES   48
#define GENERATORS_PER_SM 1024

static size_t states_bytes(void)
{
    return (size_t)memsim_device_gpu()->sm_count * GENERATORS_PER_SM *
           GENERATOR_BYTES;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *descriptor)
{
    return cudnn_object_create(CLASS_DROPOUT, sizeof(struct dropout),
                               descriptor);
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t descriptor)
{
    return cudnn_object_destroy(CLASS_DROPOUT, descriptor);
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    if (!cudnn_get(handle) || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    *bytes = states_bytes();
    return CUDNN_STATUS_SUCCESS;
}

/* Without states the descriptor keeps those it has. */
static cudnnStatus_t dropout_set(cudnnDropoutDescriptor_t descriptor,
                                 cudnnHandle_t handle, float probability,
                                 void *states, size_t bytes,
                                 unsigned long long seed)
{
    struct dropout *dropout = cudnn_object_get(CLASS_DROPOUT, descriptor);

    if (!dropout || !cudnn_get(handle) || probability < 0 || probability > 1)
        return CUDNN_STATUS_BAD_PARAM;
    if (states && bytes < states_bytes())
        return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
    dropout->probability = probability;
    dropout->seed = seed;
    if (states)
        dropout->states = states;
    return CUDNN_STATUS_SUCCESS;
}

/* Fills the states, by a kernel. */
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
                                        cudnnHandle_t handle, float probability,
                                        void *states, size_t bytes,
                                        unsigned long long seed)
{
    cudnnStatus_t status =
        dropout_set(descriptor, handle, probability, states, bytes, seed);
    struct cudnn_call call = {.name = NAME_OF("dropout states"),
                              .values = {0, bytes}};

    if (!status && states)
        cudnn_call_record(cudnn_get(handle), &call);
    return status;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
                                            cudnnHandle_t handle,
                                            float probability, void *states,
                                            size_t bytes,
                                            unsigned long long seed)
{
    return dropout_set(descriptor, handle, probability, states, bytes, seed);
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
                                        cudnnHandle_t handle,
                                        float *probability, void **states,
                                        unsigned long long *seed)
{
    const struct dropout *dropout = cudnn_object_get(CLASS_DROPOUT, descriptor);

    if (!dropout || !cudnn_get(handle) || !probability || !states || !seed)
        return CUDNN_STATUS_BAD_PARAM;
    *probability = dropout->probability;
    *states = dropout->states;
    *seed = dropout->seed;
    return CUDNN_STATUS_SUCCESS;
}
