/* SPDX-License-Identifier: Apache-2.0
 * One clock for all threads, while one of them makes it jump by waiting for the
 * GPU.
 *
 * clock_threads stamps: 8 threads tell each other the time; says how often one
 * had a later time than another one then saw.
 * clock_threads beats: threads that beat each 50 ms, each by another wait, and
 * watchdogs that look for a second without a beat; says who missed one.
 * clock_threads waits: how long waits take after a jump, by this machine's
 * clock; says which takes longer than its time.
 * clock_threads looks: how often those that wait look whether the others rest,
 * where the one that works gets little of a CPU: all of them, or one.
 * clock_threads files: whether files are as old as they should look. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define BYTES    (1 << 30)
#define THREADS  8
#define NS_OF_S  INT64_C(1000000000)
#define BEAT_NS  50000000
#define LIMIT_NS NS_OF_S

static void *memory;
static atomic_bool done;

static int64_t ns_on(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_OF_S + t.tv_nsec;
}

static int64_t now(void)
{
    return ns_on(CLOCK_MONOTONIC);
}

/* This machine's clock, past the C library. */
static int64_t host(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_OF_S + t.tv_nsec;
}

/* The clock jumps by 0.32 ms for each. */
static void jump(int sets)
{
    for (int i = 0; i < sets; i++)
        cudaMemsetAsync(memory, 0, BYTES, 0);
    cudaDeviceSynchronize();
}

/* --- stamps --------------------------------------------------------------- */

static _Atomic int64_t stamps[THREADS];
static atomic_uint negative, compared;

static void pause_for(uint64_t random)
{
    if (random % 4 == 0)
        nanosleep(&(struct timespec){0, (long)(random >> 8) % 300000}, NULL);
    else if (random % 4 == 1)
        sched_yield();
}

/* Compares what the others told with a look after that, then tells. */
static void *stamp(void *number)
{
    uint64_t at = (uintptr_t)number, random = at + 1;

    while (!done) {
        int64_t theirs = 0;
        for (int i = 0; i < THREADS; i++)
            if (stamps[i] > theirs)
                theirs = stamps[i];
        negative += now() < theirs;
        compared++;
        stamps[at] = now();
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        pause_for(random);
    }
    return NULL;
}

static void tell_stamps(void)
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 1; i < THREADS; i++)
        pthread_create(&threads[i], NULL, stamp, (void *)i);
    for (int i = 0; i < 80; i++) {
        jump(i % 7 ? 30 : 300);
        stamps[0] = now();
        if (i % 20 == 0)
            usleep(20000); /* a gap in the records */
    }
    done = true;
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%u negative, %s\n", negative,
           compared > 1000 ? "many compared" : "few compared");
}

/* --- waits ---------------------------------------------------------------- */

static struct timespec after(clockid_t clock, int64_t ns)
{
    int64_t at = ns_on(clock) + ns;

    return (struct timespec){at / NS_OF_S, at % NS_OF_S};
}

static void by_nanosleep(int64_t ns)
{
    nanosleep(&(struct timespec){ns / NS_OF_S, ns % NS_OF_S}, NULL);
}

static void by_deadline(int64_t ns)
{
    struct timespec t = after(CLOCK_MONOTONIC, ns);

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void by_condition(int64_t ns)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ns);

    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&cond, &mutex, &t) == 0)
        continue;
    pthread_cond_destroy(&cond);
}

static void by_c11_condition(int64_t ns)
{
    mtx_t mutex;
    cnd_t cond;
    struct timespec t = after(CLOCK_REALTIME, ns);

    mtx_init(&mutex, mtx_plain);
    cnd_init(&cond);
    mtx_lock(&mutex);
    while (cnd_timedwait(&cond, &mutex, &t) == thrd_success)
        continue;
    cnd_destroy(&cond);
}

static void by_semaphore(int64_t ns)
{
    struct timespec t = after(CLOCK_REALTIME, ns);
    sem_t sem;

    sem_init(&sem, 0, 0);
    sem_timedwait(&sem, &t);
}

