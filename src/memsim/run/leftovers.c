/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/trace/session_table.h"
#include "memsim/run/kept_files.h"
#include "memsim/run/rundir.h"

#define PREFIX RUNDIR_PRIVATE
#define RANDOM 6 /* characters that mkdtemp() chooses */

static bool is_private_name(const char *name)
{
    return text_begins(name, PREFIX) && strlen(name) == strlen(PREFIX) + RANDOM;
}

static bool is_mine(const char *path)
{
    struct stat st;

    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* The lock of the run in PATH, taken; -1: its memsim lives, or it never had
 * one. */
static int lock_take(const char *path)
{
    char *name = xasprintf("%s/" SESSION_LOCK, path);
    int fd = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    free(name);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Whether a process of the run lives: one that has inherited the session
 * (handover.c), one that uses a GPU, or one that may become a rank. */
static bool has_process(const struct session *s, int session)
{
    if (flock(session, LOCK_EX | LOCK_NB))
        return true;
    for (uint32_t i = 0; i < session_slots(s); i++)
        if (session_slot_is_held(session, i))
            return true;
    for (uint32_t i = 0; i < SESSION_LOADED; i++) {
        pid_t pid = (pid_t)atomic_load(&s->loaded[i]);

        if (pid && (!kill(pid, 0) || errno == EPERM))
            return true;
    }
    return false;
}

static bool is_over(const struct rundir *dir)
{
    char *name = xasprintf("%s/" SESSION_FILE, dir->path);
    int session = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool over = session >= 0 && !has_process(dir->session, session);

    free(name);
    if (session >= 0)
        close(session);
    return over;
}

static void leftover_remove(const char *path)
{
    struct err ignored = {""};
    struct rundir dir;
    int lock = is_mine(path) ? lock_take(path) : -1;

    if (lock < 0)
        return;
    if (rundir_open(&dir, path, &ignored)) {
        close(lock);
        return;
    }
    if (!is_over(&dir)) {
        close(lock);
        rundir_close(&dir);
        return;
    }
    dir.lock = lock;
    dir.temporary = dir.created = true;
    kept_files_end(&dir);
    rundir_remove(&dir);
}

void leftovers_remove(const char *temporary)
{
    DIR *d = opendir(temporary);

    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_private_name(e->d_name)) {
            char *path = xasprintf("%s/%s", temporary, e->d_name);
            leftover_remove(path);
            free(path);
        }
    if (d)
        closedir(d);
}
