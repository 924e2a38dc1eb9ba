/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/host_use.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/live.h"
#include "capture/core/run/peers.h"
#include "capture/core/run/record.h"
#include "common/base/hash.h"
#include "common/base/text_clean.h"
#include "common/trace/session_mail.h"
#include "common/trace/session_table.h"

static struct session_table table = SESSION_TABLE_INIT;
static struct session *session;
static struct session_process *slot;
static int session_error; /* why there is none in a run */
static struct session_handover handover;
static bool begun, forked;
static struct process_hook *hooks;
static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;

/* The command line of a program that this process was forked for. */
static char given_line[TRACE_TEXT_MAX];
static size_t given_bytes;
static uint32_t starter; /* the process that was started for it; 0: none */

/* The environment that shapes what the allocator and the libraries do. */
static const char *const settings[] = {
    "PYTORCH_CUDA_ALLOC_CONF",        "PYTORCH_ALLOC_CONF",
    "CUDA_VISIBLE_DEVICES",           "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",        "CUBLASLT_WORKSPACE_SIZE",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
};

struct session *memsim_session(void)
{
    return session;
}

struct session_process *process_slot(void)
{
    return slot;
}

void memsim_process_world(uint32_t rank, uint32_t ranks)
{
    if (!slot || slot->world_size > 1 || ranks < 2)
        return;
    slot->world_size = ranks;
    if (!getenv("RANK"))
        slot->rank = rank;
}

void memsim_process_died_of_oom(void)
{
    if (slot)
        atomic_store(&slot->died_of_oom, 1);
}

void process_begin(void)
{
    begun = true;
}

void memsim_process_setting(const char *text)
{
    if (slot)
        RECORD_TEXT(SETTING, text, strlen(text));
}

bool memsim_process_forked(void)
{
    return forked;
}

static uint32_t environment_number(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

uint32_t process_rank(void)
{
    return slot ? slot->rank : environment_number("RANK", 0);
}

static size_t command_line(char *out, size_t size)
{
    if (given_bytes) {
        memcpy(out, given_line, given_bytes < size ? given_bytes : size);
        return given_bytes < size ? given_bytes : size;
    }
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, size);

    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* Of the command line but for its digits: a job that is started again with a
 * smaller batch has that of the first. */
static uint64_t command_hash(void)
{
    char line[4096];
    size_t length = command_line(line, sizeof line), kept = 0;

    for (size_t i = 0; i < length; i++)
        if (line[i] < '0' || line[i] > '9')
            line[kept++] = line[i];
    return hash_bytes(HASH_START, line, kept);
}

static struct session_process *slot_take(void)
{
    const struct session_joiner joiner = {
        .rank = environment_number("RANK", 0),
        .program = program_invocation_short_name,
        .command = command_hash(),
        .now_ns = clock_host(CLOCK_MONOTONIC),
    };

    core_lock(LOCK_TABLE);
    uint32_t index = session_table_join(&table, &joiner);
    int error = errno;
    core_unlock(LOCK_TABLE);
    if (index == UINT32_MAX) {
        atomic_fetch_add(&session->lost_count, 1);
        memsim_note("%s/" SESSION_FILE ": no room for process %d (%s): its "
                    "memory is not counted; use -o on another disk",
                    session->directory, (int)getpid(), strerror(error));
        return NULL;
    }
    struct session_process *p = &session->processes[index];
    p->pid = (uint32_t)getpid();
    p->parent = process_starter();
    p->local_rank = environment_number("LOCAL_RANK", 0);
    p->world_size = environment_number("WORLD_SIZE", 1);
    atomic_store(&p->state, SESSION_RUNNING);
    return p;
}

static void slot_describe(const struct session_process *p)
{
    static char text[TRACE_TEXT_MAX];
    size_t length = command_line(text, sizeof text);

    RECORD_TEXT(PROCESS, text, length, .pid = p->pid, .parent = p->parent,
                .rank = p->rank, .local_rank = p->local_rank,
                .world_size = p->world_size,
                .local_world_size = environment_number("LOCAL_WORLD_SIZE", 0));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *value = getenv(settings[i]);

        if (!value)
            continue;
        int n = snprintf(text, sizeof text, "%s=%s", settings[i], value);
        RECORD_TEXT(SETTING, text, (size_t)n);
    }
}

