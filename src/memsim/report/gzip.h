/* SPDX-License-Identifier: Apache-2.0
 * Compression of what is written to a stream, in gzip's format. */
#ifndef MEMSIM_MEMSIM_REPORT_GZIP_H
#define MEMSIM_MEMSIM_REPORT_GZIP_H

#include <stdio.h>

/* A stream whose writes come out compressed at TO, which stays the caller's and
 * keeps the errors; fclose ends it. NULL where there is no memory. */
FILE *gzip_open(FILE *to);

#endif
