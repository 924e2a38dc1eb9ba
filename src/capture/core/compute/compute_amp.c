/* SPDX-License-Identifier: Apache-2.0
 * What torch.amp.GradScaler does after a step: AmpKernels.cu. A script reads
 * the scale. */
#include <math.h>
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/memory/values.h"

static double double_of(const struct kernel_launch *launch, uint32_t i)
{
    double value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

/* amp_update_scale_cuda_kernel (float *scale, int *steps without infinity,
 * const float *infinity found, double growth, double backoff, int steps until
 * it grows). What is not known is finite. */
static void run_update(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t at = compute_u64(launch, 0), steps_at = compute_u64(launch, 1);
    uint64_t found_at = compute_u64(launch, 2);
    long double scale, steps, found;

    (void)c;
    if (!values_window(at) || !values_window(steps_at) ||
        !values_window(found_at))
        return;
    bool known = compute_load(NUMBER_F32, at, &scale);
    known &= compute_load(NUMBER_I32, steps_at, &steps);
    if (compute_load(NUMBER_F32, found_at, &found) && found) {
        scale = (float)(scale * double_of(launch, 4));
        steps = 0;
    } else if (++steps == compute_u32(launch, 5)) {
        float grown = (float)((double)scale * double_of(launch, 3));

        scale = isfinite(grown) ? grown : scale;
        steps = 0;
    }
    compute_store(NUMBER_F32, at, scale, known);
    compute_store(NUMBER_I32, steps_at, steps, known);
}

bool compute_amp_update_parse(const char *name, struct compute *c)
{
    c->run = run_update;
    return strstr(name, "EPfPiPKfddi") || strstr(name, "EPfPiS_ddi") ||
           strstr(name, "EPfPiPfddi");
}
