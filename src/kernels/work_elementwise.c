/* SPDX-License-Identifier: Apache-2.0
 * Kernels whose work is so many bytes for each element: PyTorch's loops over
 * elements (CUDALoops.cuh, Loops.cuh) and over lists of tensors
 * (MultiTensorApply.cuh, ForeachFunctors.cuh, fused_adam_utils.cuh). */
#include <string.h>

#include "kernels/work_internal.h"

#define FOREACH_CHUNK_ELEMENTS 65536 /* kChunkSize */

/* n of "std::array<char*, 3ul>", less the result; -1 where TEXT is no such. */
static int array_inputs(const struct cxx_parts *arguments, uint32_t i)
{
    struct cxx_name array;
    int32_t count;

    if (i >= arguments->count)
        return -1;
    cxx_split(arguments->part[i], &array);
    if (!(cxx_is(array.base, "array") || cxx_is(array.base, "Array")) ||
        array.arguments.count < 2 ||
        !cxx_number(array.arguments.part[1], &count) || count < 1)
        return -1;
    return count - 1;
}

/* vectorized_elementwise_kernel<width, functor, array> and
 * unrolled_elementwise_kernel<functor, array, ...>. */
void work_read_vectorized(const struct cxx_name *name,
                          struct work_kernel *kernel)
{
    const struct cxx_parts *arguments = &name->arguments;

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
void work_read_strided(const struct cxx_name *name, struct work_kernel *kernel)
{
    struct cxx_name wrapper;

    if (name->arguments.count < 3)
        return;
    cxx_split(name->arguments.part[2], &wrapper);
    if (wrapper.arguments.count)
        work_functor_read(wrapper.arguments.part[0], -1, kernel);
    kernel->numbers[WORK_NUMBERS_MAX - 1] =
        !cxx_is(wrapper.base, "gpu_kernel_impl_nocast");
}

static void set_moved(struct work *work, double elements, double read,
                      double written)
{
    work->elements = (uint64_t)elements;
    work->read_bytes = elements * read;
    work->written_bytes = elements * written;
    work->flops = elements;
}

/* Bytes of an element of each operand: from the casts' own sizes, else from the
 * functor; a tensor that neither tells has the result's. */
static uint32_t operand_bytes(const struct work_kernel *kernel,
                              const struct work_launch *launch, unsigned i)
{
    uint32_t cast = launch->rule == TRACE_RULE_ELEMENTWISE
                        ? launch->words[2] >> 8 * i & 255
                        : 0;

    if (cast)
        return cast;
    return kernel->bytes[i] ? kernel->bytes[i] : kernel->bytes[0];
}

bool work_elementwise(const struct work_kernel *kernel,
                      const struct work_launch *launch, struct work *work)
{
    double read = 0;
    double written = operand_bytes(kernel, launch, 0);

    work->type = (enum work_type)kernel->type;
    work->element_bytes = (uint32_t)written;
    if (launch->rule != TRACE_RULE_ELEMENTWISE || written <= 0)
        return false;
    for (unsigned i = 1; i < kernel->operands; i++)
        read += operand_bytes(kernel, launch, i);
    set_moved(work, (double)launch->words[0], read, written);
    work->load_bytes = (uint32_t)(kernel->numbers[0] * read);
    if (work->family == WORK_STRIDED)
        work->rate =
            kernel->operands > 2 ? WORK_RATE_CAST_PAIR : WORK_RATE_CAST;
    return true;
}

#define SECTOR_BYTES 32 /* what DRAM and L2 give at least */

/* What one tensor of a strided kernel moves. With casts, the functor's types
 * are not the tensors': a tensor's smallest stride is. */
static double strided_bytes(const struct trace_strided *s, uint32_t bytes,
                            bool casts)
{
    if ((casts || !bytes) && s->least_bytes)
        bytes = s->least_bytes < 16 ? s->least_bytes : 16;
    uint32_t apart = s->least_bytes > bytes ? s->least_bytes : bytes;
    return (double)s->elements * (apart < SECTOR_BYTES ? apart : SECTOR_BYTES);
}

bool work_strided(const struct work_kernel *kernel,
                  const struct work_launch *launch, struct work *work)
{
    uint64_t tensors = launch->words[1];
    bool casts = kernel->numbers[WORK_NUMBERS_MAX - 1];

    work->type = (enum work_type)kernel->type;
    work->element_bytes = kernel->bytes[0];
    if (launch->rule != TRACE_RULE_STRIDED || !launch->words[0])
        return false;
    work->elements = launch->words[0];
    work->flops = (double)work->elements;
    if (!tensors) { /* as if contiguous */
        for (unsigned i = 1; i < kernel->operands; i++)
            work->read_bytes += work->flops * kernel->bytes[i];
        work->written_bytes = work->flops * kernel->bytes[0];
        return kernel->bytes[0] > 0;
    }
    for (unsigned i = 0; i < tensors && i + 2 < TRACE_LAUNCH_WORDS; i++) {
        const struct trace_strided s =
            trace_strided_unpack(launch->words[i + 2]);
        double moved = strided_bytes(&s, kernel->bytes[i], casts);

        *(i ? &work->read_bytes : &work->written_bytes) += moved;
    }
    return true;
}

/* Shape.cu: CatArrayBatchedCopy<T, ...> and its kin. */
bool work_cat(const struct work_kernel *kernel,
              const struct work_launch *launch, struct work *work)
{
    double bytes = kernel->type_bytes[0];

    if (launch->rule != TRACE_RULE_CAT || bytes <= 0)
        return false;
    set_moved(work, (double)launch->words[0], bytes, bytes);
    return true;
}

/* distribution_elementwise_grid_stride_kernel<...distribution_nullary_kernel<
 * T, ...>...> (DistributionTemplates.h): writes T. */
void work_read_distribution(const struct cxx_name *name,
                            struct work_kernel *kernel)
{
    static const char mark[] = "distribution_nullary_kernel<";
    enum work_type type = WORK_FP32;
    struct cxx_name inner;

