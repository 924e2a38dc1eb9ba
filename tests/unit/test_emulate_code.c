/* SPDX-License-Identifier: Apache-2.0
 * The kernel that stands for NCCL's is code that NVIDIA's assembler takes, for
 * all architectures that memsim emulate is for; where there is an assembler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/emulate/ptx.h"
#include "check.h"

/* Triton's, or that of $PTXAS; NULL: there is none. */
static const char *assembler(void)
{
    static const char *const places[] = {
        ".venv/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas",
        ".venv/lib/python3.11/site-packages/torch/bin/ptxas",
        "/usr/local/cuda/bin/ptxas"};
    const char *named = getenv("PTXAS");

    for (size_t i = 0; !named && i < sizeof places / sizeof *places; i++)
        if (!access(places[i], X_OK))
            named = places[i];
    return named;
}

TEST(each_type_has_a_kernel_of_its_own)
{
    static const char *const types[] = {
        "c", "5uint4", "f", "d", "6__half", "13__nv_bfloat16", "a", "i", "l"};
    char entry[128];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(entry, sizeof entry,
                 ".visible .entry _Z17memsim_collectiveI%sEvPKvPvmmdmmdPmPKmm(",
                 types[i]);
        const char *at = strstr(emulated_code, entry);
        CHECK(at && !strstr(at + 1, entry));
    }
}

TEST(there_is_one_for_delays)
{
    CHECK_UINT(
        strstr(emulated_code, ".visible .entry _Z12memsim_delaymmPm(") != NULL,
        1);
}

TEST(the_assembler_takes_it)
{
    static const int architectures[] = {70, 75, 80, 90, 100};
    const char *program = assembler();
    char path[] = "/tmp/memsim-ptx.XXXXXX", command[512];

    if (!program)
        SKIP("no ptxas; $PTXAS names one");
    int fd = mkstemp(path);
    size_t bytes = strlen(emulated_code);
    CHECK(fd >= 0 && write(fd, emulated_code, bytes) == (ssize_t)bytes);
    close(fd);
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        snprintf(command, sizeof command, "%s -arch=sm_%d -o /dev/null %s",
                 program, architectures[i], path);
        CHECK(!system(command));
    }
    unlink(path);
}
