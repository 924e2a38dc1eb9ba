/* SPDX-License-Identifier: Apache-2.0
 * How busy the CPUs are while the program's steps run, as records: the reports
 * say by them whether the host's times are firm. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_CPU_LOOK_H
#define MEMSIM_CAPTURE_CORE_TORCH_CPU_LOOK_H

/* An outermost module is called, or --step-mark's function: looks, if a look is
 * due (look_pace.h), and leaves out its time from the trace's. */
void cpu_look_round(void);

#endif
