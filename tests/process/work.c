/* SPDX-License-Identifier: Apache-2.0
 * Records COUNT events and ends as HOW says: for tests/process/run_ends. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(long count)
{
    void *p;

    if (cudaMalloc(&p, 1 << 20))
        exit(1);
    for (long i = 0; i < count; i++)
        cudaMemset(p, (int)i, 8);
}

static void *thread_main(void *count)
{
    record(*(long *)count);
    return NULL;
}

static void threads(long count)
{
    pthread_t ids[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&ids[i], NULL, thread_main, &count);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1;
    const char *how = argc > 2 ? argv[2] : "return";

    if (!strcmp(how, "threads"))
        threads(count);
    else
        record(count);
    if (!strcmp(how, "_exit"))
        _exit(3);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "segv"))
        raise(SIGSEGV);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exec"))
        execl(argv[0], argv[0], "5", "return", (char *)NULL);
    if (!strcmp(how, "fresh")) /* a child with an empty environment */
        execve(argv[0], (char *[]){argv[0], "5", NULL}, (char *[]){NULL});
    if (!strcmp(how, "emptied") && !clearenv()) /* as env -i does */
        execvp(argv[0], (char *[]){argv[0], "5", NULL});
    if (!strcmp(how, "fork") && !fork())
        _exit(cudaMemset(NULL, 0, 1) != cudaErrorInitializationError);
    if (!strcmp(how, "path")) { /* by absolute path, as torch does */
        void *a = dlopen("libcudart.so.13", RTLD_NOW);
        void *b = dlopen("/nowhere/lib/libcudart.so.13", RTLD_NOW);
        void *c = dlopen("/nowhere/lib/libcuda.so", RTLD_NOW);

        return !(a && a == b && c);
    }
    wait(NULL);
    return 0;
}
