/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/elf.h"

#define DEFAULT_SEARCH "/bin:/usr/bin" /* execvp(3) without PATH */
#define SCRIPTS_MAX    5               /* BINPRM_MAX_RECURSION of Linux */

static enum target_status file_status(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return errno == EACCES ? TARGET_NOT_EXECUTABLE : TARGET_NOT_FOUND;
    if (!S_ISREG(st.st_mode) || access(path, X_OK))
        return TARGET_NOT_EXECUTABLE;
    return TARGET_OK;
}

/* As a shell: a candidate that may not be run does not end the search. */
static enum target_status search_path(const char *name, const char *search,
                                      char *path, size_t size)
{
    enum target_status best = TARGET_NOT_FOUND;

    while (search) {
        size_t length = strcspn(search, ":");
        int width =
            length ? snprintf(path, size, "%.*s/%s", (int)length, search, name)
                   : snprintf(path, size, "./%s", name);
        if (width > 0 && (size_t)width < size) {
            enum target_status status = file_status(path);
            if (status == TARGET_OK)
                return status;
            if (status == TARGET_NOT_EXECUTABLE && !access(path, F_OK))
                best = status; /* not: a directory that may not be searched */
        }
        search = search[length] ? search + length + 1 : NULL;
    }
    return best;
}

static enum target_status target_find(const char *name, const char *search,
                                      char *path, size_t size)
{
    if (!*name)
        return TARGET_NOT_FOUND;
    if (!strchr(name, '/'))
        return search_path(name, search ? search : DEFAULT_SEARCH, path, size);
    snprintf(path, size, "%s", name);
    return file_status(name);
}

static enum target_status no_program(const char *name,
                                     enum target_status status, struct err *err)
{
    if (status == TARGET_NOT_FOUND && name[0] == '-')
        err_set(err,
                "%s: command not found; memsim's own options go before the --",
                name);
    else if (status == TARGET_NOT_FOUND && !access(name, F_OK))
        err_set(err, "%s: command not found; try `./%s', or `python %s'", name,
                name, name);
    else if (status == TARGET_NOT_FOUND)
        err_set(err, "%s: command not found%s", name,
                strchr(name, '/') ? "" : "; is it in PATH?");
    else
        err_set(err,
                "%s: cannot be executed: no program file, or no permission; "
                "try chmod +x, or `python %s'",
                name, name);
    return status;
}

static enum target_status
no_interpreter(const char *name, const char *interpreter, struct err *err)
{
    size_t length = strcspn(interpreter, "\r");

    if (interpreter[length])
        err_set(err,
                "%s: its lines end as on Windows, so its #! line names no "
                "program; try sed -i 's/\\r$//' %s",
                name, name);
    else
        err_set(err, "%s: %s, which its #! line names, cannot be executed",
                name, interpreter);
    return TARGET_NOT_EXECUTABLE;
}

/* Whether the kernel would start PATH with AT_SECURE, in which case ld.so(8)
 * drops LD_PRELOAD. It does not where no privilege is gained. */
static bool gains_privilege(const char *path)
{
    struct stat st;
    bool root = geteuid() == 0;

    if (stat(path, &st))
        return false;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        return true;
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
        st.st_gid != getgid())
        return true;
    return !root && getxattr(path, "security.capability", NULL, 0) > 0;
}

static ssize_t read_head(const char *path, char *head)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    ssize_t bytes = read(fd, head, ELF_HEAD_BYTES);
    close(fd);
    return bytes;
}

static const struct judgement {
    enum target_status status;
    const char *text; /* with the program's path before it */
} judgements[] = {
    [ELF_DYNAMIC] = {TARGET_OK, NULL},
    [ELF_OTHER_LIBC] = {TARGET_OTHER_LIBC,
                        "not linked against glibc, so memsim sees neither it "
                        "nor the programs that it starts; use one that is"},
    [ELF_STATIC] = {TARGET_BLIND,
                    "statically linked, so memsim sees only the programs that "
                    "it starts; use a dynamically linked one"},
    [ELF_32BIT] = {TARGET_NOT_EXECUTABLE,
                   "a 32-bit program, for which there is no CUDA; use a 64-bit "
                   "one"},
    [ELF_FOREIGN] = {TARGET_NOT_EXECUTABLE,
                     "built for another architecture; use one built for this "
                     "machine"},
    [ELF_OTHER] = {TARGET_OK, NULL},
};

/* Judges the program file at PATH, or finds in it the NEXT one to judge, in
 * which case *NEXT is not empty. */
static enum target_status judge_file(const char *path, char *next, size_t size,
                                     struct err *err)
{
    char head[ELF_HEAD_BYTES];
    ssize_t bytes = read_head(path, head);
    enum elf_kind kind = ELF_OTHER; /* executable but not readable */

    *next = '\0';
    if (bytes >= 0)
        kind = elf_classify(head, (size_t)bytes);
    if (kind == ELF_SCRIPT) { /* whose set-user-ID bit the kernel ignores */
        if (!elf_interpreter(head, (size_t)bytes, next, size))
            return TARGET_OK;
        err_set(err, "%s: its #! line names no interpreter", path);
        return TARGET_NOT_EXECUTABLE;
    }
    if (gains_privilege(path)) {
        err_set(err,
                "%s: set-user-ID or privileged, where LD_PRELOAD is ignored; "
                "run memsim inside it instead (`sudo memsim run ...')",
                path);
        return TARGET_NOT_EXECUTABLE;
    }
    if (judgements[kind].text)
        err_set(err, "%s: %s", path, judgements[kind].text);
    return judgements[kind].status;
}

enum target_status target_check(const char *name, const char *search,
                                struct err *err)
{
    char path[PATH_MAX], next[PATH_MAX];

    snprintf(next, sizeof next, "%s", name);
    for (int i = 0; i <= SCRIPTS_MAX; i++) {
        enum target_status status =
            target_find(next, search, path, sizeof path);
        if (status != TARGET_OK)
            return i ? no_interpreter(name, next, err)
                     : no_program(name, status, err);
        status = judge_file(path, next, sizeof next, err);
        if (status != TARGET_OK || !*next)
            return status;
    }
    err_set(err, "%s: scripts that run scripts, %d deep", name, SCRIPTS_MAX);
    return TARGET_NOT_EXECUTABLE;
}
