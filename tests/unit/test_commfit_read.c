/* SPDX-License-Identifier: Apache-2.0
 * Reading benchmarks: every format, and everything that is wrong with them. */
#include "check.h"
#include "commfit/bench.h"
#include "commfit/bench_check.h"

#include <dirent.h>
#include <unistd.h>

static const char csv_header[] =
    "collective,nodes,gpus_per_node,size_bytes,dtype,time_us,algbw_gbps,"
    "busbw_gbps,in_place\n";

static const char table_header[] =
    "#       size         count      type   redop    root     time   algbw   "
    "busbw #wrong     time   algbw   busbw #wrong\n";

/* Reads TEXT as a file called NAME in a directory of its own. */
static int read_text(struct bench *b, const char *name, const char *text,
                     struct err *err)
{
    char directory[] = "/tmp/memsim-test-XXXXXX", path[128];

    if (!mkdtemp(directory))
        exit(1);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    bench_init(b);
    int rc = bench_read(b, path, err);
    bench_sort(b);
    unlink(path);
    rmdir(directory);
    return rc;
}

static uint64_t dropped(const char *row, enum bench_reason reason)
{
    struct err err = {""};
    struct bench b;
    char text[1024];

    snprintf(text, sizeof text, "%s%s\n", csv_header, row);
    read_text(&b, "rows.csv", text, &err);
    uint64_t count = b.dropped[reason];
    CHECK_UINT(b.drop_count, 1);
    CHECK_UINT(b.rows, 0);
    bench_fini(&b);
    return count;
}

TEST(reads_its_own_csv)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "a.csv",
                     "# source: s; gpu: NVIDIA H100; nodes: 2\n"
                     "size_bytes,time_us,nodes,gpus_per_node,collective\n"
                     "4194304,100.5,2,8,\"all_gather\"\n"
                     "1048576,50.25,2,8,AllGather\n",
                     &err));
    CHECK_STR(b.gpu, "NVIDIA H100");
    CHECK_UINT(b.rows, 2);
    CHECK_UINT(b.point_count, 2);
    CHECK_UINT(b.points[0].bytes, 1048576);
    CHECK_UINT(b.points[0].coll, FIT_ALL_GATHER);
    CHECK_UINT(b.points[0].nodes, 2);
    CHECK(b.points[0].us[0] == 50.25);
    bench_fini(&b);
}

/* Each run's slowest rank; runs that were cut, of one rank, or that nobody can
 * tell, do not count. */
TEST(reads_astra_sims_output)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(
        &b, "astra.log",
        "# astra-sim: all_reduce nodes=1 gpus_per_node=2 size_bytes=1048576\n"
        "[2026-03-01 10:00:00.000] [workload] [info] sys[0] finished, 41000 "
        "cycles, exposed communication 41000 cycles.\n"
        "[2026-03-01 10:00:00.000] [workload] [info] sys[1] finished, 42500 "
        "cycles, exposed communication 42500 cycles.\n"
        "# astra-sim: all_reduce nodes=1 gpus_per_node=2 size_bytes=2097152\n"
        "sys[0] finished, 83000 cycles, exposed communication 1 cycles.\n"
        "sys[1] finished, 83000 cycles, exposed communication 1 cycles.\n"
        "# astra-sim: all_reduce nodes=1 gpus_per_node=2 size_bytes=4194304\n"
        "sys[0] finished, 166000 cycles, exposed communication 1 cycles.\n"
        "# astra-sim: all_reduce nodes=1 gpus_per_node=2 size_bytes=8388608\n"
        "# astra-sim: all_reduce nodes=1 gpus_per_node=1 size_bytes=8388608\n"
        "sys[0] finished, 1 cycles, exposed communication 1 cycles.\n"
        "# astra-sim: all_sorts nodes=1 gpus_per_node=2 size_bytes=8\n",
        &err));
    CHECK_UINT(b.rows, 2);
    CHECK_UINT(b.points[0].bytes, 1048576);
    CHECK_UINT(b.points[0].gpus, 2);
    CHECK_NEAR(b.points[0].us[0], 42.5, 1e-9);
    CHECK_NEAR(b.points[1].us[0], 83, 1e-9);
    CHECK_UINT(b.dropped[BENCH_WORLD], 1);
    CHECK_UINT(b.dropped[BENCH_NO_TIME], 1);
    CHECK_UINT(b.dropped[BENCH_ONE_RANK], 1);
    CHECK_UINT(b.dropped[BENCH_UNREADABLE], 1);
    bench_fini(&b);
}

