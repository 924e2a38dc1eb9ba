/* SPDX-License-Identifier: Apache-2.0
 * Operator fits (fits/ops/GPU.json, written by `memsim fit`) as cost images. */
#ifndef MEMSIM_FITS_COST_FIT_H
#define MEMSIM_FITS_COST_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct cost_image;
struct err;
struct gpu;

/* Makes the image of GPU. PATH names the fit; NULL: the one of GPU in memsim's
 * own fits, if it has one. Work that the fit has no model for borrows those of
 * the GPUs nearest to it, marked as borrowed. The caller frees the image.
 * Returns NULL on failure. */
struct cost_image *cost_fit_load(const struct gpu *gpu, const char *path,
                                 struct err *err);

/* Whether memsim has a fit of GPU's own, so that not all is borrowed. */
bool cost_fit_is_own(const struct gpu *gpu);

/* The image of GPU as if it had no fit: all is borrowed. */
struct cost_image *cost_fit_borrow(const struct gpu *gpu, struct err *err);

/* The same of the LENGTH bytes of JSON alone, with nothing borrowed. ORIGIN
 * stands for the file in messages. */
struct cost_image *cost_fit_load_text(const char *json, size_t length,
                                      const char *origin, struct err *err);

#endif
