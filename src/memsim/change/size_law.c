/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_law.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POWERS     4
#define POWER_MOST 3 /* of a square product of matrices */
#define VALUE_MOST 1e18
#define NUMBER_MAX (UINT64_C(1) << 62)
#define EVEN_MOST  3 /* multiples of 8: 16 bytes of 2-byte elements */
#define DIGITS_MAX 18

typedef unsigned __int128 wide;

bool size_is_between(const struct size_points *p)
{
    return (p->wanted > p->first) != (p->wanted > p->second);
}

bool size_second_is_nearer(const struct size_points *p)
{
    return fabs(log((double)p->wanted / (double)p->second)) <
           fabs(log((double)p->wanted / (double)p->first));
}

/* VALUE * TO^POWER / FROM^POWER. False: it is no whole number, or too large. */
static bool scale_value(uint64_t value, uint64_t from, uint64_t to,
                        unsigned power, uint64_t *scaled)
{
    wide all = value;

    for (unsigned i = 0; i < power; i++) {
        all *= to;
        if (all % from)
            return false;
        all /= from;
        if (all > NUMBER_MAX)
            return false;
    }
    *scaled = (uint64_t)all;
    return true;
}

/* Is SECOND / FIRST the sizes' ratio to the POWER? */
static bool is_power(const struct size_points *p, uint64_t first,
                     uint64_t second, unsigned power)
{
    double ratio = pow((double)p->second / (double)p->first, power);
    wide a = second, b = first;

    if (fabs((double)second / (double)first / ratio - 1) > 1e-9)
        return false;
    for (unsigned i = 0; i < power; i++) {
        if (a > NUMBER_MAX || b > NUMBER_MAX)
            return true; /* the doubles agree */
        a *= p->first;
        b *= p->second;
    }
    return a == b;
}

static enum size_law on_line(const struct size_points *p, uint64_t first,
                             uint64_t second, uint64_t *wanted)
{
    __int128 rise = (__int128)second - first;
    __int128 run = (__int128)p->second - p->first;
    __int128 more = rise * ((__int128)p->wanted - p->first);

    /* what falls while the size rises is another difference of the two */
    if ((rise > 0) != (run > 0) || more % run || first + more / run < 0 ||
        first + more / run > (__int128)NUMBER_MAX)
        return SIZE_NONE;
    *wanted = (uint64_t)(first + more / run);
    return SIZE_LINE;
}

/* EACH times the chunks of the largest parameter? */
static bool is_chunks(const struct size_points *p, uint64_t each,
                      uint64_t first, uint64_t second, uint64_t *wanted)
{
    if (!p->tensors || first != each * p->chunks[0] ||
        second != each * p->chunks[1])
        return false;
    *wanted = each * p->chunks[2];
    return true;
}

enum size_law size_law_number(const struct size_points *p, uint64_t first,
                              uint64_t second, uint64_t *wanted)
{
    *wanted = first;
    if (first == second)
        return SIZE_SAME;
    if (is_chunks(p, p->tensors, first, second, wanted))
        return SIZE_POWER;
    if (first > NUMBER_MAX || second > NUMBER_MAX)
        return SIZE_NONE;
    for (unsigned power = 1; first && second && power <= POWERS; power++)
        if (is_power(p, first, second, power))
            return scale_value(first, p->first, p->wanted, power, wanted) ||
                           scale_value(second, p->second, p->wanted, power,
                                       wanted)
                       ? SIZE_POWER
                       : SIZE_NONE;
    if (is_chunks(p, 1, first, second, wanted))
        return SIZE_POWER;
    if (p->sums && size_sum_find(p->sums, first, second, wanted))
        return SIZE_SUM;
    return on_line(p, first, second, wanted);
}

static unsigned count_twos(uint64_t number)
{
    unsigned twos = number ? (unsigned)__builtin_ctzll(number) : EVEN_MOST;

    return twos < EVEN_MOST ? twos : EVEN_MOST;
}

