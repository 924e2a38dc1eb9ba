/* SPDX-License-Identifier: Apache-2.0
 * Whether a command can be run with memsim: which program execvp would start,
 * and whether the loader would preload libraries into it. */
#ifndef MEMSIM_MEMSIM_RUN_TARGET_H
#define MEMSIM_MEMSIM_RUN_TARGET_H

#include <stddef.h>

#include "common/base/err.h"

enum target_status {
    TARGET_OK,
    TARGET_BLIND,      /* it runs, but only its children can be observed */
    TARGET_OTHER_LIBC, /* nor can its children: nothing can be preloaded */
    TARGET_NOT_EXECUTABLE,
    TARGET_NOT_FOUND,
};

/* Finds NAME as execvp does, in SEARCH (PATH's value; NULL: the default), and
 * follows scripts to the program that runs them. ERR is set in all cases but
 * TARGET_OK. */
enum target_status target_check(const char *name, const char *search,
                                struct err *err);

#endif
