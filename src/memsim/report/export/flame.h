/* SPDX-License-Identifier: Apache-2.0
 * What was allocated at the peak by Python stack, as folded stacks: the form
 * that flamegraph.pl, speedscope.app and inferno read. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_FLAME_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_FLAME_H

#include "memsim/report/report.h"

/* Of a struct result. "rank 0, GPU 0;main train.py:31;
 * forward model.py:12;aten::mul 4096": bytes; of a block without a stack, its
 * module and operator. */
extern const struct report_ops report_flame;

#endif
