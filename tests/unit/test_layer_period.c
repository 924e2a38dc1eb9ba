/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_period.h"

#include <string.h>

#include "check.h"

#define LONGEST 512

/* The marks of TEXT: its characters. */
static size_t marks_of(const char *text, uint64_t marks[LONGEST])
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        marks[i] = (unsigned char)text[i];
    return length;
}

static void check_region(const char *text, uint32_t layers, size_t at,
                         size_t length, size_t period)
{
    uint64_t marks[LONGEST];
    struct layer_region r;

    CHECK(layer_region_find(marks, marks_of(text, marks), layers, 1, &r));
    CHECK_UINT(r.at, at);
    CHECK_UINT(r.length, length);
    CHECK_UINT(r.period, period);
}

TEST(what_repeats_once_per_layer_is_found)
{
    check_region("<abcdabcdabcdabcd>", 4, 1, 16, 4);
    check_region("xyabcdabcdabcdz", 3, 2, 12, 4);
    /* the last layer of a backward lacks an operation */
    check_region("<bcdabcdabcdabcd>", 4, 1, 15, 4);
    /* something in a layer repeats as often: the longer counts */
    check_region("<qqqabqqqabqqqab>", 3, 1, 15, 5);
    /* two layers are not one of twice the length */
    check_region("<abcabcabcabc>", 4, 1, 12, 3);
}

TEST(what_does_not_repeat_as_often_is_not_found)
{
    uint64_t marks[LONGEST];
    struct layer_region r;

    CHECK(!layer_region_find(marks, marks_of("abcdefgh", marks), 4, 1, &r));
    CHECK(!layer_region_find(marks, marks_of("<abcabc>", marks), 6, 1, &r));
    CHECK(!layer_region_find(marks, 0, 2, 1, &r));
    /* each parameter has three operations, each layer two parameters */
    CHECK(layer_region_find(marks, marks_of("<abcdefabcdefabcdef>", marks), 3,
                            2, &r));
    CHECK_UINT(r.period, 6);
    CHECK(!layer_region_find(marks, marks_of("<abcdeabcdeabcde>", marks), 3, 2,
                             &r));
}

TEST(the_number_of_layers_is_what_most_operations_agree_on)
{
    uint64_t marks[LONGEST];

    /* a forward with all, a backward whose first layer is another */
    CHECK_UINT(
        layer_count_guess(
            marks, marks_of("<abcdabcdabcdabcd>hiZkmnhikmnhikmnhikm|", marks)),
        4);
    CHECK_UINT(layer_count_guess(marks, marks_of("abcdefghijk", marks)), 0);
    CHECK_UINT(layer_count_guess(marks, 0), 0);
}
