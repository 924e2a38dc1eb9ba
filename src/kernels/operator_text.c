/* SPDX-License-Identifier: Apache-2.0
 * The lists of an operator's arguments in a profiler's trace. */
#include "kernels/operator.h"

#include <string.h>

#define EXTENT_MAX UINT64_C(1000000000000)

static const struct element_type {
    const char *name;
    uint8_t bytes, type;
} types[] = {
    {"float", 4, WORK_FP32},
    {"double", 8, WORK_FP64},
    {"c10::Half", 2, WORK_FP16},
    {"c10::BFloat16", 2, WORK_BF16},
    {"long int", 8, WORK_INTEGER},
    {"long", 8, WORK_INTEGER},
    {"int", 4, WORK_INTEGER},
    {"short", 2, WORK_INTEGER},
    {"bool", 1, WORK_INTEGER},
    {"unsigned char", 1, WORK_INTEGER},
    {"signed char", 1, WORK_INT8},
    {"c10::Float8_e4m3fn", 1, WORK_FP8},
    {"c10::Float8_e5m2", 1, WORK_FP8},
    {"c10::complex<float>", 8, WORK_FP32},
};

/* A piece of a text. */
struct item {
    const char *at;
    size_t length;
};

/* The items of a list in brackets, one after the other. *AT is behind the
 * bracket; false at the list's end. */
static bool item_next(const char **at, struct item *item)
{
    const char *start = *at, *end = start;
    int depth = 0;

    if (!*start || *start == ']')
        return false;
    for (; *end && (depth || (*end != ',' && *end != ']')); end++)
        depth += (*end == '[') - (*end == ']');
    while (start < end && *start == ' ')
        start++;
    *item = (struct item){start, (size_t)(end - start)};
    *at = end + (*end == ',');
    return true;
}

/* A whole number; false where ITEM is none. What is behind a point counts as
 * nothing. */
static bool number_read(struct item item, int64_t *number)
{
    size_t i = item.length && item.at[0] == '-';
    uint64_t value = 0;

    if (i >= item.length || item.at[i] < '0' || item.at[i] > '9')
        return false;
    for (; i < item.length && item.at[i] >= '0' && item.at[i] <= '9'; i++)
        if ((value = 10 * value + (uint64_t)(item.at[i] - '0')) > EXTENT_MAX)
            return false;
    *number = item.at[0] == '-' ? -(int64_t)value : (int64_t)value;
    return i == item.length || item.at[i] == '.';
}

/* The numbers of a list; how many, -1 where it is no list of numbers. */
static int extents_read(struct item item, uint64_t extents[OPERATOR_DIMENSIONS])
{
    const char *at = item.at + 1;
    struct item one;
    int count = 0;

    if (!item.length || *item.at != '[')
        return -1;
    while (item_next(&at, &one)) {
        int64_t number;
        if (!number_read(one, &number) || number < 0 ||
            count == OPERATOR_DIMENSIONS)
            return -1;
        extents[count++] = (uint64_t)number;
    }
    return count;
}

static double elements_of(const uint64_t *sizes, int dimensions)
{
    double elements = 1;

    for (int i = 0; i < dimensions; i++)
        elements *= (double)sizes[i];
    return elements <= (double)EXTENT_MAX ? elements : 0;
}

/* The elements of a list of tensors together. */
static double list_elements(struct item item)
{
    const char *at = item.at + 1;
    struct item one;
    double sum = 0;

    while (item_next(&at, &one)) {
        uint64_t sizes[OPERATOR_DIMENSIONS];
        int count = extents_read(one, sizes);
        if (count < 0)
            return 0;
        sum += elements_of(sizes, count);
    }
    return sum;
}

static void type_read(struct item item, struct operator_argument *a)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == item.length &&
            !memcmp(types[i].name, item.at, item.length)) {
            a->element_bytes = types[i].bytes;
            a->type = types[i].type;
        }
}

/* A tensor's sizes; of a list of tensors, how many elements there are. */
static void sizes_read(struct item item, struct operator_argument *a)
{
    int count = extents_read(item, a->sizes);

    if (count < 0) {
        a->elements =
            item.length > 1 && item.at[1] == '[' ? list_elements(item) : 0;
        return;
    }
    if (!a->element_bytes)
        return;
    a->elements = elements_of(a->sizes, count);
    a->dimensions = a->elements > 0 ? (uint8_t)count : 0;
}

static void strides_read(struct item item, struct operator_argument *a)
{
    a->has_strides = a->dimensions &&
                     extents_read(item, a->strides) == a->dimensions;
}

static bool has_digit_above_0(struct item item)
{
    for (size_t i = 0; i < item.length; i++)
        if (item.at[i] >= '1' && item.at[i] <= '9')
            return true;
    return false;
}

/* "True", "3", "0.1", "[1, 1]" */
static void concrete_read(struct item item, struct operator_argument *a)
{
    const char *at = item.at + 1;
    struct item one = item;
    bool list = item.length && *item.at == '[';

    while (a->number_count < OPERATOR_NUMBERS &&
           (!list || item_next(&at, &one))) {
        int64_t *to = &a->numbers[a->number_count];
        bool yes = one.length == 4 && !memcmp(one.at, "True", 4);
        bool no = one.length == 5 && !memcmp(one.at, "False", 5);
        if (yes || no)
            *to = yes;
        else if (!number_read(one, to))
            return;
        a->nonzero |= !a->number_count && (yes || has_digit_above_0(one));
        a->number_count++;
        if (!list)
            return;
    }
}

bool operator_read(struct operator_call *call, const char *name,
                   const char *const texts[4])
{
    static void (*const read[4])(struct item, struct operator_argument *) = {
        [OPERATOR_DIMS] = sizes_read,
        [OPERATOR_TYPES] = type_read,
        [OPERATOR_STRIDES] = strides_read,
        [OPERATOR_CONCRETE] = concrete_read,
    };
    static const uint8_t order[] = {OPERATOR_TYPES, OPERATOR_DIMS,
                                    OPERATOR_STRIDES, OPERATOR_CONCRETE};

    memset(call, 0, sizeof *call);
    call->name = name;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *at = texts[order[i]];
        struct item item;
        unsigned count = 0;
        if (!at || *at++ != '[') {
            if (order[i] <= OPERATOR_TYPES)
                return false;
            continue;
        }
        for (; count < OPERATOR_ARGUMENTS && item_next(&at, &item); count++)
            read[order[i]](item, &call->arguments[count]);
        if (order[i] == OPERATOR_DIMS)
            call->count = count;
    }
    return true;
}
