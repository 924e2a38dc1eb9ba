/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/session_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define GIB (UINT64_C(1) << 30)

static char directory[64], path[96];

/* A session with SLOTS slots of room, mapped for the test itself. */
static struct session *session_start(uint32_t slots)
{
    snprintf(directory, sizeof directory, "/tmp/test_session.%d", getpid());
    mkdir(directory, 0700);
    snprintf(path, sizeof path, "%s/" SESSION_FILE, directory);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && !ftruncate(fd, (off_t)session_bytes(slots)));
    struct session *s = mmap(NULL, session_bytes(4096), PROT_READ | PROT_WRITE,
                             MAP_SHARED, fd, 0);
    memcpy(s->magic, SESSION_MAGIC, sizeof s->magic);
    s->version = SESSION_VERSION;
    s->bytes = sizeof *s;
    strcpy(s->directory, directory);
    s->devices[0].capacity_bytes = 80 * GIB;
    close(fd);
    return s;
}

static void session_end(void)
{
    unlink(path);
    rmdir(directory);
}

static void use(struct session *s, uint32_t slot, uint64_t bytes)
{
    struct session_usage *u = &s->processes[slot].usage[0];

    s->processes[slot].state = SESSION_RUNNING;
    u->used += bytes;
    session_raise(&u->peak_used, bytes);
    s->devices[0].used_bytes += bytes;
}

static uint32_t join(struct session_table *t, uint32_t rank,
                     const char *program)
{
    const struct session_joiner joiner = {.rank = rank, .program = program};

    return session_table_join(t, &joiner);
}

/* A process that joins, uses BYTES, writes a byte to ENDS[1] and waits for one
 * in GO[0]; then it ends as HOW says. */
struct worker {
    pid_t pid;
    int ready, go;
};

static void worker_main(uint64_t bytes, int ready, int go, const char *how)
{
    struct session_table t;
    char c;

    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGSEGV};

    /* The caller may ignore some (nohup, a job in the background), and a
     * sanitizer's handler would live on for a while. */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    if (session_table_open(&t, path, -1))
        _exit(9);
    uint32_t slot = join(&t, 0, "work");
    if (slot == UINT32_MAX)
        _exit(8);
    use(t.session, slot, bytes);
    if (!strcmp(how, "fork") && !fork()) {
        session_table_forked(&t); /* the child waits for the byte */
        if (read(go, &c, 1) != 1)
            _exit(7);
        _exit(0);
    }
    if (write(ready, "r", 1) != 1)
        _exit(7);
    if (!strcmp(how, "fork"))
        _exit(0);
    if (read(go, &c, 1) == 1 && !strcmp(how, "exec"))
        execl("/bin/sleep", "sleep", "30", (char *)NULL);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "quick"))
        quick_exit(0);
    _exit(0);
}

static struct worker worker_start(uint64_t bytes, const char *how)
{
    int ready[2], go[2];
    char c;

    CHECK(!pipe2(ready, O_CLOEXEC) && !pipe2(go, O_CLOEXEC));
    pid_t pid = fork();
    if (!pid)
        worker_main(bytes, ready[1], go[0], how);
    close(ready[1]);
    close(go[0]);
    CHECK(read(ready[0], &c, 1) == 1);
    return (struct worker){pid, ready[0], go[1]};
}

static void worker_go(const struct worker *w)
{
    CHECK(write(w->go, "g", 1) == 1);
}

static void wait_released(int fd, uint32_t slot)
{
    for (int i = 0; i < 400 && session_slot_is_held(fd, slot); i++)
        usleep(10000);
}

