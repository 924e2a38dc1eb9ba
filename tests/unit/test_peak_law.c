/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/peak_law.h"

#include <string.h>

#include "check.h"
#include "common/base/units.h"

/* A step of 4 samples of LENGTH tokens. */
static void add(struct peak_law_points *p, uint64_t length, uint64_t peak)
{
    const struct step_input input = {
        .most = {.samples = 4, .tokens = length, .batch_tokens = 4 * length}};

    peak_law_add(p, &input, peak);
}

static const uint64_t some[] = {128, 512, 256, 384, 500, 640};

TEST(a_line_is_found_and_followed)
{
    struct peak_law_points p = {.count = 0};

    add(&p, 4096, 1); /* the first step counts for nothing */
    for (int i = 0; i < 6; i++)
        add(&p, some[i], 2 * GIB + 3 * MIB * some[i]);
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.degree, 1);
    CHECK_NEAR(law.linear, 3.0 * MIB, 1);
    CHECK_UINT(law.longest, 640);
    CHECK_NEAR((double)peak_law_at(&law, 2048), 8.0 * GIB, 1e4);
}

TEST(a_parabola_is_found_where_a_line_does_not_hold)
{
    struct peak_law_points p = {.count = 0};

    add(&p, 1, 1);
    for (int i = 0; i < 6; i++)
        add(&p, some[i], GIB + MIB * some[i] + 4096 * some[i] * some[i]);
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.degree, 2);
    CHECK_NEAR(law.square, 4096, 1);
    CHECK_NEAR((double)peak_law_at(&law, 2048), 19.0 * GIB, 1e5);
}

TEST(there_is_no_law_of_too_few_lengths)
{
    struct peak_law_points p = {.count = 0};

    add(&p, 1, 1);
    for (int i = 0; i < 6; i++)
        add(&p, some[i % 2], MIB * some[i % 2]);
    CHECK_UINT(peak_law_find(&p).degree, 0);
}

TEST(there_is_no_law_of_what_does_not_follow_the_length)
{
    struct peak_law_points flat = {.count = 0}, wild = flat, unlike = flat;
    const struct step_input other = {
        .most = {.samples = 3, .tokens = 100, .batch_tokens = 1300}};

    add(&flat, 1, 1), add(&wild, 1, 1), add(&unlike, 1, 1);
    for (unsigned i = 0; i < 6; i++) {
        add(&flat, some[i], 5 * GIB);
        add(&wild, some[i], GIB + (i % 3) * GIB);
        add(&unlike, some[i], MIB * some[i]);
    }
    peak_law_add(&unlike, &other, 100 * MIB);
    CHECK_UINT(peak_law_find(&flat).degree, 0);
    CHECK_UINT(peak_law_find(&wild).degree, 0);
    CHECK_UINT(peak_law_find(&unlike).degree, 0);
}

TEST(the_whole_batch_counts_where_number_and_length_differ)
{
    struct peak_law_points p = {.count = 0};

    for (unsigned i = 0; i < 7; i++) {
        uint64_t samples = 2 + i, tokens = some[i % 6];
        const struct step_input input = {
            .most = {.samples = samples,
                     .tokens = tokens,
                     .batch_tokens = samples * tokens}};
        peak_law_add(&p, &input, GIB + MIB * samples * tokens);
    }
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.dimension, PEAK_LAW_BATCH_TOKEN);
    CHECK_UINT(law.degree, 1);
    CHECK_UINT(law.samples, 0);
    CHECK_NEAR(law.linear, 1.0 * MIB, 1);
}

TEST(inputs_that_are_alike_are_known)
{
    struct peak_law_points p = {.count = 0};

    for (int i = 0; i < 4; i++)
        add(&p, 512, GIB);
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.degree, 0);
    CHECK_UINT(law.dimension, PEAK_LAW_TOKEN);
    CHECK_UINT(law.longest, 512);
}

TEST(a_dimension_has_a_name)
{
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++) {
        const char *name =
            peak_law_dimension_name((enum peak_law_dimension)d);
        CHECK_UINT(peak_law_dimension_find(name, strlen(name)), d);
    }
    CHECK_UINT(peak_law_dimension_find("tokens", 6), PEAK_LAW_DIMENSIONS);
    CHECK_UINT(peak_law_dimension_find("", 0), PEAK_LAW_DIMENSIONS);
}

static void add_values(struct peak_law_points *p, uint64_t samples,
                       uint64_t values, uint64_t peak)
{
    const struct step_input input = {
        .most = {.samples = samples,
                 .values = values,
                 .batch_values = samples * values}};

    peak_law_add(p, &input, peak);
}

TEST(a_law_of_the_values_of_a_sample)
{
    struct peak_law_points p = {.count = 0};

    add_values(&p, 2, 1, 1);
    for (int i = 0; i < 6; i++)
        add_values(&p, 2, 300 * some[i], GIB + 64 * KIB * 300 * some[i]);
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.degree, 1);
    CHECK_UINT(law.dimension, PEAK_LAW_VALUE);
    CHECK_UINT(law.samples, 2);
    CHECK_NEAR(law.linear, 64.0 * KIB, 1);
}

TEST(a_law_of_the_number_of_samples)
{
    struct peak_law_points p = {.count = 0};

    add_values(&p, 1, 32, 1);
    for (int i = 0; i < 6; i++)
        add_values(&p, some[i], 32, GIB + MIB * some[i]);
    struct peak_law law = peak_law_find(&p);
    CHECK_UINT(law.degree, 1);
    CHECK_UINT(law.dimension, PEAK_LAW_SAMPLE);
    CHECK_NEAR(law.linear, 1.0 * MIB, 1);
    add_values(&p, some[0], 64, 2 * GIB); /* both differ */
    CHECK_UINT(peak_law_find(&p).degree, 0);
}
