/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/rundir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "memsim/run/run.h"

static char *command[] = {"python", "a b", "", "c\nd", NULL};
static char root[64];
static bool force;

/* A scratch directory of this test's own; PATH in it, in a static buffer. */
static const char *in_root(const char *path)
{
    static char out[4][160];
    static unsigned next;

    if (!root[0]) {
        snprintf(root, sizeof root, "/tmp/test_rundir.%d", getpid());
        mkdir(root, 0700);
    }
    next = (next + 1) % 4;
    snprintf(out[next], sizeof out[next], "%s/%s", root, path);
    return out[next];
}

static void clean(void)
{
    char line[128];

    snprintf(line, sizeof line, "rm -rf %s", root);
    CHECK(system(line) == 0);
}

static void touch(const char *path)
{
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static bool exists(const char *path)
{
    return !access(path, F_OK);
}

static bool create(struct rundir *dir, const char *path, struct err *err)
{
    err_clear(err);
    return !rundir_create(dir, path, in_root(""), force, command, err);
}

TEST(makes_a_private_directory_and_removes_it)
{
    struct rundir dir;
    struct stat st;
    struct err err;

    CHECK(create(&dir, NULL, &err));
    CHECK(dir.temporary && dir.path[0] == '/');
    CHECK(!stat(dir.path, &st) && (st.st_mode & 0777) == 0700);
    CHECK_STR(dir.session->directory, dir.path);
    CHECK_UINT(dir.session->bytes, sizeof(struct session));
    char path[sizeof dir.path];
    strcpy(path, dir.path);
    rundir_remove(&dir);
    CHECK(!exists(path));
    clean();
}

TEST(keeps_files_to_the_owner)
{
    struct rundir dir;
    struct stat st;
    struct err err;

    umask(0);
    CHECK(create(&dir, in_root("d"), &err));
    CHECK(!stat(in_root("d"), &st) && (st.st_mode & 0777) == 0700);
    CHECK(!stat(in_root("d/session"), &st) && (st.st_mode & 0777) == 0600);
    CHECK(st.st_blocks * 512 >= (long)sizeof(struct session));
    CHECK(!stat(in_root("d/command"), &st) && (st.st_mode & 0777) == 0600);
    rundir_close(&dir);
    clean();
}

TEST(replaces_an_earlier_runs_files_only_and_by_force)
{
    struct rundir dir;
    struct err err;

    CHECK(create(&dir, in_root("d"), &err));
    rundir_close(&dir);
    CHECK(!exists(in_root("d/lock")));
    touch(in_root("d/process-0007.trace"));
    touch(in_root("d/process-10007.trace"));
    touch(in_root("d/mine.txt"));
    touch(in_root("d/mine.trace"));
    touch(in_root("d/process-007.trace"));
    CHECK(!create(&dir, in_root("d"), &err));
    CHECK(strstr(err.text, "holds an earlier run"));
    CHECK(strstr(err.text, "--force"));
    CHECK(exists(in_root("d/session")) && exists(in_root("d/command")));
    CHECK(exists(in_root("d/process-0007.trace")));
    CHECK(!exists(in_root("d/lock")));
    force = true;
    CHECK(create(&dir, in_root("d"), &err));
    CHECK(!exists(in_root("d/process-0007.trace")));
    CHECK(!exists(in_root("d/process-10007.trace")));
    CHECK(exists(in_root("d/mine.txt")) && exists(in_root("d/mine.trace")));
    CHECK(exists(in_root("d/process-007.trace")));
    rundir_remove(&dir);
    CHECK(!exists(in_root("d/session")));
    CHECK(exists(in_root("d/mine.txt")));
    clean();
}

TEST(leaves_other_peoples_directories_alone)
{
    struct rundir dir;
    struct err err = {""};

    mkdir(in_root("d"), 0755);
    touch(in_root("d/thesis.tex"));
    CHECK(!create(&dir, in_root("d"), &err));
    CHECK(strstr(err.text, "is not empty, and no directory of a memsim run"));
    touch(in_root("d/session")); /* by that name only */
    CHECK(!create(&dir, in_root("d"), &err));
    CHECK(exists(in_root("d/session")) && exists(in_root("d/thesis.tex")));
    touch(in_root("file"));
    CHECK(!create(&dir, in_root("file"), &err));
    CHECK(strstr(err.text, "Not a directory"));
    CHECK(!create(&dir, in_root("no/such"), &err));
    CHECK(strstr(err.text, "No such file or directory"));
    clean();
}

TEST(one_run_at_a_time)
{
    struct rundir first, second;
    struct err err = {""};

    char pid[32];

    force = true;
    CHECK(create(&first, in_root("d"), &err));
    CHECK(rundir_is_live(in_root("d/session")));
    CHECK(!create(&second, in_root("d"), &err));
    CHECK(strstr(err.text, "another memsim run is using it"));
    snprintf(pid, sizeof pid, "(process %d)", getpid());
    CHECK(strstr(err.text, pid));
    CHECK(exists(in_root("d/session")) && exists(in_root("d/lock")));
    rundir_close(&first);
    CHECK(!rundir_is_live(in_root("d/session")));
    CHECK(!rundir_is_live(in_root("d/nothing")));
    CHECK(create(&first, in_root("d"), &err));
    rundir_close(&first);
    clean();
}

/* Waits at START, tries, and, where it wins, keeps the directory until STOP. */
static int race(int start, int stop)
{
    struct rundir dir;
    struct err err;
    char c;

    if (read(start, &c, 1))
        return 5;
    if (!create(&dir, in_root("d"), &err))
        return strstr(err.text, "another memsim run") ? 2 : 3;
    if (read(stop, &c, 1))
        return 5;
    bool whole = exists(in_root("d/session")) && exists(in_root("d/command")) &&
                 rundir_is_live(in_root("d/session"));
    rundir_close(&dir);
    return whole ? 1 : 4;
}

/* Many processes at once want a directory: one gets it, and its files stay. */
TEST(a_race_for_a_directory_has_one_winner)
{
    enum { MANY = 8 };

    in_root("");
    for (int round = 0; round < 30; round++) {
        int start[2], stop[2], status, lost = 0;

        CHECK(!pipe(start) && !pipe(stop));
        force = round % 3 != 0; /* 0: a new directory, then twice the same */
        for (int i = 0; i < MANY; i++)
            if (!fork()) {
                close(start[1]);
                close(stop[1]);
                _exit(race(start[0], stop[0]));
            }
        close(start[1]);
        for (int i = 0; i < MANY - 1; i++)
            lost += wait(&status) > 0 && WEXITSTATUS(status) == 2;
        CHECK_UINT(lost, MANY - 1);
        close(stop[1]);
        CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 1);
        close(start[0]);
        close(stop[0]);
        if (round % 3 == 2)
            clean(), mkdir(root, 0700);
    }
    clean();
}

