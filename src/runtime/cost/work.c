/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/demangle.h"
#include "runtime/cost/work_internal.h"

#define NAME_TEXT_MAX 16384

/* Fields of a LAUNCH by their place in trace.h. */
enum { GRID_X_Y = 3, GRID_Z_BLOCK_X, BLOCK_Y_Z, SHARED_RULE, WORD_A };

static void read_arguments(const struct text_parts *arguments,
                           struct work_kernel *kernel)
{
    unsigned types = 0, numbers = 0;

    for (uint32_t i = 0; i < arguments->count; i++) {
        enum work_type type;
        uint32_t bytes = text_type(arguments->part[i], &type);

        if (bytes && types < WORK_NUMBERS_MAX) {
            if (!types)
                kernel->type = (uint8_t)type;
            kernel->type_bytes[types++] = (uint8_t)bytes;
        } else if (numbers < WORK_NUMBERS_MAX &&
                   text_number(arguments->part[i], &kernel->numbers[numbers])) {
            numbers++;
        }
    }
}

void work_kernel_read(const char *name, struct work_kernel *kernel)
{
    char buffer[NAME_TEXT_MAX];
    struct text_name parts;

    *kernel = (struct work_kernel){.rule = 0};
    demangle(name ? name : "", buffer, sizeof buffer);
    text_split(text_of(buffer), &parts);
    read_arguments(&parts.arguments, kernel);
    kernel->rule = work_rule_find(text_of(buffer), parts.base);
    const struct work_rule *rule = work_rule_of(kernel);
    if (rule && rule->read)
        rule->read(&parts, kernel);
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
    uint64_t grid_xy = work_field(op, GRID_X_Y);
    uint64_t middle = work_field(op, GRID_Z_BLOCK_X);
    uint64_t block_yz = work_field(op, BLOCK_Y_Z);
    uint64_t shared_rule = work_field(op, SHARED_RULE);

    launch->grid[0] = at_least_1(low_half(grid_xy));
    launch->grid[1] = at_least_1(grid_xy >> 32);
    launch->grid[2] = at_least_1(low_half(middle));
    launch->block[0] = at_least_1(middle >> 32);
    launch->block[1] = at_least_1(low_half(block_yz));
    launch->block[2] = at_least_1(block_yz >> 32);
    launch->shared_bytes = (uint32_t)shared_rule;
    launch->rule = (enum trace_rule)(shared_rule >> 32);
    for (unsigned i = 0; i < WORK_WORDS; i++)
        launch->words[i] = work_field(op, WORD_A + i);
}

void work_describe_launch(const struct op *op, const struct work_kernel *kernel,
                          struct work *work)
{
    const struct work_rule *rule = work_rule_of(kernel);
    struct work_launch launch;

    launch_read(op, &launch);
    *work = (struct work){
        .family = rule ? rule->family : WORK_OTHER,
        .type = (enum work_type)kernel->type,
        .source = WORK_UNKNOWN,
        .element_bytes = kernel->type_bytes[0],
        .blocks = launch.grid[0] * launch.grid[1] * launch.grid[2],
        .threads =
            (uint32_t)(launch.block[0] * launch.block[1] * launch.block[2]),
        .shared_bytes = launch.shared_bytes,
    };
    if (rule && rule->describe(kernel, &launch, work))
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
