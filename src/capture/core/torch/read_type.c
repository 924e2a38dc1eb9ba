/* SPDX-License-Identifier: Apache-2.0
 * Two functions of PyTorch lead to every copy of a tensor to the host, and one
 * of its libraries calls them in another, so that ours stand before them. Both
 * are called by an operator (tag_operator.h), and what ours note holds for that
 * operator alone: a function that throws leaves it at the same time. */
#include "capture/core/torch/read_type.h"

#include <stdbool.h>

#include "capture/core/base/core.h"
#include "capture/core/torch/host_tensor.h"
#include "capture/core/torch/tag_operator.h"
#include "capture/core/torch/torch_function.h"

/* at::native::copy_(Tensor &self, const Tensor &source, bool),
 * at::native::_local_scalar_dense_cuda(const Tensor &self), which returns a
 * c10::Scalar in memory that the caller gives, and
 * at::native::result_type(const Tensor &, const Tensor &). */
#define COPY        "_ZN2at6native5copy_ERNS_6TensorERKS1_b"
#define SCALAR      "_ZN2at6native24_local_scalar_dense_cudaERKNS_6TensorE"
#define RESULT_TYPE "_ZN2at6native11result_typeERKNS_6TensorES3_"

/* What is copied now: the tensor, for as long as SERIAL's operator runs. */
static _Thread_local struct {
    const void *tensor;
    uint64_t serial;
} reading;

static void reading_set(const void *tensor)
{
    reading.serial = operator_serial();
    reading.tensor = reading.serial ? tensor : NULL;
}

/* Where types differ, PyTorch converts on the device first: what is copied has
 * the type of its destination (copy_kernel_cuda, aten/src/ATen/native/cuda/
 * Copy.cu). */
void *torch_copy(void *self, const void *source, bool is_async) __asm__(COPY);
CORE_API void *torch_copy(void *self, const void *source, bool is_async)
{
    static __typeof__(&torch_copy) real;

    if (!real)
        real = (__typeof__(real))torch_function("libtorch_cpu.so", COPY);
    host_tensor_begins(self);
    reading_set(self);
    void *result = real(self, source, is_async);
    reading.tensor = NULL;
    return result;
}

void *torch_scalar(void *result, const void *self) __asm__(SCALAR);
CORE_API void *torch_scalar(void *result, const void *self)
{
    static __typeof__(&torch_scalar) real;

    if (!real)
        real = (__typeof__(real))torch_function("libtorch_cuda.so", SCALAR);
    reading_set(self);
    real(result, self);
    reading.tensor = NULL;
    return result;
}

enum number_type torch_read_type(void)
{
    static int8_t (*result_type)(const void *, const void *);

    if (!reading.tensor || reading.serial != operator_serial())
        return NUMBER_NONE;
    if (!result_type)
        result_type = (__typeof__(result_type))torch_function("libtorch_cpu.so",
                                                              RESULT_TYPE);
    if (!result_type)
        return NUMBER_NONE;
    int type = result_type(reading.tensor, reading.tensor);
    return number_bytes((enum number_type)type) ? (enum number_type)type
                                                : NUMBER_NONE;
}
