/* SPDX-License-Identifier: Apache-2.0
 * The options of a simulation as one file, for a process that has no heap and
 * parses no JSON: `memsim run` makes it, each process of the run maps it.
 *
 *   struct playback_image | cost image | cluster, families, curves, knots
 *
 * Pointers of the cluster are offsets from the file's start until it is opened.
 */
#ifndef MEMSIM_PLAYBACK_IMAGE_H
#define MEMSIM_PLAYBACK_IMAGE_H

#include <stddef.h>

#include "common/base/err.h"
#include "playback/simulation.h"

/* The image of OPTIONS, of which the plan is left out; *BYTES long. The caller
 * gives it to xfree. */
void *playback_image_make(const struct simulation_options *options,
                          size_t *bytes);

/* Checks IMAGE, BYTES of memory that is changed (a private mapping of the
 * file), and sets *OPTIONS, which points into it. Returns 0, or -1 with ERR
 * set. */
int playback_image_open(void *image, size_t bytes,
                        struct simulation_options *options, struct err *err);

#endif
