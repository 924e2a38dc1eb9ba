/* SPDX-License-Identifier: Apache-2.0
 * clock work: times of work on the GPU, by events and by the host's clock.
 * clock threads: looks at the clock from threads and from a signal's handler
 * while the GPU gets work; says how often it went back.
 * clock fork: whether a child's clock is behind its parent's.
 * clock crowd: the time that a thread's own work takes where others have the
 * CPU and a thread asks for events all the time, against its CPU time. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES   (1 << 30)
#define LOOKERS 3
#define CROWD   4

static atomic_bool done;
static atomic_uint backwards, looks;

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sets(void *p, int count)
{
    for (int i = 0; i < count; i++)
        cudaMemsetAsync(p, 0, BYTES, 0);
}

static void work(void *p)
{
    cudaEvent_t begin, end;
    float ms = -1;

    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaDeviceSynchronize();
    int64_t start = now();
    cudaEventRecord(begin, 0);
    sets(p, 100);
    cudaEventRecord(end, 0);
    cudaDeviceSynchronize();
    int64_t waited = now() - start;
    cudaEventElapsedTime(&ms, begin, end);
    printf("%.6f %.6f\n", ms, (double)waited / 1e6);
}

static void *look(void *unused)
{
    int64_t last = now();

    while (!done) {
        int64_t next = now();
        backwards += next < last;
        looks++;
        last = next;
    }
    return unused;
}

static void on_signal(int number)
{
    (void)number;
    now();
    looks++;
}

static void threads(void *p)
{
    const struct itimerval often = {{0, 200}, {0, 200}};
    pthread_t lookers[LOOKERS];

    signal(SIGALRM, on_signal);
    for (int i = 0; i < LOOKERS; i++)
        pthread_create(&lookers[i], NULL, look, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 500; i++) {
        int64_t last = now();
        sets(p, 50);
        cudaDeviceSynchronize();
        backwards += now() < last;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    done = true;
    for (int i = 0; i < LOOKERS; i++)
        pthread_join(lookers[i], NULL);
    printf("%u back, %s\n", backwards,
           looks > 1000 ? "many looks" : "no looks");
}

static void forked(void *p)
{
    int status = -1;

    sets(p, 100);
    cudaDeviceSynchronize();
    int64_t before = now();
    pid_t child = fork();
    if (!child)
        _exit(now() < before);
    waitpid(child, &status, 0);
    printf("%s\n", status ? "behind" : "not behind");
}

static void *ask(void *event)
{
    while (!done) {
        cudaEventQuery(event);
        usleep(200);
    }
    return NULL;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void crowd(void *p)
{
    pid_t others[CROWD];
    pthread_t asker;
    cudaEvent_t event;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    cudaEventCreate(&event);
    cudaEventRecord(event, 0);
    for (int i = 0; i < CROWD; i++)
        if (!(others[i] = fork()))
            for (;;)
                ;
    pthread_create(&asker, NULL, ask, event);
    double start = (double)now() / 1e6, used = cpu_ms(), next = used;
    while (next < used + 100) {
        cudaMemsetAsync(p, 0, 64, 0);
        for (next = cpu_ms() + 0.5; cpu_ms() < next;)
            ;
    }
    double took = (double)now() / 1e6 - start;
    used = cpu_ms() - used;
    printf("%s\n", took < 1.5 * used ? "as long" : "longer");
    fprintf(stderr, "%.1f ms of %.1f\n", took, used);
    done = true;
    pthread_join(asker, NULL);
    for (int i = 0; i < CROWD; i++)
        kill(others[i], SIGKILL);
}

int main(int argc, char **argv)
{
    void *p;

    if (argc < 2 || cudaMalloc(&p, BYTES))
        return 1;
    if (!strcmp(argv[1], "work"))
        work(p);
    else if (!strcmp(argv[1], "threads"))
        threads(p);
    else if (!strcmp(argv[1], "crowd"))
        crowd(p);
    else
        forked(p);
    return 0;
}
