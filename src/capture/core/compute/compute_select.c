/* SPDX-License-Identifier: Apache-2.0
 * Where a size is decided: nonzero (aten/src/ATen/native/cuda/Nonzero.cu) and
 * unique (UniqueCub.cu), which count with CUB and copy the count to the host.
 * What cannot be known here is chosen by the policy. */
#include <stdlib.h>
#include <string.h>

#include "capture/core/compute/compute_few.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

/* TransformInputIterator of CUB 2.5 and before has the (empty) operation
 * first, thrust::transform_iterator the pointer; types[1] is what it reads. */
static bool iterator_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "9NonZeroOpI");

    c->layout = strstr(name, "22TransformInputIteratorI") ? 8 : 0;
    if (text)
        return name_types(&text, c->types + 1, 1);
    c->types[1] = NUMBER_BOOL;
    return strstr(name, "21MapNumberOfTrueValues");
}

static uint64_t iterator_read(const struct compute *c, const void *argument)
{
    uint64_t address;

    memcpy(&address, (const char *)argument + c->layout, sizeof address);
    return address;
}

static uint32_t iterator_reach(const struct compute *c,
                               const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return (uint32_t)c->layout + 8;
}

/* Of the elements that are not known, UNKNOWN, the policy chooses some. */
static uint64_t mask_count(const struct compute *c, uint64_t mask,
                           uint64_t count, uint64_t *unknown)
{
    uint32_t bytes = number_bytes(c->types[1]);
    uint64_t nonzero = 0;

    *unknown = 0;
    for (uint64_t i = 0; i < count; i++)
        nonzero += compute_takes(c->types[1], mask + i * bytes, count, unknown);
    return nonzero;
}

/* Of a mask that is the same all over. */
static bool mask_constant(const struct compute *c, uint64_t mask,
                          uint64_t count, uint64_t *nonzero)
{
    uint32_t bytes = number_bytes(c->types[1]);
    unsigned char value[16];

    if (!values_constant(mask, count * bytes, bytes, value))
        return false;
    *nonzero = number_load(c->types[1], value) != 0 ? count : 0;
    return true;
}

/* What COUNT flags select: element by element, or as a policy says. */
static uint64_t mask_select(const struct compute *c,
                            const struct kernel_launch *launch, uint64_t mask,
                            uint64_t count)
{
    uint64_t bytes = count * number_bytes(c->types[1]), nonzero, unknown;

    if (count > COMPUTE_UNKNOWN && mask_constant(c, mask, count, &nonzero))
        return nonzero;
    if (bytes > VALUES_COPY_BYTES ||
        (count > COMPUTE_INTEGERS && !values_known(mask, bytes)))
        return compute_guess(c, launch, count, COMPUTE_GUESS_MASK);
    nonzero = mask_count(c, mask, count, &unknown);
    if (unknown)
        compute_guess(c, launch, unknown, COMPUTE_GUESS_MASK);
    return nonzero;
}

/* (in, out, count, ...) of both of CUB's reductions; the first of them writes
 * a partial result per block: all of it is the first's. */
static void run_count(const struct compute *c,
                      const struct kernel_launch *launch)
{
    uint64_t mask = iterator_read(c, launch->arguments[0]);
    uint64_t out = compute_u64(launch, 1), nonzero;
    uint64_t count = compute_u32(launch, 2);

    if (!values_window(mask) || !values_window(out))
        return;
    few_share_begin(c->types[1], mask, count);
    nonzero = mask_select(c, launch, mask, count);
    if (c->types[1] == NUMBER_BOOL && !values_known(mask, count))
        compute_mask_decide(mask, count);
    few_share_end();
    for (uint32_t i = 0; i < (c->form ? launch->grid[0] : 1); i++)
        compute_store(NUMBER_I32, out + 4ul * i, i ? 0 : nonzero, true);
}

bool compute_count_parse(const char *name, struct compute *c)
{
    c->run = run_count;
    c->reach = iterator_reach;
    c->form = strstr(name, "18DeviceReduceKernelI") != NULL;
    return iterator_parse(name, c);
}

