/* SPDX-License-Identifier: Apache-2.0 */
#include "common/catalogue/vaspace.h"
#include "common/base/units.h"
#include "check.h"

#define BASE (UINT64_C(1) << 46)
#define SIZE (UINT64_C(1) << 40)
#define TOP  (BASE + SIZE)

static struct vaspace v;

static void setup(enum vaspace_model model)
{
    CHECK(vaspace_init(&v, BASE, SIZE, model, NULL) == 0);
}

TEST(chunks_go_down_and_their_tails_are_used_lowest_first)
{
    setup(VASPACE_CHUNKS);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), TOP - 32 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), TOP - 64 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 2 * MIB), TOP - 64 * MIB + 20 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 33 * MIB), TOP - 128 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 12 * MIB), TOP - 128 * MIB + 34 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 18 * MIB), TOP - 128 * MIB + 46 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 12 * MIB), TOP - 12 * MIB);
    CHECK_UINT(v.used_bytes, 118 * MIB);
    CHECK(vaspace_check(&v));
}

TEST(an_emptied_chunk_is_given_back)
{
    setup(VASPACE_CHUNKS);
    uint64_t a = vaspace_alloc(&v, 20 * MIB), b = vaspace_alloc(&v, 2 * MIB);
    uint64_t c = vaspace_alloc(&v, 32 * MIB);

    CHECK_UINT(vaspace_free(&v, a), 20 * MIB);
    CHECK_UINT(vaspace_free(&v, b), 2 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 64 * MIB), c - 64 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 32 * MIB), TOP - 32 * MIB);
    CHECK(vaspace_check(&v));
}

TEST(a_free_range_does_not_reach_into_the_next_chunk)
{
    setup(VASPACE_CHUNKS);
    vaspace_alloc(&v, 20 * MIB);
    uint64_t a = vaspace_alloc(&v, 16 * MIB);
    vaspace_alloc(&v, 16 * MIB);
    CHECK_UINT(vaspace_free(&v, a), 16 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 18 * MIB), TOP - 96 * MIB);
}

TEST(ascending_takes_the_lowest_place)
{
    setup(VASPACE_ASCENDING);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), BASE);
    CHECK_UINT(vaspace_alloc(&v, 3 * MIB), BASE + 20 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 2 * MIB), BASE + 24 * MIB);
    CHECK_UINT(vaspace_free(&v, BASE + 20 * MIB), 3 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 6 * MIB), BASE + 26 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 4 * MIB), BASE + 20 * MIB);
    CHECK(vaspace_check(&v));
}

/* T: the end of the first allocation, as on an H200. */
TEST(code_leaves_three_holes_at_the_first_kernel)
{
    setup(VASPACE_CODE);
    CHECK(vaspace_check(&v));
    uint64_t top = vaspace_alloc(&v, 2 * MIB) + 2 * MIB;
    CHECK_UINT(top, TOP - 96 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), top - 960 * MIB);
    CHECK(vaspace_library(&v, "kernels", 92 * MIB) == 0);
    CHECK(vaspace_check(&v));
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), top - 416 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 12 * MIB), top - 940 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 2 * MIB), top - 422 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 394 * MIB), top - 396 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), top + 74 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 32 * MIB), top - 992 * MIB);
    CHECK_UINT(v.used_bytes, 502 * MIB);
    CHECK(vaspace_library(&v, "kernels", 92 * MIB) == 0);
    CHECK(vaspace_check(&v));
}

TEST(a_library_takes_addresses_and_no_memory)
{
    uint64_t start, bytes;

    setup(VASPACE_CODE);
    vaspace_alloc(&v, 2 * MIB);
    uint64_t a = vaspace_alloc(&v, 20 * MIB);
    CHECK(vaspace_library(&v, "cublas", 66 * MIB) == 0);
    CHECK(vaspace_library(&v, "cusolver", 100 * MIB) == 0);
    CHECK_UINT(v.used_bytes, 22 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 2 * MIB), a + 22 * MIB);
    CHECK_UINT(vaspace_alloc(&v, 32 * MIB), a - 96 * MIB);
    CHECK(!vaspace_find(&v, a + 20 * MIB, &start, &bytes));
    CHECK(vaspace_check(&v));
    CHECK(vaspace_reset(&v) == 0);
    CHECK_UINT(vaspace_alloc(&v, 32 * MIB), a);
}

