/* SPDX-License-Identifier: Apache-2.0
 * The whole unit-test framework: TEST(name) { CHECK(...); } and TEST_MAIN.
 * Each test runs in a fork, so that a crash fails one test only. The program
 * ends with the line `N passed, N failed, N skipped` that tests/run adds up. */
#ifndef MEMSIM_TESTS_CHECK_H
#define MEMSIM_TESTS_CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct test {
    const char *name;
    void (*run)(void);
};

static struct test check_tests[256];
static int check_count;
static int check_failures;

#define TEST(name)                                                             \
    static void test_##name(void);                                             \
    __attribute__((constructor)) static void test_add_##name(void)             \
    {                                                                          \
        check_tests[check_count++] = (struct test){#name, test_##name};        \
    }                                                                          \
    static void test_##name(void)

#define CHECK_FAIL(...)                                                        \
    (check_failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__),         \
     fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#define CHECK(condition)                                                       \
    ((condition) ? 0 : CHECK_FAIL("false: %s", #condition))
#define CHECK_UINT(got, want)                                                  \
    do {                                                                       \
        uint64_t got_ = (got), want_ = (want);                                 \
        if (got_ != want_)                                                     \
            CHECK_FAIL("%s is %" PRIu64 ", not %" PRIu64, #got, got_, want_);  \
    } while (0)
/* That CALL answers the code WANT; on another one prints both. */
#define CHECK_CODE(call, want)                                                 \
    do {                                                                       \
        int got_ = (int)(call), want_ = (int)(want);                           \
        if (got_ != want_)                                                     \
            CHECK_FAIL("%s is %d, not %d (%s)", #call, got_, want_, #want);    \
    } while (0)
#define CHECK_STR(got, want)                                                   \
    do {                                                                       \
        const char *got_ = (got), *want_ = (want);                             \
        if (!got_ || strcmp(got_, want_))                                      \
            CHECK_FAIL("%s is \"%s\", not \"%s\"", #got, got_ ? got_ : "NULL", \
                       want_);                                                 \
    } while (0)
#define CHECK_NEAR(got, want, relative)                                        \
    do {                                                                       \
        double got_ = (got), want_ = (want);                                   \
        if (!(fabs(got_ - want_) <= (relative) * fabs(want_)))                 \
            CHECK_FAIL("%s is %.17g, not %.17g", #got, got_, want_);           \
    } while (0)

/* Ends the test, which counts as skipped unless a check failed before;
 * printf-like. For what a machine may lack, such as data. */
#define SKIP(...)                                                              \
    do {                                                                       \
        fputs("SKIP: ", stderr);                                               \
        fprintf(stderr, __VA_ARGS__);                                          \
        fputc('\n', stderr);                                                   \
        fflush(NULL);                                                          \
        exit(check_failures ? EXIT_FAILURE : CHECK_SKIP_STATUS);               \
    } while (0)
#define CHECK_SKIP_STATUS 77

/* PATH in the folder of data that tests share: $MEMSIM_SHARED, else the folder
 * "shared" beside the checkout. Valid until the next call. Skips the test
 * where it does not exist. */
static inline const char *check_shared(const char *path)
{
    static char full[4096];
    const char *folder = getenv("MEMSIM_SHARED");

    snprintf(full, sizeof full, "%s/%s", folder ? folder : "../shared", path);
    if (access(full, R_OK))
        SKIP("no %s", full);
    return full;
}

enum check_outcome {
    CHECK_PASSED,
    CHECK_FAILED,
    CHECK_SKIPPED,
    CHECK_OUTCOMES,
};

static enum check_outcome check_run(const struct test *test)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(120);
        test->run();
        fflush(NULL);
        exit(check_failures ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    waitpid(pid, &status, 0);
    if (!status)
        return CHECK_PASSED;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIP_STATUS)
        return CHECK_SKIPPED;
    fprintf(stderr, "FAIL %s (status %#x)\n", test->name, status);
    return CHECK_FAILED;
}

int main(int argc, char **argv)
{
    int counts[CHECK_OUTCOMES] = {0};

    for (int i = 0; i < check_count; i++) {
        if (argc > 1 && strcmp(argv[1], check_tests[i].name))
            continue;
        counts[check_run(&check_tests[i])]++;
    }
    printf("%d passed, %d failed, %d skipped\n", counts[CHECK_PASSED],
           counts[CHECK_FAILED], counts[CHECK_SKIPPED]);
    return counts[CHECK_FAILED] != 0;
}

#endif
