/* SPDX-License-Identifier: Apache-2.0
 * When PyTorch makes a tensor of host memory that it used before, or writes
 * one: what was noted of values that came there (values_return.h) ends. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_HOST_TENSOR_H
#define MEMSIM_CAPTURE_CORE_TORCH_HOST_TENSOR_H

/* TENSOR, an at::Tensor, is something else from now on. */
void host_tensor_begins(const void *tensor);

#endif
