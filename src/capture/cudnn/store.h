/* SPDX-License-Identifier: Apache-2.0
 * The backend API's descriptors: each a list of attributes, which are arrays of
 * one type. A descriptor lives as long as the program or another descriptor
 * holds it, as in cuDNN, where operation graphs outlive the handles through
 * which they were built. */
#ifndef MEMSIM_CAPTURE_CUDNN_STORE_H
#define MEMSIM_CAPTURE_CUDNN_STORE_H

#include "capture/cudnn/cudnn.h"

struct attribute {
    struct attribute *next;
    uint32_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    size_t capacity; /* of this block, as the arena says it */
    unsigned char values[] __attribute__((aligned(16)));
};

struct plan;

struct descriptor {
    uint32_t class; /* CLASS_BACKEND */
    cudnnBackendDescriptorType_t type;
    bool finalized;
    bool destroyed; /* by the program; others may still hold it */
    int tried;      /* of a variant pack: the fastest engine's speed */
    _Atomic uint32_t holders;
    struct attribute *first;
    struct plan *plan; /* of an execution plan, once finalized */
    size_t plan_capacity;
};

struct descriptor *descriptor_create(cudnnBackendDescriptorType_t type);

/* HANDLE's descriptor, or NULL where the program has no such one. */
struct descriptor *descriptor_get(const void *handle);

/* One holder less. */
void descriptor_release(struct descriptor *descriptor);

/* Bytes of one element of TYPE; 0 for what is no type. */
size_t attribute_element_bytes(cudnnBackendAttributeType_t type);

const struct attribute *descriptor_find(const struct descriptor *descriptor,
                                        cudnnBackendAttributeName_t name);

/* COUNT elements at VALUES in NAME's place. Descriptors among them must be
 * live; they gain a holder. */
cudnnStatus_t descriptor_set(struct descriptor *descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count,
                             const void *values);

/* Makes TO say what FROM says; finalized. */
cudnnStatus_t descriptor_copy(struct descriptor *to,
                              const struct descriptor *from);

/* What was set, or FALLBACK. */
int64_t descriptor_number(const struct descriptor *descriptor,
                          cudnnBackendAttributeName_t name, int64_t fallback);
double descriptor_real(const struct descriptor *descriptor,
                       cudnnBackendAttributeName_t name, double fallback);

/* Element INDEX of an array of descriptors; NULL where there is none. */
const struct descriptor *descriptor_child(const struct descriptor *descriptor,
                                          cudnnBackendAttributeName_t name,
                                          int64_t index);

#endif