TEST(other_orders_have_no_code)
{
    setup(VASPACE_ASCENDING);
    CHECK(vaspace_library(&v, "cublas", 66 * MIB) == 0);
    CHECK(vaspace_library(&v, "kernels", 92 * MIB) == 0);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), BASE);
}

TEST(only_hopper_is_known_to_have_them)
{
    CHECK(vaspace_model_of(VASPACE_CHUNKS, 9) == VASPACE_CODE);
    CHECK(vaspace_model_of(VASPACE_CHUNKS, 8) == VASPACE_CHUNKS);
    CHECK(vaspace_model_of(VASPACE_ASCENDING, 9) == VASPACE_ASCENDING);
}

TEST(small_allocations_share_a_page)
{
    setup(VASPACE_CHUNKS);
    uint64_t a = vaspace_alloc(&v, 1), b = vaspace_alloc(&v, 513);
    uint64_t c = vaspace_alloc(&v, MIB - 1), d = vaspace_alloc(&v, MIB);

    CHECK_UINT(a, TOP - 32 * MIB);
    CHECK_UINT(b, a + 512);
    CHECK_UINT(c, a + 512 + 1024);
    CHECK_UINT(d, a + 2 * MIB);
    CHECK_UINT(v.used_bytes, 4 * MIB);
    CHECK_UINT(vaspace_alloc(&v, MIB - 1024), a + 4 * MIB);
    CHECK_UINT(vaspace_free(&v, a), 1);
    CHECK_UINT(vaspace_free(&v, b), 513);
    CHECK_UINT(v.used_bytes, 6 * MIB);
    CHECK_UINT(vaspace_free(&v, c), MIB - 1);
    CHECK_UINT(v.used_bytes, 4 * MIB);
    CHECK(vaspace_check(&v));
}

TEST(finds_the_allocation_that_holds_an_address)
{
    uint64_t start = 1, bytes = 2;

    setup(VASPACE_CHUNKS);
    uint64_t a = vaspace_alloc(&v, 3 * MIB), b = vaspace_alloc(&v, 100);
    CHECK(vaspace_find(&v, a + 3 * MIB - 1, &start, &bytes));
    CHECK_UINT(start, a);
    CHECK_UINT(bytes, 3 * MIB);
    CHECK(!vaspace_find(&v, a + 3 * MIB, &start, &bytes));
    CHECK(vaspace_find(&v, b + 99, &start, NULL));
    CHECK_UINT(start, b);
    CHECK(!vaspace_find(&v, b + 100, NULL, NULL));
    CHECK(!vaspace_find(&v, 0, NULL, NULL));
    CHECK(!vaspace_find(&v, BASE - 1, NULL, NULL));
    CHECK(!vaspace_find(&v, TOP, NULL, NULL));
    CHECK_UINT(start, b);
}

TEST(refuses_what_it_does_not_hold)
{
    setup(VASPACE_CHUNKS);
    uint64_t a = vaspace_alloc(&v, 4 * MIB);
    CHECK_UINT(vaspace_free(&v, a + 512), 0);
    CHECK_UINT(vaspace_free(&v, TOP), 0);
    CHECK_UINT(vaspace_free(&v, a), 4 * MIB);
    CHECK_UINT(vaspace_free(&v, a), 0);
    CHECK_UINT(vaspace_alloc(&v, 0), 0);
    CHECK_UINT(vaspace_alloc(&v, SIZE + 1), 0);
    CHECK_UINT(vaspace_alloc(&v, UINT64_MAX), 0);
    CHECK(vaspace_init(&v, 0, SIZE, VASPACE_CHUNKS, NULL) == -1);
    CHECK(vaspace_init(&v, BASE, 0, VASPACE_CHUNKS, NULL) == -1);
    CHECK(vaspace_init(&v, BASE + 1, SIZE, VASPACE_CHUNKS, NULL) == -1);
    CHECK(vaspace_init(&v, -SIZE, 2 * SIZE, VASPACE_CHUNKS, NULL) == -1);
}

TEST(the_limit_counts_whole_pages)
{
    setup(VASPACE_CHUNKS);
    vaspace_limit(&v, 9 * MIB);
    CHECK(vaspace_alloc(&v, 5 * MIB) != 0);
    CHECK_UINT(vaspace_alloc(&v, 3 * MIB), 0);
    uint64_t a = vaspace_alloc(&v, 1);
    CHECK(a != 0);
    CHECK(vaspace_alloc(&v, 1000) == a + 512);
    CHECK_UINT(vaspace_alloc(&v, MIB), 0);
}

