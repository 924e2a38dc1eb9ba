/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/spawn.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "check.h"

static char dir[64];

/* A directory with these empty files. */
static void make_dir(const char *const *files)
{
    snprintf(dir, sizeof dir, "/tmp/test_spawn.%d", getpid());
    mkdir(dir, 0700);
    for (; *files; files++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, *files);
        FILE *f = fopen(path, "w");
        if (f)
            fclose(f);
    }
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

/* The value with the directory's name taken out, in a static buffer. */
static const char *without_dir(const char *value)
{
    static char out[1024];
    size_t length = strlen(dir);
    char *to = out;

    while (*value) {
        if (!strncmp(value, dir, length)) {
            value += length;
            continue;
        }
        *to++ = *value++;
    }
    *to = '\0';
    return out;
}

static void check_preload(const char *before, const char *want)
{
    struct err err = {""};
    char *value = spawn_preload(dir, before, &err);

    CHECK_STR(err.text, "");
    CHECK_STR(value ? without_dir(value) : NULL, want);
    free(value);
}

TEST(preloads_the_core_first_and_keeps_what_was_set)
{
    const char *files[] = {"libb.so.1", "libmemsim.so", "liba.so.12",
                           "README",    "libx.so",      NULL};
    char before[256];

    make_dir(files);
    check_preload(NULL, "/libmemsim.so:/liba.so.12:/libb.so.1");
    check_preload("", "/libmemsim.so:/liba.so.12:/libb.so.1");
    check_preload("/x/m.so y.so:", "/libmemsim.so:/liba.so.12:/libb.so.1:"
                                   "/x/m.so:y.so");
    /* An outer run's, which is over: once is enough. */
    snprintf(before, sizeof before, "%s/libmemsim.so:%s/libb.so.1:z.so", dir,
             dir);
    check_preload(before, "/libmemsim.so:/liba.so.12:/libb.so.1:z.so");
    remove_dir();
}

TEST(needs_libraries_to_preload)
{
    const char *files[] = {"libmemsim.so", NULL};
    struct err err = {""};

    make_dir(files);
    CHECK(!spawn_preload(dir, NULL, &err));
    CHECK(strstr(err.text, "memsim's CUDA libraries are not there"));
    remove_dir();
}

TEST(checks_the_library_directory)
{
    const char *files[] = {"libmemsim.so", NULL};
    struct err err = {""};
    char out[256], spaced[128];

    make_dir(files);
    CHECK(!spawn_library_dir(dir, out, sizeof out, &err));
    CHECK_STR(out, dir);
    CHECK(spawn_library_dir("/nowhere", out, sizeof out, &err));
    CHECK(strstr(err.text, "/nowhere: memsim's libraries are not there"));
    err_clear(&err);
    CHECK(spawn_library_dir("/tmp", out, sizeof out, &err));
    CHECK(strstr(err.text, "/tmp/libmemsim.so: No such file or directory"));
    err_clear(&err);
    snprintf(spaced, sizeof spaced, "%s/a b", dir);
    mkdir(spaced, 0700);
    CHECK(!spawn_can_preload(spaced));
    CHECK(spawn_can_preload(dir));
    remove_dir();
}

static const char *variable(char *const *environment, const char *name)
{
    const char *found = NULL;

    for (; *environment; environment++)
        if (!strncmp(*environment, name, strlen(name)) &&
            (*environment)[strlen(name)] == '=') {
            CHECK(!found); /* only once */
            found = *environment + strlen(name) + 1;
        }
    return found;
}

TEST(sets_the_commands_environment)
{
    char *before[] = {"LD_PRELOAD=old",       "PYTHONPATH=/p:/q", "HOME=/h",
                      "MEMSIM_SESSION=stale", "PYTHONPATHS=z",    NULL};
    char **made = spawn_environment(before, "/s/session", "7,8,ab", "new:old", "/l");

    CHECK_STR(variable(made, "LD_PRELOAD"), "new:old");
    CHECK_STR(variable(made, "PYTHONPATH"), "/l/py:/p:/q");
    CHECK_STR(variable(made, "MEMSIM_SESSION"), "/s/session");
    CHECK_STR(variable(made, "TRITON_LIBCUDA_PATH"), "/l");
    CHECK_STR(variable(made, "HOME"), "/h");
    CHECK_STR(variable(made, "PYTHONPATHS"), "z");
    CHECK_STR(variable(made, "USE_PYTORCH_KERNEL_CACHE"), "0");
    CHECK_STR(variable(made, "CUPY_CACHE_IN_MEMORY"), "1");
    CHECK(!variable(made, "CUDA_VISIBLE_DEVICES"));
    CHECK_STR(variable(made, "WANDB_MODE"), "offline");
    CHECK(!variable(made, "MLFLOW_TRACKING_URI"));
    spawn_environment_free(made);
    made = spawn_environment(before + 5, "/s/session", "7,8,ab", "new", "/l");
    CHECK_STR(variable(made, "PYTHONPATH"), "/l/py");
    spawn_environment_free(made);
}

