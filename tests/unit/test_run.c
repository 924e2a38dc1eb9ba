/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/ranks.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "common/trace/trace_write.h"

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

/* --- ranks ---------------------------------------------------------------- */

static void put_trace(uint32_t process, uint64_t rank, uint64_t world)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    struct err err = {""};
    char path[160];

    run_trace_path(root, process, path, sizeof path);
    CHECK(!trace_writer_open(&w, path, 1 << 20, &err));
    TRACE_PUT(&w, PROCESS, 0, 1, .pid = 1, .rank = rank, .world_size = world);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 2);
}

static void write_text(const char *name, const char *text)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

TEST(ranks_have_the_traces_of_their_processes)
{
    const struct run_rank *rank = NULL;
    struct run_ranks ranks;
    struct err err = {""};
    struct run run;

    make_root();
    put_trace(0, 8, 32);
    put_trace(1, 0, 32);
    put_trace(2, 8, 32);
    touch("process-0003.trace"); /* it does not say */
    CHECK(!run_open(&run, root, &err) && !run_ranks_read(&ranks, &run, &err));
    CHECK_UINT(ranks.count, 3);
    CHECK_UINT(ranks.world, 32);
    rank = run_next_rank(&ranks, rank);
    CHECK_UINT(rank->rank, 0);
    CHECK_UINT(rank->trace_count, 1);
    CHECK_UINT(rank->traces[0]->process, 1);
    rank = run_next_rank(&ranks, rank);
    CHECK_UINT(rank->rank, 3);
    rank = run_next_rank(&ranks, rank);
    CHECK_UINT(rank->rank, 8);
    CHECK_UINT(rank->trace_count, 2);
    CHECK_UINT(rank->traces[1]->process, 2);
    CHECK_UINT(rank->members.count, 1);
    CHECK(!run_next_rank(&ranks, rank));
    CHECK(!run_rank_for(&ranks, 9));
    run_ranks_fini(&ranks);
    run_close(&run);
    remove_root();
}

TEST(ranks_stand_for_others)
{
    struct rank_set members = {.count = 0};
    struct run_ranks classes = {.count = 0}, ranks;
    struct err err = {""};
    struct run run;

    make_root();
    put_trace(0, 0, 16);
    put_trace(1, 1, 16);
    for (uint32_t r = 1; r < 16; r += 2)
        rank_set_add(&members, r);
    run_classes_add(&classes, 1, &members);
    run_classes_add(&classes, 5, &members); /* it did not run */
    CHECK(!run_classes_write(&classes, root, &err));
    CHECK(!run_open(&run, root, &err) && !run_ranks_read(&ranks, &run, &err));
    CHECK_UINT(ranks.count, 2);
    CHECK_UINT(ranks.all[0].members.count, 1);
    CHECK_UINT(ranks.all[1].members.count, 8);
    CHECK(run_rank_for(&ranks, 15) == &ranks.all[1]);
    CHECK(!run_rank_for(&ranks, 2));
    run_ranks_fini(&ranks);
    run_ranks_fini(&classes);
    rank_set_fini(&members);
    run_close(&run);
    remove_root();
}

TEST(a_file_of_classes_that_is_wrong_is_named_with_its_line)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"0 0-3\n4 5-7\n", "/ranks:2: rank 4 is not among its members"},
        {"zero 0\n", "/ranks:1: 'zero 0' is no rank and its members"},
        {"0 0-\n", "/ranks:1: '0-' is no list of ranks"},
        {"9999999 0\n", "/ranks:1: '9999999 0' is no rank"},
    };

    make_root();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct run_ranks classes;
        struct err err = {""};
        write_text("ranks", wrong[i].text);
        CHECK(run_classes_read(&classes, root, &err) == -1);
        CHECK(strstr(err.text, wrong[i].said));
        run_ranks_fini(&classes);
    }
    remove_root();
}
