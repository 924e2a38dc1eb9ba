/* SPDX-License-Identifier: Apache-2.0
 * Sums over parts of a timeline, by hand. */
#include "memsim/time/spans.h"

#include "check.h"

static void add(struct spans *s, enum span_kind kind, uint64_t start,
                uint64_t end, uint32_t fill)
{
    const struct span span = {.start_ns = start,
                              .end_ns = end,
                              .kind = (uint8_t)kind,
                              .fill = fill};

    spans_add(s, &span);
}

/*  0    10   20   30   40   50   60
 *  compute---     ====copy====
 *            comm---------
 *       comp--
 */
static struct spans sample(void)
{
    struct spans s = {.count = 0};

    add(&s, SPAN_COPY, 30, 50, 0);
    add(&s, SPAN_COMPUTE, 0, 20, SIM_WHOLE / 2);
    add(&s, SPAN_COMM, 15, 40, SIM_WHOLE / 4);
    add(&s, SPAN_COMPUTE, 10, 18, SIM_WHOLE);
    add(&s, SPAN_COMPUTE, 5, 5, SIM_WHOLE); /* takes no time */
    spans_sort(&s);
    return s;
}

TEST(parts_add_up)
{
    struct spans s = sample();
    struct span_parts p = spans_parts(&s, 0, 0, 60);

    CHECK_UINT(p.compute_ns, 20);
    CHECK_UINT(p.overlapped_comm_ns, 5);
    CHECK_UINT(p.exposed_comm_ns, 20);
    CHECK_UINT(p.exposed_copy_ns, 10);
    CHECK_UINT(p.idle_ns, 10);
    spans_fini(&s);
}

TEST(a_part_of_the_time_has_a_part_of_the_spans)
{
    struct spans s = sample();
    struct span_parts p = spans_parts(&s, 0, 17, 35);

    CHECK_UINT(p.compute_ns, 3);
    CHECK_UINT(p.overlapped_comm_ns, 3);
    CHECK_UINT(p.exposed_comm_ns, 15);
    CHECK_UINT(p.exposed_copy_ns, 0);
    CHECK_UINT(p.idle_ns, 0);
    p = spans_parts(&s, 1, 0, 60); /* another device */
    CHECK_UINT(p.idle_ns, 60);
    spans_fini(&s);
}

TEST(sms_have_work_by_the_grids_and_never_more_than_all)
{
    const struct span_windows windows = {0, 50, 20, 3};
    struct spans s = sample();
    double fills[3];

    spans_fill(&s, 0, &windows, fills);
    /* 0-10 a half, 10-18 all, 18-20 three quarters */
    CHECK_NEAR(fills[0], (10 * 0.5 + 8 + 2 * 0.75) / 20, 1e-4);
    CHECK_NEAR(fills[1], 0.25, 1e-4);
    CHECK(fills[2] == 0); /* half a window: only the copy */
    spans_fini(&s);
}
