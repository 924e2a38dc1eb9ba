/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/run.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char root[64];

static void touch(const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    if (file)
        fclose(file);
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/test_run.XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void remove_root(void)
{
    char line[128];

    snprintf(line, sizeof line, "rm -rf %s", root);
    CHECK(system(line) == 0);
}

static const char *base_name(const struct run_trace *trace)
{
    return strrchr(trace->path, '/') + 1;
}

TEST(processes_come_by_number)
{
    static const char *const names[] = {
        "a.trace",            "process-0000.trace",  "process-0002.trace",
        "process-9999.trace", "process-10000.trace", "process-x.trace",
        "rank.trace"};
    static const uint32_t processes[] = {
        RUN_NO_PROCESS, 0, 2, 9999, 10000, RUN_NO_PROCESS, RUN_NO_PROCESS};
    const size_t count = sizeof names / sizeof *names;
    struct run run;
    struct err err = {""};
    size_t seen = 0;

    make_root();
    for (size_t i = count; i--;)
        touch(names[i]);
    touch("session");
    touch(".trace");
    touch("process-1.trace.gz");
    CHECK(!run_open(&run, root, &err));
    CHECK_UINT(run.count, count);
    for (size_t i = 0; i < run.count && i < count; i++) {
        CHECK_STR(base_name(&run.traces[i]), names[i]);
        CHECK_UINT(run.traces[i].process, processes[i]);
    }
    for (const struct run_trace *t = NULL; (t = run_next(&run, t));)
        seen++;
    CHECK_UINT(seen, count);
    seen = 0;
    for (const struct run_trace *t = NULL; (t = run_next_process(&run, t));)
        CHECK_UINT(t->process, processes[1 + seen++]);
    CHECK_UINT(seen, 4);
    run_close(&run);
    remove_root();
}

TEST(a_file_is_a_run_of_one_trace)
{
    struct run run;
    struct err err = {""};
    char path[160];

    make_root();
    run_trace_path(root, 7, path, sizeof path);
    touch("process-0007.trace");
    CHECK(!run_open(&run, path, &err));
    CHECK_UINT(run.count, 1);
    CHECK_UINT(run.traces[0].process, 7);
    CHECK_STR(run.traces[0].path, path);
    run_close(&run);
    remove_root();
}

TEST(nothing_is_an_empty_run_or_an_error)
{
    struct run run;
    struct err err = {""};

    make_root();
    CHECK(!run_open(&run, root, &err));
    CHECK(run_next(&run, NULL) == NULL);
    CHECK(run_next_process(&run, NULL) == NULL);
    run_close(&run);
    remove_root();
    CHECK(run_open(&run, root, &err) == -1);
    CHECK(strstr(err.text, root) != NULL);
    run_close(&run);
}

TEST(names_with_other_numbers_are_no_processes)
{
    static const char *const names[] = {
        "process-1.trace", "process-00001.trace", "process--001.trace",
        "process-0001.trace.old", "process-99999999999.trace", "0001.trace"};
    uint32_t process;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (run_is_process(names[i], &process))
            CHECK_FAIL("'%s' was accepted", names[i]);
    CHECK(run_is_process("process-0001.trace", &process));
    CHECK_UINT(process, 1);
    CHECK(run_is_trace("/x/process-1.trace") && !run_is_trace(".trace"));
}
