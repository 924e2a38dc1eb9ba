/* SPDX-License-Identifier: Apache-2.0
 * What a script keeps of one call of its model to the next. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_KEPT_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_KEPT_H

#include "memsim/advice/tape.h"

/* Makes *TO of FROM, with what forwards leave on the GPU for longer than the
 * next call of a model moved to the CPU, without its graph. A variable may have
 * it during that call, so it is freed after it. Returns how many bytes are
 * freed earlier. */
uint64_t tape_free_kept(struct tape *to, const struct tape *from);

#endif
