/* SPDX-License-Identifier: Apache-2.0
 * NVML's own part: which GPU a handle means. NVML counts every GPU of the
 * machine, whatever CUDA_VISIBLE_DEVICES says, and needs no context. */
#ifndef MEMSIM_CAPTURE_NVML_NVML_CARD_H
#define MEMSIM_CAPTURE_NVML_NVML_CARD_H

/* Both forms of every function are declared: NAME and NAME_v2. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "capture/core/run/process.h"

/* The number of the GPU behind HANDLE, into *CARD, where nvmlInit was called
 * and the handle is one of ours. */
nvmlReturn_t nvml_card(nvmlDevice_t handle, unsigned *card);

/* The catalogue's GPU, and what the run's processes took of number CARD. */
const struct gpu *nvml_gpu(void);
struct session_device *nvml_usage(unsigned card);

/* Writes TEXT to a caller's buffer of LENGTH bytes. */
nvmlReturn_t nvml_text(char *out, unsigned length, const char *text);

/* Returns from an entry point where its GPU cannot be had. */
#define NEED_CARD(handle, card)                                                \
    unsigned card;                                                             \
    do {                                                                       \
        nvmlReturn_t need_ = nvml_card(handle, &card);                         \
        if (need_)                                                             \
            return need_;                                                      \
    } while (0)

#endif
