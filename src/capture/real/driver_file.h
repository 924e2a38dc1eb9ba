/* SPDX-License-Identifier: Apache-2.0
 * Where NVIDIA's driver library is, which ours has the name of. */
#ifndef MEMSIM_CAPTURE_REAL_DRIVER_FILE_H
#define MEMSIM_CAPTURE_REAL_DRIVER_FILE_H

#include <stdbool.h>

#define DRIVER_FILE_BYTES 1024

/* Writes the path of libcuda.so.1 as ld.so(8) would find it without ours:
 * LD_LIBRARY_PATH, ld.so.cache, the usual directories. False: there is none. */
bool driver_file_find(char path[DRIVER_FILE_BYTES]);

#endif
