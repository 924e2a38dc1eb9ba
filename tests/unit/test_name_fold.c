/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/name_fold.h"

#include "check.h"

static void folds(const char *name, const char *want)
{
    char *got = name_fold(name);

    CHECK_STR(got, want);
    free(got);
}

TEST(numbers_become_one)
{
    folds("", "");
    folds("layers.11", "layers.*");
    folds("layers.0.mlp.2", "layers.*.mlp.*");
    folds("conv2d.x1", "conv2d.x1");
    folds("7", "*");
}

TEST(only_several_are_counted)
{
    char *one = name_fold_text("a.*", "a.1", 1);
    char *more = name_fold_text("a.*", "a.1", 12);

    CHECK_STR(one, "a.1");
    CHECK_STR(more, "a.*, 12");
    free(one);
    free(more);
}
