/* SPDX-License-Identifier: Apache-2.0
 * memsim run: a command on a GPU that is not there. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/gpu.h"
#include "common/units.h"
#include "memsim/cmd.h"
#include "memsim/output.h"
#include "memsim/rundir.h"
#include "memsim/spawn.h"
#include "memsim/target.h"

#define DEFAULT_GPU         "h100-sxm-80gb"
#define DEFAULT_TRACE_LIMIT (8 * GIB)
#define DEFAULT_SELECTED    0.5
#define TRACE_LIMIT_MIN     (2 * MIB) /* the header, and a chunk to write */

struct run_options {
    const char *gpu;
    uint32_t gpus;
    uint64_t memory_bytes; /* 0: the card's own */
    int addresses;         /* enum vaspace_model */
    const char *directory;
    uint64_t trace_limit_bytes;
    double fail_above_percent;
    double selected_fraction;
    bool no_modules;
    struct output_options output;
};

#define ROW(field) .offset = offsetof(struct run_options, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json", ROW(gpu),
     .help = "the card (default " DEFAULT_GPU "; `memsim gpus' lists\n"
             "them), or a file that describes one"},
    {"gpus", 0, OPTION_COUNT, "N", ROW(gpus), .minimum = 1,
     .maximum = SESSION_DEVICES, .help = "how many of them (default 1)"},
    {"memory", 0, OPTION_BYTES, "SIZE", ROW(memory_bytes),
     .help = "memory of each, in place of the card's own: 80GiB,\n"
             "80GB, 85899345920"},
    {"addresses", 0, OPTION_CHOICE, "linux|ascending", ROW(addresses),
     .help = "where cudaMalloc's addresses lie (default linux)"},
    {"fail-above", 0, OPTION_PERCENT, "PCT", ROW(fail_above_percent),
     .help = "exit with 121 if more of a card than this was used"},
    {"selected-fraction", 0, OPTION_FRACTION, "F", ROW(selected_fraction),
     .help = "how much a mask selects that is computed on the GPU,\n"
             "which memsim cannot know (default 0.5)"},
    {"no-modules", 0, OPTION_FLAG, NULL, ROW(no_modules),
     .help = "do not ask PyTorch whose each allocation is"},
    {"output", 'o', OPTION_STRING, "DIR", ROW(directory),
     .help = "keep the run's trace there, for `memsim report'"},
    {"trace-limit", 0, OPTION_BYTES, "SIZE", ROW(trace_limit_bytes),
     .help = "of each process's trace (default 8GiB)"},
    OUTPUT_ROWS(struct run_options, output),
    {0},
};

