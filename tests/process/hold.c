/* SPDX-License-Identifier: Apache-2.0
 * Takes GIB of memory and ends as HOW says: for tests/process/run_memory. The
 * status is 2 where the memory was refused; HOW "stay" waits then. */
#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *how;
    int number;
} signals[] = {{"kill", SIGKILL}, {"term", SIGTERM}, {"hup", SIGHUP},
               {"int", SIGINT},   {"segv", SIGSEGV}, {"usr1", SIGUSR1}};

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "return";
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 30;
    size_t available, total;
    void *p = NULL;

    if (cudaMalloc(&p, bytes) && !strcmp(how, "stay"))
        sleep(60);
    else if (!p)
        _exit(2);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!strcmp(how, signals[i].how))
            raise(signals[i].number);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "fail"))
        exit(3);
    if (!strcmp(how, "raw")) /* as a runtime does that has no C library */
        syscall(SYS_exit_group, 0);
    if (!strcmp(how, "become"))
        execv("/bin/true", (char *[]){argv[0], NULL});
    if (!strcmp(how, "quick_exit"))
        quick_exit(0);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exec"))
        execl(argv[0], argv[0], argv[1], "return", (char *)NULL);
    if (!strcmp(how, "free")) {
        cudaMemGetInfo(&available, &total);
        printf("%zu\n", (total - available) >> 30);
    }
    if (!strcmp(how, "orphan")) { /* a child that has our descriptors */
        if (!fork()) {
            sleep(5);
            _exit(0);
        }
        raise(SIGKILL);
    }
    if (!strcmp(how, "linger"))
        sleep(4);
    if (!strcmp(how, "sleep"))
        sleep(60);
    return 0;
}
