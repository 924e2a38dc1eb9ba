/* SPDX-License-Identifier: Apache-2.0
 * The entries of a directory, by system calls and without the heap. */
#ifndef MEMSIM_CAPTURE_CORE_FILES_ENTRIES_H
#define MEMSIM_CAPTURE_CORE_FILES_ENTRIES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* An entry as the kernel gives it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type; /* DT_DIR and so on; DT_UNKNOWN */
    char name[];
};

struct entries {
    int fd;
    bool first_only; /* those of one system call */
    long count, at;  /* in BYTES */
    _Alignas(struct entry) char bytes[8192];
};

/* Of the directory FD, which stays the caller's. */
void entries_begin(struct entries *e, int fd, bool first_only);

/* The next but . and ..; NULL at the end. */
const struct entry *entries_next(struct entries *e);

#endif