TEST(memory_of_the_dead_goes_back_once)
{
    static const struct {
        const char *how;
        int signal;
    } ends[] = {{"_exit", 0},    {"quick", 0},    {"abort", 0}, {"exec", 0},
                {"", SIGTERM},   {"", SIGKILL},   {"", SIGHUP}, {"", SIGINT},
                {"", SIGSEGV},   {"fork", 0}};
    struct session *s = session_start(64);
    struct session_table t;

    CHECK(!session_table_open(&t, path, -1));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct worker w = worker_start(50 * GIB, ends[i].how);

        session_table_reclaim(&t, 0); /* it lives */
        CHECK_UINT(s->devices[0].used_bytes, 50 * GIB);
        CHECK(session_table_is_held(&t, 0));
        if (ends[i].signal)
            kill(w.pid, ends[i].signal);
        else
            worker_go(&w);
        wait_released(fd, 0);
        session_table_reclaim(&t, 0);
        CHECK_UINT(s->devices[0].used_bytes, 0);
        session_table_reclaim(&t, 0);
        CHECK_UINT(s->devices[0].used_bytes, 0);
        CHECK_UINT(s->processes[0].usage[0].peak_used, 50 * GIB);
        kill(w.pid, SIGKILL); /* exec: its next program */
        waitpid(w.pid, NULL, 0);
        s->slot_count = 0;
        memset(&s->processes[0], 0, sizeof s->processes[0]);
    }
    session_end();
}

/* As over the driver: an open descriptor of the dead parent's. */
TEST(a_forked_child_keeps_its_parents_memory)
{
    struct session *s = session_start(64);
    struct session_table t;

    CHECK(!session_table_open(&t, path, -1));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct worker w = worker_start(GIB, "fork");
    waitpid(w.pid, NULL, 0); /* the parent is gone, the child is not */
    session_table_reclaim(&t, 0);
    CHECK_UINT(s->devices[0].used_bytes, GIB);
    worker_go(&w);
    wait_released(fd, 0);
    session_table_reclaim(&t, 0);
    CHECK_UINT(s->devices[0].used_bytes, 0);
    session_end();
}

