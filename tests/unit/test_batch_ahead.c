/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_ahead.h"

#include "check.h"

#define RUNS_MOST 256

/* A job that takes 100 bytes and 10 a batch on a card of CARD bytes; batches
 * that UNEVEN divides take ten more. Its runs are kept in RAN. */
struct job {
    uint64_t card, uneven;
    uint64_t ran[RUNS_MOST];
    size_t count, rounds;
};

static struct batch_try run(const struct job *j, uint64_t batch)
{
    uint64_t bytes = 100 + 10 * batch;

    if (j->uneven && batch % j->uneven == 0)
        bytes += 100;
    return (struct batch_try){batch, bytes <= j->card, bytes, bytes};
}

static bool find(void *context, uint64_t batch, struct batch_try *t)
{
    const struct job *j = context;

    for (size_t i = 0; i < j->count; i++)
        if (j->ran[i] == batch) {
            *t = run(j, batch);
            return true;
        }
    return false;
}

static void make_runs(struct job *j, const struct batch_search *s, size_t most)
{
    const struct batch_known known = {find, j};
    uint64_t batches[16];
    size_t count = batch_ahead(s, &known, batches, most);

    CHECK(count >= 1 && count <= most);
    CHECK_UINT(batches[0], batch_search_next(s));
    j->rounds++;
    for (size_t i = 0; i < count && j->count < RUNS_MOST; i++) {
        struct batch_try t;
        CHECK(!find(j, batches[i], &t));
        j->ran[j->count++] = batches[i];
    }
}

/* Searches with MOST runs at a time; the batches needed, as text. */
static const char *needed(struct job *j, uint64_t capacity, size_t most)
{
    static char text[2][512];
    static int which;
    char *to = text[which ^= 1];
    struct batch_search s;
    struct batch_try t = {0};
    uint64_t batch;

    j->count = j->rounds = 0;
    to[0] = '\0';
    CHECK(!batch_search_init(&s, 1, 5000, 1));
    s.capacity_bytes = capacity;
    while ((batch = batch_search_next(&s)) && s.count < 60) {
        if (!find(j, batch, &t))
            make_runs(j, &s, most);
        CHECK(find(j, batch, &t));
        snprintf(to + strlen(to), 512 - strlen(to), " %" PRIu64, batch);
        batch_search_tell(&s, t.fits, t.peak_allocated_bytes,
                          t.peak_used_bytes);
    }
    batch_search_fini(&s);
    return to;
}

/* For every card, with and without the line, with even and uneven peaks. */
TEST(the_search_is_the_same_and_shorter)
{
    size_t rounds = 0, alone = 0;

    for (uint64_t card = 110; card < 20000; card += 37)
        for (int k = 0; k < 4; k++) {
            struct job j = {.card = card, .uneven = k & 1 ? 4 : 0};
            uint64_t capacity = k & 2 ? card : 0;
            const char *one = needed(&j, capacity, 1);
            size_t of_one = j.rounds;
            CHECK_UINT(j.count, of_one);
            for (size_t most = 2; most <= 7; most++) {
                CHECK_STR(needed(&j, capacity, most), one);
                CHECK(j.rounds <= of_one);
            }
            alone += of_one;
            rounds += j.rounds;
        }
    CHECK(rounds * 2 < alone);
}

TEST(both_ways_of_a_bisection)
{
    struct job j = {.card = 335};
    const struct batch_known known = {find, &j};
    struct batch_search s;
    uint64_t batches[8];

    CHECK(!batch_search_init(&s, 16, 1000, 1));
    batch_search_tell(&s, true, 260, 0);
    batch_search_tell(&s, false, 420, 0);
    CHECK_UINT(batch_ahead(&s, &known, batches, 3), 3);
    CHECK_UINT(batches[0], 24);
    CHECK_UINT(batches[1], 28);
    CHECK_UINT(batches[2], 20);
    j.ran[j.count++] = 24; /* does not fit: 28 is not needed */
    CHECK_UINT(batch_ahead(&s, &known, batches, 3), 3);
    CHECK_UINT(batches[0], 20);
    CHECK_UINT(batches[1], 22);
    CHECK_UINT(batches[2], 18);
    batch_search_fini(&s);
}

TEST(nothing_is_left_to_run)
{
    struct job j = {.card = 335, .ran = {7}, .count = 1};
    const struct batch_known known = {find, &j};
    struct batch_search s;
    uint64_t batches[4];

    CHECK(!batch_search_init(&s, 7, 7, 1));
    CHECK_UINT(batch_ahead(&s, &known, batches, 4), 0);
    j.count = 0;
    CHECK_UINT(batch_ahead(&s, &known, batches, 4), 1);
    batch_search_fini(&s);
}
