/* SPDX-License-Identifier: Apache-2.0
 * What device memory holds, against a model that keeps two bytes for each. */
#include "capture/core/base/pages.c"
#include "capture/core/memory/values.c"
#include "capture/core/memory/values_cell.c"
#include "capture/core/memory/values_fill.c"
#include "capture/core/memory/values_pattern.c"
#include "check.h"

#define BASE  (UINT64_C(1) << 45)
#define BYTES (4 * VALUES_GRANULE)
#define HOT   (UINT64_C(24) << 10) /* where most happens, about a granule's end \
                                    */

static unsigned char memory[BYTES + 16], known[BYTES];

static const struct values_window *placed(void)
{
    values_place(0, BASE, BYTES);
    return values_window(BASE);
}

static uint64_t next(uint64_t below)
{
    static uint64_t state = 1;

    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (state >> 33) % below;
}

/* A range: a few bytes, some of PyTorch's blocks, or much. */
static uint64_t range(uint64_t *bytes)
{
    static const uint64_t most[] = {16, 4096, 20 << 10, 3 << 20};
    uint64_t kind = next(200), at;

    *bytes = 1 + next(most[kind ? kind % 3 : 3]);
    at = kind ? VALUES_GRANULE - HOT / 2 + next(HOT) : next(BYTES - *bytes);
    if (kind & 1) {
        at &= ~UINT64_C(511);
        *bytes = (*bytes + 511) & ~UINT64_C(511);
    }
    return at;
}

static void write_some(uint64_t at, uint64_t bytes)
{
    bool is_known = next(2);
    char *to = values_write(BASE + at, bytes, is_known);

    for (uint64_t i = 0; i < bytes; i++)
        to[i] = (char)(memory[at + i] = (unsigned char)next(256));
    memset(known + at, is_known, bytes);
}

static void give(uint64_t at, uint64_t bytes)
{
    static unsigned char data[4 << 20];

    for (uint64_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)next(256);
    memsim_values_copy(BASE + at, (uint64_t)data, bytes);
    bool is_small = bytes <= VALUES_COPY_BYTES;
    if (is_small)
        memcpy(memory + at, data, bytes);
    else
        memset(memory + at, 0, bytes);
    memset(known + at, is_small ? VALUES_GIVEN : 0, bytes);
}

/* Of any size; of few values where large, as patterns have numbers. */
static void fill(uint64_t at, uint64_t bytes)
{
    bool is_small = bytes <= VALUES_WRITE_BYTES;
    uint32_t value = (uint32_t)next(is_small ? UINT32_MAX : 3) * 0x01020304u;
    uint64_t count = bytes / sizeof value;
    unsigned char mark = next(3) ? 1 : VALUES_ASSUMED;

    values_fill_as(BASE + at, &value, sizeof value, count, mark);
    for (uint64_t i = 0; i < count; i++)
        memcpy(memory + at + i * sizeof value, &value, sizeof value);
    memset(known + at, mark, count * sizeof value);
}

/* Whether the model has UNIT bytes that are repeated, and known. */
static bool repeats(uint64_t at, uint64_t bytes, uint64_t unit)
{
    return bytes >= unit && !memchr(known + at, 0, bytes) &&
           !memcmp(memory + at, memory + at + unit, bytes - unit);
}

static void copy(uint64_t at, uint64_t bytes)
{
    uint64_t from = next(BYTES - bytes);

    if (next(2))
        from = at + bytes < VALUES_GRANULE ? VALUES_GRANULE : 0;
    if (from < at + bytes && at < from + bytes)
        return;
    bool is_large = bytes > VALUES_WRITE_BYTES;
    bool is_same = is_large && repeats(from, bytes, (bytes | 16) & -(bytes | 16));
    memsim_values_copy(BASE + at, BASE + from, bytes);
    if (bytes <= VALUES_COPY_BYTES || is_same) {
        memcpy(memory + at, memory + from, bytes);
        memcpy(known + at, known + from, bytes);
        if (is_same)
            memset(known + at,
                   memchr(known + from, VALUES_ASSUMED, bytes) ? VALUES_ASSUMED
                                                               : 1,
                   bytes);
    } else {
        memset(memory + at, 0, bytes);
        memset(known + at, 0, bytes);
    }
}

/* Memory is known to be the same all over where it is. */
static void same(uint64_t at, uint64_t bytes)
{
    uint64_t unit = UINT64_C(1) << next(5);
    unsigned char value[PATTERN_BYTES];

    at &= ~(unit - 1);
    bytes &= ~(unit - 1);
    unsigned char mark = values_constant(BASE + at, bytes, unit, value);
    if (!bytes || CHECK(!mark == !repeats(at, bytes, unit)) || !mark)
        return;
    CHECK(!memcmp(value, memory + at, unit));
    CHECK((mark == VALUES_ASSUMED) ==
          (memchr(known + at, VALUES_ASSUMED, bytes) != NULL));
}