/* Where this process's files go: the run's path, or, where that leads
 * elsewhere, GIVEN, the descriptor that the run gave its processes. */
static const char *run_directory(char given[32])
{
    char path[sizeof session->directory + 32];

    snprintf(path, sizeof path, "%s/" SESSION_FILE, session->directory);
    snprintf(given, 32, "/proc/self/fd/%d", handover.directory);
    return !session_table_is_at(&table, AT_FDCWD, path) &&
                   session_table_is_at(&table, handover.directory, SESSION_FILE)
               ? given
               : session->directory;
}

int process_file(const char *name)
{
    char given[32], path[sizeof session->directory + 128];

    if (!session)
        return -1;
    snprintf(path, sizeof path, "%s/%s", run_directory(given), name);
    return (int)syscall(SYS_openat, AT_FDCWD, path,
                        O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* Flags of Python's with which it does not import our sitecustomize. */
static void python_note(void)
{
    static const struct {
        const char *variable, *options;
    } flags[] = {{"Py_IgnoreEnvironmentFlag", "-I or -E"},
                 {"Py_NoSiteFlag", "-S"}};

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const int *flag = dlsym(RTLD_DEFAULT, flags[i].variable);

        if (flag && *flag)
            memsim_note("Python was started with %s, so memsim's own Python is "
                        "not in it: modules and phases are not known; start it "
                        "without",
                        flags[i].options);
    }
}

void process_join(void)
{
    static bool refused;
    char given[32], path[sizeof session->directory + 32];

    if (slot || !session || refused)
        return;
    live_load();
    pthread_mutex_lock(&join_lock);
    if (!slot && !refused) {
        struct session_process *p = slot_take();

        refused = !p;
        if (p) {
            session_trace_path(run_directory(given), p->number, path,
                               sizeof path);
            live_start();
            record_open(session, path);
            for (const struct process_hook *h = hooks; h; h = h->next)
                if (h->at_open)
                    h->at_open();
            slot_describe(p);
            python_note();
            __atomic_store_n(&slot, p, __ATOMIC_RELEASE);
            host_use_join();
        }
    }
    pthread_mutex_unlock(&join_lock);
}

void memsim_process_reclaim(unsigned card)
{
    core_lock(LOCK_TABLE);
    session_table_reclaim(&table, card);
    core_unlock(LOCK_TABLE);
}

void process_goes_on(void)
{
    if (slot && atomic_load_explicit(&slot->last_oom_ns, memory_order_relaxed))
        atomic_store_explicit(&slot->went_on_ns, clock_now(),
                              memory_order_relaxed);
}

static void state_change(uint32_t from, uint32_t to)
{
    if (slot && slot->pid == (uint32_t)getpid())
        atomic_compare_exchange_strong(&slot->state, &from, to);
}

void process_replace(void)
{
    state_change(SESSION_RUNNING, SESSION_REPLACED);
}

void process_stay(void)
{
    state_change(SESSION_REPLACED, SESSION_RUNNING);
}

uint32_t memsim_process_count(void)
{
    return session_table_count(&table);
}

bool memsim_process_lives(uint32_t index)
{
    if (atomic_load(&session->processes[index].state) != SESSION_RUNNING)
        return false;
    core_lock(LOCK_TABLE);
    bool held = session_table_is_held(&table, index);
    core_unlock(LOCK_TABLE);
    return held;
}

void process_explain(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char line[1024];
    const char *path = getenv(INSTANCE_SESSION);

    if (!session_error || !path || atomic_flag_test_and_set(&said))
        return;
    int n = snprintf(line, sizeof line,
                     "memsim: process %d (%s) sees no GPU and is not measured: "
                     "it cannot open %.400s: %s\n",
                     (int)getpid(), program_invocation_short_name, path,
                     strerror(session_error));
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        n = n > 0 ? n : 1; /* it has closed its stderr: the mail says it */
    if (handover.token[0])
        session_mail_send(&handover, line + strlen("memsim: "),
                          (size_t)n - strlen("memsim: \n"));
}

void process_hand_on(void)
{
    session_table_hand_on(&table, handover.directory);
}

void memsim_note(const char *format, ...)
{
    char text[SESSION_TEXT_BYTES];
    va_list args;

    if (!session)
        return;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) >= (int)sizeof text)
        text_cut_at_word(text, sizeof text);
    va_end(args);
    for (uint32_t i = 0; i < SESSION_NOTES && i < session->note_count; i++)
        if (session->notes[i].ready && !strcmp(session->notes[i].text, text))
            return;
    uint32_t i = atomic_fetch_add(&session->note_count, 1);
    if (i >= SESSION_NOTES)
        return;
    memcpy(session->notes[i].text, text, sizeof text);
    session->notes[i].process =
        slot ? (uint32_t)(slot - session->processes) : UINT32_MAX;
    atomic_store(&session->notes[i].ready, 1);
    RECORD_TEXT(NOTE, text, strlen(text));
}

