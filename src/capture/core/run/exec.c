/* SPDX-License-Identifier: Apache-2.0
 * Programs that the observed one executes: they are observed too, though they
 * get a fresh environment, and those that cannot load our libraries start as
 * they do without us. */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"
#include "common/base/elf.h"
#include "common/base/text_begins.h"

/* What `memsim run` sets (src/memsim/run/spawn.c); a run has the first two. */
static const char *const kept_names[] = {"LD_PRELOAD=",
                                         INSTANCE_SESSION "=",
                                         INSTANCE_MARK "=",
                                         "PYTHONPATH=",
                                         "TRITON_LIBCUDA_PATH=",
                                         "USE_PYTORCH_KERNEL_CACHE=",
                                         "CUPY_CACHE_IN_MEMORY=",
                                         INSTANCE_HANDOVER "="};
#define KEPT            ((int)(sizeof kept_names / sizeof *kept_names))
#define KEPT_PRELOAD    0
#define KEPT_SESSION    1
#define KEPT_PYTHONPATH 3
#define PYTHON_SUBDIR   "/py"
static char *kept[KEPT]; /* NAME=VALUE of what children need */

/* --- environments --------------------------------------------------------- */

static bool has_name(const char *entry, const char *name)
{
    return text_begins(entry, name);
}

static bool preloads_us(const char *entry)
{
    return strstr(entry, INSTANCE_LIBRARY);
}

/* Not with getenv(): bash has its own, which finds nothing before main(). */
static void environment_keep(void)
{
    for (int i = 0; i < KEPT; i++)
        for (char **e = environ; *e; e++)
            if (has_name(*e, kept_names[i]))
                kept[i] = strdup(*e);
}

static struct process_hook hook = {.at_enter = environment_keep};

__attribute__((constructor)) static void exec_start(void)
{
    environment_keep();
    process_hook_add(&hook);
}

static size_t environment_count(char *const envp[])
{
    size_t n = 0;

    while (envp && envp[n])
        n++;
    return n;
}

/* Whether ENTRY is a PYTHONPATH that our Python is not in. */
static bool lacks_python(const char *entry)
{
    return loader_directory()[0] &&
           has_name(entry, kept_names[KEPT_PYTHONPATH]) &&
           !strstr(entry, loader_directory());
}

/* Writes ENTRY, a PYTHONPATH, with our Python before it to TEXT. */
static char *python_join(const char *entry, char *text)
{
    const char *theirs = strchr(entry, '=') + 1;

    char *end = stpcpy(text, kept_names[KEPT_PYTHONPATH]);
    end = stpcpy(stpcpy(end, loader_directory()), PYTHON_SUBDIR);
    if (*theirs)
        stpcpy(stpcpy(end, ":"), theirs);
    return text;
}

/* What environment_complete() needs for ENVP. */
static size_t completed_bytes(char *const envp[])
{
    size_t count = environment_count(envp);
    size_t bytes = (count + KEPT + 1) * sizeof(char *);

    for (size_t i = 0; i < count; i++)
        if (lacks_python(envp[i]))
            bytes += strlen(loader_directory()) + sizeof PYTHON_SUBDIR +
                     strlen(envp[i]);
        else if (has_name(envp[i], kept_names[KEPT_PRELOAD]))
            bytes += strlen(envp[i]) + 1;
    return bytes;
}

/* Writes ENTRY, an LD_PRELOAD, without our libraries to TEXT. */
static void preload_others(const char *entry, char *text)
{
    const char *ours = loader_directory();
    const char *at = entry + strlen(kept_names[KEPT_PRELOAD]);
    char *end = stpcpy(text, kept_names[KEPT_PRELOAD]);
    char *start = end;

    while (*at) { /* ld.so(8): spaces or colons */
        size_t length = strcspn(at, ": ");

        if (length && !text_begins(at, ours)) {
            if (end > start)
                *end++ = ':';
            end = mempcpy(end, at, length);
        }
        at += length + (at[length] != '\0');
    }
    *end = '\0';
}

/* For a program whose loader cannot load our libraries: it would not start. */
static char *const *environment_without_us(char *const envp[], char **out)
{
    char *text = (char *)(out + environment_count(envp) + KEPT + 1);
    size_t n = 0;

    for (; *envp; envp++) {
        out[n] = *envp;
        if (has_name(*envp, kept_names[KEPT_PRELOAD])) {
            preload_others(*envp, text);
            out[n] = text;
            text += strlen(text) + 1;
            if (!out[n][strlen(kept_names[KEPT_PRELOAD])])
                continue; /* nobody else's either */
        }
        n++;
    }
    out[n] = NULL;
    return out;
}

/* Are our libraries there? Not after chroot(2): the loader would complain of
 * each of them, in each program. */
static bool is_reachable(void)
{
    char path[PATH_MAX];
    int saved = errno;
    int n = snprintf(path, sizeof path, "%s/" INSTANCE_LIBRARY,
                     loader_directory());
    bool found = !loader_directory()[0] || n >= (int)sizeof path ||
                 !access(path, F_OK);

    errno = saved;
    return found;
}

/* Fills OUT with ENVP and what a child of a run needs and lacks. An LD_PRELOAD
 * without us gives way to the one we were started with; a PYTHONPATH without
 * us gets us. */
static char *const *environment_complete(char *const envp[], char **out,
                                         enum elf_kind kind)
{
    size_t count = environment_count(envp), n = 0;
    char *text = (char *)(out + count + KEPT + 1);
    bool present[KEPT] = {false};

