/* SPDX-License-Identifier: Apache-2.0
 * PyTorch keeps pinned memory that a tensor has freed and gives it to the next,
 * so that no call of CUDA's or of the C library's says so. Two functions of
 * libtorch_cpu.so make tensors of it, and the library calls them through its
 * table of imports, so that ours stand before them. Unpinned memory is freed
 * (torch.c). */
#include "capture/core/torch/host_tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/memory/values_return.h"
#include "capture/core/torch/torch_function.h"

/* at::detail::empty_cpu(IntArrayRef size, ScalarType, bool pin_memory,
 * optional<MemoryFormat>) and at::native::_pin_memory(const Tensor &,
 * optional<Device>). Each returns a tensor in memory that the caller gives
 * (aten/src/ATen/EmptyTensor.cpp, aten/src/ATen/native/Memory.cpp). */
#define EMPTY_CPU                                                              \
    "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEENS1_10ScalarTypeEb"             \
    "St8optionalINS1_12MemoryFormatEE"
#define PIN_MEMORY                                                             \
    "_ZN2at6native11_pin_memoryERKNS_6TensorESt8optionalIN3c106DeviceEE"

/* c10::ArrayRef<int64_t>, passed by value. */
struct int_array {
    const int64_t *data;
    size_t length;
};
/* std::optional of two bytes at most with its flag, in a register. */
typedef uint32_t small_optional;

/* AOTInductor's C functions (torch/csrc/inductor/aoti_torch/c/shim.h) take any
 * tensor, and their types do not change. */
void host_tensor_begins(const void *tensor)
{
    static int (*data_of)(const void *, void **);
    static int (*kind_of)(const void *, int32_t *);
    int32_t kind = -1;
    void *data = NULL;

    if (!values_return_any())
        return;
    if (!data_of) {
        *(void **)&kind_of =
            torch_function("libtorch_cpu.so", "aoti_torch_get_device_type");
        *(void **)&data_of =
            torch_function("libtorch_cpu.so", "aoti_torch_get_data_ptr");
    }
    if (data_of && kind_of && !kind_of(tensor, &kind) && kind == 0 /* CPU */ &&
        !data_of(tensor, &data))
        values_return_end((uint64_t)data);
}

void *torch_empty_cpu(void *result, struct int_array size, int8_t type,
                      bool pinned, small_optional format) __asm__(EMPTY_CPU);
CORE_API void *torch_empty_cpu(void *result, struct int_array size, int8_t type,
                               bool pinned, small_optional format)
{
    static __typeof__(&torch_empty_cpu) real;

    if (!real)
        real = (__typeof__(real))torch_function("libtorch_cpu.so", EMPTY_CPU);
    real(result, size, type, pinned, format);
    if (pinned)
        host_tensor_begins(result);
    return result;
}

void *torch_pin_memory(void *result, const void *self,
                       small_optional device) __asm__(PIN_MEMORY);
CORE_API void *torch_pin_memory(void *result, const void *self,
                                small_optional device)
{
    static __typeof__(&torch_pin_memory) real;

    if (!real)
        real = (__typeof__(real))torch_function("libtorch_cpu.so", PIN_MEMORY);
    real(result, self, device);
    host_tensor_begins(result);
    return result;
}
