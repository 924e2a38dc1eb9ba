/* SPDX-License-Identifier: Apache-2.0
 * cuSPARSELt's types as far as they matter here. NVIDIA's own header cannot be
 * included: it is C++ (versions 0.7 and 0.8 include <cstddef>). The values are
 * those of version 0.8, and of the functions' arguments all versions from 0.7
 * on declare the same. */
#ifndef MEMSIM_CAPTURE_CUSPARSELT_CUSPARSELT_FAKE_H
#define MEMSIM_CAPTURE_CUSPARSELT_CUSPARSELT_FAKE_H

#include <cusparse.h>
#include <stdint.h>

/* cusparseLtHandle_t and all the other objects, which programs own. */
typedef struct {
    _Alignas(16) uint8_t data[512];
} lt_object;

enum lt_matrix_attribute { LT_MATRIX_BATCH, LT_MATRIX_BATCH_STRIDE };

#define LT_PRODUCT_ATTRIBUTES 24 /* 20 are in use */

enum lt_algorithm_attribute {
    LT_ALGORITHM_ID,
    LT_ALGORITHM_COUNT, /* read-only */
    LT_ALGORITHM_SEARCH_ITERATIONS,
    LT_ALGORITHM_SPLIT_K,
    LT_ALGORITHM_SPLIT_K_MODE,
    LT_ALGORITHM_SPLIT_K_BUFFERS,
    LT_ALGORITHM_ATTRIBUTES,
};

#define LT_ONE_KERNEL 1 /* CUSPARSELT_SPLIT_K_MODE_ONE_KERNEL */

#endif