static void by_futex(int64_t ns)
{
    struct timespec t = after(CLOCK_MONOTONIC, ns);
    uint32_t word = 0;

    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void by_short_futex(int64_t ns)
{
    struct timespec t = {ns / NS_OF_S, ns % NS_OF_S};
    uint32_t word = 0;

    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}

static void by_select(int64_t ns)
{
    struct timeval t = {ns / NS_OF_S, ns % NS_OF_S / 1000};

    select(0, NULL, NULL, NULL, &t);
}

static void by_thread_sleep(int64_t ns)
{
    thrd_sleep(&(struct timespec){ns / NS_OF_S, ns % NS_OF_S}, NULL);
}

static void *hold(void *lock)
{
    pthread_mutex_lock(lock);
    return NULL;
}

static void *hold_to_write(void *lock)
{
    pthread_rwlock_wrlock(lock);
    return NULL;
}

static void by_lock(int64_t ns)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ns);
    pthread_t holder;

    pthread_create(&holder, NULL, hold, &mutex);
    pthread_join(holder, NULL);
    pthread_mutex_timedlock(&mutex, &t);
}

static void by_c11_lock(int64_t ns)
{
    struct timespec t = after(CLOCK_REALTIME, ns);
    mtx_t mutex;

    mtx_init(&mutex, mtx_timed);
    mtx_lock(&mutex);
    mtx_timedlock(&mutex, &t);
}

static void by_read_lock(int64_t ns)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec t = after(CLOCK_REALTIME, ns);
    pthread_t holder;

    pthread_create(&holder, NULL, hold_to_write, &lock);
    pthread_join(holder, NULL);
    pthread_rwlock_timedrdlock(&lock, &t);
}

static void by_queue(int64_t ns)
{
    struct timespec t = after(CLOCK_REALTIME, ns);
    char name[32], text[8192];

    snprintf(name, sizeof name, "/clock.%d", (int)getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
    mq_unlink(name);
    if (queue < 0) { /* no queues here */
        by_nanosleep(ns);
        return;
    }
    mq_timedreceive(queue, text, sizeof text, NULL, &t);
    mq_close(queue);
}

/* Those before LOCKS are woken by a jump. */
static const struct {
    const char *name;
    void (*wait)(int64_t ns);
} waits[] = {
    {"nanosleep", by_nanosleep},   {"clock_nanosleep", by_deadline},
    {"condition", by_condition},   {"cnd_timedwait", by_c11_condition},
    {"semaphore", by_semaphore},   {"futex", by_futex},
    {"short futex", by_short_futex}, {"select", by_select},
    {"thrd_sleep", by_thread_sleep}, {"queue", by_queue},
    {"mutex", by_lock},            {"mtx_timedlock", by_c11_lock},
    {"rwlock", by_read_lock},
};
#define LOCKS 9
#define WAITS (sizeof waits / sizeof *waits)

static void tell_waits(void)
{
    int bad = 0;

    jump(20000); /* 6.4 s */
    for (size_t i = 0; i < WAITS; i++) {
        int64_t host_ns = host(), user_ns = now();
        waits[i].wait(200000000);
        host_ns = host() - host_ns;
        user_ns = now() - user_ns;
        if (user_ns < 200000000 || user_ns > 2 * NS_OF_S ||
            host_ns > 2 * NS_OF_S ||
            host_ns < 40000000) {
            printf("%s: %.3f s, %.3f s\n", waits[i].name,
                   (double)user_ns / 1e9, (double)host_ns / 1e9);
            bad++;
        }
    }
    printf("%d wrong\n", bad);
}

/* --- beats ---------------------------------------------------------------- */

static _Atomic int64_t beaten[LOCKS], missed[LOCKS];
static atomic_uint beats[LOCKS];

static void *beat(void *number)
{
    uintptr_t at = (uintptr_t)number;

    while (!done) {
        beaten[at] = now();
        beats[at]++;
        waits[at].wait(BEAT_NS);
    }
    return NULL;
}

static void *watch(void *unused)
{
    while (!done) {
        by_deadline(BEAT_NS / 2);
        for (int i = 0; i < LOCKS; i++) {
            int64_t age_ns = now() - beaten[i];
            if (beaten[i] && age_ns > LIMIT_NS && age_ns > missed[i])
                missed[i] = age_ns;
        }
    }
    return unused;
}

static void tell_beats(void)
{
    pthread_t threads[LOCKS + 1];
    int bad = 0;

    for (uintptr_t i = 0; i < LOCKS; i++)
        pthread_create(&threads[i], NULL, beat, (void *)i);
    pthread_create(&threads[LOCKS], NULL, watch, NULL);
    int64_t start_ns = now();
    for (int i = 0; i < 5; i++)
        jump(10000); /* 3.2 s */
    int64_t took_ns = now() - start_ns;
    done = true;
    for (int i = 0; i <= LOCKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < LOCKS; i++) {
        bool few = beats[i] < took_ns / BEAT_NS / 2;
        if (!missed[i] && !few)
            continue;
        printf("%s: %u beats in %.1f s, one after %.1f s\n", waits[i].name,
               beats[i], (double)took_ns / 1e9, (double)missed[i] / 1e9);
        bad++;
    }
    printf("%d missed a beat\n", bad);
}

/* --- looks ---------------------------------------------------------------- */

#define WAITERS 12
#define CROWD   12

static void *wait_often(void *unused)
{
    while (!done)
        by_deadline(BEAT_NS);
    return unused;
}

/* How many times the process has read from files; -1: Linux does not say. */
static long reads(void)
{
    char line[64];
    long count = -1;
    FILE *file = fopen("/proc/self/io", "r");

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "syscr: ", 7))
            count = atol(line + 7);
    if (file)
        fclose(file);
    return count;
}

