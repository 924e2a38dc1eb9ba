/* SPDX-License-Identifier: Apache-2.0
 * Runs whole command lines of memsim and commfit, each in a fork of this
 * process: a start of a program under ASan takes longer than most commands.
 * Reads lines of words that tabs separate; ERROR_FILE gets what the command
 * prints. Answers each with its wait status and its ms. A command that takes
 * LIMIT_S ends by SIGALRM, which is a finding. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 64
#define LIMIT_S   5

int memsim_main(int argc, char **argv);
int commfit_main(int argc, char **argv);

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Of CPU time, too: the machine may be busy. */
static void limits_set(void)
{
    const struct rlimit cpu = {LIMIT_S, LIMIT_S + 1};
    const struct rlimit file = {256u << 20, 256u << 20};

    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_FSIZE, &file);
    alarm(12 * LIMIT_S);
}

static void command_run(int argc, char **argv, const char *errors)
{
    int nothing = open("/dev/null", O_RDWR);
    int err = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    dup2(nothing, 0);
    dup2(nothing, 1);
    dup2(err, 2);
    limits_set();
    exit(strcmp(argv[0], "commfit") ? memsim_main(argc, argv)
                                    : commfit_main(argc, argv));
}

int main(void)
{
    const char *errors = getenv("ERROR_FILE");
    char line[65536], *argv[WORDS_MAX + 1];

    while (errors && fgets(line, sizeof line, stdin)) {
        int argc = 0, status;
        char *rest = line, *word;

        line[strcspn(line, "\n")] = '\0';
        while (argc < WORDS_MAX && (word = strtok_r(NULL, "\t", &rest)))
            argv[argc++] = word;
        argv[argc] = NULL;
        if (!argc)
            continue;
        double start = now_ms();
        pid_t child = fork();
        if (!child)
            command_run(argc, argv, errors);
        waitpid(child, &status, 0);
        printf("%d %.0f\n", status, now_ms() - start);
        fflush(stdout);
    }
    return 0;
}