/* The second of two: (const int *in, int *out, int count, ...). */
static void run_total(const struct compute *c,
                      const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t count = compute_u32(launch, 2);
    long double sum = 0, x;
    bool known = true;

    (void)c;
    for (uint64_t i = 0; i < count && i < COMPUTE_FLOATS; i++) {
        known &= compute_load(NUMBER_I32, in + 4 * i, &x);
        sum += x;
    }
    if (values_window(out))
        compute_store(NUMBER_I32, out, sum, known);
}

bool compute_total_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "EPi");

    c->run = run_total;
    return text && *text == 'S' && strstr(text, "_i");
}

/* Flags that are looked at: what a copy of 1 MiB holds. */
#define SELECT_MOST VALUES_COPY_BYTES

/* DeviceSelectSweepKernel (in, flags, out, number out, tiles, operation,
 * equality, count, ...) that numbers what is flagged. */
static void run_select(const struct compute *c,
                       const struct kernel_launch *launch)
{
    int64_t first = (int64_t)compute_u64(launch, 0);
    uint64_t mask = iterator_read(c, launch->arguments[1]);
    uint64_t out = compute_u64(launch, 2), number = compute_u64(launch, 3);
    uint64_t count = compute_u32(launch, 7), found = 0;
    uint64_t bytes = number_bytes(c->types[1]), unknown = 0;

    if (!values_window(mask) || !values_window(number))
        return;
    if (count > SELECT_MOST ||
        (count > COMPUTE_INTEGERS && !values_known(mask, count * bytes))) {
        memsim_values_forget(out, 8);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (compute_takes(c->types[1], mask + i * bytes, count, &unknown))
            compute_store(NUMBER_I64, out + 8 * found++,
                          (long double)(first + (int64_t)i), true);
    }
    compute_store(NUMBER_I32, number, found, true);
}

bool compute_select_parse(const char *name, struct compute *c)
{
    c->run = run_select;
    c->reach = iterator_reach;
    return strstr(name, "9NonZeroOpI") && iterator_parse(name, c);
}

/* nonzero_static: flag_kernel<..., T> (const T *in, int64_t *out, int64_t
 * *totals, int64_t count, room, ...) numbers what is not 0, as far as there is
 * room. The last block's total is that of all. */
static void run_flag(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t totals = compute_u64(launch, 2), count = compute_u64(launch, 3);
    uint64_t room = compute_u64(launch, 4), found = 0, unknown = 0;
    uint32_t bytes = number_bytes(c->types[1]);

    if (!values_window(in) || !values_window(out))
        return;
    if (count > COMPUTE_INTEGERS) {
        compute_forget(NUMBER_I64, out, 8 * room);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!compute_takes(c->types[1], in + i * bytes, count, &unknown))
            continue;
        if (found < room)
            compute_store(NUMBER_I64, out + 8 * found, (long double)i, true);
        found++;
    }
    if (unknown)
        compute_guess(c, launch, unknown, COMPUTE_GUESS_MASK);
    if (values_window(totals))
        compute_store(NUMBER_I64, totals + 8ul * (launch->grid[0] - 1), found,
                      true);
}

bool compute_flag_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "11flag_kernelILi512ELi16E");

    c->run = run_flag;
    return text && name_types(&text, c->types + 1, 1);
}

/* write_fill_value (int64_t *out, const int64_t *total, int64_t value, room):
 * behind the total. */
static void run_fill_rest(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), room = compute_u64(launch, 3);
    int64_t value = (int64_t)compute_u64(launch, 2);
    long double total;

    (void)c;
    if (room > COMPUTE_INTEGERS || !values_window(out) ||
        !compute_load(NUMBER_I64, compute_u64(launch, 1), &total))
        return;
    for (uint64_t i = (uint64_t)total; i < room; i++)
        compute_store(NUMBER_I64, out + 8 * i, value, true);
}

bool compute_fill_rest_parse(const char *name, struct compute *c)
{
    c->run = run_fill_rest;
    return strstr(name, "16write_fill_valueE");
}

