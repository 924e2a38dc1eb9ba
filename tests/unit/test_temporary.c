/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/temporary.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char base[PATH_MAX];

/* Runs BODY in a child; returns how it ended. */
static int run_child(void (*body)(void))
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        body();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static int count_files(void)
{
    char command[PATH_MAX + 64];

    snprintf(command, sizeof command, "exit $(ls %s.* 2>/dev/null | wc -l)",
             base);
    return WEXITSTATUS(system(command));
}

static void create_and_terminate(void)
{
    char name[PATH_MAX];

    temporary_handle_signals();
    if (temporary_file(base, name) < 0 || access(name, F_OK))
        _exit(9);
    raise(SIGTERM);
}

static void create_and_keep(void)
{
    char name[PATH_MAX];

    temporary_handle_signals();
    if (temporary_file(base, name) < 0)
        _exit(9);
    temporary_forget(name);
    raise(SIGTERM);
}

/* A child of the owner ends by the signal and removes nothing. */
static void create_and_fork(void)
{
    char name[PATH_MAX];
    int status;

    temporary_handle_signals();
    if (temporary_file(base, name) < 0)
        _exit(9);
    pid_t pid = fork();
    if (!pid) {
        raise(SIGTERM);
        _exit(8);
    }
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || access(name, F_OK))
        _exit(7);
    unlink(name);
}

/* One that owns what it makes removes that, and nothing of its parent's. */
static void create_and_fork_owner(void)
{
    char name[PATH_MAX], more[PATH_MAX];
    int status;

    temporary_handle_signals();
    if (temporary_file(base, name) < 0)
        _exit(9);
    pid_t pid = fork();
    if (!pid) {
        temporary_own();
        if (temporary_file(base, more) < 0)
            _exit(8);
        raise(SIGTERM);
    }
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || access(name, F_OK) || count_files() != 1)
        _exit(7);
    unlink(name);
}

static void write_beyond_limit(void)
{
    const struct rlimit limit = {0, 0};
    char name[PATH_MAX];

    temporary_handle_signals();
    int fd = temporary_file(base, name);
    unlink(name);
    if (setrlimit(RLIMIT_FSIZE, &limit) || write(fd, "x", 1) != -1)
        _exit(9);
    temporary_restore_signals();
    if (write(fd, "x", 1) != -1)
        _exit(8);
}

static char directory[] = "/tmp/memsim-temporary.XXXXXX";

static void begin(void)
{
    CHECK(mkdtemp(directory));
    snprintf(base, sizeof base, "%s/f", directory);
}

static void end(void)
{
    char command[sizeof directory + 8];

    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

TEST(a_signal_removes_what_is_registered)
{
    begin();
    int status = run_child(create_and_terminate);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(count_files() == 0);
    end();
}

TEST(a_child_that_owns_removes_its_own)
{
    begin();
    CHECK(run_child(create_and_fork_owner) == 0);
    end();
}

TEST(what_is_forgotten_stays)
{
    begin();
    int status = run_child(create_and_keep);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(count_files() == 1);
    end();
}

TEST(a_forked_child_removes_nothing)
{
    begin();
    int status = run_child(create_and_fork);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end();
}

TEST(a_file_that_is_too_large_is_an_error_and_no_signal)
{
    begin();
    int status = run_child(write_beyond_limit);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    end();
}