TEST(names_why_a_row_is_dropped)
{
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,-1,1,1,0", BENCH_NO_TIME), 1);
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,0,1,1,0", BENCH_NO_TIME), 1);
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,nan,1,1,0", BENCH_NOT_FINITE), 1);
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,N/A,1,1,0", BENCH_NOT_FINITE), 1);
    CHECK_UINT(dropped("all_reduce,2,8,0,float,5,0,0,0", BENCH_EMPTY), 1);
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,100,9.99,18.73,0", BENCH_ALGBW),
        1);
    CHECK_UINT(dropped("all_reduce,2,8,1048576,float,100,9.99,10.49,x",
                       BENCH_UNREADABLE),
               1);
    CHECK_UINT(
        dropped("all_reduce,2,8,1048576,float,100,10.49,10.49,0", BENCH_BUSBW),
        1);
    CHECK_UINT(
        dropped("all_reduce,1,1,1048576,float,100,10.49,0,0", BENCH_ONE_RANK),
        1);
    CHECK_UINT(
        dropped("all_sorts,1,2,1048576,float,100,10.49,0,0", BENCH_UNKNOWN), 1);
    CHECK_UINT(dropped("all_reduce,2,8", BENCH_UNREADABLE), 1);
}

TEST(finds_units_that_contradict_the_header)
{
    /* ms for us; Gbit/s for GB/s */
    CHECK_UINT(dropped("all_reduce,2,8,1048576,float,0.1000,10.49,19.66,0",
                       BENCH_UNITS),
               1);
    CHECK_UINT(dropped("all_reduce,2,8,1048576,float,100.0,83.89,157.3,0",
                       BENCH_UNITS),
               1);
}

TEST(takes_rounded_numbers)
{
    const struct printed_row row = {
        .bytes = 1048576,
        .us = printed_parse("153.5"),
        .algbw = printed_parse("6.83"),
        .busbw = printed_parse("13.23"),
    };
    enum bench_reason reason;
    double low = 1, high = 1e6;

    CHECK(printed_check(&row, &reason));
    CHECK(printed_fits(&row, FIT_ALL_REDUCE, 32));
    CHECK(!printed_fits(&row, FIT_ALL_GATHER, 32));
    CHECK(printed_ranks(&row, FIT_ALL_REDUCE, &low, &high));
    CHECK(low <= 32 && high >= 32 && low > 16);
    CHECK(!printed_parse("0x10").present);
    CHECK(!printed_parse("inf").present);
    CHECK_NEAR(printed_parse("2e+01").half, 5, 1e-12);
}

TEST(says_what_is_missing)
{
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        {"empty.log", "", "empty"},
        {"words.log", "hello\n", "no table row"},
        {"binary.log", "\x1f\x8b", "binary"},
        {"cols.csv", "collective,nodes,size_bytes,time_us\n", "gpus_per_node"},
        {"x.json", "{\"a\": 1}", "results"},
        {"y.json", "{\"results\": [", "y.json"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {""};
        struct bench b;

        CHECK(read_text(&b, cases[i].name, cases[i].text, &err) == -1);
        if (!strstr(err.text, cases[i].says))
            CHECK_FAIL("'%s' does not say '%s'", err.text, cases[i].says);
        bench_fini(&b);
    }
}

static const char new_log[] =
    "0: # nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902\n"
    "0: # Collective test starting: reduce_scatter_perf\n"
    "0: # nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor)\n"
    "0: #  Rank  0 Group  0 Pid 100 on  node-a device  0 [0x1b] NVIDIA H100\n"
    "0: #  Rank  1 Group  0 Pid 101 on  node-a device  1 [0x2b] NVIDIA H100\n"
    "0: #  Rank  2 Group  0 Pid 100 on  node-b device  0 [0x1b] NVIDIA H100\n"
    "0: #  Rank  3 Group  0 Pid 101 on  node-b device  1 [0x2b] NVIDIA H100\n"
    "node-a:100:120 [0] NCCL INFO Connected all rings\n"
    "0:     1048576        65536     float     sum      -1    50.00   20.97   "
    "15.73       0    49.00   21.40   16.05     N/A\n"
    "WARNING: something in between 1 2 3\n"
    "0:     2097152       131072     float     sum      -1    80.00   26.21   "
    "19.66       0    79.00   26.55   19.91       3\n";

