/* SPDX-License-Identifier: Apache-2.0
 * Two functions of PyTorch's libtorch_cpu.so make the storage of almost every
 * tensor on a GPU (aten/src/ATen/EmptyTensor.cpp). Its libtorch_cuda.so calls
 * them, so that ours stand before them. They get the dimensions; the allocator,
 * which they call, gets only bytes. */
#include "capture/core/torch/shape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/base/core.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/torch_function.h"

/* at::detail::empty_generic(IntArrayRef size, Allocator *, DispatchKeySet,
 * ScalarType, optional<MemoryFormat>) and empty_strided_generic(IntArrayRef
 * size, IntArrayRef stride, Allocator *, DispatchKeySet, ScalarType). Each
 * returns a TensorBase in memory that the caller gives. */
#define EMPTY                                                                  \
    "_ZN2at6detail13empty_genericEN3c108ArrayRefIlEEPNS1_9AllocatorE"          \
    "NS1_14DispatchKeySetENS1_10ScalarTypeESt8optionalINS1_12MemoryFormatEE"
#define EMPTY_STRIDED                                                          \
    "_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_"               \
    "PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE"

#define DIMS        8
#define CACHE       256  /* a power of two */
#define SHAPES_MAX  100000 /* names of a process; later ones are not recorded */
#define SHAPE_BYTES 192
#define KEY_START   UINT64_C(0xcbf29ce484222325) /* as in common/base/hash.h */
#define KEY_PRIME   UINT64_C(0x100000001b3)

/* c10::ArrayRef<int64_t> and std::optional<c10::MemoryFormat>, passed by
 * value. */
struct int_array {
    const int64_t *data;
    size_t length;
};
struct memory_format {
    int8_t value;
    bool has_value;
};

/* By c10::ScalarType (torch/headeronly/core/ScalarType.h). */
static const struct {
    const char *name;
    uint8_t bytes;
} types[] = {
    [0] = {"uint8", 1},
    [1] = {"int8", 1},
    [2] = {"int16", 2},
    [3] = {"int32", 4},
    [4] = {"int64", 8},
    [5] = {"float16", 2},
    [6] = {"float32", 4},
    [7] = {"float64", 8},
    [8] = {"complex32", 4},
    [9] = {"complex64", 8},
    [10] = {"complex128", 16},
    [11] = {"bool", 1},
    [12] = {"qint8", 1},
    [13] = {"quint8", 1},
    [14] = {"qint32", 4},
    [15] = {"bfloat16", 2},
    [23] = {"float8_e5m2", 1},
    [24] = {"float8_e4m3fn", 1},
    [25] = {"float8_e5m2fnuz", 1},
    [26] = {"float8_e4m3fnuz", 1},
    [27] = {"uint16", 2},
    [28] = {"uint32", 4},
    [29] = {"uint64", 8},
    [44] = {"float8_e8m0fnu", 1},
};

/* What this thread makes, until the allocator is asked for it. A copy: where
 * there is no memory an exception passes here, and the caller's array ends. */
static _Thread_local struct {
    uint64_t bytes; /* 0: nothing */
    int64_t dims[DIMS];
    uint32_t count;
    uint32_t type;
} making;

/* The names that were given last. */
static _Thread_local struct {
    uint64_t key;
    uint32_t name;
} cache[CACHE];
static _Atomic uint32_t shapes;

/* STRIDES may be NULL: there are no gaps. */
static void making_set(struct int_array size, const int64_t *strides, int type)
{
    uint64_t elements = 1;

    making.bytes = 0;
    if (size.length > DIMS || type < 0 ||
        (size_t)type >= sizeof types / sizeof *types || !types[type].name)
        return;
    for (size_t i = 0; i < size.length; i++) {
        if (size.data[i] <= 0)
            return;
        making.dims[i] = size.data[i];
        if (strides)
            elements += (uint64_t)((size.data[i] - 1) * strides[i]);
        else
            elements *= (uint64_t)size.data[i];
    }
    making.count = (uint32_t)size.length;
    making.type = (uint32_t)type;
    making.bytes = elements * types[type].bytes;
}

static uint32_t making_name(void)
{
    char text[SHAPE_BYTES];
    int n = snprintf(text, sizeof text, "%s", types[making.type].name);

    for (uint32_t i = 0; i < making.count && n < (int)sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%c%ld", i ? 'x' : ' ',
                      (long)making.dims[i]);
    if (n >= (int)sizeof text || shapes >= SHAPES_MAX)
        return 0;
    shapes++;
    return memsim_name(text);
}

/* Different shapes share a key by chance once in 2^64. */
static uint64_t making_key(void)
{
    uint64_t key = (KEY_START ^ making.type) * KEY_PRIME;

    for (uint32_t i = 0; i < making.count; i++) {
        key = (key ^ (uint64_t)making.dims[i]) * KEY_PRIME;
        key ^= key >> 32;
    }
    return key ? key : 1;
}

uint32_t shape_take(uint64_t bytes)
{
    uint64_t wanted = making.bytes;

    making.bytes = 0;
    if (!wanted || wanted != bytes)
        return 0;
    uint64_t key = making_key();
    size_t place = key % CACHE;
    if (cache[place].key != key) {
        cache[place].name = making_name();
        cache[place].key = key;
    }
    return cache[place].name;
}

void *torch_empty(void *result, struct int_array size, void *allocator,
                  uint64_t keys, int8_t type,
                  struct memory_format format) __asm__(EMPTY);
CORE_API void *torch_empty(void *result, struct int_array size, void *allocator,
                           uint64_t keys, int8_t type,
                           struct memory_format format)
{
    static __typeof__(&torch_empty) real;

    if (!real)
        real = (__typeof__(real))torch_function("libtorch_cpu.so", EMPTY);
    making_set(size, NULL, type);
    real(result, size, allocator, keys, type, format);
    making.bytes = 0;
    return result;
}

void *torch_empty_strided(void *result, struct int_array size,
                          struct int_array stride, void *allocator,
                          uint64_t keys, int8_t type) __asm__(EMPTY_STRIDED);
CORE_API void *torch_empty_strided(void *result, struct int_array size,
                                   struct int_array stride, void *allocator,
                                   uint64_t keys, int8_t type)
{
    static __typeof__(&torch_empty_strided) real;

    if (!real)
        real =
            (__typeof__(real))torch_function("libtorch_cpu.so", EMPTY_STRIDED);
    making_set(size, stride.data, type);
    real(result, size, stride, allocator, keys, type);
    making.bytes = 0;
    return result;
}