static uint64_t mask_word(const struct compute *c, const void *words,
                          uint32_t i)
{
    return (uint64_t)number_load(
        c->types[0], (const char *)words + i * number_bytes(c->types[0]));
}

/* Only those of nonzero_static's have one. */
static uint64_t places_total(const struct compute *c,
                             const struct kernel_launch *launch, uint64_t count)
{
    uint64_t at = c->layout ? compute_u64(launch, 4) : 0;
    long double total;

    if (!values_window(at) || !compute_load(NUMBER_I64, at, &total))
        return count;
    return (uint64_t)total;
}

/* write_indices<index_t> (int64_t *data, index_t sizes[25], int dims, index_t
 * count, const int64_t *total, ...): numbers become indices, one row for each
 * dimension; those behind the total, if one is given, are a value that goes to
 * all rows. */
static void run_places(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t data = compute_u64(launch, 0);
    const void *sizes = launch->arguments[1];
    int dims = (int)compute_u32(launch, 2);
    uint64_t count = mask_word(c, launch->arguments[3], 0);

    if (dims < 1 || dims > OFFSETS_DIMS || !values_window(data))
        return;
    if (count * (uint64_t)dims > COMPUTE_INTEGERS) {
        memsim_values_forget(data, count * (uint64_t)dims * 8);
        return;
    }
    uint64_t total = places_total(c, launch, count);
    for (uint64_t i = 0; i < count; i++) {
        long double x;
        bool known = compute_load(NUMBER_I64, data + 8 * i, &x);
        uint64_t rest = (uint64_t)x;

        for (int d = dims; i >= total && d-- > 0;)
            compute_store(NUMBER_I64, data + 8 * (i + (uint64_t)d * count), x,
                          known);
        if (i >= total)
            continue;

        for (int d = dims; d-- > 0;) {
            uint64_t size = mask_word(c, sizes, (uint32_t)d);

            size += !size;
            compute_store(NUMBER_I64, data + 8 * (i + (uint64_t)d * count),
                          rest % size, known);
            rest /= size;
        }
    }
}

static uint32_t places_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    uint32_t bytes = number_bytes(c->types[0]);

    (void)launch;
    return i == 1   ? OFFSETS_DIMS * bytes
           : i == 4 ? 8u * (c->layout != 0)
                    : bytes;
}

bool compute_places_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "13write_indicesI");

    c->reach = places_reach;
    c->run = run_places; /* int before 2.8, then int64_t */
    c->layout = strstr(name, "EEiS5_S3_l") != NULL;
    return text && name_types(&text, c->types, 1);
}

/* How many distinct values the policy says. At least one. */
static uint64_t guess_distinct(const struct compute *c,
                               const struct kernel_launch *launch,
                               uint64_t count)
{
    uint64_t chosen = compute_guess(c, launch, count,
                                    "how many values are distinct (unique)");

    return chosen || !count ? chosen : 1;
}

static bool is_first(const struct compute *c, uint64_t in, uint64_t i)
{
    uint32_t bytes = number_bytes(c->types[1]);
    long double a, b;

    if (!i)
        return true;
    compute_load(c->types[1], in + (i - 1) * bytes, &a);
    compute_load(c->types[1], in + i * bytes, &b);
    return a != b;
}

static bool runs_known(const struct compute *c, uint64_t in, uint64_t count)
{
    return count <= COMPUTE_INTEGERS &&
           values_known(in, count * number_bytes(c->types[1]));
}

/* The same kernel that keeps the first of equals: (in, -, out, number, ...,
 * count). torch counts in int64_t. */
