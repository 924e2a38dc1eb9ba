/* SPDX-License-Identifier: Apache-2.0
 * The session's table of processes: who has a slot, who is alive, and whose
 * memory goes back to the GPUs.
 *
 * A process locks its slot in the session file (fcntl(2), an open file
 * description lock). The kernel releases the lock when the last copy of the
 * descriptor is closed: when the process ends, in whatever way, and when it
 * executes another program, as the descriptor is close-on-exec. A forked child
 * keeps a copy. NVIDIA's driver frees memory by the same rule: the memory
 * belongs to an open /dev/nvidia* descriptor.
 *
 * Where a process cannot open the file itself and uses an inherited
 * descriptor, it holds a lock of its own (F_SETLK) instead.
 *
 * Used inside the observed program: no heap, no stdio. Calls on one table must
 * not overlap. */
#ifndef MEMSIM_COMMON_SESSION_TABLE_H
#define MEMSIM_COMMON_SESSION_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/trace/session.h"

struct session_table {
    struct session *session; /* mapped, shared */
    uint32_t room;           /* slots that the mapping has room for */
    int fd;                  /* the file; it locks the table, never a slot */
    int hold;                /* its lock holds this process's slot */
    uint32_t mine;           /* that slot; UINT32_MAX: none */
    bool inherited;          /* FD is: locks are the process's */
    int given;               /* a descriptor to use where no path works; -1 */
    dev_t device;            /* of the file: tells when a program has closed */
    ino_t inode;             /* FD and opened another file by its number */
};

#define SESSION_TABLE_INIT                                                     \
    {                                                                          \
        .fd = -1, .hold = -1, .mine = UINT32_MAX, .given = -1                  \
    }

/* Maps the session PATH, or, where that cannot be opened, the one behind the
 * descriptor GIVEN (-1: none). Returns 0, or the errno that PATH met; 0 with
 * session NULL does not occur. */
int session_table_open(struct session_table *table, const char *path,
                       int given);

/* Takes a slot for this process, of RANK and PROGRAM, zeroed but for these and
 * its number. The figures of an earlier process whose peaks are not above
 * another's of the same rank and program are added to those first, and its
 * slot is used again. Returns the slot, or UINT32_MAX where the file cannot
 * grow, with errno set. */
uint32_t session_table_join(struct session_table *table, uint32_t rank,
                            const char *program);

/* Slots in use or used, as far as this mapping reaches. */
uint32_t session_table_count(const struct session_table *table);

/* Whether the process of SLOT holds its memory still. True where the kernel
 * does not answer. */
bool session_table_is_held(struct session_table *table, uint32_t slot);

/* Gives what dead processes held of CARD back to it, once. */
void session_table_reclaim(struct session_table *table, uint32_t card);

/* Opens the descriptor GIVEN and that of the directory again, under the same
 * numbers, where they are closed: before exec. Changes no memory. */
void session_table_hand_on(const struct session_table *table, int directory);

/* Whether NAME, from the descriptor DIRECTORY, is the session's file. */
bool session_table_is_at(const struct session_table *table, int directory,
                         const char *name);

/* In a forked child: it keeps what holds its parent's slot, and no slot. */
void session_table_forked(struct session_table *table);

/* Writes the path of the trace of process NUMBER of a run in DIRECTORY to PATH.
 * Returns 0, or -1 where SIZE is too small. */
int session_trace_path(const char *directory, uint32_t number, char *path,
                       size_t size);

/* What session_table_is_held() answers, by a descriptor of the session file
 * that holds no lock. */
bool session_slot_is_held(int fd, uint32_t slot);

#endif
