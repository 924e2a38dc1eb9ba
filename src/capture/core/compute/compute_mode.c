/* SPDX-License-Identifier: Apache-2.0
 * mode() of more than 2,048 elements: TensorModeKernel.cu lets thrust sort a
 * row, count how many values are distinct, count each, find the largest count
 * and then the first place of its value. The host reads what each of the last
 * three says, so that they run one after another, on one thread. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

#define PAIR_BYTES 16 /* cuda::std::tuple<T, int64_t>: the number behind */

/* The row at hand. */
static _Thread_local struct {
    uint64_t sorted, counts; /* where they lie; 0: not known */
    uint64_t place;          /* of the most frequent value's first */
} row;

static bool is_known(enum number_type type, uint64_t address, uint64_t count)
{
    return count <= COMPUTE_INTEGERS && values_window(address) &&
           values_known(address, count * number_bytes(type));
}

static long double number_at(enum number_type type, uint64_t address,
                             uint64_t i)
{
    long double x;

    compute_load(type, address + i * number_bytes(type), &x);
    return x;
}

/* thrust::inner_product of a row and itself one further: ({in, in + 1}, int
 * *out, count, ...), where the first of two kernels writes a partial sum for
 * each block. */
static void run_changes(const struct compute *c,
                        const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t count = compute_u32(launch, 2), changes = 0;

    if (!values_window(out) || !is_known(c->types[0], in, count + 1))
        return;
    for (uint64_t i = 0; i < count; i++)
        changes += number_at(c->types[0], in, i) !=
                   number_at(c->types[0], in, i + 1);
    for (uint32_t i = 0; i < (c->form ? launch->grid[0] : 1); i++)
        compute_store(NUMBER_I32, out + 4ul * i, i ? 0 : changes, true);
}

bool compute_changes_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "12not_equal_toI");

    c->run = run_changes;
    c->form = strstr(name, "18DeviceReduceKernelI") != NULL;
    return text && strstr(name, "6thrust") && name_types(&text, c->types, 1);
}

/* thrust::reduce_by_key of ones: (sorted, ones, values out, counts out, number
 * out, ..., int count, ...). */
static void run_counts(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), values = compute_u64(launch, 2);
    uint64_t counts = compute_u64(launch, 3), number = compute_u64(launch, 4);
    uint64_t count = compute_u32(launch, 8), found = 0, start = 0;

    row.sorted = 0;
    if (!values_window(values) || !values_window(counts) ||
        !is_known(c->types[0], in, count))
        return;
    for (uint64_t i = 1; i <= count; i++) {
        long double key = number_at(c->types[0], in, start);

        if (i < count && number_at(c->types[0], in, i) == key)
            continue;
        compute_store(c->types[0], values + found * number_bytes(c->types[0]),
                      key, true);
        compute_store(NUMBER_I64, counts + 8 * found++, i - start, true);
        start = i;
    }
    if (values_window(number))
        compute_store(NUMBER_I32, number, found, true);
    row.sorted = in;
    row.counts = counts;
}

bool compute_counts_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "16ReduceByKeyAgentIP");

    c->run = run_counts;
    return text && strstr(name, "17constant_iteratorIi") &&
           name_types(&text, c->types, 1);
}

static void pair_store(uint64_t out, long double first, uint64_t second)
{
    compute_store(NUMBER_I64, out, first, true);
    compute_store(NUMBER_I64, out + 8, second, true);
}

/* thrust::max_element: ({counts, 0}, pair out, count, ...). Of more than fits
 * in a block it writes a pair for each, from which another kernel chooses one:
 * (pairs, pair out, ...). */
static void run_most(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t count = compute_u32(launch, 2), most = 0, before = 0;

    if (!values_window(out))
        return;
    if (c->form) {
        compute_move(out, in, PAIR_BYTES);
        return;
    }
    if (row.counts != in || !is_known(NUMBER_I64, in, count))
        return;
    row.place = 0;
    for (uint64_t i = 0; i < count; i++) {
        long double x = number_at(NUMBER_I64, in, i);

        if (x > number_at(NUMBER_I64, in, most)) {
            most = i;
            row.place = before;
        }
        before += (uint64_t)x;
    }
    for (uint32_t i = 0; i < launch->grid[0]; i++)
        pair_store(out + (uint64_t)i * PAIR_BYTES,
                   number_at(NUMBER_I64, in, most), most);
}

bool compute_most_parse(const char *name, struct compute *c)
{
    c->run = run_most;
    c->form = strstr(name, "11ReduceAgentIPN") != NULL;
    return strstr(name, "9arg_max_fIllN");
}

/* thrust::find ({sorted, value, ...}, pair out, ...): a flag and the place, for
 * each block, from which a second kernel takes the first. mode() insists that
 * it finds something; where nothing is known, the first. */
static void run_find(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    bool known = row.sorted && in == row.sorted;

    if (!values_window(out))
        return;
    if (c->form) {
        compute_move(out, in, PAIR_BYTES);
        return;
    }
    compute_store(NUMBER_I64, out, 1, known);
    compute_store(NUMBER_I64, out + 8, known ? row.place : 0, known);
    row.sorted = 0;
}

bool compute_find_parse(const char *name, struct compute *c)
{
    c->run = run_find;
    c->form = !strstr(name, "12zip_iterator");
    return strstr(name, "6thrust");
}

/* What it found is copied, by older versions: ({in, out}, int64_t count). */
static void run_found_copy(const struct compute *c,
                           const struct kernel_launch *launch)
{
    uint64_t places[2], count = compute_u64(launch, 1);

    (void)c;
    memcpy(places, launch->arguments[0], sizeof places);
    if (count == 1 && values_window(places[0]) && values_window(places[1]))
        memsim_values_copy(places[1], places[0], PAIR_BYTES);
}

bool compute_found_copy_parse(const char *name, struct compute *c)
{
    c->run = run_found_copy;
    return strstr(name, "tupleIJblEEE") || strstr(name, "tupleIJllEEE");
}