    for (uint32_t i = 0; i < name->arguments.count; i++) {
        struct cxx_text text = name->arguments.part[i];
        const char *at = cxx_find(text, mark);

        if (!at)
            continue;
        text.length -= (size_t)(at - text.at);
        text.at = at;
        cxx_split(text, &inner);
        if (inner.arguments.count)
            kernel->type_bytes[0] =
                (uint8_t)work_type_read(inner.arguments.part[0], &type);
        kernel->type = (uint8_t)type;
        return;
    }
}

/* Kernels whose element is somewhere in a functor's name, as OpaqueType<n>. */
void work_read_opaque(const struct cxx_name *name, struct work_kernel *kernel)
{
    enum work_type type = WORK_FP32;

    kernel->type_bytes[0] = 0;
    for (uint32_t i = 0; i < name->arguments.count; i++)
        if (!kernel->type_bytes[0])
            kernel->type_bytes[0] =
                (uint8_t)work_opaque_bytes(name->arguments.part[i]);
    for (uint32_t i = 0; i < name->arguments.count; i++) {
        struct cxx_name inner;

        cxx_split(name->arguments.part[i], &inner);
        for (uint32_t k = 0; k < inner.arguments.count; k++)
            if (!kernel->type_bytes[0])
                kernel->type_bytes[0] =
                    (uint8_t)work_type_read(inner.arguments.part[k], &type);
    }
    kernel->type = (uint8_t)type;
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
static unsigned numbers_read(const struct cxx_parts *arguments,
                             int32_t numbers[WORK_NUMBERS_MAX])
{
    unsigned count = 0;

    for (uint32_t i = 0; i < arguments->count && count < WORK_NUMBERS_MAX; i++)
        if (cxx_number(arguments->part[i], &numbers[count]))
            count++;
    return count;
}

static int32_t lists_written(int rule, int32_t depth)
{
    return rule == -1 ? depth - 1 : rule == -2 ? 0 : rule;
}

/* bytes[0] of an element; numbers: lists read, lists written. The depth comes
 * from the first argument: TensorListMetadata<depth> and kin. */
void work_read_foreach(const struct cxx_name *name, struct work_kernel *kernel)
{
    struct cxx_name lists, functor;
    int32_t depth = 1, numbers[WORK_NUMBERS_MAX] = {0};
    int read = -2, written = 1;

    if (name->arguments.count < 2)
        return;
    cxx_split(name->arguments.part[0], &lists);
    for (uint32_t i = 0; i < lists.arguments.count; i++)
        if (cxx_number(lists.arguments.part[i], &depth))
            break;
    cxx_split(name->arguments.part[1], &functor);
    for (size_t i = 0; i < sizeof foreach_functors / sizeof *foreach_functors;
         i++)
        if (cxx_is(functor.base, foreach_functors[i].base)) {
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
        kernel->bytes[0] =
            (uint8_t)work_type_read(functor.arguments.part[i], &type);
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
    double read = kernel->numbers[0] - (double)launch->words[4];
    work->type = (enum work_type)kernel->type;
    work->element_bytes = (uint32_t)bytes;
    set_moved(work, elements, read > 0 ? bytes * read : 0,
              bytes * kernel->numbers[1]);
    if (work->family == WORK_REDUCE) { /* a norm of each tensor */
        uint64_t rows = launch->words[1] ? launch->words[1] : 1;

        work->rows = (struct work_rows){rows, work->elements / rows, 1, 0};
    }
    return launch->words[0] > 0;
}
