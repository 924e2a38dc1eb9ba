/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch lets thrust do with int64_t: numbers in turn, merge sorts,
 * unique_by_key and adjacent differences. Sparse tensors are coalesced so
 * (SparseCUDATensor.cu), and unique(dim) compares rows so (Unique.cu). What
 * cannot be compared stays in its order; how many are distinct, the policy
 * says. */
#include <string.h>
#include <sys/mman.h>

#include "capture/core/base/pages.h"
#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_merge.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

/* Where a kernel's arguments are, which differ by the version of CUB. */
enum layout { LAYOUT_OLD, LAYOUT_NEW };

/* What is compared: int64_t themselves, or the rows that they number. The
 * lambda of unique_dim holds {int64_t width; const T *rows}. */
struct order {
    enum number_type type;
    uint64_t rows, width;
};

static bool is_rows(const struct compute *c)
{
    return c->types[1] != NUMBER_NONE;
}

static uint64_t word_at(const void *words, uint32_t i)
{
    uint64_t word;

    memcpy(&word, (const char *)words + 8 * i, sizeof word);
    return word;
}

static struct order order_read(const struct compute *c, const void *op)
{
    struct order o = {.type = c->types[1]};

    if (is_rows(c)) {
        o.width = word_at(op, 0);
        o.rows = word_at(op, 1);
    }
    return o;
}

/* Whether all that is compared is known, COUNT numbers at KEYS. */
static bool order_known(const struct order *o, uint64_t keys, uint64_t count)
{
    uint64_t bytes = count * o->width;

    if (count > COMPUTE_INTEGERS || !values_known(keys, 8 * count))
        return false;
    if (!o->rows || !bytes)
        return !o->rows;
    return bytes <= COMPUTE_INTEGERS &&
           values_known(o->rows, bytes * number_bytes(o->type));
}

static int numbers_compare(long double a, long double b)
{
    return (a > b) - (a < b);
}

static int order_compare(const struct order *o, int64_t a, int64_t b)
{
    uint32_t bytes = number_bytes(o->type);
    int way = o->rows ? 0 : numbers_compare(a, b);
    long double x, y;

    for (uint64_t i = 0; o->rows && !way && i < o->width; i++) {
        compute_load(o->type, o->rows + ((uint64_t)a * o->width + i) * bytes,
                     &x);
        compute_load(o->type, o->rows + ((uint64_t)b * o->width + i) * bytes,
                     &y);
        way = numbers_compare(x, y);
    }
    return way;
}

/* A merge_order of the numbers that are A's and B's bits. */
static bool in_order(const void *order, uint64_t a, uint64_t b)
{
    return order_compare(order, (int64_t)a, (int64_t)b) <= 0;
}

static int64_t number_at(uint64_t numbers, uint64_t i)
{
    long double x;

    compute_load(NUMBER_I64, numbers + 8 * i, &x);
    return (int64_t)x;
}

/* The sorted ones go to both of the places that CUB's merges, of which nothing
 * is carried out, go back and forth between. */
static void pairs_put(const struct kernel_launch *launch, int keys, int values,
                      const struct merge_item *sorted, uint64_t count)
{
    uint64_t to = compute_u64(launch, (uint32_t)keys);
    uint64_t values_to = compute_u64(launch, (uint32_t)values);

    for (uint64_t i = 0; i < count; i++) {
        if (values_window(to))
            compute_store(NUMBER_I64, to + 8 * i, (int64_t)sorted[i].key,
                          true);
        if (values_window(values_to))
            compute_store(NUMBER_I64, values_to + 8 * i,
                          (int64_t)sorted[i].place, true);
    }
}

static uint64_t count_read(const struct compute *c, const void *argument)
{
    return (uint64_t)number_load(c->scalar, argument);
}

/* DeviceMergeSortBlockSortKernel (bool, keys in, values in, keys out, values
 * out, count, keys' room, values' room, less, ...) */
static void run_sort(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t keys = compute_u64(launch, 1), values = compute_u64(launch, 2);
    uint64_t count = count_read(c, launch->arguments[5]);
    struct order o = order_read(c, launch->arguments[8]);
    bool has_values = values_window(values);

    if (!count || !values_window(keys) || !order_known(&o, keys, count) ||
        (has_values && !values_known(values, 8 * count)))
        return;
    size_t bytes = 2 * count * sizeof(struct merge_item);
    struct merge_item *pairs = memsim_pages_reserve(0, bytes);
    if (!pairs)
        return;
    for (uint64_t i = 0; i < count; i++)
        pairs[i] = (struct merge_item){
            (uint64_t)number_at(keys, i),
            has_values ? (uint64_t)number_at(values, i) : 0};
    const struct merge_item *sorted = merge_sort(pairs, count, in_order, &o);
    pairs_put(launch, 3, 4, sorted, count);
    pairs_put(launch, 6, 7, sorted, count);
    munmap(pairs, bytes);
}

static uint32_t sort_reach(const struct compute *c,
                           const struct kernel_launch *launch, int i)
{
    (void)launch;
    return i == 5 ? number_bytes(c->scalar) : is_rows(c) ? 16 : 0;
}

