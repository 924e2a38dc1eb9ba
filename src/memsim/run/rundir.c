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
#include <unistd.h>

#include "common/base/xmalloc.h"

static int file_path(const char *dir, const char *name, char *path, size_t size)
{
    int width = snprintf(path, size, "%s/%s", dir, name);

    return width >= 0 && (size_t)width < size ? 0 : -1;
}

static bool is_run_file(const char *name)
{
    size_t length = strlen(name), end = strlen(SESSION_TRACE_END);

    return !strcmp(name, SESSION_FILE) || !strcmp(name, SESSION_COMMAND) ||
           (length > end && !strcmp(name + length - end, SESSION_TRACE_END));
}

static bool is_session(int fd)
{
    char magic[sizeof((struct session *)0)->magic];

    return pread(fd, magic, sizeof magic, 0) == sizeof magic &&
           !memcmp(magic, SESSION_MAGIC, sizeof magic);
}

static bool directory_is_empty(DIR *d)
{
    for (const struct dirent *entry; (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            return false;
    return true;
}

static void remove_run_files(DIR *d)
{
    rewinddir(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        if (is_run_file(entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
}

/* An existing directory may be used where it is empty, or holds an earlier run
 * that is over; that run's files go, and nothing else. */
static int directory_reuse(const char *path, struct err *err)
{
    DIR *d = opendir(path);

    if (!d)
        return err_set(err, "%s: cannot be the run's directory: %s", path,
                       strerror(errno));
    if (!directory_is_empty(d)) {
        int fd = openat(dirfd(d), SESSION_FILE, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !is_session(fd))
            err_set(err,
                    "%s: is not empty, and no directory of a memsim run; give "
                    "-o a new or empty one",
                    path);
        else if (flock(fd, LOCK_SH | LOCK_NB))
            err_set(err, "%s: another memsim run is using it", path);
        else
            remove_run_files(d);
        if (fd >= 0)
            close(fd);
    }
    closedir(d);
    return err->text[0] ? -1 : 0;
}

static int directory_make(struct rundir *dir, const char *path,
                          const char *temporary, struct err *err)
{
    char name[PATH_MAX], absolute[PATH_MAX];

    snprintf(name, sizeof name, "%s/memsim-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!path && !mkdtemp(name))
        return err_set(err, "%s: cannot create it: %s; set TMPDIR or use -o",
                       name, strerror(errno));
    dir->temporary = !path;
    dir->created = !path || !mkdir(path, 0700);
    if (!path)
        path = name;
    else if (!dir->created && errno != EEXIST)
        return err_set(err, "%s: cannot create it: %s; use another -o", path,
                       strerror(errno));
    if (!realpath(path, absolute))
        return err_set(err, "%s: %s", path, strerror(errno));
    if (strlen(absolute) >= sizeof dir->path)
        return err_set(err, "%s: the path is too long; use a shorter one",
                       path);
    strcpy(dir->path, absolute);
    return dir->created ? 0 : directory_reuse(dir->path, err);
}

static int session_map(struct rundir *dir, int protection, struct err *err)
{
    void *p = mmap(NULL, sizeof(struct session), protection, MAP_SHARED,
                   dir->lock, 0);

    if (p == MAP_FAILED)
        return err_set(err, "%s/%s: cannot map it: %s", dir->path, SESSION_FILE,
                       strerror(errno));
    dir->session = p;
    return 0;
}

/* All of the file is allocated here: later, a full disk would kill whichever
 * process first writes to a page. */
static int session_create(struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];

    file_path(dir->path, SESSION_FILE, path, sizeof path);
    dir->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (dir->lock < 0)
        return err_set(err, "%s: cannot create it: %s; use another -o", path,
                       strerror(errno));
    int error = posix_fallocate(dir->lock, 0, sizeof(struct session));
    if (error)
        return err_set(err, "%s: cannot write it: %s; use -o on another disk",
                       path, strerror(error));
    if (flock(dir->lock, LOCK_EX | LOCK_NB))
        return err_set(err, "%s: cannot lock it: %s; use -o on another disk",
                       path, strerror(errno));
    if (session_map(dir, PROT_READ | PROT_WRITE, err))
        return -1;
    struct session *s = dir->session;
    memcpy(s->magic, SESSION_MAGIC, sizeof s->magic);
    s->version = SESSION_VERSION;
    s->bytes = sizeof *s;
    strcpy(s->directory, dir->path);
    return 0;
}

static int command_write(const struct rundir *dir, char *const *command,
                         struct err *err)
{
    char path[PATH_MAX];

    file_path(dir->path, SESSION_COMMAND, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    for (; f && *command; command++)
        fwrite(*command, 1, strlen(*command) + 1, f);
    if (!f || ferror(f) | fclose(f))
        return err_set(err, "%s: cannot write it: %s", path, strerror(errno));
    return 0;
}

int rundir_create(struct rundir *dir, const char *path, const char *temporary,
                  char *const *command, struct err *err)
{
    *dir = (struct rundir){.lock = -1};
    if (directory_make(dir, path, temporary, err))
        return -1;
    if (!session_create(dir, err) && !command_write(dir, command, err))
        return 0;
    rundir_remove(dir);
    return -1;
}

int rundir_open(struct rundir *dir, const char *path, struct err *err)
{
    char file[PATH_MAX];
    struct stat st;

    *dir = (struct rundir){.lock = -1};
    if (strlen(path) >= sizeof dir->path)
        return err_set(err, "%s: the path is too long", path);
    strcpy(dir->path, path);
    file_path(path, SESSION_FILE, file, sizeof file);
    dir->lock = open(file, O_RDONLY | O_CLOEXEC);
    if (dir->lock < 0)
        return err_set(err, "%s: %s; is %s the directory of a memsim run?",
                       file, strerror(errno), path);
    if (!is_session(dir->lock) || fstat(dir->lock, &st) ||
        st.st_size < (off_t)sizeof(struct session)) {
        err_set(err, "%s: is not the session of a memsim run", file);
    } else if (!session_map(dir, PROT_READ, err)) {
        if (dir->session->version == SESSION_VERSION &&
            dir->session->bytes == sizeof(struct session))
            return 0;
        err_set(err, "%s: written by another version of memsim", file);
    }
    rundir_close(dir);
    return -1;
}

static char *read_whole(const char *path, size_t *length, struct err *err)
{
    FILE *f = fopen(path, "re");
    size_t capacity = 0;
    char *text = NULL;

    *length = 0;
    if (!f) {
        err_set(err, "%s: %s", path, strerror(errno));
        return NULL;
    }
    for (size_t got = 1; got; *length += got) {
        while (capacity < *length + 4096)
            xgrow(&text, capacity, &capacity, 1);
        got = fread(text + *length, 1, capacity - *length - 1, f);
    }
    text[*length] = '\0';
    fclose(f);
    return text;
}

char **rundir_command(const struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];
    size_t length, count = 0;

    file_path(dir->path, SESSION_COMMAND, path, sizeof path);
    char *text = read_whole(path, &length, err);
    if (!text)
        return NULL;
    for (size_t i = 0; i < length; i++)
        count += !text[i];
    char **command = xmalloc((count + 1) * sizeof *command + length + 1);
    char *at = memcpy(command + count + 1, text, length + 1);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        command[i] = at;
    command[count] = NULL;
    free(text);
    return command;
}

bool rundir_is_live(const char *session_file)
{
    int fd = open(session_file, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool live =
        is_session(fd) && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return live;
}

void rundir_trace(const struct rundir *dir, unsigned slot, char *path,
                  size_t size)
{
    char name[64];

    snprintf(name, sizeof name, SESSION_TRACE, slot);
    file_path(dir->path, name, path, size);
}

void rundir_close(struct rundir *dir)
{
    if (dir->session)
        munmap(dir->session, sizeof *dir->session);
    if (dir->lock >= 0)
        close(dir->lock);
    dir->session = NULL;
    dir->lock = -1;
}

void rundir_remove(struct rundir *dir)
{
    DIR *d = opendir(dir->path);

    rundir_close(dir);
    if (!d)
        return;
    remove_run_files(d);
    closedir(d);
    if (dir->created)
        rmdir(dir->path);
}
