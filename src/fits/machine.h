/* SPDX-License-Identifier: Apache-2.0
 * What the catalogue of GPUs says of a machine's links. */
#ifndef MEMSIM_FITS_MACHINE_H
#define MEMSIM_FITS_MACHINE_H

#include "runtime/cost/fit.h"

/* Fills *MACHINE in for the GPU that TEXT names: a name of the catalogue, or
 * what a benchmark prints ("NVIDIA H100 80GB HBM3", "GB200 NVL72 (printed as
 * NVIDIA Graphics Device)"). What the catalogue does not know stays 0. */
void machine_find(const char *text, struct fit_machine *machine);

#endif
