/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/play.h"

#include "check.h"
#include "trace_build.h"

static char path[64], order[64];

static void trace_write(size_t damaged_at)
{
    struct build b = build_start();

    BUILD(&b, DEVICE, .device = 0);
    build_seal(&b);
    if (damaged_at)
        b.data[damaged_at] ^= 1;
    snprintf(path, sizeof path, "/tmp/test_play.%d", getpid());
    FILE *f = fopen(path, "w");
    CHECK(fwrite(b.data, 1, b.bytes, f) == b.bytes);
    fclose(f);
    free(b.data);
}

static void note(const char *what)
{
    strcat(order, what);
}

static void take(void *context, const struct trace_item *item,
                 const struct trace_now *now)
{
    (void)item;
    (void)now;
    note(context);
}

static void end(void *context, const struct trace_now *now)
{
    (void)context;
    (void)now;
    note("E");
}

static void conclude(void *to, const struct err *err)
{
    note(to);
    note(err ? "!" : ".");
}

/* What two listeners were told of the trace in PATH, the first without an
 * end. */
static void play_both(int wanted)
{
    static char a[] = "a", b[] = "b", first[] = "1", second[] = "2";
    const struct trace_listener both[] = {{take, NULL, a, conclude, first},
                                          {take, end, b, conclude, second}};
    struct trace_reader reader;
    struct err err = {""};

    *order = '\0';
    CHECK(!trace_reader_open(&reader, path, &err));
    CHECK_CODE(trace_play(&reader, both, 2, &err), wanted);
    trace_reader_close(&reader);
    unlink(path);
}

TEST(listeners_are_concluded_in_order_behind_the_end)
{
    trace_write(0);
    play_both(0);
    CHECK_STR(order, "abE1.2.");
}

TEST(a_damaged_trace_has_no_end_but_is_concluded)
{
    trace_write(TRACE_HEADER_BYTES + sizeof(struct trace_chunk) + 2);
    play_both(-1);
    CHECK_STR(order, "1!2!");
}

TEST(a_trace_that_is_not_there_is_concluded)
{
    static char to[] = "1";
    const struct trace_listener one = {take, end, NULL, conclude, to};
    struct err err = {""};

    *order = '\0';
    CHECK(trace_play_file("/nowhere", &one, &err) == -1);
    CHECK_STR(order, "1!");
}
