/* SPDX-License-Identifier: Apache-2.0
 * What a kernel's arguments say: its row has the kind, its parameters' types
 * the rest. Types are those of PyTorch 2.5 to 2.15. */
#include "kernels/kernel_row.h"

#define LOOP_TENSORS_MAX 6
#define CASTS_MAX        4
#define LISTS_MAX        5

/* The parameter whose type is the template BASE; false: it has none. */
static bool parameter_find(const struct cxx_name *name, const char *base,
                           struct cxx_name *type)
{
    for (uint32_t i = 0; i < name->parameters.count; i++) {
        cxx_split(cxx_unqualified(name->parameters.part[i]), type);
        if (cxx_is(type->base, base))
            return true;
    }
    return false;
}

/* The first number among TYPE's arguments; 0: none. */
static uint32_t type_number(const struct cxx_name *type)
{
    int32_t number;

    for (uint32_t i = 0; i < type->arguments.count; i++)
        if (cxx_number(type->arguments.part[i], &number))
            return number > 0 ? (uint32_t)number : 0;
    return 0;
}

static void set_argument(struct work_kernel *kernel,
                         enum kernel_arguments arguments, uint32_t count)
{
    kernel->arguments = (uint8_t)arguments;
    kernel->count = (uint8_t)count;
}

/* CUDALoops.cuh: (int N, functor, std::array<char *, n>, ...); before 2.6 it is
 * at::detail::Array. With casts, LoadWithCast<n - 1> of MemoryAccess.cuh
 * follows. */
static void read_loop(const struct cxx_name *name, struct work_kernel *kernel)
{
    struct cxx_name type;
    uint32_t tensors = parameter_find(name, "array", &type) ||
                               parameter_find(name, "Array", &type)
                           ? type_number(&type)
                           : 0;

    if (!tensors || tensors > LOOP_TENSORS_MAX)
        return;
    bool casts = tensors <= CASTS_MAX &&
                 parameter_find(name, "LoadWithCast", &type);
    set_argument(kernel, casts ? KERNEL_ARGUMENTS_CASTS : KERNEL_ARGUMENTS_LOOP,
                 tensors);
}

/* MultiTensorApply.cuh's lists of tensors, which others' kernels have too. */
static void read_lists(struct cxx_text whole, const struct cxx_name *name,
                       struct work_kernel *kernel)
{
    static const struct {
        const char *type;
        enum kernel_arguments arguments;
    } kinds[] = {
        {"TensorListMetadata", KERNEL_ARGUMENTS_LISTS},
        {"FusedOptimizerTensorListMetadata", KERNEL_ARGUMENTS_LISTS_STEPS},
        {"TensorListScalarListMetadata", KERNEL_ARGUMENTS_LISTS_SCALARS},
    };
    bool is_own = cxx_find(whole, "at::native");
    struct cxx_name type;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!parameter_find(name, kinds[i].type, &type))
            continue;
        uint32_t depth = type_number(&type);
        if (!depth || depth > LISTS_MAX)
            return;
        if (is_own && (i != 2 || cxx_is(type.arguments.part[0], "float")))
            set_argument(kernel, kinds[i].arguments, depth);
        else if (!i)
            set_argument(kernel, KERNEL_ARGUMENTS_LISTS_FOREIGN, depth);
        return;
    }
}

/* Shape.cu: CatArrayBatchedCopy<T, I, dims, batch, stride>, of two kinds. */
static void read_cat(struct work_kernel *kernel)
{
    const int32_t *n = kernel->numbers;

    if ((n[1] == 64 && n[2] == 64) || (n[1] == 128 && n[2] == 1))
        set_argument(kernel, KERNEL_ARGUMENTS_CAT, (uint32_t)n[1]);
}

void kernel_arguments_read(struct cxx_text whole, const struct cxx_name *name,
                           struct work_kernel *kernel)
{
    const struct kernel_row *row = kernel->row;

    switch (row ? row->arguments : KERNEL_ARGUMENTS_NONE) {
    case KERNEL_ARGUMENTS_NONE:
        break;
    case KERNEL_ARGUMENTS_LOOP:
        read_loop(name, kernel);
        break;
    case KERNEL_ARGUMENTS_STRIDED:
        if (cxx_find(whole, "gpu_kernel_impl"))
            set_argument(kernel, KERNEL_ARGUMENTS_STRIDED, 0);
        break;
    case KERNEL_ARGUMENTS_LISTS:
        read_lists(whole, name, kernel);
        break;
    case KERNEL_ARGUMENTS_CAT:
        read_cat(kernel);
        break;
    case KERNEL_ARGUMENTS_REDUCTION:
    case KERNEL_ARGUMENTS_FLASH: /* templates: another's may have the name */
        if (name->arguments.count)
            set_argument(kernel, row->arguments, 0);
        break;
    default:
        set_argument(kernel, row->arguments, 0);
    }
    if (!kernel->arguments && kernel->size_count && kernel_is_described(kernel))
        set_argument(kernel, KERNEL_ARGUMENTS_SIZES, 0);
}