static void *pages_get(size_t bytes, void *context)
{
    return --*(int *)context < 0 ? NULL : calloc(1, bytes);
}

static void pages_put(void *p, size_t bytes, void *context)
{
    (void)bytes;
    (void)context;
    free(p);
}

TEST(lives_with_a_caller_that_has_no_more_nodes)
{
    int pages = 1;
    struct vaspace_memory memory = {pages_get, pages_put, &pages};
    size_t count = 0;

    CHECK(vaspace_init(&v, BASE, SIZE, VASPACE_CHUNKS, &memory) == 0);
    while (vaspace_alloc(&v, 2 * MIB))
        count++;
    CHECK(count > 400);
    CHECK(vaspace_check(&v));
    vaspace_fini(&v);
    CHECK(vaspace_init(&v, BASE, SIZE, VASPACE_CHUNKS, &memory) == -1);
}

TEST(walks_upwards_and_forgets)
{
    uint64_t start = 0, bytes = 0, sizes[] = {40 * MIB, 5, 2 * MIB, 700};

    setup(VASPACE_CHUNKS);
    for (int i = 0; i < 4; i++)
        vaspace_alloc(&v, sizes[i]);
    int seen = 0;
    uint64_t last = 0;
    for (uint64_t at = 0; vaspace_next(&v, at, &start, &bytes);
         at = start + 1) {
        CHECK(start > last);
        last = start;
        seen++;
    }
    CHECK_UINT(seen, 4);
    CHECK(vaspace_reset(&v) == 0);
    CHECK(!vaspace_next(&v, 0, &start, &bytes));
    CHECK_UINT(v.used_bytes, 0);
    CHECK_UINT(vaspace_alloc(&v, 20 * MIB), TOP - 32 * MIB);
    vaspace_fini(&v);
}

/* The rules once more, without any structure: a map of pages. */
enum { PAGES = 4096 };
static struct naive {
    int owner[PAGES]; /* 0: none */
    int chunk[PAGES]; /* 0: gap, else 1 + its first page */
} naive;

static int naive_fit(int pages)
{
    for (int i = 0; i + pages <= PAGES; i++) {
        int n = 0;

        while (n < pages && naive.chunk[i] && !naive.owner[i + n] &&
               naive.chunk[i + n] == naive.chunk[i])
            n++;
        if (n == pages)
            return i;
    }
    return -1;
}

static int naive_open(int pages)
{
    for (int i = PAGES - pages; i >= 0; i--) {
        int n = 0;

        while (n < pages && !naive.chunk[i + n])
            n++;
        if (n < pages)
            continue;
        for (int k = 0; k < pages; k++)
            naive.chunk[i + k] = i + 1;
        return i;
    }
    return -1;
}

static uint64_t naive_alloc(int id, int pages)
{
    int at = naive_fit(pages);

    if (at < 0)
        at = naive_open((pages + 15) / 16 * 16);
    if (at < 0)
        return 0;
    for (int k = 0; k < pages; k++)
        naive.owner[at + k] = id;
    return BASE + (uint64_t)at * 2 * MIB;
}

static void naive_free(int id)
{
    int chunk = 0, left = 0;

    for (int i = 0; i < PAGES; i++)
        if (naive.owner[i] == id) {
            naive.owner[i] = 0;
            chunk = naive.chunk[i];
        }
    for (int i = 0; i < PAGES; i++)
        left += naive.chunk[i] == chunk && naive.owner[i];
    for (int i = 0; i < PAGES && !left; i++)
        if (naive.chunk[i] == chunk)
            naive.chunk[i] = 0;
}

TEST(agrees_with_a_map_of_pages)
{
    uint64_t address[200] = {0};
    uint32_t seed = 1;

    CHECK(vaspace_init(&v, BASE, PAGES * 2 * MIB, VASPACE_CHUNKS, NULL) == 0);
    for (int step = 0; step < 20000 && !check_failures; step++) {
        seed = seed * 1664525 + 1013904223;
        int id = (int)(seed >> 16) % 200, pages = 1 + (int)(seed >> 8) % 90;

        if (address[id]) {
            CHECK(vaspace_free(&v, address[id]) != 0);
            naive_free(id + 1);
            address[id] = 0;
        } else {
            address[id] = vaspace_alloc(&v, (uint64_t)pages * 2 * MIB - 7);
            CHECK_UINT(address[id], naive_alloc(id + 1, pages));
        }
        CHECK(step % 16 || vaspace_check(&v));
    }
}