/* Of unique_dim's lambda: the type of what it compares. */
static bool rows_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "24unique_dim_cuda_templateI");

    return text && name_types(&text, c->types + 1, 1);
}

bool compute_merge_sort_parse(const char *name, struct compute *c)
{
    const char *count = name_after(name, "9Policy600E");
    const char *less = name_after(name, "N2at6native4LTOpIl");

    c->run = run_sort;
    c->reach = sort_reach;
    c->types[1] = NUMBER_NONE;
    if (!count || !rows_parse(name, c)) {
        if (!less)
            return false;
        count = less - strlen("N2at6native4LTOpIl") - 1;
    } else {
        count = strchr(count, 'Z') ? strchr(count, 'Z') - 1 : "";
    }
    /* Before the comparison's: the count's type. */
    return name_types(&count, &c->scalar, 1);
}

/* VALUES may be absent (0). */
struct unique {
    uint64_t keys, values, out, values_out, number, count;
    enum number_type number_type;
};

static void run_unique(const struct compute *c,
                       const struct kernel_launch *launch,
                       const struct order *o, const struct unique *u)
{
    uint64_t found = 0;
    int64_t before = 0;

    if (!u->count || !values_window(u->keys) || !values_window(u->number))
        return;
    if (!order_known(o, u->keys, u->count)) {
        found = compute_guess(c, launch, u->count,
                              "how many values are distinct (unique)");
        compute_store(u->number_type, u->number, found ? found : 1, true);
        return;
    }
    for (uint64_t i = 0; i < u->count; i++) {
        int64_t key = number_at(u->keys, i);

        if (!i || order_compare(o, before, key)) {
            compute_store(NUMBER_I64, u->out + 8 * found, key, true);
            if (u->values)
                compute_move(u->values_out + 8 * found, u->values + 8 * i, 8);
            found++;
        }
        before = key;
    }
    compute_store(u->number_type, u->number, found, true);
}

/* The first of equals, keys and values: (keys in, values in, keys out, values
 * out, number out, tiles, equal, count, ...), or, of CUB before 2.7's thrust,
 * (..., equal, number out, count, ...). */
static void run_unique_by_key(const struct compute *c,
                              const struct kernel_launch *launch)
{
    bool is_new = c->layout == LAYOUT_NEW;
    struct order o = order_read(c, launch->arguments[is_new ? 6 : 4]);

    run_unique(c, launch, &o,
               &(struct unique){.keys = compute_u64(launch, 0),
                                .values = compute_u64(launch, 1),
                                .out = compute_u64(launch, 2),
                                .values_out = compute_u64(launch, 3),
                                .number = compute_u64(launch, is_new ? 4 : 5),
                                .number_type = NUMBER_I32,
                                .count = compute_u32(launch, is_new ? 7 : 6)});
}

static uint32_t unique_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    int op = c->layout == LAYOUT_NEW ? 6 : 4;

    (void)launch;
    if (i == op)
        return is_rows(c) ? 16 : 0;
    return i == (op == 6 ? 4 : 5) ? 8 : i == (op == 6 ? 7 : 6) ? 4 : 0;
}

bool compute_unique_by_key_parse(const char *name, struct compute *c)
{
    c->run = run_unique_by_key;
    c->reach = unique_reach;
    c->types[1] = NUMBER_NONE;
    c->layout = strstr(name, "28DeviceUniqueByKeySweepKernel") ? LAYOUT_NEW
                                                               : LAYOUT_OLD;
    return rows_parse(name, c) || strstr(name, "8equal_toIlE");
}

/* UniqueAgent (in, out, equal, int *number out, int count, ...): the first rows
 * of equals, without values. */
static void run_unique_agent(const struct compute *c,
                             const struct kernel_launch *launch)
{
    struct order o = order_read(c, launch->arguments[2]);

    run_unique(c, launch, &o,
               &(struct unique){.keys = compute_u64(launch, 0),
                                .out = compute_u64(launch, 1),
                                .number = compute_u64(launch, 3),
                                .number_type = NUMBER_I32,
                                .count = compute_u32(launch, 4)});
}

bool compute_unique_agent_parse(const char *name, struct compute *c)
{
    c->run = run_unique_agent;
    return rows_parse(name, c);
}

/* The same by DeviceSelectSweepKernel (in, -, out, int64_t *number out, tiles,
 * -, equal, int count, ...). */
static void run_unique_rows(const struct compute *c,
                            const struct kernel_launch *launch)
{
    struct order o = order_read(c, launch->arguments[6]);

    run_unique(c, launch, &o,
               &(struct unique){.keys = compute_u64(launch, 0),
                                .out = compute_u64(launch, 2),
                                .number = compute_u64(launch, 3),
                                .number_type = NUMBER_I64,
                                .count = compute_u32(launch, 7)});
}

bool compute_unique_rows_parse(const char *name, struct compute *c)
{
    c->run = run_unique_rows;
    return rows_parse(name, c);
}

