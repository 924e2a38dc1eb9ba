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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/trace/session_mail.h"
#include "memsim/run/ended.h"
#include "memsim/run/relay.h"

#define CORE_LIBRARY "libmemsim.so"
#define REAL_FOLDER  "real"
#define REAL_LIBRARY "libmemsim-real.so"
#define EMULATE_FOLDER "emulate"
#define DEFAULT_PATH "/bin:/usr/bin" /* of execvp(3) */

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
    snprintf(core, sizeof core, "%s/" CORE_LIBRARY, dir);
    if (access(core, R_OK))
        return err_set(err,
                       "%s: %s; install memsim whole, or set MEMSIM_LIBDIR",
                       core, strerror(errno));
    return 0;
}

bool spawn_can_preload(const char *dir)
{
    return !strpbrk(dir, " \t\n:");
}

/* True where PATH, LENGTH long, lies in DIR: already ours, from an outer run
 * that is over. */
static bool is_in(const char *dir, const char *path, size_t length)
{
    size_t n = strlen(dir);

    return length > n && !strncmp(path, dir, n) && path[n] == '/';
}

static char *append_text(char *text, const char *more, size_t length)
{
    char *joined =
        xasprintf("%s%s%.*s", text, *text ? ":" : "", (int)length, more);

    free(text);
    return joined;
}

/* Appends what PRELOADED (NULL: none) has that is not DIR's. */
static char *append_others(char *value, const char *preloaded, const char *dir)
{
    while (preloaded && *preloaded) { /* ld.so(8): spaces or colons */
        size_t length = strcspn(preloaded, ": ");
        if (length && !is_in(dir, preloaded, length))
            value = append_text(value, preloaded, length);
        preloaded += length + (preloaded[length] != '\0');
    }
    return value;
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
        value =
            append_text(value, found.gl_pathv[i], strlen(found.gl_pathv[i]));
    globfree(&found);
    return append_others(value, preloaded, dir);
}

char *spawn_preload_real(const char *dir, const char *preloaded, bool emulates)
{
    const char *end = preloaded ? strstr(preloaded, "/" CORE_LIBRARY) : NULL;
    size_t core = end ? (size_t)(end - preloaded) + strlen("/" CORE_LIBRARY)
                      : 0;
    char *real = xasprintf("%s/" REAL_FOLDER, dir);
    char *value = xasprintf("%.*s%s%s/libcuda.so.1:%s/%s" REAL_LIBRARY,
                            (int)core, core ? preloaded : "", core ? ":" : "",
                            real, real, emulates ? EMULATE_FOLDER "/" : "");

    value = append_others(value, preloaded ? preloaded + core : NULL, real);
    free(real);
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

/* Services that would send on what the command computes, and the variable that
 * keeps each on this machine. */
static const struct offline {
    const char *name, *value;
    const char *others[3]; /* values that do so as well */
} offline[] = {
    {"WANDB_MODE", "offline", {"disabled", "dryrun"}},
    {"NEPTUNE_MODE", "offline", {"debug", "read-only"}},
    {"SWANLAB_MODE", "offline", {"local", "disabled"}},
    {"CLEARML_OFFLINE_MODE", "1", {"true", "yes"}},
    {"MLFLOW_TRACKING_URI", "", {NULL}}, /* its default: a local one */
};
#define OFFLINE (sizeof offline / sizeof *offline)

static bool is_remote(const char *uri)
{
    return text_begins(uri, "http") || text_begins(uri, "databricks");
}

/* NAME=VALUE that keeps O's service offline; NULL: as it is, it does. */
static char *offline_setting(const struct offline *o, char *const *environment)
{
    const char *given = variable_value(environment, o->name);

    if (!*o->value && (!given || !is_remote(given)))
        return NULL;
    for (size_t i = 0; given && i < 3 && o->others[i]; i++)
        if (!strcasecmp(given, o->others[i]))
            return NULL;
    return xasprintf("%s=%s", o->name, o->value);
}

/* Adds what keeps services offline to SETTINGS, of COUNT. */
static void offline_add(char *const *environment, char **settings, size_t count)
{
    for (size_t i = 0; i < OFFLINE; i++) {
        settings[count] = offline_setting(&offline[i], environment);
        count += settings[count] != NULL;
    }
    settings[count] = NULL;
}

/* ENVIRONMENT with SETTINGS, which are the caller's no more, in place of those
 * of the same names. */
static char **environment_with(char *const *environment, char **settings)
{
    size_t count = 0, more = 0, kept = 0;

    while (environment[count])
        count++;
    while (settings[more])
        more++;
    char **made = xcalloc(count + more + 1, sizeof *made);
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environment[i], settings))
            made[kept++] = xstrdup(environment[i]);
    memcpy(made + kept, settings, more * sizeof *made);
    return made;
}

