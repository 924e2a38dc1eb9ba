/* SPDX-License-Identifier: Apache-2.0
 * What the first bytes of a program file say about it. Pure. */
#ifndef MEMSIM_COMMON_BASE_ELF_H
#define MEMSIM_COMMON_BASE_ELF_H

#include <stddef.h>

#define ELF_HEAD_BYTES 4096 /* enough of a file to judge it by */

enum elf_kind {
    ELF_DYNAMIC,    /* for this machine, loads shared libraries */
    ELF_OTHER_LIBC, /* ... by a loader that is not glibc's: musl's, say */
    ELF_STATIC,     /* ... loads none, so nothing can be preloaded */
    ELF_32BIT,
    ELF_FOREIGN, /* another architecture's */
    ELF_SCRIPT,  /* begins with "#!" */
    ELF_OTHER,   /* anything else: execvp hands it to /bin/sh */
};

/* Judges a file by its first BYTES bytes (ELF_HEAD_BYTES, or all of it). */
enum elf_kind elf_classify(const void *head, size_t bytes);

/* The program that runs the script at HEAD, as the kernel and env(1) would
 * have it: INTERPRETER gets a path, or a name to look up where env names one.
 * Returns 0, or -1 where the line is empty or does not fit in SIZE. */
int elf_interpreter(const void *head, size_t bytes, char *interpreter,
                    size_t size);

#endif
