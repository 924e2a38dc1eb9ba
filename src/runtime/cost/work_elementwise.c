/* SPDX-License-Identifier: Apache-2.0
 * Kernels whose work is so many bytes for each element: PyTorch's loops over
 * elements (CUDALoops.cuh, Loops.cuh) and over lists of tensors
 * (MultiTensorApply.cuh, ForeachFunctors.cuh, fused_adam_utils.cuh). */
#include <string.h>

#include "runtime/cost/work_internal.h"

#define FOREACH_CHUNK_ELEMENTS 65536 /* kChunkSize */

/* n of "std::array<char*, 3ul>", less the result; -1 where TEXT is no such. */
static int array_inputs(const struct text_parts *arguments, uint32_t i)
{
    struct text_name array;
    int32_t count;

    if (i >= arguments->count)
        return -1;
    text_split(arguments->part[i], &array);
    if (!text_is(array.base, "array") || array.arguments.count < 2 ||
        !text_number(array.arguments.part[1], &count) || count < 1)
        return -1;
    return count - 1;
}

/* vectorized_elementwise_kernel<width, functor, array> and
 * unrolled_elementwise_kernel<functor, array, ...>. */
void work_read_vectorized(const struct text_name *name,
                          struct work_kernel *kernel)
{
    const struct text_parts *arguments = &name->arguments;

    for (uint32_t i = 1; i < arguments->count; i++) {
        int inputs = array_inputs(arguments, i);

        if (inputs < 0)
            continue;
        work_functor_read(arguments->part[i - 1], inputs, kernel);
        return;
    }
}

/* elementwise_kernel<threads, elements, gpu_kernel_impl<functor>(...)::{lambda
 * (int)#1}>: the lambda's function names the functor. */
void work_read_strided(const struct text_name *name, struct work_kernel *kernel)
{
    struct text_name wrapper;

    if (name->arguments.count < 3)
        return;
    text_split(name->arguments.part[2], &wrapper);
    if (wrapper.arguments.count)
        work_functor_read(wrapper.arguments.part[0], -1, kernel);
}

static void set_moved(struct work *work, double elements, double read,
                      double written)
{
    work->elements = (uint64_t)elements;
    work->read_bytes = elements * read;
    work->written_bytes = elements * written;
    work->flops = elements;
}

bool work_elementwise(const struct work_kernel *kernel,
                      const struct work_launch *launch, struct work *work)
{
    double read = 0;

    work->type = (enum work_type)kernel->type;
    work->element_bytes = kernel->bytes[0];
    if (launch->rule != TRACE_RULE_ELEMENTWISE || !kernel->bytes[0])
        return false;
    for (unsigned i = 1; i < kernel->operands; i++)
        read += kernel->bytes[i] ? kernel->bytes[i] : kernel->bytes[0];
    set_moved(work, (double)launch->words[0], read, kernel->bytes[0]);
    return true;
}

/* How a functor of multi_tensor_apply_kernel ends its template arguments:
 * <..., depth, r_args_depth, res_arg_index> where it reads the first r lists
 * and writes one; the fused optimizers read all and write all but gradients. */
static const struct {
    const char *base;
    int written; /* lists; -1: all but one; -2: none */
    int read;    /* -1: all; -2: r_args_depth */
} foreach_functors[] = {
    {"FusedAdamMathFunctor", -1, -1},
    {"FusedSgdMathFunctor", -1, -1},
    {"FusedAdagradMathFunctor", -1, -1},
    {"LpNormFunctor", -2, -2},
    {"LpMaxFunctor", -2, -2},
    {"ZeroFunctor", 1, 0},
};

/* The numbers at the end of FUNCTOR's arguments, in their order. */
static unsigned numbers_read(const struct text_parts *arguments,
                             int32_t numbers[WORK_NUMBERS_MAX])
{
    unsigned count = 0;

    for (uint32_t i = 0; i < arguments->count && count < WORK_NUMBERS_MAX; i++)
        if (text_number(arguments->part[i], &numbers[count]))
            count++;
    return count;
}

static int32_t lists_written(int rule, int32_t depth)
{
    return rule == -1 ? depth - 1 : rule == -2 ? 0 : rule;
}

/* bytes[0] of an element; numbers: lists read, lists written. The depth comes
 * from the first argument: TensorListMetadata<depth> and kin. */
void work_read_foreach(const struct text_name *name, struct work_kernel *kernel)
{
    struct text_name lists, functor;
    int32_t depth = 1, numbers[WORK_NUMBERS_MAX] = {0};
    int read = -2, written = 1;

    if (name->arguments.count < 2)
        return;
    text_split(name->arguments.part[0], &lists);
    for (uint32_t i = 0; i < lists.arguments.count; i++)
        if (text_number(lists.arguments.part[i], &depth))
            break;
    text_split(name->arguments.part[1], &functor);
    for (size_t i = 0; i < sizeof foreach_functors / sizeof *foreach_functors;
         i++)
        if (text_is(functor.base, foreach_functors[i].base)) {
            read = foreach_functors[i].read;
            written = foreach_functors[i].written;
        }
    unsigned count = numbers_read(&functor.arguments, numbers);
    if (read == -2)
        read = count >= 3 ? numbers[count - 2] : 1;
    kernel->numbers[0] = read == -1 ? depth : read;
    kernel->numbers[1] = lists_written(written, depth);
    enum work_type type = WORK_FP32;
    for (uint32_t i = 0; i < functor.arguments.count && !kernel->bytes[0]; i++)
        kernel->bytes[0] = (uint8_t)text_type(functor.arguments.part[i], &type);
    kernel->type = (uint8_t)type;
}

bool work_foreach(const struct work_kernel *kernel,
                  const struct work_launch *launch, struct work *work)
{
    double elements = (double)launch->words[0];
    double bytes = kernel->bytes[0] ? kernel->bytes[0] : 4;

    if (launch->rule != TRACE_RULE_FOREACH)
        return false;
    if (elements <= 0)
        elements = (double)launch->grid[0] * FOREACH_CHUNK_ELEMENTS;
    work->type = (enum work_type)kernel->type;
    work->element_bytes = (uint32_t)bytes;
    set_moved(work, elements, bytes * kernel->numbers[0],
              bytes * kernel->numbers[1]);
    return launch->words[0] > 0;
}