TEST(slots_are_used_again_and_no_figure_is_lost)
{
    struct session *s = session_start(1);

    for (uint64_t i = 0; i < 1000; i++) {
        int status;
        pid_t pid = fork();

        if (!pid) {
            struct session_table t;
            if (session_table_open(&t, path, -1))
                _exit(9);
            uint32_t slot = join(&t, 0, "work");
            if (slot == UINT32_MAX || t.session->processes[slot].number != i)
                _exit(8);
            use(t.session, slot, (i % 7 + 1) * GIB);
            t.session->processes[slot].unpriced = 1;
            t.session->processes[slot].usage[0].launches = 2;
            session_table_reclaim(&t, 0);
            _exit(t.session->devices[0].used_bytes != (i % 7 + 1) * GIB);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    CHECK_UINT(s->process_count, 1000);
    CHECK(s->slot_count <= 3);
    uint64_t unpriced = 0, launches = 0, peak = 0;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        unpriced += s->processes[i].unpriced;
        launches += s->processes[i].usage[0].launches;
        if (s->processes[i].usage[0].peak_used > peak)
            peak = s->processes[i].usage[0].peak_used;
    }
    CHECK_UINT(unpriced, 1000);
    CHECK_UINT(launches, 2000);
    CHECK_UINT(peak, 7 * GIB);
    session_end();
}

TEST(what_must_be_told_apart_is_not_added_up)
{
    struct session *s = session_start(1);
    static const char *const programs[] = {"a", "b", "a", "a"};

    for (uint32_t i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (!pid) {
            struct session_table t;
            if (session_table_open(&t, path, -1))
                _exit(9);
            uint32_t slot = join(&t, i == 3, programs[i]);
            use(t.session, slot, GIB);
            t.session->processes[slot].usage[0].ooms = i == 2;
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    CHECK_UINT(s->slot_count, 4);
    session_end();
}

/* A process of COMMAND at NOW that ends with STATUS: its slot is locked no more
 * when this returns. */
static void ended(uint64_t command, uint64_t now_ns, uint32_t status)
{
    pid_t pid = fork();

    if (!pid) {
        const struct session_joiner joiner = {
            .program = "work", .command = command, .now_ns = now_ns};
        struct session_table t;
        if (session_table_open(&t, path, -1))
            _exit(9);
        uint32_t slot = session_table_join(&t, &joiner);
        struct session_process *p = &t.session->processes[slot];
        use(t.session, slot, GIB);
        p->exit_status = status;
        p->end_ns = now_ns + 1;
        p->state = SESSION_EXITED;
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* A failure, and the success after it that makes it good, must both be known,
 * however many others there were. */
TEST(ends_are_told_apart_and_the_later_time_stays)
{
    struct session *s = session_start(1);

    for (uint64_t i = 0; i < 4; i++) {
        ended(1, 100 * i + 10, 0);
        ended(1, 100 * i + 20, 3);
        ended(2, 100 * i + 30, 0);
    }
    uint64_t failed_ns = 0, well_ns = 0, other_ns = 0;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        const struct session_process *p = &s->processes[i];
        uint64_t *last = p->exit_status ? &failed_ns
                         : p->command == 1 ? &well_ns
                                           : &other_ns;
        if (p->start_ns > *last)
            *last = p->start_ns;
    }
    CHECK_UINT(failed_ns, 320);
    CHECK_UINT(well_ns, 310);
    CHECK_UINT(other_ns, 330);
    CHECK(s->slot_count < 12);
    session_end();
}

/* Of a killed process it is known that it had ended when another one came. */
TEST(a_killed_process_gets_an_end)
{
    struct session *s = session_start(64);
    struct worker w = worker_start(GIB, "abort");

    worker_go(&w);
    waitpid(w.pid, NULL, 0);
    CHECK_UINT(s->processes[0].end_ns, 0);
    ended(1, 1000, 0);
    CHECK_UINT(s->processes[0].end_ns, 1000);
    session_end();
}

/* 300 processes at once, in a file that has room for one. */
TEST(the_table_grows)
{
    enum { MANY = 300 };
    struct session *s = session_start(1);
    int gate[2];
    char c;

    CHECK(!pipe(gate));
    for (int i = 0; i < MANY; i++)
        if (!fork()) {
            struct session_table t;
            close(gate[1]);
            if (session_table_open(&t, path, -1))
                _exit(9);
            uint32_t slot = join(&t, 0, "work");
            if (slot == UINT32_MAX)
                _exit(8);
            use(t.session, slot, 1);
            if (read(gate[0], &c, 1))
                _exit(7);
            _exit(0);
        }
    for (int i = 0; i < 1000 && s->devices[0].used_bytes < MANY; i++)
        usleep(10000);
    CHECK_UINT(s->slot_count, MANY);
    CHECK_UINT(s->devices[0].used_bytes, MANY);
    close(gate[1]);
    for (int status, i = 0; i < MANY; i++)
        CHECK(wait(&status) > 0 && !status);
    struct session_table t;
    CHECK(!session_table_open(&t, path, -1));
    session_table_reclaim(&t, 0);
    CHECK_UINT(s->devices[0].used_bytes, 0);
    session_end();
}

TEST(a_file_that_cannot_grow_refuses_without_a_signal)
{
    struct session *s = session_start(1);
    const struct rlimit limit = {session_bytes(1), session_bytes(1)};
    struct session_table t, second;

    CHECK(!session_table_open(&t, path, -1));
    CHECK(!session_table_open(&second, path, -1));
    CHECK_UINT(join(&t, 0, "work"), 0);
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    CHECK_UINT(join(&second, 1, "work"), UINT32_MAX);
    CHECK_UINT(errno, EFBIG);
    CHECK_UINT(s->slot_count, 1);
    session_end();
}

/* The path cannot be opened: another mount, another user. */
TEST(an_inherited_descriptor_stands_in_for_the_path)
{
    struct session *s = session_start(64);
    struct session_table t;

    CHECK_UINT(session_table_open(&t, "/nowhere/session", -1), ENOENT);
    int fd = open(path, O_RDWR);
    CHECK(!session_table_open(&t, "/nowhere/session", fd));
    CHECK(!unlink(path));
    CHECK_UINT(join(&t, 0, "work"), 0);
    use(s, 0, GIB);
    pid_t pid = fork();
    if (!pid) {
        struct session_table other;
        session_table_forked(&t);
        if (session_table_open(&other, "/nowhere/session", fd))
            _exit(9);
        session_table_reclaim(&other, 0);
        _exit(s->devices[0].used_bytes != GIB);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    close(fd); /* and the number may be another file's by now */
    fd = open("/dev/null", O_RDWR);
    session_table_reclaim(&t, 0);
    CHECK_UINT(s->devices[0].used_bytes, GIB);
    session_end();
}