TEST(keeps_services_offline)
{
    char *online[] = {"WANDB_MODE=online", "NEPTUNE_MODE=debug",
                      "MLFLOW_TRACKING_URI=https://m", NULL};
    char *local[] = {"MLFLOW_TRACKING_URI=./runs", "WANDB_MODE=Disabled", NULL};
    char *through[] = {"MEMSIM_WRITE_THROUGH=1", "WANDB_MODE=online", NULL};
    char **made = spawn_environment(online, "/s", "7,8,ab", NULL, "/l");

    CHECK_STR(variable(made, "WANDB_MODE"), "offline");
    CHECK_STR(variable(made, "NEPTUNE_MODE"), "debug");
    CHECK_STR(variable(made, "CLEARML_OFFLINE_MODE"), "1");
    CHECK_STR(variable(made, "MLFLOW_TRACKING_URI"), "");
    CHECK(!variable(made, "LD_PRELOAD"));
    spawn_environment_free(made);
    made = spawn_environment(local, "/s", "7,8,ab", "new", "/l");
    CHECK_STR(variable(made, "MLFLOW_TRACKING_URI"), "./runs");
    CHECK_STR(variable(made, "WANDB_MODE"), "Disabled");
    CHECK_STR(variable(made, "LD_PRELOAD"), "new");
    spawn_environment_free(made);
    made = spawn_environment(through, "/s", "7,8,ab", "new", "/l");
    CHECK_STR(variable(made, "WANDB_MODE"), "online");
    CHECK(!variable(made, "SWANLAB_MODE"));
    spawn_environment_free(made);
}

static int run_of(char *const *argv, int *status)
{
    const struct spawn spawn = {
        .argv = argv, .environment = environ, .output = -1};

    pid_t pid;

    return spawn_run(&spawn, &pid, status);
}

static int run_shell(const char *script, int *error)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    int status = -1;

    *error = run_of(argv, &status);
    return status;
}

TEST(tells_how_the_command_ended)
{
    int error;

    CHECK_UINT((uint64_t)run_shell("exit 7", &error), 7);
    CHECK_UINT((uint64_t)error, 0);
    CHECK_UINT((uint64_t)run_shell("kill -9 $$", &error), 137);
    CHECK_UINT((uint64_t)run_shell("kill -TERM $$", &error), 143);
}

TEST(tells_it_where_dead_children_are_ignored)
{
    int error;

    signal(SIGCHLD, SIG_IGN);
    CHECK_UINT((uint64_t)run_shell("exit 7", &error), 7);
}

TEST(tells_why_it_did_not_start)
{
    char *missing[] = {"/nowhere/x", NULL};
    char *directory[] = {"/tmp", NULL};
    int status = 0;

    CHECK_UINT((uint64_t)run_of(missing, &status), ENOENT);
    CHECK_UINT((uint64_t)run_of(directory, &status), EACCES);
}

TEST(passes_signals_on)
{
    int ends[2], status, error;
    char byte;

    CHECK(!pipe(ends));
    pid_t pid = fork();
    if (!pid) {
        dup2(ends[1], STDOUT_FILENO);
        exit(run_shell("trap 'exit 42' TERM INT HUP; echo; "
                       "while :; do sleep 0.02; done",
                       &error));
    }
    CHECK(read(ends[0], &byte, 1) == 1); /* its trap is set */
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

TEST(leaves_ignored_signals_ignored)
{
    int error;

    signal(SIGHUP, SIG_IGN);
    CHECK_UINT((uint64_t)run_shell("kill -HUP $$; exit 5", &error), 5);
}

TEST(passes_the_terminals_signals_on_to_the_command_as_default)
{
    int error;

    signal(SIGINT, SIG_DFL); /* who runs in the background ignores it */
    CHECK_UINT((uint64_t)run_shell("kill -INT $$; exit 5", &error), 130);
}
