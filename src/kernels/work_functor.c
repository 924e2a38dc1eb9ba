/* SPDX-License-Identifier: Apache-2.0
 * The operands of an elementwise kernel, from the functor in its name: what it
 * reads and writes for each element. PyTorch's files are named without their
 * folder, aten/src/ATen/native/cuda. */
#include <string.h>

#include "kernels/work_internal.h"

/* Where in the functor's template arguments the types of the operands are. */
enum { NO_TYPE = -1 };

static const struct functor {
    const char *base;
    int result;    /* index of the result's type */
    int inputs[3]; /* of the inputs' */
} functors[] = {
    /* Loops.cuh: <arg1, arg2, result, op>, one argument bound or none */
    {"AUnaryFunctor", 2, {1, NO_TYPE, NO_TYPE}},
    {"BUnaryFunctor", 2, {0, NO_TYPE, NO_TYPE}},
    {"BinaryFunctor", 2, {0, 1, NO_TYPE}},
    {"FillFunctor", 0, {NO_TYPE, NO_TYPE, NO_TYPE}}, /* FillKernel.cu */
    {"CUDAFunctor_add", 0, {0, 0, NO_TYPE}},         /* UfuncCUDA_add.cu */
    {"CUDAFunctorOnSelf_add", 0, {0, NO_TYPE, NO_TYPE}},
    {"CUDAFunctorOnOther_add", 0, {0, NO_TYPE, NO_TYPE}},
};

/* Functors that are lambdas: what they return is in no name. It is the type of
 * the first parameter that is no condition, except in these functions. */
static const struct {
    const char *function;
    uint8_t bytes;
} results[] = {
    {"bfloat16_copy_kernel", 2}, /* Copy.cu */
    {"bfloat16tofloat32_copy_kernel", 4},
    {"float16tofloat32_copy_kernel", 4},
    {"float16_copy_kernel", 2},
    {"float8_copy_kernel", 1},
    {"float8_e", 1},
    {"isneginf_kernel", 1}, /* UnarySignKernels.cu and kin */
    {"isposinf_kernel", 1},
    {"isnan_kernel", 1},
    {"signbit_kernel", 1},
    {"logical_not_kernel", 1},
    {"CompareFunctor", 1},
    {"compare_scalar_kernel", 1}, /* CompareKernels.cu */
    {"logical_and_kernel", 1},    /* BinaryLogicalOpsKernels.cu */
    {"logical_or_kernel", 1},
    {"logical_xor_kernel", 1},
};

static void set_operand(struct work_kernel *kernel, unsigned i,
                        struct cxx_text type)
{
    enum work_type arithmetic = WORK_FP32;
    uint32_t bytes = work_type_read(type, &arithmetic);

    if (i >= WORK_OPERANDS_MAX || !bytes)
        return;
    if (!kernel->bytes[0] || i == 0)
        kernel->type = (uint8_t)arithmetic;
    kernel->bytes[i] = (uint8_t)bytes;
}

static bool read_known(const struct cxx_name *name, struct work_kernel *kernel)
{
    const struct cxx_parts *types = &name->arguments;

    for (size_t f = 0; f < sizeof functors / sizeof *functors; f++) {
        const struct functor *functor = &functors[f];

        if (!cxx_is(name->base, functor->base) ||
            (uint32_t)functor->result >= types->count)
            continue;
        set_operand(kernel, 0, types->part[functor->result]);
        for (kernel->operands = 1;
             kernel->operands < 4 &&
             functor->inputs[kernel->operands - 1] != NO_TYPE;
             kernel->operands++)
            set_operand(kernel, kernel->operands,
                        types->part[functor->inputs[kernel->operands - 1]]);
        return true;
    }
    return false;
}

/* converting_copy_kernel_cuda<from, to> (Copy.cu of 2.12 and later). */
static uint8_t converted_bytes(struct cxx_text functor)
{
    enum work_type ignored;
    struct cxx_name copy;

    if (!cxx_find(functor, "converting_copy_kernel_cuda<"))
        return 0;
    cxx_split(functor, &copy);
    return copy.arguments.count > 1
               ? (uint8_t)work_type_read(copy.arguments.part[1], &ignored)
               : 0;
}

static uint8_t result_bytes(struct cxx_text functor)
{
    uint8_t converted = converted_bytes(functor);

    if (converted)
        return converted;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (cxx_find(functor, results[i].function))
            return results[i].bytes;
    return 0;
}

static bool read_lambda(struct cxx_text functor, struct work_kernel *kernel)
{
    struct cxx_parts list;

    if (!cxx_lambda(functor, &list))
        return false;
    kernel->operands = 1;
    for (uint32_t i = 0; i < list.count && i + 1 < WORK_OPERANDS_MAX; i++) {
        bool condition = cxx_is(list.part[i], "bool") && list.count > 1;

        set_operand(kernel, ++kernel->operands - 1u, list.part[i]);
        if (!kernel->bytes[0] && !condition)
            set_operand(kernel, 0, list.part[i]);
    }
    uint8_t bytes = result_bytes(functor);
    if (bytes)
        kernel->bytes[0] = bytes;
    return list.count > 0 || kernel->bytes[0];
}

/* A functor that no row knows: all operands of its first type. */
static void read_unknown(const struct cxx_name *name, int inputs,
                         struct work_kernel *kernel)
{
    kernel->operands = (uint8_t)(1 + (inputs < 0 ? 1 : inputs));
    for (uint32_t i = 0; i < name->arguments.count && !kernel->bytes[0]; i++)
        for (unsigned o = 0; o < kernel->operands; o++)
            set_operand(kernel, o, name->arguments.part[i]);
}

void work_functor_read(struct cxx_text functor, int inputs,
                       struct work_kernel *kernel)
{
    struct cxx_name name;

    cxx_split(functor, &name);
    if (inputs >= WORK_OPERANDS_MAX)
        inputs = WORK_OPERANDS_MAX - 1;
    if (!read_lambda(functor, kernel) && !read_known(&name, kernel))
        read_unknown(&name, inputs, kernel);
    if (inputs < 0)
        return;
    for (unsigned i = kernel->operands; i <= (unsigned)inputs; i++)
        kernel->bytes[i] = kernel->bytes[0];
    kernel->operands = (uint8_t)(1 + inputs);
}