char **spawn_environment(char *const *environment, const char *session,
                         const char *handover, const char *preload,
                         const char *dir)
{
    const char *python = variable_value(environment, "PYTHONPATH");
    const char *path = variable_value(environment, "PATH");
    char *settings[] = {
        xasprintf("MEMSIM_SESSION=%s", session),
        xasprintf(SESSION_HANDOVER "=%s", handover),
        xstrdup("MEMSIM=1"),
        xasprintf("PYTHONPATH=%s/py%s%s", dir, python && *python ? ":" : "",
                  python ? python : ""),
        xasprintf("PATH=%s/bin:%s", dir, path ? path : DEFAULT_PATH),
        xasprintf("TRITON_LIBCUDA_PATH=%s", dir),
        /* What our NVRTC compiles must not wait in PyTorch's and CuPy's caches
         * for a real GPU to run it. */
        xstrdup("USE_PYTORCH_KERNEL_CACHE=0"),
        xstrdup("CUPY_CACHE_IN_MEMORY=1"),
        NULL, /* LD_PRELOAD, and what keeps services offline */
        [9 + OFFLINE] = NULL,
    };
    size_t made_count = 8;

    if (preload)
        settings[made_count++] = xasprintf("LD_PRELOAD=%s", preload);
    if (!variable_value(environment, "MEMSIM_WRITE_THROUGH"))
        offline_add(environment, settings, made_count);

    return environment_with(environment, settings);
}

char **spawn_environment_real(char *const *environment, const char *session,
                              const char *handover, const char *preload,
                              const char *dir)
{
    const char *python = variable_value(environment, "PYTHONPATH");
    char *settings[] = {
        xasprintf("MEMSIM_REAL_SESSION=%s", session),
        xasprintf("MEMSIM_REAL_HANDOVER=%s", handover),
        xstrdup("MEMSIM_REAL=1"),
        xasprintf("PYTHONPATH=%s/" REAL_FOLDER "/py%s%s", dir,
                  python && *python ? ":" : "", python ? python : ""),
        preload ? xasprintf("LD_PRELOAD=%s", preload) : NULL,
        NULL,
    };

    return environment_with(environment, settings);
}

void spawn_environment_free(char **environment)
{
    for (char **entry = environment; *entry; entry++)
        free(*entry);
    free(environment);
}

static void block_signals(sigset_t *old)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, old);
}

/* The command's output and errors go where they shall. Returns 0 or -1. */
static int child_output(const struct spawn *spawn)
{
    const struct spawn_view *v = spawn->view;
    int out = v ? v->out : spawn->output;
    int err = v ? v->err : spawn->output;

    return (out >= 0 && dup2(out, STDOUT_FILENO) < 0) ||
                   (err >= 0 && dup2(err, STDERR_FILENO) < 0)
               ? -1
               : 0;
}

/* A group of its own, which can be ended as one, and must not read the
 * terminal. Returns 0 or -1. */
static int child_alone(void)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    return nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || setpgid(0, 0)
               ? -1
               : 0;
}

static void child_exec(const struct spawn *spawn, int report,
                       const sigset_t *mask, pid_t parent)
{
    if (child_output(spawn) || (spawn->limit_s && child_alone()))
        _exit(125);
    if (spawn->kill_with_memsim &&
        (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
        _exit(125);
    temporary_restore_signals();
    sigprocmask(SIG_SETMASK, mask, NULL);
    environ = (char **)spawn->environment; /* in whose PATH it is looked for */
    execvp(spawn->argv[0], spawn->argv);
    int error = errno;
    if (write(report, &error, sizeof error) != sizeof error)
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

static int shell_status(int status)
{
    if (status < 0)
        return 125;
    return ended_status(status);
}

int spawn_signal(void)
{
    return relay_signal();
}

bool spawn_interrupted(void)
{
    int signal = spawn_signal();

    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP ||
           signal == SIGQUIT;
}

/* Starts SPAWN's command, with all signals blocked; MASK is what it blocks.
 * Returns 0 with *CHILD set, or an errno, where *CHILD may be set as well. */
static int child_start(const struct spawn *spawn, const sigset_t *mask,
                       pid_t *child)
{
    int ends[2];
    pid_t parent = getpid();

    *child = -1;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    pid_t pid = fork();
    if (pid == 0)
        child_exec(spawn, ends[1], mask, parent);
    int error = pid < 0 ? errno : 0;
    close(ends[1]);
    if (!error)
        error = exec_error(ends[0]);
    close(ends[0]);
    *child = pid;
    return error;
}

int spawn_run(const struct spawn *spawn, pid_t *pid, int *status)
{
    sigset_t mask;
    struct relay relay;

    signal(SIGCHLD, SIG_DFL); /* where it is ignored, there is no status */
    block_signals(&mask);
    relay_start(&relay, &mask); /* before there is a pipe to inherit */
    int error = child_start(spawn, &mask, pid);
    if (spawn->view)
        spawn->view->started(spawn->view->context);
    if (*pid > 0)
        *status =
            shell_status(relay_wait(&relay, *pid, spawn->limit_s, &mask));
    if (spawn->late)
        *spawn->late = relay.late;
    if (spawn->view)
        spawn->view->ended(spawn->view->context);
    relay_stop(&relay);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return *pid > 0 ? error : -error;
}
