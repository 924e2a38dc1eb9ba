/* SPDX-License-Identifier: Apache-2.0
 * The program's buffers, and the records in them. */
#ifndef MEMSIM_CAPTURE_CUPTI_BUFFER_H
#define MEMSIM_CAPTURE_CUPTI_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/cupti/record.h"

/* The functions that give a buffer and take it back; both or none. The buffer
 * that is in use stays. */
void buffers_register(CUpti_BuffersCallbackRequestFunc request,
                      CUpti_BuffersCallbackCompleteFunc complete);
bool buffers_registered(void);

/* Asks for a buffer where none is in use. */
void buffer_ready(void);

/* Appends R, of KIND. Where there is no room for it in a buffer, it is lost and
 * counted. Calls the program's functions. */
void buffer_put(const union record *r, CUpti_ActivityKind kind);

/* Gives the buffer in use back, if it has records or ALWAYS. */
void buffer_complete(bool always);

/* Adds N to those that were lost; says how many since this was asked last. */
void buffer_lost(size_t n);
size_t buffer_lost_take(void);

#endif