static const struct options options = {
    .command = "memsim run",
    .operands = "[--] COMMAND [ARGUMENT]...",
    .summary =
        "Runs COMMAND on GPUs that are not there, and tells how much of their "
        "memory it\nwould have used. The summary goes to stderr. The exit "
        "status is COMMAND's,\nexcept 120: it died for lack of GPU memory; "
        "121: see --fail-above; 125: memsim\nfailed; 126: COMMAND cannot be "
        "executed; 127: it was not found.",
    .rows = rows,
    .command_follows = true,
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int fail_errno(const char *command, int error)
{
    struct err err = {""};

    err_set(&err, "%s: %s", command, strerror(error));
    return cmd_fail(
        error == ENOENT ? CMD_RUN_NOT_FOUND : CMD_RUN_NOT_EXECUTABLE, &err);
}

/* Says what is wrong with the command; -1: it can be run. */
static int check_target(const char *command)
{
    struct err err = {""};

    switch (target_check(command, getenv("PATH"), &err)) {
    case TARGET_OK:
        return -1;
    case TARGET_BLIND:
        fprintf(stderr, "memsim: note: %s\n", err.text);
        return -1;
    case TARGET_NOT_EXECUTABLE:
        return cmd_fail(CMD_RUN_NOT_EXECUTABLE, &err);
    case TARGET_NOT_FOUND:
        break;
    }
    return cmd_fail(CMD_RUN_NOT_FOUND, &err);
}

static int run_nested(const char *session, char **command)
{
    fprintf(stderr,
            "memsim: note: already inside a memsim run (%s): %s joins it, and "
            "this run's options are ignored\n",
            session, command[0]);
    execvp(command[0], command);
    return fail_errno(command[0], errno);
}

/* Gives GPU the memory asked for; what nvidia-smi shows beyond CUDA's total
 * stays as it is. */
static int apply_memory(struct gpu *gpu, uint64_t memory_bytes, struct err *err)
{
    char context[16];

    if (!memory_bytes)
        return 0;
    if (memory_bytes <= gpu->context_torch_bytes)
        return err_set(err, "--memory: the CUDA context alone takes %s",
                       units_format_bytes(gpu->context_torch_bytes, context,
                                          sizeof context));
    uint64_t hidden = gpu->smi_memory_mib * MIB;
    hidden -= hidden < gpu->memory_bytes ? hidden : gpu->memory_bytes;
    gpu->memory_bytes = memory_bytes;
    gpu->smi_memory_mib = (uint32_t)((memory_bytes + hidden) / MIB);
    return 0;
}

static int check_trace_limit(uint64_t bytes, struct err *err)
{
    char text[16];

    if (bytes >= TRACE_LIMIT_MIN)
        return 0;
    return err_set(err, "--trace-limit: %s is too little; at least 2MiB",
                   units_format_bytes(bytes, text, sizeof text));
}

static void session_fill(struct session *s, const struct run_options *o,
                         const struct gpu *gpu)
{
    s->gpu = *gpu;
    s->trace_limit_bytes = o->trace_limit_bytes;
    s->fail_above_percent = o->fail_above_percent;
    s->selected_fraction = o->selected_fraction;
    s->address_model = (uint32_t)o->addresses;
    s->device_count = o->gpus;
    for (uint32_t i = 0; i < o->gpus; i++)
        s->devices[i].capacity_bytes = s->gpu.memory_bytes;
    s->start_ns = now_ns();
}

static bool is_alive(pid_t pid)
{
    char path[64], state = 'X';

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'R'; /* a name with a parenthesis in it */
    fclose(f);
    return state != 'Z' && state != 'X';
}

static uint32_t count_running(const struct session *s)
{
    uint32_t slots = atomic_load(&s->process_count), running = 0;

    for (uint32_t i = 0; i < slots && i < SESSION_PROCESSES; i++) {
        const struct session_process *p = &s->processes[i];
        running += atomic_load(&p->state) == SESSION_RUNNING &&
                   is_alive((pid_t)p->pid);
    }
    return running;
}

/* Workers that end with their parent get a moment to do so. */
static uint32_t count_background(const struct session *s)
{
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    uint32_t running = count_running(s);

    for (int i = 0; running && i < 10; i++) {
        nanosleep(&moment, NULL);
        running = count_running(s);
    }
    return running;
}

static int run_command(struct session *s, char **command, const char *libraries,
                       const char *preload, struct err *err)
{
    char session[PATH_MAX];
    int status = 0;

    snprintf(session, sizeof session, "%s/" SESSION_FILE, s->directory);
    char **environment =
        spawn_environment(environ, session, preload, libraries);
    int error = spawn_run(command, environment, &status);
    spawn_environment_free(environment);
    if (error)
        return err_set(err, "%s: %s", command[0], strerror(error));
    s->exit_status = (uint32_t)status;
    s->background = count_background(s);
    s->end_ns = now_ns();
    return 0;
}

static int report(struct rundir *dir, const struct run_options *o,
                  char **command)
{
    bool told;
    int status = output_run(dir, command, &o->output, stderr, &told);

    if (dir->temporary && told && !dir->session->background) {
        rundir_remove(dir);
        return status;
    }
    if (dir->temporary)
        fprintf(stderr, "memsim: note: the run's trace is kept in %s\n",
                dir->path);
    rundir_close(dir);
    return status;
}

static int run(const struct run_options *o, const struct gpu *gpu,
               char **command)
{
    struct err err = {""};
    struct rundir dir;
    char libraries[PATH_MAX];

    if (spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                          &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    char *preload = spawn_preload(libraries, getenv("LD_PRELOAD"), &err);
    if (!preload)
        return cmd_fail(CMD_RUN_FAILED, &err);
    if (rundir_create(&dir, o->directory, getenv("TMPDIR"), command, &err)) {
        free(preload);
        return cmd_fail(CMD_RUN_FAILED, &err);
    }
    session_fill(dir.session, o, gpu);
    if (o->no_modules)
        setenv("MEMSIM_MODULES", "0", true);
    int rc = run_command(dir.session, command, libraries, preload, &err);
    free(preload);
    if (rc) {
        rundir_remove(&dir);
        return cmd_fail(CMD_RUN_NOT_EXECUTABLE, &err);
    }
    return report(&dir, o, command);
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = {.gpu = DEFAULT_GPU,
                            .selected_fraction = DEFAULT_SELECTED,
                            .gpus = 1,
                            .trace_limit_bytes = DEFAULT_TRACE_LIMIT};
    struct operands operands;
    struct err err = {""};
    struct gpu gpu;
    int status = cmd_start(&options, argc, argv, &o, &operands, CMD_RUN_FAILED);

    if (status >= 0)
        return status;
    if (!operands.count) {
        err_set(&err, "no command given");
        return cmd_usage(&options, CMD_RUN_FAILED, &err);
    }
    if (output_check(&o.output, &err) ||
        check_trace_limit(o.trace_limit_bytes, &err) ||
        gpu_load(o.gpu, &gpu, &err) || apply_memory(&gpu, o.memory_bytes, &err))
        return cmd_fail(CMD_RUN_FAILED, &err);
    status = check_target(operands.values[0]);
    if (status >= 0)
        return status;
    const char *outer = getenv("MEMSIM_SESSION");
    if (outer && rundir_is_live(outer))
        return run_nested(outer, operands.values);
    return run(&o, &gpu, operands.values);
}