static void forget(uint64_t at, uint64_t bytes)
{
    memsim_values_forget(BASE + at, bytes);
    memset(memory + at, 0, bytes);
    memset(known + at, 0, bytes);
}

static void compare(uint64_t at, uint64_t bytes)
{
    static unsigned char read[VALUES_COPY_BYTES];
    const struct values_window *w = values_window(BASE + at);

    bytes = bytes < sizeof read ? bytes : sizeof read;
    memsim_values_copy((uint64_t)read, BASE + at, bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        if (read[i] == memory[at + i] &&
            values_known_at(w, at + i) == known[at + i] &&
            *values_at(w, at + i, 1) == (char)read[i])
            continue;
        CHECK(!"a byte is not what was written");
        return;
    }
    CHECK(values_known(BASE + at, bytes) == !memchr(known + at, 0, bytes));
}

TEST(model)
{
    void (*const acts[])(uint64_t, uint64_t) = {
        write_some, give, fill, copy, forget, compare, same};

    placed();
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes, at = range(&bytes);

        acts[next(7)](at, bytes);
    }
    for (uint64_t at = 0; at < BYTES; at += VALUES_COPY_BYTES)
        compare(at, VALUES_COPY_BYTES);
}

/* A sort's passes copy to and fro: nothing becomes mixed that was not. */
TEST(copies_stay_whole)
{
    const struct values_window *w = placed();
    uint64_t a = BASE + 512, b = BASE + VALUES_GRANULE + 1024, bytes = 65536;
    uint64_t word = 7;

    memsim_values_fill(a, &word, sizeof word, bytes / sizeof word);
    for (int i = 0; i < 4; i++) {
        memsim_values_copy(b, a, bytes);
        memsim_values_copy(a, b, bytes);
    }
    for (uint64_t i = 0; i < bytes / CELL; i++)
        CHECK(w->cells[(b - BASE) / CELL + i] == CELL_KNOWN);
}

/* What was forgotten is not looked for again, granule by granule. */
TEST(granules_are_let_go)
{
    const struct values_window *w = placed();
    uint64_t at = VALUES_GRANULE / 2, one = 1;

    memsim_values_fill(BASE + at, &one, sizeof one, 1);
    CHECK(w->granules[0] == 1);
    memsim_values_forget(BASE + at, VALUES_GRANULE);
    CHECK(w->granules[0] == 0 && w->granules[1] == 0);
    memsim_values_fill(BASE, &one, sizeof one, 1);
    memsim_values_fill(BASE + at, &one, sizeof one, 1);
    memsim_values_forget(BASE + at, VALUES_GRANULE);
    CHECK(w->granules[0] == 1);
    CHECK(values_known(BASE, sizeof one));
}

/* A large fill takes a byte for each granule, and no bytes for its own. */
TEST(large_fills_take_no_memory)
{
    const struct values_window *w = placed();
    uint64_t address = BASE + 512, bytes = BYTES - 1024, value;
    float one = 1;

    memsim_values_fill(address, &one, sizeof one, bytes / sizeof one);
    CHECK(w->granules[1] > GRANULE_BUSY && w->granules[1] == w->granules[2]);
    CHECK(values_constant(address, bytes, sizeof one, &value) == 1);
    CHECK(!memcmp(&value, &one, sizeof one));
    CHECK(!values_constant(address - 4, bytes, sizeof one, &value));
    /* One byte that is written has a cell of its own. */
    *values_write(BASE + VALUES_GRANULE + 5, 1, true) = 7;
    CHECK(!values_constant(address, bytes, sizeof one, &value));
    CHECK(w->granules[1] == GRANULE_OPEN && is_pattern(w->granules[2]));
    CHECK(values_constant(BASE + VALUES_GRANULE + 512, 4096, 4, &value) == 1);
    memsim_values_forget(address, bytes);
    CHECK(!w->granules[1] && !w->granules[2]);
    CHECK(!values_known(BASE + VALUES_GRANULE, 4));
}

/* More fills than there are patterns: what has none is not known. */
TEST(patterns_run_out)
{
    uint64_t known_fills = 0;

    placed();
    for (uint64_t i = 0; i < 1000; i++) {
        memsim_values_fill(BASE, &i, sizeof i, VALUES_GRANULE / sizeof i);
        known_fills += values_known(BASE, VALUES_GRANULE);
    }
    CHECK(known_fills > 100 && known_fills <= PATTERNS);
}