static void run_unique(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t in = iterator_read(c, launch->arguments[0]);
    uint64_t out = compute_u64(launch, 2), number = compute_u64(launch, 3);
    uint64_t count = compute_u32(launch, 7), found = 0;
    uint32_t bytes = number_bytes(c->types[1]);

    if (!values_window(in) || !values_window(number))
        return;
    if (!runs_known(c, in, count)) {
        found = guess_distinct(c, launch, count);
        compute_store(NUMBER_I64, number, found, true);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        if (is_first(c, in, i))
            compute_move(out + found++ * bytes, in + i * bytes, bytes);
    compute_store(NUMBER_I64, number, found, true);
}

/* What is read, through a pointer or an iterator of CUB's (iterator_parse()).
 * The type after the policy's: "...Policy1000EPKl..."; or, where that is a
 * substitution, the policy's own, number PLACE of "policy_hubIlN3c104HalfEE".
 */
static bool pointer_parse(const char *name, struct compute *c, int place)
{
    const char *text = name_after(name, "EPK");
    enum number_type types[2];

    c->layout = strstr(name, "22TransformInputIteratorI") ? 8 : 0;
    c->reach = iterator_reach;
    if (!text || *text != 'S')
        return text && name_types(&text, c->types + 1, 1);
    text = name_after(name, "policy_hubI");
    if (!text || !name_types(&text, types, place + 1))
        return false;
    c->types[1] = types[place];
    return true;
}

bool compute_unique_parse(const char *name, struct compute *c)
{
    c->run = run_unique;
    return strstr(name, "8equal_toI") && pointer_parse(name, c, 0);
}

/* DeviceReduceByKeyKernel for run-length encoding: (in, values out, -, counts
 * out, number out, tiles, first tile, equality, operation, count). */
static void run_runs(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = iterator_read(c, launch->arguments[0]);
    uint64_t values = compute_u64(launch, 1);
    uint64_t lengths = compute_u64(launch, 3), number = compute_u64(launch, 4);
    uint64_t count = compute_u32(launch, 9), found = 0, start = 0;
    uint32_t bytes = number_bytes(c->types[1]);

    if (!values_window(in) || !values_window(number))
        return;
    if (!runs_known(c, in, count)) {
        found = guess_distinct(c, launch, count);
        for (uint64_t i = 0; i < found && found <= COMPUTE_INTEGERS; i++)
            compute_store(NUMBER_I64, lengths + 8 * i,
                          count / found + (i < count % found), true);
        compute_store(NUMBER_I64, number, found, true);
        return;
    }
    for (uint64_t i = 1; i <= count; i++) {
        if (i < count && !is_first(c, in, i))
            continue;
        compute_move(values + found * bytes, in + start * bytes, bytes);
        compute_store(NUMBER_I64, lengths + 8 * found++, i - start, true);
        start = i;
    }
    compute_store(NUMBER_I64, number, found, true);
}

bool compute_runs_parse(const char *name, struct compute *c)
{
    c->run = run_runs;
    return strstr(name, "onstant") && pointer_parse(name, c, 1);
}

/* adjacent_difference_kernel (int64_t count, in, int *out) */
static void run_difference(const struct compute *c,
                           const struct kernel_launch *launch)
{
    uint64_t count = compute_u64(launch, 0);
    uint64_t in = compute_u64(launch, 1), out = compute_u64(launch, 2);
    bool known = runs_known(c, in, count);

    if (count > (known ? COMPUTE_INTEGERS : COMPUTE_UNKNOWN))
        return;
    for (uint64_t i = 0; i < count; i++)
        compute_store(NUMBER_I32, out + 4 * i, i && is_first(c, in, i), known);
}

bool compute_difference_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "26adjacent_difference_kernelIPK");

    c->run = run_difference;
    return text && name_types(&text, c->types + 1, 1);
}

/* scatter_kernel (int64_t count, const int64_t *in, *indices, int64_t *out) */
static void run_inverse(const struct compute *c,
                        const struct kernel_launch *launch)
{
    uint64_t count = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t indices = compute_u64(launch, 2), out = compute_u64(launch, 3);
    long double x;

    (void)c;
    if (count > COMPUTE_INTEGERS || !values_known(indices, 8 * count))
        return;
    for (uint64_t i = 0; i < count; i++) {
        compute_load(NUMBER_I64, indices + 8 * i, &x);
        if (x >= 0 && x < count)
            compute_move(out + 8 * (uint64_t)x, in + 8 * i, 8);
    }
}

bool compute_inverse_parse(const char *name, struct compute *c)
{
    c->run = run_inverse;
    return strstr(name, "14scatter_kernelElPKl");
}