/* A process that holds the lock of PATH, as one that looks for leftovers does,
 * for MS; returned once it does. */
static pid_t look(const char *path, unsigned ms)
{
    int ready[2];
    char lock[200], any;

    CHECK(!pipe(ready));
    pid_t pid = fork();
    if (!pid) {
        snprintf(lock, sizeof lock, "%s/" SESSION_LOCK, path);
        int fd = open(lock, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || flock(fd, LOCK_EX) || write(ready[1], "", 1) != 1)
            _exit(1);
        usleep(ms * 1000);
        _exit(0);
    }
    close(ready[1]);
    CHECK(read(ready[0], &any, 1) == 1);
    close(ready[0]);
    return pid;
}

/* Another memsim that starts looks whether our new directory is left over. */
TEST(who_looks_for_leftovers_is_waited_for)
{
    const char *path = in_root("run");
    struct rundir dir;
    struct err err;

    CHECK(!mkdir(path, 0700));
    pid_t other = look(path, 50);
    CHECK(create(&dir, path, &err));
    rundir_remove(&dir);
    CHECK(waitpid(other, NULL, 0) == other);
    clean();
}

TEST(who_holds_a_directory_for_long_is_told)
{
    const char *path = in_root("run");
    struct rundir dir;
    struct err err;

    CHECK(!mkdir(path, 0700));
    pid_t other = look(path, 60 * 1000);
    CHECK(!create(&dir, path, &err));
    CHECK_STR(strstr(err.text, ": another"),
              ": another memsim run is using it (process ?)");
    kill(other, SIGKILL);
    CHECK(waitpid(other, NULL, 0) == other);
    clean();
}

