/* SPDX-License-Identifier: Apache-2.0
 * Temporary files and directories of our programs. They go when a signal ends
 * the program, too. For the programs only: nothing that is loaded into a user's
 * process uses this. */
#ifndef MEMSIM_COMMON_BASE_TEMPORARY_H
#define MEMSIM_COMMON_BASE_TEMPORARY_H

/* Installs handlers for SIGHUP, SIGINT, SIGPIPE and SIGTERM, where they have
 * their default action: each removes what is registered here and ends the
 * program as the signal would have. Ignores SIGXFSZ, so that a write beyond
 * `ulimit -f` fails with EFBIG. Call it once, at the start of main. */
void temporary_handle_signals(void);

/* In a child of fork() that does part of the program's work: it removes what it
 * registers itself, and nothing of its parent's. Other children remove
 * nothing. */
void temporary_own(void);

/* Gives SIGXFSZ back the action that it had before: for a child of fork(),
 * before it executes another program. */
void temporary_restore_signals(void);

/* Registers PATH, which must not be longer than PATH_MAX. REMOVE removes it; it
 * is called in a signal handler and so must be async-signal-safe. Only as many
 * paths as TEMPORARY_MAX are remembered at once; more are not an error. */
#define TEMPORARY_MAX 4
void temporary_add(const char *path, void (*remove)(const char *path));

/* The program has removed or renamed PATH, or wants to keep it. */
void temporary_forget(const char *path);

/* Creates an open file, mode 0600, whose name begins with BASE, and registers
 * it. NAME (PATH_MAX bytes) gets its name. Returns the descriptor, which is
 * closed on exec, or -1 with errno set. */
int temporary_file(const char *base, char *name);

#endif
