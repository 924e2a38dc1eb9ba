/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/map.h"

#include "check.h"

#define KEYS 512

TEST(an_empty_map_has_nothing)
{
    struct map map = {0};
    size_t cursor = 0;

    CHECK(!map_get(&map, 1));
    CHECK(!map_take(&map, 1));
    CHECK(!map_next(&map, &cursor));
    map_fini(&map);
}

/* Against a plain array, with keys as addresses are: multiples of 512. */
TEST(behaves_like_an_array)
{
    static char values[8];
    struct map map = {0};
    void *model[KEYS] = {0};
    size_t live = 0;

    srand(1);
    for (int i = 0; i < 200000; i++) {
        unsigned k = (unsigned)rand() % KEYS;
        uint64_t key = UINT64_C(0x7f0000000000) + 512 * (uint64_t)k;
        if (rand() % 2) {
            void *value = &values[rand() % 8];
            CHECK(map_put(&map, key, value) == model[k]);
            live += !model[k];
            model[k] = value;
        } else {
            CHECK(map_take(&map, key) == model[k]);
            live -= model[k] != NULL;
            model[k] = NULL;
        }
        k = (unsigned)rand() % KEYS;
        CHECK(map_get(&map, UINT64_C(0x7f0000000000) + 512 * (uint64_t)k) ==
              model[k]);
        CHECK_UINT(map.count, live);
    }
    map_fini(&map);
}

TEST(visits_every_value_once)
{
    struct map map = {0};
    static char values[300];
    char seen[300] = {0};
    size_t cursor = 0, count = 0;

    for (uint64_t i = 0; i < 300; i++)
        map_put(&map, i, &values[i]);
    for (char *value; (value = map_next(&map, &cursor)); count++)
        seen[value - values]++;
    CHECK_UINT(count, 300);
    CHECK(!memchr(seen, 0, sizeof seen));
    map_fini(&map);
}
