/* SPDX-License-Identifier: Apache-2.0
 * The session's table of processes: it gives out slots, knows which processes
 * are alive, and returns the memory of ended ones to the GPUs.
 *
 * A process locks its slot in the session file (fcntl(2), an open file
 * description lock). The kernel releases the lock when the last copy of the
 * descriptor is closed: when the process ends, in whatever way, and when it
 * executes another program, as the descriptor is close-on-exec. A forked child
 * keeps a copy. NVIDIA's driver frees memory by the same rule: the memory
 * belongs to an open /dev/nvidia* descriptor.
 *
 * A process that cannot open the file itself uses an inherited descriptor. It
 * holds a process lock (F_SETLK) instead.
 *
 * Used inside the observed program: no heap, no stdio. Calls on one table must
 * not overlap. */
#ifndef MEMSIM_COMMON_TRACE_SESSION_TABLE_H
#define MEMSIM_COMMON_TRACE_SESSION_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/trace/session.h"

struct session_table {
    struct session *session; /* mapped, shared */
    uint32_t room;           /* slots that fit into the mapping */
    int fd;                  /* the file; locks the table, never a slot */
    int hold;                /* descriptor that locks this process's slot */
    uint32_t mine;           /* that slot; UINT32_MAX: none */
    bool inherited;          /* FD is inherited: locks are the process's */
    int given;               /* a descriptor to use if no path works; or -1 */
    dev_t device;            /* of the file: shows that a program closed FD */
    ino_t inode;             /* and opened another file with its number */
};

#define SESSION_TABLE_INIT                                                     \
    {                                                                          \
        .fd = -1, .hold = -1, .mine = UINT32_MAX, .given = -1                  \
    }

/* Maps the session PATH or, if that cannot be opened, the file of the
 * descriptor GIVEN (-1: none). Returns 0 with `session` set, or the errno of
 * opening PATH. */
int session_table_open(struct session_table *table, const char *path,
                       int given);

/* A process that takes a slot. */
struct session_joiner {
    uint32_t rank;
    const char *program;
    uint64_t command; /* session_process.command */
    uint64_t now_ns;  /* CLOCK_MONOTONIC of the host */
};

/* Takes a slot for this process. What JOINER says and the number are set, the
 * rest is zero. The slot of an ended process is used again if its peaks are not
 * above those of another process of the same rank, program and command that
 * ended in the same way; its figures are added to that one's first. Returns the
 * slot, or UINT32_MAX with errno set if the file cannot grow. */
uint32_t session_table_join(struct session_table *table,
                            const struct session_joiner *joiner);

/* The number of slots in use or used before, within this mapping. */
uint32_t session_table_count(const struct session_table *table);

/* Whether the process of SLOT still holds its memory. True if the kernel does
 * not tell. */
bool session_table_is_held(struct session_table *table, uint32_t slot);

/* Returns the memory of dead processes to the GPU CARD, once. */
void session_table_reclaim(struct session_table *table, uint32_t card);

/* Called before exec: opens the descriptor GIVEN and that of the directory
 * again, with the same numbers, if they were closed. Changes no memory. */
void session_table_hand_on(const struct session_table *table, int directory);

/* Whether NAME, relative to the descriptor DIRECTORY, is the session's file. */
bool session_table_is_at(const struct session_table *table, int directory,
                         const char *name);

/* In a forked child: it keeps its parent's slot locked, and has no slot. */
void session_table_forked(struct session_table *table);

/* Writes the path of the trace of process NUMBER of a run in DIRECTORY to PATH.
 * Returns 0, or -1 where SIZE is too small. */
int session_trace_path(const char *directory, uint32_t number, char *path,
                       size_t size);

/* The same as session_table_is_held(), for a descriptor FD of the session file
 * that holds no lock. */
bool session_slot_is_held(int fd, uint32_t slot);

#endif
