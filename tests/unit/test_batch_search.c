/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_search.h"

#include "check.h"

/* A job that takes 100 bytes and 10 a batch, on a card of CARD bytes, but for
 * the batches of EXCEPTIONS, which take so much more or less. */
struct job {
    uint64_t card;
    struct {
        uint64_t batch;
        int64_t more;
    } exceptions[4];
};

static uint64_t job_bytes(const struct job *j, uint64_t batch)
{
    int64_t bytes = (int64_t)(100 + 10 * batch);

    for (int i = 0; i < 4; i++)
        if (j->exceptions[i].batch == batch)
            bytes += j->exceptions[i].more;
    return (uint64_t)bytes;
}

/* Runs the search; the batches that were tried, as text. */
static const char *tried(struct batch_search *s, const struct job *j)
{
    static char text[512];
    uint64_t batch;

    text[0] = '\0';
    while ((batch = batch_search_next(s))) {
        uint64_t bytes = job_bytes(j, batch);
        size_t n = strlen(text);

        snprintf(text + n, sizeof text - n, "%s%" PRIu64, n ? " " : "", batch);
        batch_search_tell(s, bytes <= j->card, bytes, bytes);
        if (s->count > 60)
            break;
    }
    return text;
}

TEST(doubles_then_bisects)
{
    struct job j = {.card = 335}; /* 23 batches */
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, 1000, 1));
    CHECK_STR(tried(&s, &j), "1 2 4 8 16 32 24 20 22 23");
    CHECK_UINT(batch_search_largest(&s), 23);
    CHECK_UINT(batch_search_limit(&s), 24);
    CHECK(!batch_search_is_uneven(&s));
    CHECK(!batch_search_is_deaf(&s));
    batch_search_fini(&s);
}

TEST(tries_multiples_only)
{
    struct job j = {.card = 1000}; /* 90 */
    struct batch_search s;

    CHECK(!batch_search_init(&s, 5, 1003, 8));
    CHECK_UINT(s.from, 8);
    CHECK_UINT(s.to, 1000);
    CHECK_STR(tried(&s, &j), "8 16 32 64 128 96 80 88");
    CHECK_UINT(batch_search_largest(&s), 88);
    CHECK_UINT(batch_search_limit(&s), 96);
    batch_search_fini(&s);
}

TEST(stops_at_the_ends)
{
    struct job j = {.card = 1000};
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, 50, 1));
    CHECK_STR(tried(&s, &j), "1 2 4 8 16 32 50");
    CHECK_UINT(batch_search_largest(&s), 50);
    CHECK_UINT(batch_search_limit(&s), 0);
    batch_search_fini(&s);

    CHECK(!batch_search_init(&s, 91, 200, 1));
    CHECK_STR(tried(&s, &j), "91");
    CHECK_UINT(batch_search_largest(&s), 0);
    CHECK_UINT(batch_search_limit(&s), 91);
    batch_search_fini(&s);

    CHECK(!batch_search_init(&s, 7, 7, 1));
    CHECK_STR(tried(&s, &j), "7");
    batch_search_fini(&s);
}

TEST(refuses_an_empty_range)
{
    struct batch_search s;

    CHECK(batch_search_init(&s, 9, 8, 1) == -1);
    CHECK(batch_search_init(&s, 9, 15, 8) == -1);
    CHECK(batch_search_init(&s, 0, 0, 1) == -1);
}

TEST(does_not_overflow)
{
    struct job j = {.card = UINT64_MAX};
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, UINT32_MAX, 3));
    tried(&s, &j);
    CHECK_UINT(batch_search_largest(&s), UINT32_MAX);
    batch_search_fini(&s);
}

/* Where a larger batch took less, what lies beyond the limit is looked at. */
TEST(looks_beyond_the_limit_where_peaks_are_uneven)
{
    struct job j = {.card = 335,
                    .exceptions = {{16, -200}, {26, -200}, {27, -200}}};
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, 1000, 1));
    CHECK_STR(tried(&s, &j), "1 2 4 8 16 32 24 20 22 23 25 26 29 27 28 30 31");
    CHECK(batch_search_is_uneven(&s));
    CHECK_UINT(batch_search_largest(&s), 27);
    CHECK_UINT(batch_search_limit(&s), 28);
    batch_search_fini(&s);
}

TEST(hears_that_nothing_changes)
{
    struct batch_search s;
    uint64_t batch;

    CHECK(!batch_search_init(&s, 1, 64, 1));
    while ((batch = batch_search_next(&s)))
        batch_search_tell(&s, true, 4096, 4096);
    CHECK(batch_search_is_deaf(&s));
    CHECK(!batch_search_is_uneven(&s));
    CHECK_UINT(batch_search_largest(&s), 64);
    batch_search_fini(&s);
}

/* A line through two peaks halves the runs. */
TEST(guesses_by_a_line)
{
    struct job j = {.card = 335};
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, 1000, 1));
    s.capacity_bytes = j.card;
    CHECK_STR(tried(&s, &j), "1 2 23 24");
    CHECK_UINT(batch_search_largest(&s), 23);
    CHECK_UINT(batch_search_limit(&s), 24);
    batch_search_fini(&s);

    j.card = 1000;
    CHECK(!batch_search_init(&s, 5, 1003, 8));
    s.capacity_bytes = j.card;
    CHECK_STR(tried(&s, &j), "8 16 88 96");
    batch_search_fini(&s);
}

/* The first peaks are of something else: the line is wrong, and left. */
TEST(finds_the_limit_where_the_line_misleads)
{
    struct job j = {.card = 10100, .exceptions = {{1, 400}, {2, 395}}};
    struct batch_search s;

    CHECK(!batch_search_init(&s, 1, 65536, 1));
    s.capacity_bytes = j.card;
    tried(&s, &j);
    CHECK_UINT(batch_search_largest(&s), 1000);
    CHECK_UINT(batch_search_limit(&s), 1001);
    CHECK(s.count <= 12);
    batch_search_fini(&s);
}

/* For every card the answer is bisection's, and no search is long. */
TEST(the_line_and_bisection_agree)
{
    for (uint64_t card = 110; card < 20000; card += 37) {
        struct job j = {.card = card};
        struct batch_search s, b;

        CHECK(!batch_search_init(&s, 1, 5000, 1));
        CHECK(!batch_search_init(&b, 1, 5000, 1));
        s.capacity_bytes = card;
        tried(&s, &j);
        tried(&b, &j);
        CHECK_UINT(batch_search_largest(&s), batch_search_largest(&b));
        CHECK(s.count <= 7);
        batch_search_fini(&s);
        batch_search_fini(&b);
    }
}
