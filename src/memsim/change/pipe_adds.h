/* SPDX-License-Identifier: Apache-2.0
 * How autograd adds a further microbatch's gradients to those that are there,
 * where the recording has one microbatch and does not show it
 * (torch/csrc/autograd/functions/accumulate_grad.h): in place, with a kernel
 * for each parameter that works on the parameter, its gradient and the sum. The
 * first microbatch's gradients are taken as they are. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_ADDS_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_ADDS_H

#include "memsim/change/records.h"

/* Can the gradients of all parameters of R be added so? Returns 0, or -1 with
 * ERR set: a type is not known. */
int pipe_adds_check(const struct records *r, struct err *err);

/* The name of the kernel that adds gradients of ELEMENT_BYTES. */
const char *pipe_adds_name(uint64_t element_bytes);

/* Its launch for PARAMETER, with the id NAME. */
struct trace_launch pipe_adds_launch(const struct parameter *parameter,
                                     uint64_t name);

#endif
