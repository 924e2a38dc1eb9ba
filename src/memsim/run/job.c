/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/job.h"
#include "memsim/run/assume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/catalogue/vaspace.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/status.h"
#include "common/trace/meeting.h"
#include "memsim/run/handover.h"
#include "memsim/run/host_limit.h"
#include "memsim/run/kept_files.h"
#include "memsim/run/meeting_make.h"
#include "memsim/run/leftovers.h"
#include "memsim/run/run.h"
#include "memsim/run/spawn.h"
#include "memsim/run/target.h"

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t unix_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Gives GPU the memory asked for; what nvidia-smi shows beyond CUDA's total
 * stays as it is. */
static int apply_memory(struct gpu *gpu, uint64_t memory_bytes, struct err *err)
{
    char given[16], context[16];

    if (!memory_bytes)
        return 0;
    if (memory_bytes <= gpu->context_torch_bytes)
        return err_set(
            err,
            "--memory: %s is too little: the CUDA context alone takes %s; "
            "is a unit missing, as in 60GiB?",
            units_format_bytes(memory_bytes, given, sizeof given),
            units_format_bytes(gpu->context_torch_bytes, context,
                               sizeof context));
    uint64_t hidden = gpu->smi_memory_mib * MIB;
    hidden -= hidden < gpu->memory_bytes ? hidden : gpu->memory_bytes;
    gpu->memory_bytes = memory_bytes;
    gpu->smi_memory_mib = (uint32_t)((memory_bytes + hidden) / MIB);
    return 0;
}

int job_gpu(const struct job_options *options, struct gpu *gpu, struct err *err)
{
    if (gpu_load(options->gpu, gpu, err))
        return -1;
    return apply_memory(gpu, options->memory_bytes, err);
}

int job_gpu_real(const struct job_options *options,
                 const struct real_cards *real, struct gpu *gpu,
                 struct err *err)
{
    struct err ignored = {""};
    const struct real_card *card = &real->cards[0];

    if (gpu_load(card->name, gpu, &ignored) &&
        gpu_load(options->gpu, gpu, err))
        return -1;
    snprintf(gpu->device_name, sizeof gpu->device_name, "%s", card->name);
    gpu->memory_bytes = card->memory_bytes;
    return 0;
}

int job_host_limit(const struct job_options *options, uint64_t *bytes,
                   struct err *err)
{
    const char *text = options->host_memory;

    *bytes = 0;
    if (!text)
        return 0;
    if (!strcmp(text, "cgroup"))
        return host_limit_cgroup(bytes, err);
    if (units_parse_bytes(text, bytes) || !*bytes)
        return err_set(err, "--host-memory: '%s' is no size; give one as "
                            "64GiB, or cgroup",
                       text);
    return 0;
}

int job_check(const char *command, struct err *err)
{
    char libraries[PATH_MAX], *search = NULL;
    const char *path = getenv("PATH");
    struct err ignored = {""};

    if (!spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                           &ignored))
        search = xasprintf("%s/bin:%s", libraries, path ? path : "");
    enum target_status found = target_check(command, search ? search : path,
                                            err);
    free(search);
    switch (found) {
    case TARGET_OK:
    case TARGET_BLIND:
    case TARGET_OTHER_LIBC:
        return 0;
    case TARGET_NOT_EXECUTABLE:
        return CMD_RUN_NOT_EXECUTABLE;
    case TARGET_NOT_FOUND:
        break;
    }
    return CMD_RUN_NOT_FOUND;
}

/* What the processes of the run simulate their clock with, or what they price
 * their collectives with. */
static int clock_write(const struct job *job, const struct rundir *dir,
                       struct err *err)
{
    char path[PATH_MAX];

    if (!job->clock_image)
        return 0;
    snprintf(path, sizeof path, "%s/" SESSION_CLOCK, dir->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, job->clock_image, job->clock_bytes);
    if (fd >= 0 && close(fd))
        n = -1;
    if (n == (ssize_t)job->clock_bytes)
        return 0;
    return err_set(err, "%s: cannot write it: %s; use -o on another disk", path,
                   strerror(n < 0 ? errno : ENOSPC));
}

/* Where their clocks meet. Without room for it, which the traces will miss as
 * well, each has its own. */
static int meeting_write(const struct job *job, const struct rundir *dir,
                         struct err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/" MEETING_FILE, dir->path);
    if (!job->clock_image || job->real || job->local_clock ||
        !meeting_make(&job->launch, path))
        return 0;
    if ((errno == EFBIG || errno == ENOSPC) && !unlink(path))
        return 0;
    return err_set(err, "%s: cannot write it: %s; use -o on another disk", path,
                   strerror(errno));
}

/* What is left needs them no more. */
static void clock_remove(const struct rundir *dir)
{
    static const char *const names[] = {SESSION_CLOCK, MEETING_FILE};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir->path, names[i]);
        unlink(path);
    }
}

/* A GPU for each rank that is a process, and where there is room those that
 * they see of other ranks. */
