/* SPDX-License-Identifier: Apache-2.0
 * This process in the run: the session it shares, its slot there, and the
 * handling of both in a fork and at the end. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_PROCESS_H
#define MEMSIM_CAPTURE_CORE_RUN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/core/base/core.h"
#include "common/trace/session.h"

/* The run's session; NULL where the library is loaded outside a run. */
CORE_API struct session *memsim_session(void);

/* This process's slot, taken when it first touches a GPU; NULL before. */
struct session_process *process_slot(void);

/* Takes the slot and opens the trace. Cheap when done already. Without a slot
 * afterwards this process cannot be measured, and has no device. */
void process_join(void);

/* This process ends with STATUS: its trace and its slot say so. A child of
 * vfork() shares our memory: its pid tells it apart. */
void process_end(uint32_t status);

/* This process got memory, or launched work: after an out-of-memory error it
 * has gone on. */
void process_goes_on(void);

/* Before a call of exec, which replaces this program, and after it where it
 * failed. Safe after vfork(). */
void process_replace(void);
void process_stay(void);

/* Opens the file NAME of the run's directory, which it makes where it is not
 * there, to read and write. A descriptor of the caller's, or -1. */
int process_file(const char *name);

/* Says once on stderr, inside a run whose session this process cannot open,
 * why it sees no device. */
void process_explain(void);

/* Before another program is executed: it gets the run's descriptors, though
 * this one may have closed them. Safe after vfork(). */
void process_hand_on(void);

/* Returns the memory of dead processes to the GPU CARD. */
CORE_API void memsim_process_reclaim(unsigned card);

/* The processes of the run, this one included, whose slots are from 0 to the
 * count; and whether one of them is alive, in its first program. */
CORE_API uint32_t memsim_process_count(void);
CORE_API bool memsim_process_lives(uint32_t slot);

/* This process is RANK of RANKS, as its first communicator says, where the
 * environment does not: so torch.multiprocessing starts ranks. */
CORE_API void memsim_process_world(uint32_t rank, uint32_t ranks);

/* That rank, or the environment's; 0 where neither says. */
uint32_t process_rank(void);

/* Called by py/sitecustomize.py: an OutOfMemoryError ends this process. */
CORE_API void memsim_process_died_of_oom(void);

/* Records TEXT, "NAME=VALUE", of at most TRACE_TEXT_MAX bytes: what is known of
 * this process. */
CORE_API void memsim_process_setting(const char *text);

/* Called by py/warm_server.py: this process, which was in no run, is forked for
 * a program whose command line is LINE, with a 0 after each word, and which was
 * started as the process STAND_IN. It enters the run that the environment names
 * now. */
CORE_API void memsim_process_enter(const char *line, size_t bytes,
                                   uint32_t stand_in);

/* The process that started this one's program, or stands in for it. */
uint32_t process_starter(void);

/* Called by py/warm.py: another process runs this one's program, so that this
 * one will be no rank. */
CORE_API void memsim_process_stands_in(void);

/* CUDA has been initialized: no child that is forked from now on can use it. */
void process_begin(void);

/* True in a child forked after its parent's process_begin. */
CORE_API bool memsim_process_forked(void);

/* Leaves a note for the report, once per text; printf-like. */
CORE_API void memsim_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Functions of others, called when the process enters a run after its start,
 * after its trace was opened, and when it ends, before its slot is released.
 * HOOK must not move. */
struct process_hook {
    void (*at_enter)(void);
    void (*at_open)(void);
    void (*at_end)(void);
    struct process_hook *next;
};

void process_hook_add(struct process_hook *hook);

#endif
