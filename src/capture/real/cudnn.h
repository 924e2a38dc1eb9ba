/* SPDX-License-Identifier: Apache-2.0
 * What the taps of cuDNN share. */
#ifndef MEMSIM_CAPTURE_REAL_CUDNN_H
#define MEMSIM_CAPTURE_REAL_CUDNN_H

#include "capture/cudnn/cudnn.h"
#include "capture/cudnn/convolution.h"
#include "capture/real/tap.h"

/* Where HANDLE's work goes. Says of which call the next record is; false where
 * the thread has no context: then there is none. */
bool cudnn_tap_begin(const struct real_call *call, cudnnHandle_t handle,
                     struct cudnn *at);

/* The stream of HANDLE's work. */
uint64_t cudnn_stream(cudnnHandle_t handle);

/* What the real TENSOR says; without dimensions where it says nothing. */
struct shape cudnn_real_shape(cudnnTensorDescriptor_t tensor);

#endif