TEST(reads_a_log_with_prefixes_and_noise)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "new.log", new_log, &err));
    CHECK_UINT(b.rows, 3);
    CHECK_UINT(b.dropped[BENCH_WRONG], 1);
    CHECK_UINT(b.points[0].coll, FIT_REDUCE_SCATTER);
    CHECK_UINT(b.points[0].nodes, 2);
    CHECK_UINT(b.points[0].gpus, 2);
    CHECK(b.points[1].in_place);
    CHECK(b.points[1].us[0] == 49);
    CHECK_STR(b.gpu, "NVIDIA H100");
    bench_fini(&b);
}

/* The same, as a terminal in colours would have it, pairs of blanks one tab. */
TEST(reads_through_colours_and_tabs)
{
    struct err err = {""};
    struct bench b;
    char text[4096];
    size_t at = 0;

    for (const char *p = new_log; *p; p++) {
        if (p == new_log || p[-1] == '\n')
            at += (size_t)snprintf(text + at, sizeof text - at, "\033[0;1m");
        if (*p == '\n')
            at += (size_t)snprintf(text + at, sizeof text - at, "\033[0m\r");
        bool pair = p[0] == ' ' && p[1] == ' ';
        text[at++] = pair ? '\t' : *p;
        p += pair;
    }
    text[at] = '\0';
    CHECK(!read_text(&b, "colours.log", text, &err));
    CHECK_UINT(b.rows, 3);
    CHECK_UINT(b.dropped[BENCH_WRONG], 1);
    CHECK_UINT(b.points[0].nodes, 2);
    CHECK_UINT(b.points[0].gpus, 2);
    bench_fini(&b);
}

TEST(a_process_s_gpus_are_on_one_node)
{
    static const char text[] =
        "# nThread 1 nGpus 8 minBytes 4 maxBytes 16 step: 2(factor)\n"
        "#   Rank  0 Pid     25 on worker-0 device  0 [0x10] A100\n"
        "     1048576       262144   float     sum    50.00   20.97   36.70  "
        "0e+00    50.10   20.93   36.63  0e+00\n";
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "cut.log", text, &err));
    CHECK_UINT(b.points[0].nodes, 1);
    CHECK_UINT(b.points[0].gpus, 8);
    bench_fini(&b);
}

static const char tagged_log[] =
    "[1,0]<stdout>:# nThread 1 nGpus 2 minBytes 4 maxBytes 16 step: 2(factor)\n"
    "[1,0]<stdout>:#   Rank  0 Pid     25 on worker-0 device  0 [0x10] A100\n"
    "[1,0]<stdout>:#   Rank  1 Pid     25 on worker-0 device  1 [0x10] A100\n"
    "[1,0]<stdout>:     1048576       262144   float       0    54.10   19.38  "
    " 19.38  0e+00    53.90   19.45   19.45  0e+00\n"
    "[1,0]<stdout>:     2097152       524288   float       0[1,0]<stdout>:    "
    "57.00   36.79   36.79  0e+00[1,0]<stdout>:    56.00   37.45   37.45  "
    "0e+00\n";

TEST(reads_tags_inside_rows_and_old_columns)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "old.log", tagged_log, &err));
    CHECK_UINT(b.rows, 4);
    CHECK_UINT(b.points[0].coll, FIT_BROADCAST); /* a root, no reduction */
    CHECK_UINT(b.points[0].nodes, 1);
    CHECK_UINT(b.points[0].gpus, 2);
    bench_fini(&b);
}

