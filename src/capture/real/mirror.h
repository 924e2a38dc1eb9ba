/* SPDX-License-Identifier: Apache-2.0
 * The descriptors of cuDNN's backend API as the program has set them: each of
 * the real ones has a mirror (capture/cudnn/store.h), as cuDNN does not tell
 * what an operation graph is made of. */
#ifndef MEMSIM_CAPTURE_REAL_MIRROR_H
#define MEMSIM_CAPTURE_REAL_MIRROR_H

#include "capture/cudnn/plan.h"

/* The mirror of the real descriptor HANDLE; NULL: it has none, as there was no
 * room for it. */
struct descriptor *mirror_of(cudnnBackendDescriptor_t handle);

void mirror_create(cudnnBackendDescriptor_t handle,
                   cudnnBackendDescriptorType_t type);
void mirror_destroy(cudnnBackendDescriptor_t handle);

/* COUNT elements at VALUES, of which descriptors are real ones. */
void mirror_set(cudnnBackendDescriptor_t handle,
                cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count,
                const void *values);

/* The heuristics HANDLE have filled the COUNT CONFIGURATIONS: they are of its
 * graph. */
void mirror_results(cudnnBackendDescriptor_t handle, int64_t count,
                    const cudnnBackendDescriptor_t *configurations);

/* The execution plan HANDLE is finalized and asks for WORKSPACE_BYTES: what it
 * does is what mirror_of(HANDLE)->plan says from now on. Its engine is the
 * mirror's CUDNN_ATTR_ENGINE_GLOBAL_INDEX, an enum convolution_engine. */
void mirror_plan(cudnnBackendDescriptor_t handle, uint64_t workspace_bytes);

#endif
