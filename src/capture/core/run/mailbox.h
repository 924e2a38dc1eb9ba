/* SPDX-License-Identifier: Apache-2.0
 * Messages between the ranks of a communicator: a file in the run's directory
 * that the ranks on this machine map. Each rank has a seat, where only it
 * writes letters and all others read. A letter is for all ranks or for one, and
 * has a number that both sides count. Writing never waits: new letters replace
 * the oldest ones, which are lost for ranks that have not read them. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_MAILBOX_H
#define MEMSIM_CAPTURE_CORE_RUN_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"

#define MAILBOX_ID_BYTES 24
#define MAILBOX_SEATS    64 /* ranks that are processes, at most */
#define MAILBOX_BYTES    (UINT64_C(1) << 20) /* of a letter, at most */
#define MAILBOX_ALL      UINT32_MAX          /* a letter to all */

struct mailbox_file;

struct mailbox {
    struct mailbox_file *file; /* NULL: closed, or there was no room */
    uint32_t seats;            /* in the file */
    uint32_t seat;             /* this rank's; MAILBOX_SEATS: none */
    bool is_full;              /* nobody else will come */
};

/* The letter NUMBER of FROM's to TO (a rank, or MAILBOX_ALL), of BYTES. */
struct mailbox_letter {
    uint32_t from, to;
    uint64_t number, bytes;
};

enum mail {
    MAIL_HERE,
    MAIL_NOT_YET,
    MAIL_LOST,   /* it had to make place, or is of another size */
    MAIL_NOBODY, /* no such rank is there */
};

/* Opens that of the communicator ID and takes a seat as RANK of RANKS. Where
 * this fails, the mailbox has no file, and nobody is there. */
CORE_API void memsim_mailbox_open(struct mailbox *box,
                                  const char id[MAILBOX_ID_BYTES],
                                  uint32_t rank, uint32_t ranks);
CORE_API void memsim_mailbox_close(struct mailbox *box);

/* Writes LETTER, with MARKS of its bytes (values.h); DATA NULL: nothing is
 * known of it. */
CORE_API void memsim_mailbox_post(struct mailbox *box,
                                  const struct mailbox_letter *letter,
                                  const void *data, const unsigned char *marks);

/* Reads COUNT bytes at AT of LETTER to DATA and MARKS; NULL: only whether it is
 * there. */
CORE_API enum mail memsim_mailbox_read(const struct mailbox *box,
                                       const struct mailbox_letter *letter,
                                       uint64_t at, uint64_t count, void *data,
                                       unsigned char *marks);

/* Whether RANK has a seat; *PID is its process's. */
CORE_API bool memsim_mailbox_seated(const struct mailbox *box, uint32_t rank,
                                    uint32_t *pid);

/* Writes the ranks that have one to RANKS, ascending. Returns how many. */
CORE_API uint32_t memsim_mailbox_ranks(const struct mailbox *box,
                                       uint32_t ranks[MAILBOX_SEATS]);

/* Waits until someone sits down or posts a letter, MS milliseconds at most. */
CORE_API void memsim_mailbox_sleep(const struct mailbox *box, unsigned ms);

#endif