TEST(infers_ranks_where_nothing_else_says_them)
{
    struct err err = {""};
    struct bench b;
    char text[2048];

    snprintf(text, sizeof text,
             "%s     4194304       1048576     float     sum      -1    55.00  "
             " 76.26  133.46      0\n",
             table_header);
    CHECK(!read_text(&b, "table.log", text, &err));
    CHECK_UINT(b.points[0].coll, FIT_ALL_REDUCE);
    CHECK_UINT(b.points[0].nodes, 1);
    CHECK_UINT(b.points[0].gpus, 8); /* 133.46 / 76.26 = 2 x 7 / 8 */
    CHECK(b.note_count == 1 && strstr(b.notes[0].text, "8 ranks taken"));
    bench_fini(&b);
}

/* 1024 ranks, of which the list shows the first eight. */
TEST(believes_the_factor_where_the_list_is_short)
{
    struct err err = {""};
    struct bench b;
    char text[4096] = "# nThread 1 nGpus 1 minBytes 1 maxBytes 2 step: 2\n";

    for (int i = 0; i < 8; i++)
        sprintf(text + strlen(text),
                "#  Rank  %d Group  0 Pid 1 on a device  %d [0x1] H100\n", i,
                i);
    strcat(text,
           "  1073741824     268435456     float     sum      -1    19355  "
           " 55.48  110.85      0    19355   55.48  110.85      0\n"
           "  2147483648     536870912     float     sum      -1    20218  "
           "106.22  212.23      0    20218  106.22  212.23      0\n");
    CHECK(!read_text(&b, "short.log", text, &err));
    CHECK_UINT(b.points[0].nodes, 128);
    CHECK_UINT(b.points[0].gpus, 8);
    bench_fini(&b);
}

static void add_job(char *text, const char *host)
{
    char *end = text + strlen(text);

    sprintf(end,
            "# nThread 1 nGpus 2 minBytes 1 maxBytes 2 step: 2(factor)\n"
            "#  Rank  0 Group  0 Pid 1 on %s device  0 [0x1] H100\n"
            "#  Rank  1 Group  0 Pid 1 on %s device  1 [0x2] H100\n",
            host, host);
}

TEST(tells_two_jobs_in_one_file_from_one_large_one)
{
    static const char row[] = "     4194304       1048576     float     sum    "
                              "  -1    55.00   76.26   76.26      0    55.00   "
                              "76.26   76.26      0\n";
    struct err err = {""};
    struct bench b;
    char text[4096] = "";

    add_job(text, "node-a");
    add_job(text, "node-b");
    strcat(text, row);
    strcat(text, row);
    CHECK(!read_text(&b, "two.log", text, &err));
    CHECK_UINT(b.points[0].nodes, 1);
    CHECK_UINT(b.points[0].gpus, 2);
    CHECK_UINT(b.points[0].count, 2);
    bench_fini(&b);
}

TEST(refuses_ranks_that_do_not_divide)
{
    struct err err = {""};
    struct bench b;

    CHECK(read_text(&b, "odd.log",
                    "# nThread 1 nGpus 1 minBytes 1 maxBytes 2 step: 2\n"
                    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x1] H100\n"
                    "#  Rank  1 Group  0 Pid 2 on a device  1 [0x1] H100\n"
                    "#  Rank  2 Group  0 Pid 3 on b device  0 [0x1] H100\n"
                    "     4194304       1048576     float     sum      -1    "
                    "55.00   76.26  101.68      0\n",
                    &err) == -1);
    CHECK(strstr(err.text, "do not divide") != NULL);
    bench_fini(&b);
}

static const char tests_json[] =
    "{\"version\":3,\"args\":[\"build/all_reduce_perf\",\"-b\",\"8\"],"
    "\"config\":{\"nthreads\":1,\"ngpus\":2,\"devices\":["
    "{\"rank\":0,\"hostname\":\"a\",\"device\":0,\"device_info\":\"H100\"},"
    "{\"rank\":1,\"hostname\":\"a\",\"device\":1}]},\"results\":["
    "{\"size\":1048576,\"count\":262144,\"type\":\"float\",\"redop\":\"sum\","
    "\"root\":\"-1\",\"out_of_place\":{\"time\":50.0,\"alg_bw\":20.97152,"
    "\"bus_bw\":20.97152,\"nwrong\":0.0},\"in_place\":null,"
    "\"out_of_place_per_iter\":{\"times_us\":[50,51,52]}}]}";

