/* SPDX-License-Identifier: Apache-2.0
 * What the catalogue of GPUs says of a machine's links. */
#ifndef MEMSIM_FITS_MACHINE_H
#define MEMSIM_FITS_MACHINE_H

#include "runtime/nccl/fit.h"

struct gpu;

/* Finds the GPU of the catalogue that TEXT names: a name of it, or what a
 * benchmark prints. Returns 0, or -1 where it is none. */
int machine_gpu(const char *text, struct gpu *gpu);

/* Fills *MACHINE in for the GPU that TEXT names: a name of the catalogue, or
 * what a benchmark prints ("NVIDIA H100 80GB HBM3", "GB200 NVL72 (printed as
 * NVIDIA Graphics Device)"). What the catalogue does not know stays 0. */
void machine_find(const char *text, struct fit_machine *machine);

#endif
