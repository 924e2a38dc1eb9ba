/* SPDX-License-Identifier: Apache-2.0
 * Dependencies found in profiles that are written out by hand. Times are in
 * microseconds, as in a file. */
#include "memsim/import/profile.h"

#include <stdarg.h>

#include "check.h"

static char text[16384];
static size_t used;

static void begin(void)
{
    used = (size_t)snprintf(text, sizeof text, "[");
}

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list args;

    if (used > 1)
        text[used++] = ',';
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
}

static void add_call(const char *name, int thread, int ts, int dur,
                     int correlation)
{
    add("{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,"
        "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{\"correlation\":%d}}",
        name, thread, ts, dur, correlation);
}

static void add_kernel(int stream, int ts, int dur, int correlation)
{
    add("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"ts\":%d,"
        "\"dur\":%d,\"args\":{\"device\":0,\"stream\":%d,"
        "\"correlation\":%d}}",
        correlation, ts, dur, stream, correlation);
}

/* A launch at TS, its kernel when the stream is free. */
static void add_work(int thread, int ts, int stream, int start, int dur,
                     int correlation)
{
    add_call("cudaLaunchKernel", thread, ts, 4, correlation);
    add_kernel(stream, start, dur, correlation);
}

static struct profile p;

static void link_all(void)
{
    char path[64];
    struct err err = {0};

    snprintf(path, sizeof path, "/tmp/test_profile.%d", getpid());
    FILE *file = fopen(path, "w");
    fprintf(file, "%s]", text);
    fclose(file);
    int rc = profile_read(&p, path, 0, &err);
    unlink(path);
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    CHECK(rc == 0);
    profile_link(&p);
}

static const struct profile_op *op_of(int correlation)
{
    for (size_t i = 0; i < p.ops_count; i++)
        if (p.ops[i].correlation == correlation)
            return &p.ops[i];
    CHECK(false);
    return p.ops;
}

static const struct profile_call *call_of(int correlation)
{
    for (size_t i = 0; i < p.calls_count; i++)
        if (p.calls[i].correlation == correlation)
            return &p.calls[i];
    CHECK(false);
    return p.calls;
}

TEST(a_launch_and_its_kernel_find_each_other)
{
    begin();
    add_work(1, 100, 7, 106, 10, 5);
    add_work(1, 200, 7, 206, 10, 6);
    link_all();
    CHECK_UINT(op_of(5)->call, 0);
    CHECK_UINT(op_of(6)->call, 1);
    CHECK_UINT(op_of(6)->previous, 0);
    CHECK(p.latency_ns == 6000);
    CHECK(op_of(6)->gap_ns == 0);
    CHECK_UINT(p.dropped_calls, 0);
    profile_fini(&p);
}

TEST(a_drivers_call_inside_the_runtimes_is_one_call)
{
    begin();
    add_call("cudaLaunchKernel", 1, 100, 10, 5);
    add_call("cuLaunchKernel", 1, 102, 4, 6);
    add_kernel(7, 108, 10, 6);
    link_all();
    CHECK_UINT(p.calls_count, 1);
    CHECK_UINT(op_of(6)->call, 0);
    profile_fini(&p);
}

TEST(a_kernel_without_a_call_is_counted)
{
    begin();
    add_work(1, 100, 7, 106, 10, 5);
    add_kernel(7, 200, 10, 99);
    link_all();
    CHECK_UINT(p.dropped_calls, 1);
    CHECK_UINT(op_of(99)->call, PROFILE_NONE);
    profile_fini(&p);
}

TEST(a_gpu_clock_that_runs_behind_is_put_right)
{
    begin();
    add_work(1, 100, 7, 80, 10, 5);
    link_all();
    CHECK(p.skew_ns == 20000);
    CHECK(op_of(5)->start_ns == 100000);
    profile_fini(&p);
}

/* Stream 20 begins 1 us after stream 7's kernel ended, long after it was
 * launched: it waited for it. */
TEST(a_stream_that_starts_late_waited_for_another)
{
    begin();
    add_work(1, 100, 7, 106, 1000, 5);
    add_work(1, 110, 20, 1107, 50, 6);
    link_all();
    CHECK_UINT(op_of(6)->after, 0);
    CHECK(op_of(6)->gap_ns == 0);
    CHECK_UINT(p.inferred_streams, 1);
    profile_fini(&p);
}

/* Nothing that is known ended before it: the time is kept as measured. */
TEST(an_unexplained_pause_is_kept)
{
    begin();
    add_work(1, 90, 7, 96, 4, 4);
    add_work(1, 100, 7, 106, 10, 5);
    add_work(1, 110, 7, 500, 10, 6);
    link_all();
    CHECK_UINT(op_of(6)->after, PROFILE_NONE);
    CHECK(op_of(6)->gap_ns > 380000 && op_of(6)->gap_ns < 386000);
    CHECK_UINT(p.gaps, 1);
    profile_fini(&p);
}

TEST(a_synchronisation_waits_for_what_ended_before_it_returned)
{
    begin();
    add_work(1, 100, 7, 106, 500, 5);
    add_call("cudaStreamSynchronize", 1, 110, 500, 6);
    add_call("cudaStreamSynchronize", 1, 700, 2, 7);
    link_all();
    CHECK_UINT(call_of(6)->waits, 0);
    CHECK_UINT(call_of(7)->waits, PROFILE_NONE);
    profile_fini(&p);
}

/* A loop of queries ends when the kernel does; the next call is late by it. */
TEST(queries_in_a_loop_are_a_wait)
{
    begin();
    add_work(1, 100, 7, 106, 500, 5);
    for (int i = 0; i < 10; i++)
        add_call("cudaEventQuery", 1, 110 + 50 * i, 2, 50 + i);
    add_work(1, 620, 7, 626, 5, 6);
    link_all();
    CHECK_UINT(p.calls_count, 2);
    CHECK_UINT(call_of(6)->waits, 0);
    CHECK(call_of(6)->polled);
    CHECK_UINT(op_of(6)->call, 1);
    profile_fini(&p);
}

/* Thread 2 works while thread 1 pauses, and both ways. */
TEST(threads_wait_for_each_other)
{
    begin();
    add_work(1, 100, 7, 106, 5, 5);
    add_work(2, 150, 7, 156, 5, 6);
    add_work(2, 160, 7, 166, 5, 7);
    add_work(1, 200, 7, 206, 5, 8);
    add_work(1, 210, 7, 216, 5, 9);
    link_all();
    CHECK_UINT(call_of(6)->join, 0);
    CHECK_UINT(call_of(7)->join, PROFILE_NONE);
    CHECK_UINT(call_of(8)->join, 2);
    CHECK_UINT(call_of(9)->join, PROFILE_NONE);
    profile_fini(&p);
}

TEST(a_profile_without_a_gpu_says_what_to_do)
{
    struct err err = {0};
    char path[64];

    snprintf(path, sizeof path, "/tmp/test_profile_cpu.%d", getpid());
    FILE *file = fopen(path, "w");
    fprintf(file, "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
                  "\"ts\":1,\"dur\":1}]");
    fclose(file);
    CHECK(profile_read(&p, path, 0, &err) != 0);
    CHECK(strstr(err.text, "ProfilerActivity.CUDA"));
    profile_fini(&p);
    unlink(path);
}
