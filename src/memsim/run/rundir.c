/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/trace/meeting.h"
#include "common/trace/session_files.h"
#include "common/trace/session_table.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir_internal.h"

#define PATH_SAID    300 /* of a path, in an error */
#define LOCK_WAIT_MS 1000 /* for another who has not said who it is */

/* PATH, or its end where the whole would leave no room for an error's cause. */
static const char *path_end(const char *path)
{
    size_t length = strlen(path);

    return length > PATH_SAID ? path + length - PATH_SAID : path;
}

#define EXCHANGE_DIGITS 48
#define REMOVE_DEPTH    64 /* of what is removed when a signal ends memsim */

/* --- the files of a run --------------------------------------------------- */

/* What ranks sent each other (capture/core/run/mailbox.h). */
static bool is_exchange(const char *name)
{
    size_t prefix = strlen(SESSION_EXCHANGE);

    return !strncmp(name, SESSION_EXCHANGE, prefix) &&
           strspn(name + prefix, "0123456789abcdef") == EXCHANGE_DIGITS &&
           !name[prefix + EXCHANGE_DIGITS];
}

static bool is_run_file(const char *name)
{
    uint32_t number;

    return is_exchange(name) || !strcmp(name, SESSION_FILE) ||
           !strcmp(name, SESSION_COMMAND) ||
           !strcmp(name, SESSION_CLOCK) || !strcmp(name, MEETING_FILE) ||
           !strcmp(name, RUN_RANKS) ||
           !strcmp(name, RUN_LIBRARIES) ||
           !strcmp(name, SESSION_SCAN) || !strcmp(name, SESSION_AXES) ||
           !strcmp(name, SESSION_PLACES) ||
           !strcmp(name, SESSION_CHANGES) || !strcmp(name, RUN_OPTIONS) ||
           !strcmp(name, RUN_INVOCATION) || run_is_process(name, &number);
}

static bool is_session(int fd)
{
    char magic[sizeof((struct session *)0)->magic];

    return pread(fd, magic, sizeof magic, 0) == sizeof magic &&
           !memcmp(magic, SESSION_MAGIC, sizeof magic);
}

/* Nothing but what a run that is just beginning has made. */
static bool directory_is_empty(DIR *d)
{
    rewinddir(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            strcmp(entry->d_name, SESSION_LOCK))
            return false;
    return true;
}

/* Removes NAME in the directory FD and all below it; follows no link. */
static void remove_tree(int fd, const char *name)
{
    int inner =
        openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = inner < 0 ? NULL : fdopendir(inner);

    for (const struct dirent *entry; d && (entry = readdir(d));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (unlinkat(inner, entry->d_name, 0))
            remove_tree(inner, entry->d_name);
    }
    if (d)
        closedir(d);
    unlinkat(fd, name, AT_REMOVEDIR);
}

