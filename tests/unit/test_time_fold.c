/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/time_report.h"

#include "check.h"

#define ROW(text, time) {.name = text, .ns = time}

TEST(layers_are_one_row)
{
    struct timing_row rows[] = {
        ROW("Net", 110),          ROW("enc", 90),
        ROW("enc.layers", 90),    ROW("enc.layers.0", 30),
        ROW("enc.layers.1", 31),  ROW("enc.layers.10", 29),
        ROW("enc.layers.0.mlp", 8), ROW("enc.layers.1.mlp", 9),
        ROW("out", 20),
    };
    size_t count;
    struct time_fold *f = time_fold_make(rows, 9, &count);

    CHECK_UINT(count, 4);
    CHECK_STR(f[0].name, "Net");
    CHECK_STR(f[1].name, "enc.layers.*");
    CHECK_UINT(f[1].count, 3);
    CHECK_NEAR(f[1].ns, 90, 1e-9);
    CHECK_STR(f[2].name, "out");
    CHECK_STR(f[3].name, "enc.layers.*.mlp");
    CHECK_UINT(f[3].count, 2);
    time_fold_free(f, count);
}

TEST(numbers_in_a_name_are_no_layers)
{
    struct timing_row rows[] = {ROW("conv1", 2), ROW("conv2", 1)};
    size_t count;
    struct time_fold *f = time_fold_make(rows, 2, &count);

    CHECK_UINT(count, 2);
    CHECK_STR(f[0].name, "conv1");
    time_fold_free(f, count);
}
