/* SPDX-License-Identifier: Apache-2.0
 * A gzip stream as a stream of what is in it. */
#ifndef MEMSIM_COMMFIT_UNZIP_H
#define MEMSIM_COMMFIT_UNZIP_H

#include <stdio.h>

/* Reads what RAW has compressed, several members as one. Reading fails with
 * EIO (ferror) where RAW is damaged or ends early. RAW stays the caller's and
 * must outlive the result. NULL where the host has no memory. */
FILE *unzip_open(FILE *raw);

#endif
