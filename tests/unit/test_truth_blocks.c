/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/truth_blocks.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

#define EVENTS 16

/* A side of which TEXT names the events: "+8" is a block of 8 bytes, "-8" its
 * free. */
static void side_make(struct truth_side *s, struct truth_event *events,
                      const char *text)
{
    int bytes, read;

    *s = (struct truth_side){.events = events};
    for (; sscanf(text, " %d%n", &bytes, &read) == 1; text += read)
        events[s->event_count++] = (struct truth_event){
            .is_free = bytes < 0,
            .address = (uint64_t)(bytes < 0 ? -bytes : bytes),
            .requested_bytes = bytes < 0 ? 0 : (uint64_t)bytes};
}

/* The sizes of the pairs of ESTIMATE and RUN that differ, and where they end. */
static const char *walk(const char *estimate, const char *run)
{
    static char text[256];
    struct truth_event events[2][EVENTS];
    struct truth_side a, b;
    struct truth_walk at = {0};
    struct truth_pair p;
    int used = 0;

    side_make(&a, events[0], estimate);
    side_make(&b, events[1], run);
    while (truth_walk_next(&a, &b, &at, &p)) {
        uint64_t x = p.estimate ? p.estimate->requested_bytes : 0;
        uint64_t y = p.run ? p.run->requested_bytes : 0;
        if (x != y)
            used += sprintf(text + used, "%d:%d ", (int)x, (int)y);
    }
    sprintf(text + used, "%zu %zu", at.estimate, at.run);
    return text;
}

TEST(equal_events_are_pairs)
{
    CHECK_STR(walk("+8 +16 -16 -8", "+8 +16 -16 -8"), "4 4");
    CHECK_STR(walk("", ""), "0 0");
}

TEST(a_block_of_another_size_is_one_in_the_same_place)
{
    CHECK_STR(walk("+8 +16 -16 -8", "+8 +24 -24 -8"), "16:24 4 4");
    CHECK_STR(walk("+1 -1 +2 -2 +9", "+2 -2 +2 -2 +9"), "1:2 5 5");
}

TEST(a_workspace_of_one_side_alone_ends_nothing)
{
    CHECK_STR(walk("+8 +16 -16 +9 -8", "+8 +9 -8"), "16:0 5 3");
    CHECK_STR(walk("+8 +9 -8", "+8 +16 -16 +9 -8"), "0:16 3 5");
    CHECK_STR(walk("+8 +16 -16", "+8"), "16:0 3 1");
    CHECK_STR(walk("+8 +16 -16 -8", "+8 -8"), "16:0 4 2");
}

TEST(so_do_several_of_them)
{
    CHECK_STR(walk("+1 -1 +2 -2 +9", "+9"), "1:0 2:0 5 1");
    CHECK_STR(walk("+1 -1 +9 +3 -3 -9", "+9 +4 -4 -9"), "1:0 3:4 6 4");
    CHECK_STR(walk("+1 -1 +7 -7 +9 -9", "+7 -7 +2 -2 +9 -9"), "1:0 0:2 6 6");
}

TEST(a_block_that_stays_is_a_difference)
{
    CHECK_STR(walk("+8 +16 -8", "+8 -8"), "1 1");
    CHECK_STR(walk("+8 -8 +1", "+8"), "1 1");
}
