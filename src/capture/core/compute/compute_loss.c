/* SPDX-License-Identifier: Apache-2.0
 * aten/src/ATen/native/cuda/Loss.cu and NLLLoss2d.cu: a loss is not computed,
 * but a target that is no class is an assertion there. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_bounds.h"
#include "capture/core/compute/compute_name.h"

/* Numbers of arguments; one that is not there is 0. */
static const struct loss {
    const char *pattern;
    int types; /* template arguments up to the targets' type; 0: int64_t */
    uint32_t target, count, classes, ignore;
} losses[] = {
    {"38nll_loss_forward_no_reduce_cuda_kernelI", 2, 2, 0, 5, 6},
    {"38nll_loss_forward_reduce_cuda_kernel_1dI", 2, 3, 0, 6, 7},
    {"38nll_loss_forward_reduce_cuda_kernel_2dI", 3, 3, 6, 8, 9},
    {"25nll_loss2d_forward_kernelI", 0, 3, 6, 5, 8},
};

static struct compute_bounds bounds_of(const struct compute *c, int64_t classes,
                                       int64_t ignore)
{
    return (struct compute_bounds){.what = "a target of nll_loss",
                                   .of = "classes",
                                   .type = c->types[0],
                                   .size = classes,
                                   .ignore = ignore};
}

static void run_loss(const struct compute *c,
                     const struct kernel_launch *launch)
{
    const struct loss *l = &losses[c->form];
    struct compute_bounds bounds =
        bounds_of(c, (int64_t)compute_u64(launch, l->classes),
                  (int64_t)compute_u64(launch, l->ignore));
    uint64_t count = 1;

    if (c->form != 1)
        count = compute_u64(launch, l->count);
    compute_bounds_check(&bounds, launch, compute_u64(launch, l->target),
                         count);
}

/* (..., int classes, elements of a sample, blocks of a sample, int64_t): a
 * sample is a picture. */
static void run_pictures(const struct compute *c,
                         const struct kernel_launch *launch)
{
    const struct loss *l = &losses[c->form];
    struct compute_bounds bounds =
        bounds_of(c, (int32_t)compute_u32(launch, l->classes),
                  (int64_t)compute_u64(launch, l->ignore));
    uint64_t blocks = compute_u32(launch, l->count + 1);
    uint64_t samples = blocks ? launch->grid[0] / blocks : 0;

    compute_bounds_check(&bounds, launch, compute_u64(launch, l->target),
                         samples * compute_u32(launch, l->count));
}

bool compute_loss_parse(const char *name, struct compute *c)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        const char *text = name_after(name, losses[i].pattern);

        if (!text)
            continue;
        c->form = (int)i;
        c->run = losses[i].types ? run_loss : run_pictures;
        c->types[0] = NUMBER_I64;
        if (!losses[i].types)
            return strstr(text, "iiil");
        if (!name_types(&text, c->types, losses[i].types))
            return false;
        c->types[0] = c->types[losses[i].types - 1];
        return true;
    }
    return false;
}
