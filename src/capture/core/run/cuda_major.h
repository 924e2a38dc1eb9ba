/* SPDX-License-Identifier: Apache-2.0
 * The libraries of both CUDA majors are preloaded, so that both can be NEEDED.
 * A program that looks for a runtime by its name is to find the one that it
 * uses, as on a machine that has only that one. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CUDA_MAJOR_H
#define MEMSIM_CAPTURE_CORE_RUN_CUDA_MAJOR_H

/* The path to give to dlopen() in place of NAME, "libcudart.so.12" say, so that
 * it fails: a loaded library or program, other than those in the folder OURS,
 * needs libraries of the other major, and none needs one of NAME's. NULL where
 * NAME is to be found, and for other names and paths. The path is constant. */
const char *cuda_major_hidden(const char *name, const char *ours);

/* The CUDA major, 12 or 13, whose libraries alone something needs that is
 * loaded and is not in the folder OURS; 0: both, or none. */
int cuda_major_used(const char *ours);

#endif