/* Processes that keep this one's only CPU busy. */
static void crowd_start(pid_t crowd[CROWD])
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < CROWD; i++)
        if (!(crowd[i] = fork()))
            for (;;)
                continue;
}

static void tell_looks(void)
{
    pthread_t threads[WAITERS];
    pid_t crowd[CROWD];

    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, wait_often, NULL);
    crowd_start(crowd);
    long before = reads();
    int64_t start_ns = host();
    for (int i = 0; i < 4; i++) {
        jump(1);
        for (int64_t end_ns = host() + BEAT_NS * 14; host() < end_ns;)
            continue;
    }
    int64_t parts = (host() - start_ns) / BEAT_NS;
    long looks = before < 0 ? 0 : reads() - before;
    for (int i = 0; i < CROWD; i++) {
        kill(crowd[i], SIGKILL);
        waitpid(crowd[i], NULL, 0);
    }
    done = true;
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    printf("%s\n", looks > WAITERS / 2 * parts ? "all look" : "one looks");
    fprintf(stderr, "%ld reads in %ld times\n", looks, (long)parts);
}

/* --- files ---------------------------------------------------------------- */

static double age_s(const char *name)
{
    struct stat st;

    if (stat(name, &st))
        return -1;
    return (double)(ns_on(CLOCK_REALTIME) - st.st_mtim.tv_sec * NS_OF_S -
                    st.st_mtim.tv_nsec) / 1e9;
}

static void tell_files(void)
{
    static const char name[] = "touched", old[] = "clock_threads";
    double before = age_s(old);

    jump(20000); /* 6.4 s */
    unlink(name);
    close(open(name, O_CREAT | O_WRONLY, 0600));
    double fresh = age_s(name);
    int64_t start_ns = host();
    while (host() < start_ns + 20000000) /* some ticks of the kernel's */
        continue;
    jump(10000); /* 3.2 s */
    double aged = age_s(name), after = age_s(old);
    printf("%s\n", fresh >= 0 && fresh < 1 && aged > 3 && aged < fresh + 5 &&
                           after > before + 9
                       ? "right"
                       : "wrong");
    fprintf(stderr, "%.3f s, then %.3f s; %.3f s, then %.3f s\n", fresh, aged,
            before, after);
}

int main(int argc, char **argv)
{
    if (argc < 2 || cudaMalloc(&memory, BYTES))
        return 1;
    if (!strcmp(argv[1], "stamps"))
        tell_stamps();
    else if (!strcmp(argv[1], "beats"))
        tell_beats();
    else if (!strcmp(argv[1], "looks"))
        tell_looks();
    else if (!strcmp(argv[1], "files"))
        tell_files();
    else
        tell_waits();
    return 0;
}
