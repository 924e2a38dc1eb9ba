/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_law.h"

#include <string.h>

#include "check.h"

static const struct size_points wide = {
    .first = 64, .second = 128, .wanted = 256};

static enum size_law law_of(const struct size_points *p, uint64_t first,
                            uint64_t second, uint64_t wanted)
{
    uint64_t number;
    enum size_law law = size_law_number(p, first, second, &number);

    if (law != SIZE_NONE)
        CHECK_UINT(number, wanted);
    return law;
}

TEST(numbers_follow_powers_of_the_size)
{
    CHECK(law_of(&wide, 514, 514, 514) == SIZE_SAME);
    CHECK(law_of(&wide, 0, 0, 0) == SIZE_SAME);
    CHECK(law_of(&wide, 192, 384, 768) == SIZE_POWER);
    CHECK(law_of(&wide, 4096, 16384, 65536) == SIZE_POWER);
    CHECK(law_of(&wide, 3, 24, 192) == SIZE_POWER); /* cubed */
    CHECK(law_of(&wide, UINT64_C(1) << 40, UINT64_C(1) << 41,
                 UINT64_C(1) << 42) == SIZE_POWER);
}

/* 12 H H + 13 H, the elements of a layer, are no power: on a line. */
TEST(sums_lie_on_a_line)
{
    CHECK(law_of(&wide, 129, 257, 513) == SIZE_LINE);
    CHECK(law_of(&wide, 12 * 64 * 64 + 13 * 64, 12 * 128 * 128 + 13 * 128,
                 494848) == SIZE_LINE);
    CHECK(law_of(&wide, 0, 64, 192) == SIZE_LINE);
    CHECK(law_of(&wide, 200, 150, 0) == SIZE_NONE); /* falls */
    CHECK(
        law_of(&(struct size_points){.first = 64, .second = 128, .wanted = 32},
               10, 80, 0) == SIZE_NONE); /* below 0 */
    CHECK(law_of(&wide, UINT64_MAX, 1, 0) == SIZE_NONE);
}

TEST(what_is_no_whole_number_follows_none)
{
    const struct size_points odd = {.first = 64, .second = 128, .wanted = 65};

    CHECK(law_of(&odd, 32, 64, 0) == SIZE_NONE);
    CHECK(law_of(&odd, 64, 128, 65) == SIZE_POWER);
    CHECK(law_of(&odd, 63, 128, 0) == SIZE_NONE);
}

/* 1000 x 64 elements are one chunk, 1000 x 128 are 2, 1000 x 256 are 4 and
 * 1000 x 100 are 2. */
TEST(chunks_are_rounded_up)
{
    struct size_points p = wide;

    p.tensors = 52;
    p.chunks[0] = 1;
    p.chunks[1] = 2;
    p.chunks[2] = 4;
    CHECK(law_of(&p, 52, 104, 208) == SIZE_POWER);
    p.wanted = 100;
    p.chunks[2] = 2;
    CHECK(law_of(&p, 52, 104, 104) == SIZE_POWER);
    p.chunks[0] = 589;
    p.chunks[1] = 786;
    p.chunks[2] = 460;
    CHECK(law_of(&p, 589, 786, 460) == SIZE_POWER);
}

TEST(dimensions_stay_multiples_of_eight)
{
    struct size_points p = wide;
    uint64_t number;

    CHECK(size_law_dimension(&p, 16, 32, &number) == SIZE_POWER);
    p.wanted = 96;
    CHECK(size_law_dimension(&p, 16, 32, &number) == SIZE_POWER);
    CHECK_UINT(number, 24);
    p.wanted = 80;
    CHECK(size_law_dimension(&p, 16, 32, &number) == SIZE_UNEVEN);
    CHECK(size_law_dimension(&p, 64, 128, &number) == SIZE_POWER);
    /* what is odd in one of them may be odd */
    CHECK(size_law_dimension(&p, 65, 129, &number) == SIZE_LINE);
}

TEST(blocks_take_a_power_of_two_of_elements_for_each_thread)
{
    const uint64_t elements[3] = {1000, 3000, 10000};
    uint64_t blocks;

    CHECK(size_law_blocks(elements, 2, 6, 128, &blocks) == SIZE_POWER);
    CHECK_UINT(blocks, 20); /* of 512 elements */
    CHECK(size_law_blocks(elements, 2, 7, 128, &blocks) == SIZE_NONE);
    CHECK(size_law_blocks(elements, 9, 9, 128, &blocks) == SIZE_SAME);
    CHECK(size_law_blocks(elements, 9, 8, 0, &blocks) == SIZE_NONE);
}

TEST(estimates_are_on_a_power_law_up_to_the_third_power)
{
    CHECK_UINT(size_law_estimate(&wide, 100, 200), 400);
    CHECK_UINT(size_law_estimate(&wide, 100, 100), 100);
    CHECK_UINT(size_law_estimate(&wide, 200, 100), 100); /* no negative one */
    CHECK_UINT(size_law_estimate(&wide, 1, 1000), 8000);
    CHECK_UINT(size_law_estimate(&wide, 0, 7), 7);
    CHECK(size_law_estimate(&wide, UINT64_MAX / 2, UINT64_MAX) > 0);
    CHECK(!size_is_between(&wide));
    CHECK(size_second_is_nearer(&wide));
}

static size_t text(const char *first, const char *second, char *wanted,
                   size_t room, enum size_law *law)
{
    struct size_text t = {.first = first,
                          .second = second,
                          .first_bytes = strlen(first),
                          .second_bytes = strlen(second),
                          .wanted = wanted,
                          .room = room};
    size_t length = size_law_text(&wide, &t);

    *law = t.law;
    return length;
}

TEST(texts_have_their_numbers_changed)
{
    char to[64] = "";
    enum size_law law;

    CHECK_UINT(text("q=2,4,256,16 qt=bfloat16 qs=49152,1",
                    "q=2,4,256,32 qt=bfloat16 qs=98304,1", to, sizeof to, &law),
               36);
    CHECK(law == SIZE_POWER);
    CHECK_STR(to, "q=2,4,256,64 qt=bfloat16 qs=196608,1");
    CHECK_UINT(text("a=1", "b=1", to, sizeof to, &law), 0);
    CHECK(law == SIZE_NONE);
    CHECK_UINT(text("a=1", "a=1 b", to, sizeof to, &law), 0);
    CHECK(law == SIZE_NONE);
    CHECK_UINT(text("a=64", "a=128", to, 4, &law), 5);
    CHECK(!memcmp(to, "a=25", 4));
    CHECK_UINT(text("9999999999999999999", "9", to, sizeof to, &law), 0);
    CHECK(law == SIZE_NONE);
    CHECK_UINT(text("", "", to, sizeof to, &law), 0);
    CHECK(law == SIZE_SAME);
}