TEST(reads_nccl_tests_json_with_iterations)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "j.json", tests_json, &err));
    CHECK_UINT(b.point_count, 2);
    CHECK(!b.points[0].by_rank && b.points[1].by_rank);
    CHECK_UINT(b.points[1].count, 3);
    CHECK_UINT(b.points[0].gpus, 2);
    CHECK_UINT(b.dropped[BENCH_NOT_FINITE], 1); /* no in-place columns */
    bench_fini(&b);
}

TEST(reads_a_profiler_trace)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(
        &b, "k.json",
        "{\"traceEvents\":[{\"cat\":\"cpu_op\",\"name\":\"record_param_comms\","
        "\"args\":{\"External id\":7,\"Collective name\":\"allreduce\","
        "\"dtype\":\"Float\",\"In msg nelems\":1048576,\"Out msg nelems\":"
        "1048576,\"Group size\":8,\"Process Group Ranks\":\"[0, 1, 2, 3, 4, 5, "
        "6, 7]\"}},{\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\","
        "\"dur\":120.5,\"args\":{\"External id\":7}},{\"cat\":\"kernel\","
        "\"name\":\"ncclDevKernel_AllReduce\",\"dur\":9,\"args\":{}}]}",
        &err));
    CHECK_UINT(b.rows, 1);
    CHECK_UINT(b.points[0].bytes, 4194304);
    CHECK_UINT(b.points[0].gpus, 8);
    CHECK_UINT(b.dropped[BENCH_UNKNOWN], 1);
    bench_fini(&b);
}

#define INSPECTED(ranks, nodes, coll, bytes, us)                               \
    "{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":" #ranks                  \
    ",\"nnodes\":" #nodes "},\"metadata\":{},\"coll_perf\":{\"coll\":\"" #coll    \
    "\",\"coll_msg_size_bytes\":" #bytes ",\"coll_exec_time_us\":" #us "}}\n"

TEST(reads_the_inspector_s_objects)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(&b, "x.log",
                     INSPECTED(16, 2, AllReduce, 1048576, 60)
                         INSPECTED(16, 2, AllReduce, 1048576, 50)
                             INSPECTED(8, 1, ReduceScatter, 1048576, 40)
                                 INSPECTED(1, 1, AllReduce, 1048576, 40)
                                     INSPECTED(8, 1, Lunch, 1048576, 40)
                                         INSPECTED(8, 3, AllReduce, 8, 40),
                     &err));
    CHECK_UINT(b.rows, 3);
    CHECK_UINT(b.point_count, 2);
    CHECK_UINT(b.points[0].bytes, 1048576); /* of the whole buffer */
    CHECK_UINT(b.points[0].nodes, 2);
    CHECK_UINT(b.points[0].gpus, 8);
    CHECK(b.points[0].by_rank);
    CHECK_UINT(b.points[1].bytes, 8 * 1048576); /* of a rank's part */
    CHECK_UINT(b.dropped[BENCH_ONE_RANK], 1);
    CHECK_UINT(b.dropped[BENCH_UNKNOWN], 1);
    CHECK_UINT(b.dropped[BENCH_WORLD], 1);
    bench_fini(&b);
}

TEST(reads_the_inspector_s_metrics)
{
    static const char labels[] =
        "{version=\"v5.1\",node=\"n\",comm_name=\"DP Group 0\",n_nodes=\"1\","
        "nranks=\"4\",collective=\"AllReduce\",message_size=\"4-5GB\"}";
    struct err err = {""};
    struct bench b;
    char text[1024];

    /* Of the Inspector's README: 678.263 GB/s, 9498.47 us: 4 GiB. */
    snprintf(text, sizeof text,
             "# TYPE x gauge\nnccl_bus_bandwidth_gbs%s 678.263\n"
             "nccl_collective_exec_time_microseconds%s 9498.47\n",
             labels, labels);
    CHECK(!read_text(&b, "x.prom", text, &err));
    CHECK_UINT(b.rows, 1);
    CHECK_UINT(b.points[0].bytes, UINT64_C(4) << 30);
    CHECK_UINT(b.points[0].gpus, 4);
    CHECK_NEAR(b.points[0].us[0], 9498.47, 1e-9);
    bench_fini(&b);
}