TEST(a_session_cut_short_is_an_error)
{
    struct rundir dir;
    struct err err;

    CHECK(create(&dir, in_root("d"), &err));
    dir.session->slot_count = 3;
    CHECK(!truncate(in_root("d/session"), (off_t)session_bytes(3) - 1));
    CHECK(rundir_collect(&dir, &err) == -1);
    CHECK(strstr(err.text, "is cut short"));
    rundir_close(&dir);
    err_clear(&err);
    CHECK(rundir_open(&dir, in_root("d"), &err) == -1);
    CHECK(strstr(err.text, "is cut short"));
    CHECK(!truncate(in_root("d/session"), 0));
    err_clear(&err);
    CHECK(rundir_open(&dir, in_root("d"), &err) == -1);
    CHECK(strstr(err.text, "is not the session"));
    clean();
}

TEST(traces_are_listed_by_number)
{
    struct rundir dir;
    struct run run;
    struct err err;

    CHECK(create(&dir, in_root("d"), &err));
    touch(in_root("d/process-10000.trace"));
    touch(in_root("d/process-0002.trace"));
    touch(in_root("d/process-9999.trace"));
    touch(in_root("d/process-0002.trace.bak"));
    CHECK(!run_open(&run, dir.path, &err));
    CHECK_UINT(run.count, 3);
    CHECK_UINT(run.traces[0].process, 2);
    CHECK_UINT(run.traces[2].process, 10000);
    CHECK(exists(run.traces[1].path));
    run_close(&run);
    CHECK(run_open(&run, in_root("none"), &err) == -1);
    run_close(&run);
    rundir_close(&dir);
    clean();
}

TEST(leaves_nothing_behind_where_files_may_not_be_large)
{
    const struct rlimit limit = {4096, 4096};
    struct rundir dir;
    struct err err = {""};

    in_root("");
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    CHECK(!create(&dir, in_root("d"), &err));
    CHECK(strstr(err.text, "files may not be so large here"));
    CHECK(strstr(err.text, "ulimit -f"));
    CHECK(!exists(in_root("d")));
    clean();
}

TEST(a_run_can_be_opened_again)
{
    struct rundir dir;
    struct err err = {""};

    CHECK(create(&dir, in_root("d"), &err));
    CHECK(!rundir_collect(&dir, &err));
    dir.session->exit_status = 77;
    CHECK(!rundir_finish(&dir, &err));
    rundir_close(&dir);
    CHECK(!rundir_open(&dir, in_root("d"), &err));
    CHECK_UINT(dir.session->exit_status, 77);
    char **again = rundir_command(&dir, &err);
    for (size_t i = 0; again && i < 5; i++)
        CHECK(command[i] ? again[i] && !strcmp(command[i], again[i])
                         : !again[i]);
    free(again);
    rundir_close(&dir);
    clean();
}

TEST(what_is_no_run_cannot_be_opened)
{
    struct rundir dir;
    struct err err = {""};

    mkdir(in_root("d"), 0700);
    CHECK(rundir_open(&dir, in_root("d"), &err) == -1);
    CHECK(strstr(err.text, "the directory of a memsim run?"));
    touch(in_root("d/session"));
    err_clear(&err);
    CHECK(rundir_open(&dir, in_root("d"), &err) == -1);
    CHECK(strstr(err.text, "is not the session of a memsim run"));
    err_clear(&err);
    CHECK(create(&dir, in_root("e"), &err));
    dir.session->version++;
    rundir_close(&dir);
    CHECK(rundir_open(&dir, in_root("e"), &err) == -1);
    CHECK(strstr(err.text, "another version of memsim"));
    clean();
}
