/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "common/base/demangle.h"
#include "kernels/kernel_row.h"

#define NAME_TEXT_MAX 16384

static void read_arguments(const struct cxx_parts *arguments,
                           struct work_kernel *kernel)
{
    unsigned types = 0, numbers = 0;

    for (uint32_t i = 0; i < arguments->count; i++) {
        enum work_type type;
        uint32_t bytes = work_type_read(arguments->part[i], &type);

        if (bytes && types < WORK_NUMBERS_MAX) {
            if (!types)
                kernel->type = (uint8_t)type;
            kernel->type_bytes[types++] = (uint8_t)bytes;
        } else if (numbers < WORK_NUMBERS_MAX &&
                   cxx_number(arguments->part[i], &kernel->numbers[numbers])) {
            numbers++;
        }
    }
}

/* Integers of 32 and 64 bits by their C++ names; SortStable.cu's {int stride,
 * begin} of a segmented sort counts as its stride, the segments' size. */
static bool is_integer(struct cxx_text type, struct work_size *size)
{
    enum work_type arithmetic = WORK_FP32;
    uint32_t bytes = work_type_read(type, &arithmetic);

    if (cxx_ends(type, "::offset_t")) {
        size->kind = WORK_SIZE_INT;
        return true;
    }
    if (arithmetic != WORK_INTEGER || bytes < 4)
        return false;
    size->kind = bytes == 4 ? WORK_SIZE_INT : WORK_SIZE_LONG;
    return true;
}

static bool is_long(struct cxx_text type)
{
    return cxx_ends(type, "long");
}

/* TensorInfo<T, I> and GenericPackedTensorAccessor<..., T, n, traits, I>. */
static bool is_tensor(struct cxx_text type, struct work_size *size)
{
    struct cxx_name name;
    int32_t dimensions = 0;

    cxx_split(cxx_unqualified(type), &name);
    const struct cxx_parts *list = &name.arguments;
    bool is_info = cxx_is(name.base, "TensorInfo");
    if (list->count < 2 ||
        !(is_info || cxx_is(name.base, "GenericPackedTensorAccessor")))
        return false;
    bool wide = is_long(list->part[list->count - 1]);
    if (is_info) {
        size->kind = wide ? WORK_SIZE_INFO_LONG : WORK_SIZE_INFO;
        return true;
    }
    for (uint32_t i = 0; i < list->count && !dimensions; i++)
        cxx_number(list->part[i], &dimensions);
    size->kind = wide ? WORK_SIZE_ACCESSOR_LONG : WORK_SIZE_ACCESSOR;
    size->dimensions = (uint8_t)dimensions;
    return dimensions > 0 && dimensions <= 8;
}

static void read_sizes(const struct cxx_parts *parameters,
                       struct work_kernel *kernel)
{
    for (uint32_t i = 0; i < parameters->count; i++) {
        struct work_size size = {.argument = (uint8_t)i};

        if (kernel->size_count < WORK_SIZES_MAX &&
            (is_integer(parameters->part[i], &size) ||
             is_tensor(parameters->part[i], &size)))
            kernel->sizes[kernel->size_count++] = size;
    }
}

void work_kernel_read(const char *name, struct work_kernel *kernel)
{
    char buffer[NAME_TEXT_MAX];
    struct cxx_name parts;

    *kernel = (struct work_kernel){.row = NULL};
    demangle(name ? name : "", buffer, sizeof buffer);
    cxx_split(cxx_text_of(buffer), &parts);
    read_arguments(&parts.arguments, kernel);
    read_sizes(&parts.parameters, kernel);
    kernel->row = kernel_row_find(cxx_text_of(buffer), parts.base);
    if (kernel->row && kernel->row->read)
        kernel->row->read(&parts, kernel);
    kernel_arguments_read(cxx_text_of(buffer), &parts, kernel);
}

static uint64_t low_half(uint64_t word)
{
    return word & UINT32_MAX;
}

static uint64_t at_least_1(uint64_t number)
{
    return number ? number : 1;
}

static void launch_read(const struct op *op, struct work_launch *launch)
{
    static const struct trace_launch none;
    const struct trace_launch *l =
        op->record == TRACE_LAUNCH ? op_as_launch(op) : &none;

    launch->grid[0] = at_least_1(low_half(l->grid_x_y));
    launch->grid[1] = at_least_1(l->grid_x_y >> 32);
    launch->grid[2] = at_least_1(low_half(l->grid_z_block_x));
    launch->block[0] = at_least_1(l->grid_z_block_x >> 32);
    launch->block[1] = at_least_1(low_half(l->block_y_z));
    launch->block[2] = at_least_1(l->block_y_z >> 32);
    launch->shared_bytes = (uint32_t)l->shared_bytes_rule;
    launch->rule = (enum trace_rule)(l->shared_bytes_rule >> 32);
    memcpy(launch->words, &l->a, sizeof launch->words);
}

/* No thread of such a kernel is taken to move more: a launch may use a part of
 * a block only. */
#define THREAD_BYTES 4096.0

/* Each block is moved once, by a kernel of which nothing else is known. */
static void blocks_describe(const struct work_launch *launch, struct work *work)
{
    double threads = (double)work->blocks * work->threads;

    if (launch->rule != TRACE_RULE_BLOCKS || !launch->words[0])
        return;
    work->source = WORK_GUESSED;
    work->read_bytes = fmin((double)launch->words[0], THREAD_BYTES * threads);
}

void work_describe_launch(const struct op *op, const struct work_kernel *kernel,
                          struct work *work)
{
    const struct kernel_row *row = kernel_work_row(kernel);
    struct work_launch launch;

    launch_read(op, &launch);
    *work = (struct work){
        .family = row ? row->family : WORK_OTHER,
        .type = (enum work_type)kernel->type,
        .source = WORK_UNKNOWN,
        .sort = row ? (uint8_t)row->sort : 0,
        .rate = row ? (uint8_t)row->rate : 0,
        .element_bytes = kernel->type_bytes[0],
        .blocks = launch.grid[0] * launch.grid[1] * launch.grid[2],
        .threads =
            (uint32_t)(launch.block[0] * launch.block[1] * launch.block[2]),
        .shared_bytes = launch.shared_bytes,
    };
    if (launch.rule == TRACE_RULE_WORK && work_unpack(launch.words, work))
        return;
    if (!row) {
        blocks_describe(&launch, work);
        return;
    }
    if (row->describe ? row->describe(kernel, &launch, work)
                      : work_form_apply(&row->form, kernel, &launch, work))
        work->source = WORK_RULE;
}

void work_describe(const struct op *op, const char *name, struct work *work)
{
    struct work_kernel kernel;

    *work = (struct work){.family = WORK_NOTHING, .source = WORK_EXACT};
    switch (op->kind) {
    case OP_LAUNCH:
        work_kernel_read(name, &kernel);
        work_describe_launch(op, &kernel, work);
        break;
    case OP_GEMM:
        work_gemm(op, work);
        break;
    case OP_CONVOLUTION:
        work_convolution(op, work);
        break;
    case OP_ATTENTION:
        work_attention(op, work);
        break;
    case OP_LIBRARY_CALL:
        work_library_call(op, name, work);
        break;
    case OP_COPY:
        work_copy(op, work);
        break;
    case OP_SET:
        work_set(op, work);
        break;
    case OP_COLLECTIVE:
        work_collective(op, work);
        break;
    default:
        break;
    }
}
