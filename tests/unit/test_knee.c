/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/knee.h"

#include <math.h>

#include "check.h"

#define POINTS 11

/* A step of 10 ms that hides delays of KNEE_NS, of CALLS calls, of which FIRST
 * are never hidden; of delays of 0 to 5 ms. */
static struct knee knee_of(double knee_ns, double first, double calls)
{
    struct knee_point points[POINTS];

    for (int i = 0; i < POINTS; i++) {
        double ns = 5e5 * i;
        double more = fmax(first * ns, calls * (ns - knee_ns));
        points[i] = (struct knee_point){(uint64_t)ns,
                                        10000000 + (uint64_t)llround(more)};
    }
    return knee_find(points, POINTS);
}

TEST(a_knee_between_two_points_is_found)
{
    for (int i = 5; i < 30; i++) {
        struct knee k = knee_of(1e5 * i + 1, 0, 4);
        CHECK(fabs(k.slope - 4) < 1e-6 && !k.all);
        CHECK(fabs(k.hidden_ns - 1e5 * i) < 2e4);
        CHECK(fabs(k.start) < 1e-6);
    }
}

TEST(calls_that_are_never_hidden_are_told_from_the_others)
{
    struct knee k = knee_of(2e6, 1, 4);

    CHECK(k.hidden_ns == 0 && fabs(k.start - 1) < 1e-6);
    CHECK(fabs(k.slope - 4) < 1e-6);
    CHECK(fabs(k.turn_ns - 4 * 2e6 / 3) < 1e3); /* d = 4 (d - 2 ms) */
}

TEST(what_was_not_tried_is_not_said)
{
    struct knee k = knee_of(1e9, 0, 4);

    CHECK(k.all && k.hidden_ns == 5e6 && k.slope == 0);
    k = knee_of(4.7e6, 0, 4); /* one point beyond it */
    CHECK(!k.all && k.hidden_ns == 4.5e6 && k.slope == 0);
}