void process_hook_add(struct process_hook *hook)
{
    hook->next = hooks;
    hooks = hook;
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&join_lock);
    for (int i = 0; i < LOCK_COUNT; i++)
        core_lock(i);
}

static void fork_parent(void)
{
    for (int i = LOCK_COUNT; i-- > 0;)
        core_unlock(i);
    pthread_mutex_unlock(&join_lock);
}

static void fork_child(void)
{
    record_after_fork();
    clock_after_fork();
    live_after_fork();
    host_use_after_fork();
    session_table_forked(&table);
    forked = forked || begun;
    slot = NULL;
    fork_parent();
}

static void records_end(uint32_t status)
{
    live_conclude();
    atomic_store(&slot->trace_end, record_close(status));
    for (const struct process_hook *h = hooks; h; h = h->next)
        if (h->at_end)
            h->at_end();
}

/* A signal's handler that ends the process in the middle of a call of memsim's
 * (data loaders' workers do, at SIGTERM) can take no lock: the trace is left as
 * where a process is killed. */
void process_end(uint32_t status)
{
    bool in_call = core_locks_held;

    peers_leave();
    host_use_end();
    if (!slot || slot->pid != (uint32_t)getpid() ||
        atomic_load(&slot->state) == SESSION_EXITED)
        return;
    atomic_store(&slot->exit_status, status);
    atomic_store(&slot->end_ns, clock_host(CLOCK_MONOTONIC));
    if (!in_call)
        records_end(status);
    atomic_store(&slot->state, SESSION_EXITED);
}

/* After every destructor: registered before any program's start. */
static void process_exit(int status, void *unused)
{
    (void)unused;
    process_end((uint32_t)status & 0xff);
}

static void session_enter(const char *path)
{
    session_handover_read(&handover, getenv(INSTANCE_HANDOVER));
    session_error = session_table_open(&table, path, handover.session);
    session = table.session;
    host_use_begin(session);
    peers_enter();
}

/* The session has no name in a process that is to be forked for programs. */
__attribute__((constructor)) static void process_start(void)
{
    const char *path = getenv(INSTANCE_SESSION);

    if (!path)
        return;
    if (*path)
        session_enter(path);
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    on_exit(process_exit, NULL);
}

void memsim_process_stands_in(void)
{
    peers_leave();
}

uint32_t process_starter(void)
{
    return starter ? starter : (uint32_t)getppid();
}

void memsim_process_enter(const char *line, size_t bytes, uint32_t stand_in)
{
    const char *path = getenv(INSTANCE_SESSION);

    if (session || !path || !*path)
        return;
    given_bytes = bytes < sizeof given_line ? bytes : sizeof given_line;
    memcpy(given_line, line, given_bytes);
    starter = stand_in;
    host_use_alone();
    session_enter(path);
    for (const struct process_hook *h = hooks; h; h = h->next)
        if (h->at_enter)
            h->at_enter();
}
