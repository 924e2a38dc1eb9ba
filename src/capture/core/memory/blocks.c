/* SPDX-License-Identifier: Apache-2.0
 * Two bits for each 512 bytes, PyTorch's unit: a block begins here, a block
 * ends here. Another bit for each word of those says that the word is not zero,
 * so that a search passes 2 MiB at a time. */
#include "capture/core/memory/blocks.h"

#include "capture/core/base/pages.h"
#include "common/trace/session.h"

#define UNIT  UINT64_C(512)
#define WORD  UINT64_C(64) /* bits */

struct marks {
    uint64_t *words, *some; /* NULL: no room */
};

static struct blocks_window {
    uint64_t base, bytes;
    struct marks begins, ends;
} windows[SESSION_DEVICES + 1];
static int window_count; /* one more than the highest one placed */

static uint64_t word_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void mark_unit(struct marks *m, uint64_t unit, bool set)
{
    uint64_t word = unit / WORD, bit = UINT64_C(1) << unit % WORD;
    uint64_t some = UINT64_C(1) << word % WORD;
    uint64_t now = set ? word_load(&m->words[word]) | bit
                       : word_load(&m->words[word]) & ~bit;

    __atomic_store_n(&m->words[word], now, __ATOMIC_RELAXED);
    now = now ? word_load(&m->some[word / WORD]) | some
              : word_load(&m->some[word / WORD]) & ~some;
    __atomic_store_n(&m->some[word / WORD], now, __ATOMIC_RELAXED);
}

/* The last bit that is set at or before *AT, a bit of BITS; false: none is. */
static bool last_in(uint64_t bits, uint64_t *at)
{
    bits &= ~UINT64_C(0) >> (WORD - 1 - *at);
    if (bits)
        *at = WORD - 1 - (uint64_t)__builtin_clzll(bits);
    return bits;
}

/* The first one at or behind it. */
static bool first_in(uint64_t bits, uint64_t *at)
{
    bits &= ~UINT64_C(0) << *at;
    if (bits)
        *at = (uint64_t)__builtin_ctzll(bits);
    return bits;
}

/* The same of WORDS, whose bits have numbers; COUNT: how many words. */
static bool last_before(const uint64_t *words, uint64_t *at)
{
    uint64_t word = *at / WORD, in_word = *at % WORD;

    while (!last_in(word_load(&words[word]), &in_word)) {
        if (!word--)
            return false;
        in_word = WORD - 1;
    }
    *at = word * WORD + in_word;
    return true;
}

static bool first_behind(const uint64_t *words, uint64_t count, uint64_t *at)
{
    uint64_t word = *at / WORD, in_word = *at % WORD;

    while (!first_in(word_load(&words[word]), &in_word)) {
        if (++word == count)
            return false;
        in_word = 0;
    }
    *at = word * WORD + in_word;
    return true;
}

/* Likewise of marks: in the unit's own word, then in the nearest that has any.
 */
static bool mark_before(const struct marks *m, uint64_t *unit)
{
    uint64_t word = *unit / WORD, in_word = *unit % WORD;

    if (!last_in(word_load(&m->words[word]), &in_word)) {
        if (!word-- || !last_before(m->some, &word))
            return false;
        in_word = WORD - 1;
        if (!last_in(word_load(&m->words[word]), &in_word))
            return false; /* it has been taken back meanwhile */
    }
    *unit = word * WORD + in_word;
    return true;
}

static bool mark_behind(const struct marks *m, uint64_t words, uint64_t *unit)
{
    uint64_t word = *unit / WORD, in_word = *unit % WORD;

    if (!first_in(word_load(&m->words[word]), &in_word)) {
        if (++word == words || !first_behind(m->some, words / WORD, &word))
            return false;
        in_word = 0;
        if (!first_in(word_load(&m->words[word]), &in_word))
            return false;
    }
    *unit = word * WORD + in_word;
    return true;
}

void blocks_place(int window, uint64_t base, uint64_t bytes)
{
    struct blocks_window *w = &windows[window];
    uint64_t words = bytes / UNIT / WORD;

    w->base = base;
    for (struct marks *m = &w->begins; m <= &w->ends; m++) {
        m->words = memsim_pages_reserve(0, 8 * words);
        m->some = memsim_pages_reserve(0, 8 * (words / WORD + 1));
        if (!m->words || !m->some)
            return;
    }
    w->bytes = words / WORD * WORD * WORD * UNIT; /* whole words of `some' */
    if (window >= window_count)
        window_count = window + 1;
}

static struct blocks_window *window_of(uint64_t address)
{
    for (int i = 0; i < window_count; i++)
        if (address - windows[i].base < windows[i].bytes)
            return &windows[i];
    return NULL;
}

static void block_mark(uint64_t address, uint64_t bytes, bool set)
{
    struct blocks_window *w = window_of(address);

    if (!w || !bytes || address - w->base > w->bytes - bytes)
        return;
    mark_unit(&w->begins, (address - w->base) / UNIT, set);
    mark_unit(&w->ends, (address - w->base + bytes - 1) / UNIT, set);
}

void blocks_add(uint64_t address, uint64_t bytes)
{
    block_mark(address, bytes, true);
}

void blocks_remove(uint64_t address, uint64_t bytes)
{
    block_mark(address, bytes, false);
}

bool blocks_find(uint64_t address, struct block *block)
{
    const struct blocks_window *w = window_of(address);

    if (!w)
        return false;
    uint64_t unit = (address - w->base) / UNIT, begin = unit;
    if (!mark_before(&w->begins, &begin))
        return false;
    uint64_t end = begin;
    if (!mark_behind(&w->ends, w->bytes / UNIT / WORD, &end) || end < unit)
        return false;
    *block = (struct block){w->base + begin * UNIT, (end - begin + 1) * UNIT};
    return true;
}
