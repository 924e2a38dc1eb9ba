/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/xmalloc.h"

#define CORE_LIBRARY "libmemsim.so"

static int program_library_dir(char *dir, size_t size)
{
    char program[PATH_MAX], path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length < 0)
        return -1;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    snprintf(path, sizeof path, "%s/../lib/memsim", program);
    if (!realpath(path, program) || strlen(program) >= size)
        return -1;
    strcpy(dir, program);
    return 0;
}

static int override_library_dir(const char *override, char *dir, size_t size)
{
    char path[PATH_MAX];

    if (!realpath(override, path) || strlen(path) >= size)
        return -1;
    strcpy(dir, path);
    return 0;
}

int spawn_library_dir(const char *override, char *dir, size_t size,
                      struct err *err)
{
    char core[PATH_MAX];

    if (override ? override_library_dir(override, dir, size)
                 : program_library_dir(dir, size))
        return err_set(err,
                       "%s: memsim's libraries are not there; install memsim "
                       "whole, or set MEMSIM_LIBDIR",
                       override ? override : "../lib/memsim");
    if (strpbrk(dir, " \t\n:"))
        return err_set(err,
                       "%s: LD_PRELOAD cannot carry a path with a space or a "
                       "colon; install memsim elsewhere",
                       dir);
    snprintf(core, sizeof core, "%s/" CORE_LIBRARY, dir);
    if (access(core, R_OK))
        return err_set(err,
                       "%s: %s; install memsim whole, or set MEMSIM_LIBDIR",
                       core, strerror(errno));
    return 0;
}

/* True where PATH, LENGTH long, lies in DIR: already ours, from an outer run
 * that is over. */
static bool is_in(const char *dir, const char *path, size_t length)
{
    size_t n = strlen(dir);

    return length > n && !strncmp(path, dir, n) && path[n] == '/';
}

static char *append(char *text, const char *more, size_t length)
{
    char *joined =
        xasprintf("%s%s%.*s", text, *text ? ":" : "", (int)length, more);

    free(text);
    return joined;
}

char *spawn_preload(const char *dir, const char *preloaded, struct err *err)
{
    glob_t found;
    char *pattern = xasprintf("%s/*.so.*", dir);
    int rc = glob(pattern, 0, NULL, &found); /* sorted */

    free(pattern);
    if (rc) {
        err_set(err,
                "%s: memsim's CUDA libraries are not there; install "
                "memsim whole, or set MEMSIM_LIBDIR",
                dir);
        return NULL;
    }
    char *value = xasprintf("%s/" CORE_LIBRARY, dir);
    for (size_t i = 0; i < found.gl_pathc; i++)
        value = append(value, found.gl_pathv[i], strlen(found.gl_pathv[i]));
    globfree(&found);
    while (preloaded && *preloaded) { /* ld.so(8): spaces or colons */
        size_t length = strcspn(preloaded, ": ");
        if (length && !is_in(dir, preloaded, length))
            value = append(value, preloaded, length);
        preloaded += length + (preloaded[length] != '\0');
    }
    return value;
}

static const char *variable_value(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment; environment++)
        if (!strncmp(*environment, name, length) &&
            (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static bool is_variable(const char *entry, char *const *settings)
{
    for (; *settings; settings++) {
        size_t length = strcspn(*settings, "=") + 1;
        if (!strncmp(entry, *settings, length))
            return true;
    }
    return false;
}

char **spawn_environment(char *const *environment, const char *session,
                         const char *preload, const char *dir)
{
    const char *python = variable_value(environment, "PYTHONPATH");
    char *settings[] = {
        xasprintf("MEMSIM_SESSION=%s", session),
        xstrdup("MEMSIM=1"),
        xasprintf("LD_PRELOAD=%s", preload),
        xasprintf("PYTHONPATH=%s/py%s%s", dir, python && *python ? ":" : "",
                  python ? python : ""),
        xasprintf("TRITON_LIBCUDA_PATH=%s", dir),
        /* What our NVRTC compiles must not wait in PyTorch's and CuPy's caches
         * for a real GPU to run it. */
        xstrdup("USE_PYTORCH_KERNEL_CACHE=0"),
        xstrdup("CUPY_CACHE_IN_MEMORY=1"),
        NULL,
    };
    size_t count = 0, kept = 0;

    while (environment[count])
        count++;
    char **made =
        xcalloc(count + sizeof settings / sizeof *settings, sizeof *made);
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environment[i], settings))
            made[kept++] = xstrdup(environment[i]);
    memcpy(made + kept, settings, sizeof settings);
    return made;
}

void spawn_environment_free(char **environment)
{
    for (char **entry = environment; *entry; entry++)
        free(*entry);
    free(environment);
}

static volatile sig_atomic_t child_pid, last_signal;

/* A signal from the kernel is the terminal's, which tells the whole foreground
 * group: passing it on would make it arrive twice. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)context;
    last_signal = signal;
    if (child_pid > 0 && info->si_code <= 0)
        kill((pid_t)child_pid, signal);
    errno = saved;
}

static const int passed_signals[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                     SIGTERM, SIGUSR1, SIGUSR2};

#define PASSED (sizeof passed_signals / sizeof *passed_signals)

static struct sigaction actions_before[PASSED];

/* What was ignored (nohup, a background job) stays ignored, here and in the
 * command. */
static void handle_signals(void)
{
    struct sigaction action = {.sa_sigaction = pass_on,
                               .sa_flags = SA_SIGINFO | SA_RESTART};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < PASSED; i++)
        if (!sigaction(passed_signals[i], NULL, &actions_before[i]) &&
            actions_before[i].sa_handler != SIG_IGN)
            sigaction(passed_signals[i], &action, NULL);
}

/* Once the command has ended, a signal is memsim's own again. */
static void restore_signals(void)
{
    for (size_t i = 0; i < PASSED; i++)
        sigaction(passed_signals[i], &actions_before[i], NULL);
}

static void block_signals(sigset_t *old)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, old);
}

struct child {
    char *const *argv, *const *environment;
    int output; /* -1: inherited */
    int report; /* the pipe that tells the parent of a failure */
};

static void child_exec(const struct child *c, const sigset_t *mask)
{
    if (c->output >= 0 && (dup2(c->output, STDOUT_FILENO) < 0 ||
                           dup2(c->output, STDERR_FILENO) < 0))
        _exit(125);
    temporary_restore_signals();
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvpe(c->argv[0], c->argv, c->environment);
    int error = errno;
    if (write(c->report, &error, sizeof error) != sizeof error)
        _exit(125); /* nobody is left to be told */
    _exit(127);
}

/* The errno that the child met on its way to the command; 0: it got there. */
static int exec_error(int pipe_end)
{
    int error = 0;
    ssize_t got;

    do
        got = read(pipe_end, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    return got == sizeof error ? error : 0;
}

static int wait_status(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 125;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int spawn_signal(void)
{
    return last_signal;
}

int spawn_run(char *const *argv, char *const *environment, int output,
              int *status)
{
    int ends[2];
    sigset_t mask;

    if (pipe2(ends, O_CLOEXEC))
        return errno;
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, there is no status */
    block_signals(&mask);
    pid_t pid = fork();
    if (pid == 0) {
        struct child child = {argv, environment, output, ends[1]};
        child_exec(&child, &mask);
    }
    int error = pid < 0 ? errno : 0;
    child_pid = pid;
    handle_signals();
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(ends[1]);
    if (!error)
        error = exec_error(ends[0]);
    close(ends[0]);
    if (pid > 0)
        *status = wait_status(pid);
    child_pid = 0;
    restore_signals();
    return error;
}
