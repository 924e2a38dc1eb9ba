/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/text_begins.h"

static const int ending_signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};

#define SIGNALS (sizeof ending_signals / sizeof *ending_signals)

static struct entry {
    char path[PATH_MAX];
    void (*remove)(const char *path);
    volatile sig_atomic_t used;
} entries[TEMPORARY_MAX];

static pid_t owner; /* another child of fork() must remove nothing */
static struct sigaction xfsz_before;
static bool xfsz_is_ignored;

static void remove_all_and_end(int signal)
{
    for (size_t i = 0; i < TEMPORARY_MAX && getpid() == owner; i++)
        if (entries[i].used)
            entries[i].remove(entries[i].path);
    raise(signal); /* SA_RESETHAND: the default action, once this returns */
}

void temporary_handle_signals(void)
{
    struct sigaction action = {.sa_handler = remove_all_and_end,
                               .sa_flags = (int)SA_RESETHAND};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;

    owner = getpid();
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++)
        if (!sigaction(ending_signals[i], NULL, &old) &&
            old.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &action, NULL);
    xfsz_is_ignored = !sigaction(SIGXFSZ, &ignore, &xfsz_before);
}

void temporary_own(void)
{
    for (size_t i = 0; i < TEMPORARY_MAX; i++)
        entries[i].used = false;
    owner = getpid();
}

void temporary_restore_signals(void)
{
    if (xfsz_is_ignored)
        sigaction(SIGXFSZ, &xfsz_before, NULL);
}

static void block_signals(sigset_t *old)
{
    sigset_t ending;

    sigemptyset(&ending);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&ending, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &ending, old);
}

static void register_path(const char *path, void (*remove)(const char *path))
{
    for (size_t i = 0; i < TEMPORARY_MAX; i++) {
        struct entry *entry = &entries[i];
        if (entry->used)
            continue;
        snprintf(entry->path, sizeof entry->path, "%s", path);
        entry->remove = remove;
        entry->used = true;
        return;
    }
}

void temporary_add(const char *path, void (*remove)(const char *path))
{
    sigset_t mask;

    block_signals(&mask);
    register_path(path, remove);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

void temporary_forget(const char *path)
{
    for (size_t i = 0; i < TEMPORARY_MAX; i++)
        if (entries[i].used && !strcmp(entries[i].path, path))
            entries[i].used = false;
}

static void remove_file(const char *path)
{
    unlink(path);
}

#define MARK   ".memsim-"
#define CHOSEN "XXXXXX"

/* Removes FILE, a temporary one of ours, unless a program is writing it: that
 * has it locked. */
static void leftover_remove(const char *file)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        !flock(fd, LOCK_EX | LOCK_NB))
        unlink(file);
    close(fd);
}

/* Those for BASE of programs that were killed. */
static void leftovers_remove(const char *base)
{
    const char *slash = strrchr(base, '/');
    const char *first = slash ? slash + 1 : base;
    size_t length = strlen(first);
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - base) + 1 : 1,
             slash ? base : ".");
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, first, length) &&
            text_begins(e->d_name + length, MARK) &&
            strlen(e->d_name) == length + strlen(MARK CHOSEN) &&
            snprintf(path, sizeof path, "%.*s%s", (int)(first - base), base,
                     e->d_name) < PATH_MAX)
            leftover_remove(path);
    if (d)
        closedir(d);
}

int temporary_file(const char *base, char *name)
{
    sigset_t mask;

    if (snprintf(name, PATH_MAX, "%s" MARK CHOSEN, base) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    leftovers_remove(base);
    block_signals(&mask);
    int fd = mkostemp(name, O_CLOEXEC);
    int error = errno;
    if (fd >= 0) {
        flock(fd, LOCK_EX | LOCK_NB);
        register_path(name, remove_file);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return fd;
}
