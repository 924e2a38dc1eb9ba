/* SPDX-License-Identifier: Apache-2.0 */
#include "common/profile/kineto_read.h"

#include <sys/stat.h>
#include <zlib.h>

#include "check.h"

#define KERNEL                                                                 \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"add<float>\",\"pid\":0,"      \
    "\"tid\":7,\"ts\":1712195495505582.988,\"dur\":4.928,\"args\":{"           \
    "\"External id\":2161,\"device\":0,\"stream\":7,\"correlation\":58711,"    \
    "\"registers per thread\":168,\"shared memory\":231424,"                   \
    "\"grid\":[98,2,3],\"block\":[384,1,1]}}"

static struct profile_event events[8]; /* texts are not kept */
static char names[8][64], dims[8][64];
static int taken;

static int keep(void *context, const struct profile_event *event)
{
    (void)context;
    if (taken < 8) {
        events[taken] = *event;
        snprintf(names[taken], sizeof names[taken], "%s", event->name);
        snprintf(dims[taken], sizeof dims[taken], "%s",
                 event->input_dims ? event->input_dims : "");
    }
    taken++;
    return 0;
}

static char path[64];

static int read_bytes(const void *bytes, size_t length,
                      struct kineto_info *info, struct err *err)
{
    snprintf(path, sizeof path, "/tmp/test_kineto.%d", getpid());
    FILE *file = fopen(path, "wb");

    fwrite(bytes, 1, length, file);
    fclose(file);
    taken = 0;
    err_clear(err);
    int rc = kineto_read(path, keep, NULL, NULL, info, err);
    unlink(path);
    return rc;
}

static int read_text(const char *text, struct kineto_info *info,
                     struct err *err)
{
    return read_bytes(text, strlen(text), info, err);
}

static void check_kernel(int i)
{
    const struct profile_event *e = &events[i];

    CHECK_UINT(e->category, KINETO_KERNEL);
    CHECK_STR(names[i], "add<float>");
    CHECK(e->phase == 'X');
    CHECK(e->start_ns == INT64_C(1712195495505582988));
    CHECK(e->duration_ns == 4928);
    CHECK(e->stream == 7 && e->device == 0 && e->correlation == 58711);
    CHECK(e->external_id == 2161 && e->bytes == KINETO_NONE);
    CHECK_UINT(e->grid[0] * 100 + e->grid[1] * 10 + e->grid[2], 9823);
    CHECK_UINT(e->block[0], 384);
    CHECK_UINT(e->registers, 168);
    CHECK_UINT(e->shared_bytes, 231424);
}

TEST(an_object_and_an_array_hold_the_same_events)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("{\"schemaVersion\":1,\"traceEvents\":[" KERNEL "]}", &info,
                    &err) == 0);
    CHECK_UINT(taken, 1);
    check_kernel(0);
    CHECK(read_text("[" KERNEL "," KERNEL "]", &info, &err) == 0);
    CHECK_UINT(taken, 2);
    check_kernel(1);
    CHECK(!info.truncated);
}

TEST(what_stands_beside_the_events_is_kept)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H100\","
                    "\"totalGlobalMem\":85028372480},{\"id\":1,\"name\":"
                    "\"other\",\"totalGlobalMem\":1}],\"distributedInfo\":{"
                    "\"backend\":\"nccl\",\"rank\":3,\"world_size\":8,"
                    "\"pg_config\":[{\"rank\":99}]},"
                    "\"baseTimeNanoseconds\":1759300074000000000,"
                    "\"traceEvents\":[" KERNEL "]}",
                    &info, &err) == 0);
    CHECK_STR(info.gpu, "NVIDIA H100");
    CHECK_UINT(info.memory_bytes, 85028372480);
    CHECK(info.rank == 3 && info.world == 8);
    CHECK(info.base_ns == INT64_C(1759300074000000000));
    check_kernel(0);
}

TEST(nested_lists_are_kept_as_text_and_confuse_nothing)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("[{\"cat\":\"cpu_op\",\"ph\":\"X\",\"name\":\"aten::mm\","
                    "\"ts\":1,\"dur\":2,\"args\":{\"Input Dims\":[[8,1024],"
                    "[],[[2,3],[4]]],\"Input type\":[\"float\",\"\"],"
                    "\"deep\":{\"stream\":{\"device\":[1]}},\"device\":5}}]",
                    &info, &err) == 0);
    CHECK_UINT(events[0].category, KINETO_OPERATOR);
    CHECK_STR(dims[0], "[[8,1024],[],[[2,3],[4]]]");
    CHECK(events[0].device == 5 && events[0].stream == KINETO_NONE);
}