    if (!kept[KEPT_PRELOAD] || !kept[KEPT_SESSION])
        return envp;
    process_hand_on();
    if (kind == ELF_OTHER_LIBC || !is_reachable())
        return environment_without_us(envp, out);
    for (size_t i = 0; i < count; i++) {
        bool ours = true;

        for (int k = 0; k < KEPT; k++)
            if (has_name(envp[i], kept_names[k])) {
                ours = k || preloads_us(envp[i]);
                present[k] = ours;
            }
        if (!ours)
            continue;
        out[n++] = envp[i];
        if (lacks_python(envp[i])) {
            out[n - 1] = python_join(envp[i], text);
            text += strlen(text) + 1;
        }
    }
    for (int k = 0; k < KEPT; k++)
        if (!present[k] && kept[k])
            out[n++] = kept[k];
    out[n] = NULL;
    return out;
}

/* --- what is executed ----------------------------------------------------- */

#define SCRIPTS_MAX 5 /* BINPRM_MAX_RECURSION of Linux */

static enum elf_kind kind_of_path(const char *file, bool search, int depth);

static enum elf_kind kind_of_file(int fd, int depth)
{
    char head[ELF_HEAD_BYTES], interpreter[PATH_MAX];
    ssize_t bytes = pread(fd, head, sizeof head, 0);
    enum elf_kind kind =
        bytes > 0 ? elf_classify(head, (size_t)bytes) : ELF_OTHER;

    if (kind != ELF_SCRIPT || depth == SCRIPTS_MAX ||
        elf_interpreter(head, (size_t)bytes, interpreter, sizeof interpreter))
        return kind;
    return kind_of_path(interpreter, true, depth + 1);
}

/* Opens FILE as execvp() finds it, along PATH. */
static int open_searched(const char *file)
{
    const char *search = getenv("PATH");
    char path[PATH_MAX];

    for (search = search ? search : "/bin:/usr/bin"; search;) {
        size_t length = strcspn(search, ":");
        int n = snprintf(path, sizeof path, "%.*s/%s", length ? (int)length : 1,
                         length ? search : ".", file);

        if (n < (int)sizeof path && !access(path, X_OK))
            return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        search = search[length] ? search + length + 1 : NULL;
    }
    return -1;
}

static enum elf_kind kind_of_path(const char *file, bool search, int depth)
{
    int fd = search && !strchr(file, '/')
                 ? open_searched(file)
                 : open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return ELF_OTHER; /* executable but not readable, or not there */
    enum elf_kind kind = kind_of_file(fd, depth);
    close(fd);
    return kind;
}

/* What exec of FILE starts. Safe after vfork(). */
static enum elf_kind kind_of(const char *file, bool search)
{
    int saved = errno;
    enum elf_kind kind =
        file && kept[KEPT_SESSION] ? kind_of_path(file, search, 0) : ELF_OTHER;

    errno = saved;
    return kind;
}

/* --- the C library's functions -------------------------------------------- */

/* The file to execute for PATH, in the caller's frame. */
#define FILE_OF(path) loader_file(path, alloca(PATH_MAX))

/* In the caller's frame: children of vfork() must not touch the heap. */
#define COMPLETED(envp, kind)                                                  \
    environment_complete(envp, alloca(completed_bytes(envp)), kind)

/* The C library's function NAME, which returns only where it fails. */
#define EXECUTE(name, ...)                                                     \
    ({                                                                         \
        process_replace();                                                     \
        int rc_ = REAL(name)(__VA_ARGS__);                                     \
        process_stay();                                                        \
        rc_;                                                                   \
    })

CORE_API int execve(const char *path, char *const argv[], char *const envp[])
{
    path = FILE_OF(path);
    return EXECUTE(execve, path, argv, COMPLETED(envp, kind_of(path, false)));
}

/* The C library's own execv() and execvp() take no detour by ours; env(1) uses
 * them over an environment that it has emptied. */
CORE_API int execv(const char *path, char *const argv[])
{
    path = FILE_OF(path);
    return EXECUTE(execve, path, argv,
                   COMPLETED(environ, kind_of(path, false)));
}

CORE_API int execvp(const char *file, char *const argv[])
{
    if (strchr(file, '/'))
        file = FILE_OF(file);
    return EXECUTE(execvpe, file, argv,
                   COMPLETED(environ, kind_of(file, true)));
}

CORE_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
    if (strchr(file, '/'))
        file = FILE_OF(file);
    return EXECUTE(execvpe, file, argv, COMPLETED(envp, kind_of(file, true)));
}

CORE_API int fexecve(int fd, char *const argv[], char *const envp[])
{
    return EXECUTE(fexecve, fd, argv, COMPLETED(envp, kind_of_file(fd, 0)));
}

CORE_API int posix_spawn(pid_t *pid, const char *path,
                         const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes,
                         char *const argv[], char *const envp[])
{
    path = FILE_OF(path);
    return REAL(posix_spawn)(pid, path, actions, attributes, argv,
                             COMPLETED(envp, kind_of(path, false)));
}

CORE_API int posix_spawnp(pid_t *pid, const char *file,
                          const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes,
                          char *const argv[], char *const envp[])
{
    if (strchr(file, '/'))
        file = FILE_OF(file);
    return REAL(posix_spawnp)(pid, file, actions, attributes, argv,
                              COMPLETED(envp, kind_of(file, true)));
}