/* DeviceAdjacentDifferenceDifferenceKernel (in, -, out, operation, int count)
 * of int64_t: how much each is more than the one before, or whether its row is
 * another; the first is what it was. */
static void run_adjacent(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 2);
    struct order o = order_read(c, launch->arguments[3]);
    uint64_t count = compute_u32(launch, 4);
    int64_t before = 0;

    if (!values_window(in) || !values_window(out))
        return;
    if (!order_known(&o, in, count)) {
        compute_forget(NUMBER_I64, out, 8 * count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t here = number_at(in, i), more = here - before;

        if (i && is_rows(c))
            more = order_compare(&o, before, here) != 0;
        compute_store(NUMBER_I64, out + 8 * i, more, true);
        before = here;
    }
}

static uint32_t adjacent_reach(const struct compute *c,
                               const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return is_rows(c) ? 16 : 0;
}

bool compute_adjacent_parse(const char *name, struct compute *c)
{
    c->run = run_adjacent;
    c->reach = adjacent_reach;
    c->types[1] = NUMBER_NONE;
    return rows_parse(name, c) || strstr(name, "5minusIlE");
}

/* Copies in turn: what is copied are int64_t at an address, or those from a
 * first one on; and where to, their places are at an address, or in turn. */
struct transform {
    const void *in, *out;
    uint64_t count;
};

static void transform_elements(const struct compute *c,
                               const struct transform *t)
{
    bool is_count = c->types[0] == NUMBER_NONE, is_placed = c->is_cast;
    uint64_t in = word_at(t->in, 0);
    uint64_t places = word_at(t->out, 0);
    uint64_t out = is_placed ? word_at(t->out, 1) : places;

    if (!values_window(out))
        return;
    if (t->count > COMPUTE_INTEGERS ||
        (is_placed && !values_known(places, 8 * t->count))) {
        memsim_values_forget(out, 8 * t->count);
        return;
    }
    for (uint64_t i = 0; i < t->count; i++) {
        uint64_t to = is_placed ? (uint64_t)number_at(places, i) : i;

        if (to >= t->count)
            continue;
        if (is_count)
            compute_store(NUMBER_I64, out + 8 * to,
                          (long double)(int64_t)(in + i), true);
        else
            compute_move(out + 8 * to, in + 8 * i, 8);
    }
}

/* transform_kernel (int count, int, [bool, predicate,] identity, out, in) */
static void run_transform(const struct compute *c,
                          const struct kernel_launch *launch)
{
    int out = c->layout == LAYOUT_NEW ? 5 : 3;

    transform_elements(c, &(struct transform){.in = launch->arguments[out + 1],
                                              .out = launch->arguments[out],
                                              .count = compute_u32(launch, 0)});
}

/* (count, unary_transform_f{in, out, ...}), or the two in the other order. */
static void run_for_each(const struct compute *c,
                         const struct kernel_launch *launch)
{
    bool is_new = c->layout == LAYOUT_NEW;
    const char *function = launch->arguments[is_new];

    transform_elements(
        c, &(struct transform){.in = function,
                               .out = function + 8,
                               .count = compute_u64(launch, !is_new)});
}

static uint32_t transform_reach(const struct compute *c,
                                const struct kernel_launch *launch, int i)
{
    int out = c->layout == LAYOUT_NEW ? 5 : 3;

    (void)launch;
    return i == out ? 8u + 8u * c->is_cast : i == out + 1 ? 8 : 0;
}

static uint32_t for_each_reach(const struct compute *c,
                               const struct kernel_launch *launch, int i)
{
    (void)launch;
    return i == (c->layout == LAYOUT_NEW) ? 16u + 8u * c->is_cast : 8;
}

/* Only copies of int64_t. */
static bool copies_parse(const char *name, struct compute *c)
{
    bool is_count = strstr(name, "17counting_iteratorIl");

    c->is_cast = strstr(name, "20permutation_iteratorI");
    c->types[0] = is_count ? NUMBER_NONE : NUMBER_I64;
    return strstr(name, "identity") && (is_count || c->is_cast) &&
           strstr(name, c->is_cast ? "PKlE" : "10device_ptrIlE");
}

bool compute_transform_parse(const char *name, struct compute *c)
{
    c->run = run_transform;
    c->reach = transform_reach;
    c->layout = strstr(name, "EEvT0_ibT1_") ? LAYOUT_NEW : LAYOUT_OLD;
    return copies_parse(name, c) &&
           (c->layout == LAYOUT_NEW || strstr(name, "EEvT0_iT1_T2_Dp"));
}

bool compute_for_each_parse(const char *name, struct compute *c)
{
    c->run = run_for_each;
    c->reach = for_each_reach;
    c->layout = strstr(name, "13static_kernelI") ? LAYOUT_NEW : LAYOUT_OLD;
    return strstr(name, "17unary_transform_fI") && copies_parse(name, c) &&
           (strstr(name, "elN6thrust") || strstr(name, "_350_tElN") ||
            strstr(name, "_lEEvT0_T1_"));
}