TEST(a_stream_as_text_is_a_number)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("[{\"cat\":\"Kernel\",\"ph\":\"X\",\"name\":\"k\",\"ts\":1,"
                    "\"tid\":\"stream 21\"}]",
                    &info, &err) == 0);
    CHECK_UINT(events[0].category, KINETO_KERNEL);
    CHECK(events[0].thread == 21);
}

TEST(a_gzipped_file_reads_as_a_plain_one)
{
    struct kineto_info info;
    struct err err = {0};
    char name[64];

    snprintf(name, sizeof name, "/tmp/test_kineto_gz.%d", getpid());
    gzFile file = gzopen(name, "wb");
    gzputs(file, "[" KERNEL "]");
    gzclose(file);
    taken = 0;
    CHECK(kineto_read(name, keep, NULL, NULL, &info, &err) == 0);
    check_kernel(0);
    CHECK(truncate(name, 60) == 0);
    taken = 0;
    CHECK(kineto_read(name, keep, NULL, NULL, &info, &err) != 0 ||
          info.truncated);
    unlink(name);
}

TEST(a_file_that_ends_in_the_middle_keeps_what_is_whole)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("{\"traceEvents\":[" KERNEL ",{\"cat\":\"kernel\",\"na",
                    &info, &err) == 0);
    CHECK_UINT(taken, 1);
    CHECK(info.truncated);
    check_kernel(0);
}

TEST(what_is_no_trace_is_an_error_that_says_so)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("{\"rows\":[1,2,3]}", &info, &err) != 0);
    CHECK(strstr(err.text, "not a profiler trace"));
    CHECK(read_text("hello", &info, &err) != 0);
    CHECK(strstr(err.text, "not the JSON"));
    CHECK(read_text("", &info, &err) != 0);
    err_clear(&err);
    CHECK(kineto_read("/no/such/file", keep, NULL, NULL, &info, &err) != 0);
    CHECK(strstr(err.text, "/no/such/file: No such file"));
}

TEST(a_fifo_does_not_hang)
{
    struct kineto_info info;
    struct err err = {0};
    char name[64];

    snprintf(name, sizeof name, "/tmp/test_kineto_fifo.%d", getpid());
    CHECK(mkfifo(name, 0600) == 0);
    CHECK(kineto_read(name, keep, NULL, NULL, &info, &err) != 0);
    CHECK(strstr(err.text, "not a regular file"));
    unlink(name);
}

TEST(deep_nesting_is_refused)
{
    struct kineto_info info;
    struct err err = {0};
    char deep[4096];

    memset(deep, '[', sizeof deep);
    CHECK(read_bytes(deep, sizeof deep, &info, &err) != 0);
    CHECK(strstr(err.text, "levels deep"));
}

/* The parser's time for a string of n bytes is of n * n. */
TEST(a_string_without_an_end_is_an_error)
{
    size_t length = 64u << 20;
    char *text = malloc(length);
    struct kineto_info info;
    struct err err = {0};

    memset(text, 'k', length);
    memcpy(text, "[{\"name\":\"", 10);
    CHECK(read_bytes(text, length, &info, &err) != 0);
    CHECK(strstr(err.text, "a value is longer than 16 MiB"));
    free(text);
}

TEST(numbers_out_of_range_are_not_believed)
{
    struct kineto_info info;
    struct err err = {0};

    CHECK(read_text("[{\"cat\":\"kernel\",\"ph\":\"X\",\"name\":\"k\","
                    "\"ts\":99999999999999999999999,\"dur\":-1,\"args\":{"
                    "\"grid\":[-5,99999999999,1,7,8],\"device\":1e99}}]",
                    &info, &err) == 0);
    CHECK(events[0].start_ns == KINETO_NONE);
    CHECK(events[0].device == KINETO_NONE);
    CHECK_UINT(events[0].grid[0], 0);
    CHECK_UINT(events[0].grid[1], UINT32_MAX);
    CHECK_UINT(events[0].grid[2], 1);
}

TEST(long_texts_are_cut)
{
    struct kineto_info info;
    struct err err = {0};
    size_t size = 300000;
    char *text = malloc(size + 1024);
    int n = sprintf(text, "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"");

    memset(text + n, 'a', size);
    strcpy(text + n + size, "\",\"ts\":3}," KERNEL "]");
    CHECK(read_text(text, &info, &err) == 0);
    CHECK_UINT(taken, 2);
    CHECK(strlen(names[0]) == 63);
    check_kernel(1);
    free(text);
}