enum size_law size_law_dimension(const struct size_points *p, uint64_t first,
                                 uint64_t second, uint64_t *wanted)
{
    enum size_law law = size_law_number(p, first, second, wanted);

    if (law != SIZE_NONE && count_twos(*wanted) < count_twos(first) &&
        count_twos(*wanted) < count_twos(second))
        return SIZE_UNEVEN;
    return law;
}

static uint64_t blocks_of(uint64_t elements, uint64_t each)
{
    return (elements + each - 1) / each;
}

enum size_law size_law_blocks(const uint64_t elements[3], uint64_t first,
                              uint64_t second, uint32_t threads,
                              uint64_t *wanted)
{
    *wanted = first;
    for (uint64_t each = threads; threads && each <= UINT64_C(1) << 20;
         each *= 2) {
        if (blocks_of(elements[0], each) != first ||
            blocks_of(elements[1], each) != second)
            continue;
        *wanted = blocks_of(elements[2], each);
        return *wanted == first ? SIZE_SAME : SIZE_POWER;
    }
    return first == second ? SIZE_SAME : SIZE_NONE;
}

uint64_t size_law_estimate(const struct size_points *p, uint64_t first,
                           uint64_t second)
{
    double power, sizes = log((double)p->second / (double)p->first);

    if (!first || !second)
        return first > second ? first : second;
    power = log((double)second / (double)first) / sizes;
    power = fmin(fmax(power, 0), POWER_MOST);
    /* from the recording that is nearer */
    bool near = size_second_is_nearer(p);
    double from = near ? (double)p->second : (double)p->first;
    double value =
        (double)(near ? second : first) * pow((double)p->wanted / from, power);
    return value < VALUE_MOST ? (uint64_t)llround(value) : (uint64_t)VALUE_MOST;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number at *AT, which moves behind it. False: it is too long. */
static bool number_read(const char *text, size_t bytes, size_t *at,
                        uint64_t *number)
{
    size_t begin = *at;

    *number = 0;
    for (; *at < bytes && is_digit(text[*at]); ++*at)
        if (*at - begin < DIGITS_MAX)
            *number = *number * 10 + (uint64_t)(text[*at] - '0');
    return *at - begin <= DIGITS_MAX;
}

/* Adds NUMBER to the text, of which LENGTH bytes are there. */
static size_t number_write(struct size_text *t, size_t length, uint64_t number)
{
    char digits[24];
    int count =
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);

    for (int i = 0; i < count; i++)
        if (length + (size_t)i < t->room)
            t->wanted[length + (size_t)i] = digits[i];
    return (size_t)count;
}

void size_law_weaken(enum size_law *weakest, uint64_t bad[2],
                     enum size_law law, uint64_t first, uint64_t second)
{
    if (law >= SIZE_UNEVEN && *weakest < SIZE_UNEVEN) {
        bad[0] = first;
        bad[1] = second;
    }
    if (law > *weakest)
        *weakest = law;
}

static uint64_t law_dimension(const struct size_points *p, struct size_text *t,
                              uint64_t first, uint64_t second)
{
    uint64_t wanted;
    enum size_law law = size_law_dimension(p, first, second, &wanted);

    size_law_weaken(&t->law, t->bad, law, first, second);
    return wanted;
}

size_t size_law_text(const struct size_points *p, struct size_text *t)
{
    size_t i = 0, j = 0, length = 0;

    t->law = SIZE_SAME;
    while (i < t->first_bytes && j < t->second_bytes) {
        uint64_t a, b;
        if (!is_digit(t->first[i]) || !is_digit(t->second[j])) {
            if (t->first[i] != t->second[j++])
                break;
            if (length < t->room)
                t->wanted[length] = t->first[i];
            length++;
            i++;
            continue;
        }
        if (!number_read(t->first, t->first_bytes, &i, &a) ||
            !number_read(t->second, t->second_bytes, &j, &b))
            break;
        length += number_write(t, length, law_dimension(p, t, a, b));
    }
    if (i == t->first_bytes && j == t->second_bytes)
        return length;
    t->law = SIZE_NONE;
    return 0;
}
