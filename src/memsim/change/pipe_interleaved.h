/* SPDX-License-Identifier: Apache-2.0
 * Schedules of several stages on each rank, which pipe_schedule.h makes. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_INTERLEAVED_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_INTERLEAVED_H

#include "memsim/change/pipe_schedule.h"

/* Adds A to LIST. */
void pipe_list_add(struct pipe_list *list, const struct pipe_action *a);
/* Adds an exchange with COUNT (0: none is added) PARTS; returns its number. */
uint32_t pipe_list_exchange(struct pipe_list *list,
                            const struct pipe_transfer *parts, uint32_t count);
void pipe_list_wait(struct pipe_list *list, uint32_t exchange);
void pipe_list_release(struct pipe_list *list);

/* See pipe_schedule_make. */
int pipe_interleaved_make(const struct pipe_shape *shape,
                          struct pipe_list *lists, struct err *err);

#endif