/* The session last: a directory without it is not a run's any more. */
static void remove_run_files(DIR *d)
{
    remove_tree(dirfd(d), SESSION_SCRATCH);
    rewinddir(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        if (is_run_file(entry->d_name) && strcmp(entry->d_name, SESSION_FILE))
            unlinkat(dirfd(d), entry->d_name, 0);
    unlinkat(dirfd(d), SESSION_FILE, 0);
}

static void session_release(struct rundir *dir)
{
    if (dir->mapped)
        munmap(dir->session, session_bytes(SESSION_SLOTS));
    else
        free(dir->session);
    dir->session = NULL;
    dir->mapped = false;
}

/* --- owning a directory --------------------------------------------------- */

static int lock_refused(int fd, const char *path, struct err *err)
{
    char pid[16] = "";

    if (errno != EWOULDBLOCK)
        return err_set(err,
                       "%s/" SESSION_LOCK
                       ": cannot lock it: %s; use -o on another disk",
                       path, strerror(errno));
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    return err_set(err, "%s: another memsim run is using it (process %.*s)",
                   path, n > 0 ? (int)strcspn(pid, "\n") : 1,
                   n > 0 ? pid : "?");
}

static bool is_at(int fd, int directory, const char *name)
{
    struct stat mine, there;

    return !fstat(fd, &mine) && !fstatat(directory, name, &there, 0) &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* Locks FD as its only holder. One who holds it without having written a pid
 * either looks for leftovers (leftovers.c) and goes at once, or is about to
 * write it: waited for, at most LOCK_WAIT_MS. 0, or -1 with errno. */
static int lock_wait(int fd)
{
    const struct timespec moment = {.tv_nsec = 1000 * 1000};
    char any;

    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
        int error = errno;

        if (error != EWOULDBLOCK || i == LOCK_WAIT_MS ||
            pread(fd, &any, 1, 0) == 1) {
            errno = error;
            return -1;
        }
        nanosleep(&moment, NULL);
    }
    return 0;
}

/* Locks the directory D at PATH by a file in it that holds our pid, until this
 * process ends. An owner removes the file as it leaves: the lock that counts
 * is that of the file which has the name. */
static int directory_lock(struct rundir *dir, int d, struct err *err)
{
    for (;;) {
        int fd = openat(d, SESSION_LOCK,
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_set(err,
                           "%s/" SESSION_LOCK
                           ": cannot create it: %s; use another -o",
                           dir->path, strerror(errno));
        if (lock_wait(fd)) {
            lock_refused(fd, dir->path, err);
            close(fd);
            return -1;
        }
        if (is_at(fd, d, SESSION_LOCK)) {
            dir->lock = fd;
            break;
        }
        close(fd);
    }
    if (ftruncate(dir->lock, 0) || dprintf(dir->lock, "%d\n", getpid()) < 0)
        return err_set(err,
                       "%s/" SESSION_LOCK
                       ": cannot write it: %s; use -o on another disk",
                       dir->path, strerror(errno));
    return 0;
}

/* The pid of a process of an earlier run that lives on; 0: none. */
static uint32_t find_survivor(int session, const char *path)
{
    struct err ignored = {""};
    struct session *s = rundir_session_read(session, path, &ignored);
    uint32_t pid = 0;

    for (uint32_t i = 0; s && !pid && i < session_slots(s); i++)
        if (session_slot_is_held(session, i))
            pid = s->processes[i].pid;
    free(s);
    return pid;
}

static bool is_locked(int d, const char *name)
{
    int fd = openat(d, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool locked = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* Whether an existing directory may become this run's. What is there is
 * removed only by its OWNER, who has it locked. */
static int directory_check(DIR *d, const char *path, bool force, bool owner,
                           struct err *err)
{
    uint32_t pid = 0;

    if (directory_is_empty(d))
        return 0;
    int fd = openat(dirfd(d), SESSION_FILE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (!owner && (fd >= 0 || is_locked(dirfd(d), SESSION_LOCK)))
        ; /* a run's, maybe one that is just beginning: the lock decides */
    else if (fd < 0 || !is_session(fd))
        err_set(err,
                "%s: is not empty, and no directory of a memsim run; give "
                "-o a new or empty one",
                path);
    else if (owner && !force)
        err_set(err,
                "%s: holds an earlier run; give -o another directory, or "
                "--force to replace that run",
                path);
    else if (owner && (pid = find_survivor(fd, path)))
        err_set(err, "%s: process %u of an earlier run is still using it", path,
                pid);
    else if (owner)
        remove_run_files(d);
    if (fd >= 0)
        close(fd);
    return err->text[0] ? -1 : 0;
}

/* Its owner can rename and replace what we put there. */
static int owner_check(int d, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(d, &st) || st.st_uid == geteuid())
        return 0;
    return err_set(err,
                   "%s: belongs to user %u, who could replace the run's files; "
                   "give -o a directory of your own, or a new one in it",
                   path, (unsigned)st.st_uid);
}

/* Locked from before anything is removed until the run is over. */
static int directory_own(struct rundir *dir, bool force, struct err *err)
{
    DIR *d = opendir(dir->path);

    if (!d)
        return err_set(err, "%s: cannot be the run's directory: %s", dir->path,
                       strerror(errno));
    int rc = owner_check(dirfd(d), dir->path, err);
    if (!rc)
        rc = directory_check(d, dir->path, force, false, err);
    if (!rc)
        rc = directory_lock(dir, dirfd(d), err);
    if (!rc)
        rc = directory_check(d, dir->path, force, true, err);
    closedir(d);
    return rc;
}

/* Removes what is in the directory FD, DEPTH levels of it, and closes FD.
 * Async-signal-safe: the kernel's own directory entries, no heap. */
static void remove_entries(int fd, int depth)
{
    char entries[2048];
    ssize_t got;

    while ((got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *e = (const void *)(entries + at);
            at += e->d_reclen;
            if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                !unlinkat(fd, e->d_name, 0) || !depth)
                continue;
            int inner = openat(fd, e->d_name,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner >= 0)
                remove_entries(inner, depth - 1);
            unlinkat(fd, e->d_name, AT_REMOVEDIR);
        }
    close(fd);
}

/* For a private directory, when a signal ends memsim. */
static void remove_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        remove_entries(fd, REMOVE_DEPTH);
    rmdir(path);
}

static int directory_make(struct rundir *dir, const char *path,
                          const char *temporary, struct err *err)
{
    char name[PATH_MAX], absolute[PATH_MAX];

    snprintf(name, sizeof name, "%s/" RUNDIR_PRIVATE "XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!path && !mkdtemp(name))
        return err_set(err, "%s: cannot create it: %s; set TMPDIR or use -o",
                       name, strerror(errno));
    dir->temporary = !path;
    dir->created = !path || !mkdir(path, 0700);
    if (!path)
        path = name;
    else if (!dir->created && errno != EEXIST)
        return err_set(err, "%s: cannot create it: %s; use another -o",
                       path_end(path), strerror(errno));
    if (!realpath(path, absolute))
        return err_set(err, "%s: %s", path, strerror(errno));
    if (strlen(absolute) >= sizeof dir->path) {
        err_set(err, "...%s: the path is too long; use a shorter one",
                path_end(path));
        if (dir->created)
            rmdir(path);
        return -1;
    }
    strcpy(dir->path, absolute);
    if (dir->temporary)
        temporary_add(dir->path, remove_directory);
    return 0;
}

/* --- a run of ours -------------------------------------------------------- */

static int session_map(struct rundir *dir, struct err *err)
{
    void *p = mmap(NULL, session_bytes(SESSION_SLOTS), PROT_READ | PROT_WRITE,
                   MAP_SHARED, dir->file, 0);

    if (p == MAP_FAILED)
        return err_set(err, "%s/%s: cannot map it: %s", dir->path, SESSION_FILE,
                       strerror(errno));
    dir->session = p;
    dir->mapped = true;
    return 0;
}

/* ERROR is that of allocating the session's file PATH. */
static int session_error(const char *path, int error, struct err *err)
{
    char wanted[16];

    if (error != EFBIG)
        return err_set(err, "%s: cannot write it: %s; use -o on another disk",
                       path, strerror(error));
    units_format_bytes(session_bytes(SESSION_SLOTS), wanted, sizeof wanted);
    return err_set(err,
                   "%s: this file takes %s, and files may not be so large "
                   "here; raise the limit (ulimit -f) or use -o on another "
                   "disk",
                   path, wanted);
}

/* All of the file is allocated here: later, a full disk would kill whichever
 * process first writes to a page. */
static int session_create(struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];

    rundir_file(dir->path, SESSION_FILE, path, sizeof path);
    dir->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (dir->file < 0)
        return err_set(err, "%s: cannot create it: %s; use another -o", path,
                       strerror(errno));
    int error =
        posix_fallocate(dir->file, 0, (off_t)session_bytes(SESSION_SLOTS));
    if (error)
        return session_error(path, error, err);
    if (session_slot_is_held(dir->file, 0))
        return err_set(err,
                       "%s: cannot lock parts of it: %s; use -o on "
                       "another disk",
                       path, strerror(errno));
    if (session_map(dir, err))
        return -1;
    struct session *s = dir->session;
    memcpy(s->magic, SESSION_MAGIC, sizeof s->magic);
    s->version = SESSION_VERSION;
    s->bytes = sizeof *s;
    strcpy(s->directory, dir->path);
    return 0;
}

int rundir_create(struct rundir *dir, const char *path, const char *temporary,
                  bool force, char *const *command, struct err *err)
{
    *dir = (struct rundir){.lock = -1, .file = -1};
    if (directory_make(dir, path, temporary, err))
        return -1;
    if (directory_own(dir, force, err)) { /* which removes nothing of others */
        rundir_close(dir);
        if (dir->created)
            rmdir(dir->path);
        return -1;
    }
    if (!session_create(dir, err) &&
        !rundir_write_words(dir, SESSION_COMMAND, command, err))
        return 0;
    rundir_remove(dir);
    return -1;
}

int rundir_collect(struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];

    rundir_file(dir->path, SESSION_FILE, path, sizeof path);
    struct session *s = rundir_session_read(dir->file, path, err);
    if (!s)
        return -1;
    session_release(dir);
    dir->session = s;
    return 0;
}

static uint32_t count_alive(const struct rundir *dir)
{
    const struct session *s = dir->session;
    uint32_t alive = 0;

    for (uint32_t i = 0; i < session_slots(s); i++)
        alive += atomic_load(&s->processes[i].state) == SESSION_RUNNING &&
                 session_slot_is_held(dir->file, i);
    return alive;
}

uint32_t rundir_background(const struct rundir *dir)
{
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    uint32_t alive = count_alive(dir);

    for (int i = 0; alive && i < 10; i++) {
        nanosleep(&moment, NULL);
        alive = count_alive(dir);
    }
    return alive;
}

static void exchanges_remove(const struct rundir *dir)
{
    DIR *d = opendir(dir->path);

    for (const struct dirent *entry; d && (entry = readdir(d));)
        if (is_exchange(entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
}

int rundir_finish(const struct rundir *dir, struct err *err)
{
    exchanges_remove(dir);
    size_t from = offsetof(struct session, end_ns);
    size_t bytes = offsetof(struct session, fail_above_percent) - from;

    if (pwrite(dir->file, (const char *)dir->session + from, bytes,
               (off_t)from) == (ssize_t)bytes)
        return 0;
    return err_set(err, "%s/%s: cannot write it: %s", dir->path, SESSION_FILE,
                   strerror(errno));
}

/* --- a run that was kept -------------------------------------------------- */

int rundir_open(struct rundir *dir, const char *path, struct err *err)
{
    char file[PATH_MAX];
    struct stat st;

    *dir = (struct rundir){.lock = -1, .file = -1};
    if (strlen(path) >= sizeof dir->path)
        return err_set(err, "...%s: the path is too long", path_end(path));
    strcpy(dir->path, path);
    rundir_file(path, SESSION_FILE, file, sizeof file);
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, "%s: %s; is %s the directory of a memsim run?",
                       file, strerror(errno), path);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        err_set(err, "%s: is not the session of a memsim run", file);
    else
        dir->session = rundir_session_read(fd, file, err);
    close(fd);
    return dir->session ? 0 : -1;
}

char *rundir_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? xasprintf("%.*s", (int)(slash - path) + 1, path)
                 : xstrdup(".");
}

bool rundir_gpu(const char *path, const char *name, struct gpu *gpu)
{
    char *directory = rundir_of(path);
    struct rundir dir;
    struct err ignored = {""};
    bool found = false;

    if (!rundir_open(&dir, directory, &ignored)) {
        found = !strcmp(dir.session->gpu.name, name);
        if (found)
            *gpu = dir.session->gpu;
        rundir_close(&dir);
    }
    free(directory);
    return found;
}

bool rundir_is_live(const char *session_file)
{
    const char *slash = strrchr(session_file, '/');
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s/" SESSION_LOCK,
             slash ? (int)(slash - session_file) : 1,
             slash ? session_file : ".");
    return is_locked(AT_FDCWD, path);
}

/* --- the end -------------------------------------------------------------- */

/* The lock's file goes while it is locked: see directory_lock(). */
void rundir_close(struct rundir *dir)
{
    char path[PATH_MAX];

    session_release(dir);
    if (dir->file >= 0)
        close(dir->file);
    if (dir->lock >= 0) {
        rundir_file(dir->path, SESSION_LOCK, path, sizeof path);
        unlink(path);
        close(dir->lock);
    }
    dir->lock = dir->file = -1;
}

/* The files whose names are known, where the directory cannot be read. */
static void remove_named(const struct rundir *dir, uint32_t traces)
{
    char path[PATH_MAX];

    for (uint32_t i = 0; i < traces; i++) {
        run_trace_path(dir->path, i, path, sizeof path);
        unlink(path);
    }
    rundir_file(dir->path, SESSION_COMMAND, path, sizeof path);
    unlink(path);
    rundir_file(dir->path, SESSION_FILE, path, sizeof path);
    unlink(path);
}

void rundir_remove(struct rundir *dir)
{
    uint32_t traces =
        dir->session ? atomic_load(&dir->session->process_count) : 0;

    session_release(dir);
    if (dir->file >= 0)
        close(dir->file); /* opendir may need the descriptor */
    dir->file = -1;
    DIR *d = opendir(dir->path);

    if (d) {
        remove_run_files(d);
        closedir(d);
    } else {
        remove_named(dir, traces);
    }
    rundir_close(dir);
    if (dir->created)
        rmdir(dir->path);
    temporary_forget(dir->path);
}