TEST(reads_a_flight_recorder_s_dump)
{
    struct err err = {""};
    struct bench b;

    CHECK(!read_text(
        &b, "fr.json",
        "{\"version\":\"2.10\",\"pg_config\":{\"0\":{\"ranks\":\"[0, 1, 2, 3]\"}},"
        "\"entries\":[{\"process_group\":[\"0\",\"default_pg\"],"
        "\"profiling_name\":\"nccl:_all_gather_base\",\"input_sizes\":[[256]],"
        "\"input_dtypes\":[\"BFloat16\"],\"output_sizes\":[[4,256]],"
        "\"output_dtypes\":[\"BFloat16\"],\"duration_ms\":0.03},"
        "{\"profiling_name\":\"nccl:all_reduce\",\"duration_ms\":null}]}",
        &err));
    CHECK_UINT(b.rows, 1);
    CHECK_UINT(b.points[0].coll, FIT_ALL_GATHER);
    CHECK_UINT(b.points[0].bytes, 2048);
    CHECK_UINT(b.points[0].gpus, 4);
    CHECK_NEAR(b.points[0].us[0], 30, 1e-9);
    CHECK(b.note_count == 2);
    bench_fini(&b);
}

TEST(tells_two_jobs_tables_apart)
{
    static const char rows[] =
        "   134217728  33554432  float  sum  -1  613.3  218.85  382.99  0  614.3"
        "  218.48  382.34  0\n"
        "   268435456  67108864  float  sum  -1  1139.2  235.63  412.35  0"
        "  1134.8  236.56  413.97  0\n" /* 8 ranks */
        "   134217728  33554432  float  sum  -1  700.0  191.74  359.51  0  700.0"
        "  191.74  359.51  0\n"
        "   268435456  67108864  float  sum  -1  1300.0  206.49  387.17  0"
        "  1300.0  206.49  387.17  0\n"; /* 16 ranks */
    struct err err = {""};
    struct bench b;
    char text[2048];

    snprintf(text, sizeof text, "%s%s", table_header, rows);
    CHECK(!read_text(&b, "all_reduce.log", text, &err));
    CHECK_UINT(b.rows, 8);
    CHECK_UINT(b.drop_count, 0);
    CHECK_UINT(b.point_count, 8);
    CHECK_UINT(b.points[0].nodes, 1);
    CHECK_UINT(b.points[7].nodes, 2);
    bench_fini(&b);
}

TEST(keeps_memory_bounded)
{
    struct err err = {""};
    struct bench b;
    struct bench_row row = {
        .coll = FIT_ALL_REDUCE, .nodes = 2, .gpus = 8, .bytes = 1024, .us = 5};

    bench_init(&b);
    for (int i = 0; i < 100000; i++)
        bench_add(&b, &row, &err);
    CHECK_UINT(b.points[0].count, 100000);
    CHECK_UINT(b.points[0].kept, BENCH_SAMPLES);
    bench_fini(&b);
}

/* "..._n4_g8_...": what the file's name says of its run. */
static void check_raw(const char *folder, const char *name)
{
    struct err err = {""};
    struct bench b;
    unsigned nodes, gpus;
    char path[512];
    const char *n = strstr(name, "_n");

    while (n && sscanf(n, "_n%u_g%u", &nodes, &gpus) != 2)
        n = strstr(n + 1, "_n");
    if (!n)
        return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bench_init(&b);
    if (bench_read(&b, path, &err)) {
        CHECK_FAIL("%s", err.text);
    } else {
        CHECK_UINT(b.points[0].nodes, nodes);
        CHECK_UINT(b.points[0].gpus, gpus);
    }
    bench_fini(&b);
}

TEST(reads_published_logs)
{
    const char *raw = check_shared("data/nccl/raw");
    DIR *directory = opendir(raw);
    struct dirent *entry;
    while ((entry = readdir(directory)))
        if (strstr(entry->d_name, ".log"))
            check_raw(raw, entry->d_name);
    closedir(directory);
}