static void world_fill(struct session *s, const struct launch *l)
{
    if (!l->world)
        return;
    s->world_size = l->world;
    s->local_world_size = l->local;
    for (uint32_t r = 0; rank_set_next(&l->ranks, r, &r); r++)
        s->ranks[s->rank_count++] = r;
    s->device_count = s->rank_count + l->local < SESSION_DEVICES
                          ? s->rank_count + l->local
                          : SESSION_DEVICES;
}

/* The GPUs are this machine's: for a rank that of its number on its node, which
 * ranks of other nodes have, too, in other turns. */
static void real_fill(struct session *s, const struct job *job)
{
    s->real = true;
    s->cap_bytes = job->cap_bytes;
    if (!s->world_size)
        s->device_count = job->real->count;
    for (uint32_t i = 0; i < s->device_count; i++) {
        uint32_t index = session_card_index(s, i);
        const struct real_card *card = &job->real->cards[index];

        if (index >= job->real->count)
            continue; /* a GPU of a node that this machine has not */
        s->devices[i].capacity_bytes = card->memory_bytes;
        s->devices[i].others_bytes = card->used_bytes;
        if (job->cap_bytes && job->cap_bytes < card->memory_bytes)
            s->devices[i].capacity_bytes = job->cap_bytes;
    }
}

static void session_fill(struct session *s, const struct job *job)
{
    const struct job_options *o = &job->options;

    s->gpu = job->gpu;
    s->trace_limit_bytes = job->trace_limit_bytes;
    s->fail_above_percent = o->fail_above_percent;
    s->host_limit_bytes = job->host_limit_bytes;
    s->shm_start = host_shared_used();
    s->selected_fraction = o->selected_fraction;
    s->unknown_value = o->unknown_value;
    s->stacks = (uint32_t)job->stacks;
    s->require_gpu = o->require_gpu;
    s->ignore_children = o->ignore_children;
    s->write_through = o->write_through;
    s->address_model =
        vaspace_model_of((enum vaspace_model)o->addresses,
                         job->gpu.capability_major);
    s->device_count = o->gpus;
    world_fill(s, &job->launch);
    for (uint32_t i = 0; i < s->device_count; i++)
        s->devices[i].capacity_bytes = s->gpu.memory_bytes;
    if (job->real)
        real_fill(s, job);
    s->simulated_clock = job->clock_image && !job->real;
    s->late_frees = job->late_frees;
    s->start_ns = now_ns();
    s->start_unix_ns = unix_ns();
}

/* What the run left, with how its command, the process PID, ended. */
static int collect_figures(struct rundir *dir, pid_t pid, int status,
                           struct err *err)
{
    uint64_t end_ns = now_ns();

    if (rundir_collect(dir, err))
        return -1;
    uint32_t background = rundir_background(dir);
    if (rundir_collect(dir, err)) /* some ended meanwhile */
        return -1;
    dir->session->exit_status = (uint32_t)status;
    dir->session->background = background;
    dir->session->command_pid = (uint32_t)pid;
    dir->session->end_ns = end_ns;
    assume_unused(dir->session);
    kept_files_end(dir);
    return rundir_finish(dir, err);
}

/* Whether COMMAND can load our libraries; otherwise it could not start. */
static bool command_preloads(const char *command)
{
    struct err ignored = {""};

    return target_check(command, getenv("PATH"), &ignored) != TARGET_OTHER_LIBC;
}

/* Returns 0 with the session of DIR collected, or memsim's exit status. */
static int run_command(const struct job *job, const char *libraries,
                       const char *preload, struct rundir *dir, struct err *err)
{
    char session[PATH_MAX];
    struct handover handover;
    int status = 0;

    snprintf(session, sizeof session, "%s/" SESSION_FILE, dir->path);
    handover_open(&handover, dir);
    char **environment =
        (job->real ? spawn_environment_real : spawn_environment)(
            environ, session, handover.value,
            command_preloads(job->command[0]) ? preload : NULL, libraries);
    char **ranks = job->launch.world ? launch_command(&job->launch) : NULL;
    const struct spawn spawn = {.argv = ranks ? ranks : job->command,
                                .environment = environment,
                                .output = job->output,
                                .kill_with_memsim = job->kill_with_memsim,
                                .view = job->view,
                                .limit_s = job->limit_s,
                                .late = &dir->late};
    pid_t pid;

    if (job->view)
        job->view->begin(job->view->context, dir);
    int rc = 0, error = spawn_run(&spawn, &pid, &status);
    spawn_environment_free(environment);
    launch_command_free(ranks);
    handover_given(&handover);
    if (error < 0) {
        err_set(err,
                "%s: no process could be made for it: %s; see ulimit -u, "
                "ulimit -n and this machine's memory",
                job->command[0], strerror(-error));
        rc = CMD_RUN_FAILED;
    } else if (error) {
        err_set(err, "%s: %s", job->command[0], strerror(error));
        rc = CMD_RUN_NOT_EXECUTABLE;
    } else if (collect_figures(dir, pid, status, err)) {
        rc = CMD_RUN_FAILED;
    } else {
        handover_collect(&handover, dir);
    }
    handover_close(&handover);
    return rc;
}

char *job_programs(struct err *err)
{
    char libraries[PATH_MAX];

    if (spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                          err))
        return NULL;
    char *preload = spawn_preload(libraries, NULL, err);
    if (!preload)
        return NULL;
    char *programs = xasprintf("/proc/self/exe:%s", preload);
    free(preload);
    return programs;
}

/* What the command's processes and later reports read there. */
static int directory_fill(const struct job *job, struct rundir *dir,
                          struct err *err)
{
    if (clock_write(job, dir, err) || meeting_write(job, dir, err) ||
        kept_files_begin(dir, err) ||
        (job->kept && rundir_write_words(dir, RUN_OPTIONS, job->kept, err)) ||
        (job->invocation &&
         rundir_write_words(dir, RUN_INVOCATION, job->invocation, err)))
        return -1;
    session_fill(dir->session, job);
    if (assume_parse(job->options.assume, dir->session, err))
        return -1;
    return job->launch.world
               ? launch_classes_write(&job->launch, dir->path, err)
               : 0;
}

/* The name of a link to the libraries: in DIR, or in /tmp where the path of DIR
 * has a blank, too. Nobody else can replace it there: /tmp is sticky. */
static char *link_name(const struct rundir *dir)
{
    return spawn_can_preload(dir->path)
               ? xasprintf("%s/" RUN_LIBRARIES, dir->path)
               : xasprintf("/tmp/memsim-" RUN_LIBRARIES "-%d", (int)getpid());
}

static void libraries_unlink(const struct rundir *dir)
{
    char *path = link_name(dir);

    unlink(path);
    free(path);
}

/* Makes LIBRARIES, of PATH_MAX bytes, a name that LD_PRELOAD can have: that of
 * a link. */
static int libraries_link(char *libraries, const struct rundir *dir,
                          struct err *err)
{
    int rc = 0;

    if (spawn_can_preload(libraries))
        return 0;
    libraries_unlink(dir); /* of a process that had this number */
    char *path = link_name(dir);
    if (symlink(libraries, path))
        rc = err_set(err, "%s: cannot create it: %s", path, strerror(errno));
    else
        snprintf(libraries, PATH_MAX, "%s", path);
    free(path);
    return rc;
}

/* Runs the command with the LIBRARIES, in DIR, which is filled. */
static int preload_and_run(const struct job *job, char *libraries,
                           struct rundir *dir, struct err *err)
{
    if (libraries_link(libraries, dir, err))
        return CMD_RUN_FAILED;
    char *preload =
        job->real ? spawn_preload_real(libraries, getenv("LD_PRELOAD"),
                                       job->emulates)
                  : spawn_preload(libraries, getenv("LD_PRELOAD"), err);
    int rc = preload ? run_command(job, libraries, preload, dir, err)
                     : CMD_RUN_FAILED;
    free(preload);
    libraries_unlink(dir);
    return rc;
}

/* What JOB's options say to the Python in the command. */
static void environment_fill(const struct job *job, const struct rundir *dir)
{
    char steps[16], scan[PATH_MAX];

    if (job->real_init)
        setenv("MEMSIM_REAL_INIT", "1", true);
    if (job->emulates)
        setenv("MEMSIM_EMULATE", "1", true); /* py/sitecustomize.py */
    if (job->options.write_through)
        setenv("MEMSIM_WRITE_THROUGH", "1", true);
    if (job->options.step_mark)
        setenv("MEMSIM_STEP_MARK", job->options.step_mark, true);
    snprintf(steps, sizeof steps, "%" PRIu32, job->scan_seconds);
    if (job->scan_seconds &&
        snprintf(scan, sizeof scan, "%s/" SESSION_SCAN, dir->path) <
            (int)sizeof scan) {
        setenv("MEMSIM_SCAN_SECONDS", steps, true);
        setenv("MEMSIM_SCAN_DATA", scan, true);
    }
    snprintf(steps, sizeof steps, "%" PRIu32, job->seed);
    if (job->routing) {
        setenv("MEMSIM_ROUTING", job->routing, true);
        setenv("MEMSIM_SEED", steps, true);
    }
    if (job->no_modules)
        setenv("MEMSIM_MODULES", "0", true);
    snprintf(steps, sizeof steps, "%" PRIu32, job->stop_after);
    if (job->stop_after)
        setenv("MEMSIM_STOP_AFTER", steps, true);
}

int job_run(const struct job *job, struct rundir *dir, struct err *err)
{
    char libraries[PATH_MAX];

    if (spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                          err))
        return CMD_RUN_FAILED;
    const char *temporary = getenv("TMPDIR");
    leftovers_remove(temporary && *temporary ? temporary : "/tmp");
    if (rundir_create(dir, job->directory, getenv("TMPDIR"), job->force,
                      job->command, err))
        return CMD_RUN_FAILED;
    if (directory_fill(job, dir, err)) {
        rundir_remove(dir);
        return CMD_RUN_FAILED;
    }
    environment_fill(job, dir);
    int rc = preload_and_run(job, libraries, dir, err);
    clock_remove(dir);
    if (rc == CMD_RUN_NOT_EXECUTABLE || (rc && dir->temporary))
        rundir_remove(dir);
    else if (rc)
        rundir_close(dir);
    return rc;
}
