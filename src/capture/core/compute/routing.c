/* SPDX-License-Identifier: Apache-2.0
 *
 * MEMSIM_ROUTING, from memsim run, says how likely each expert is:
 *
 *     zipf:S         the expert of rank r is as likely as 1 / r^S
 *     power:A        its likelihood is a random number of density x^-A between
 *                    1 and 0.8 of the rows
 *     shares:P,P,... these
 *
 * Ranks and random numbers follow from MEMSIM_SEED and the module that is at
 * work, and a row's choice from them and the row. So a module that is called
 * again for its gradients (checkpointing) chooses as before, and all ranks
 * choose alike.
 *
 * The rows' numbers are no independent ones, but multiples of an irrational
 * number, which fill 0 to 1 evenly: each expert gets its share of any number of
 * rows, but for a few. Chance would add its square root, and the peaks of steps
 * with other numbers of tokens would lie on no line. */
#include "capture/core/compute/routing.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/compute/compute_math.h"
#include "capture/core/torch/tag.h"
#include "common/base/random.h"
#include "common/base/text_begins.h"

#define TRIES 64 /* to find an expert that the row has not yet */

/* Of the square roots of primes, what is behind the point: no one is a fraction
 * of others. */
static const double steps[] = {
    0.41421356237309505, 0.73205080756887729, 0.23606797749978970,
    0.64575131106459059, 0.31662479035539985, 0.60555127546398929,
    0.12310562561766055, 0.35889894354067355, 0.79583152331271955,
    0.38516480713450403, 0.56776436283002192, 0.08276253029821969,
    0.40312423743284869, 0.55743852430200065, 0.85565460040104412,
    0.28010988928051827,
};
#define STEPS (sizeof steps / sizeof *steps)

static const char *routing_text(void)
{
    const char *text = getenv("MEMSIM_ROUTING");

    return text && *text && strcmp(text, "even") ? text : NULL;
}

static uint64_t seed_of(void)
{
    const char *text = getenv("MEMSIM_SEED");

    return text ? strtoull(text, NULL, 10) : 0;
}

/* A number from 0 to 1, but neither, of SEED and what it is for. */
static double draw_uniform(uint64_t seed, uint64_t what, uint64_t place)
{
    uint64_t bits = random_at(random_at(seed, what), place) >> 11;

    return ((double)bits + 0.5) / (double)(UINT64_C(1) << 53);
}

/* Each expert's rank, in *RANK: a permutation. */
static void ranks_draw(const struct routing *r, uint32_t *rank)
{
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t j = (uint32_t)(draw_uniform(r->seed, r->site, i) * (i + 1));
        rank[i] = rank[j];
        rank[j] = i;
    }
}

static double power_of(double base, double exponent)
{
    return (double)math_power(base, exponent, 0);
}

static void weigh_zipf(struct routing *r, double exponent)
{
    uint32_t rank[ROUTING_EXPERTS];

    ranks_draw(r, rank);
    for (uint32_t i = 0; i < r->count; i++)
        r->cumulative[i] = power_of(rank[i] + 1, -exponent);
}

/* By the inverse of the density's integral. */
static void weigh_power(struct routing *r, double exponent, uint64_t rows)
{
    double most = rows > 2 ? 0.8 * (double)rows : 2, e = 1 - exponent;
    bool harmonic = e < 1e-9 && e > -1e-9;

    for (uint32_t i = 0; i < r->count; i++) {
        double u = draw_uniform(r->seed, r->site, i);
        r->cumulative[i] =
            harmonic ? power_of(most, u)
                     : power_of(1 + u * (power_of(most, e) - 1), 1 / e);
    }
}

static bool weigh_shares(struct routing *r, const char *text)
{
    for (uint32_t i = 0; i < r->count; i++) {
        char *end;

        r->cumulative[i] = strtod(text, &end);
        if (end == text)
            return false;
        text = end + (*end == ',');
    }
    return !*text;
}

static bool weigh_experts(struct routing *r, const char *text, uint64_t rows)
{
    const char *colon = strchr(text, ':');

    if (!colon)
        return false;
    if (text_begins(text, "shares:"))
        return weigh_shares(r, colon + 1);
    if (text_begins(text, "zipf:"))
        weigh_zipf(r, strtod(colon + 1, NULL));
    else
        weigh_power(r, strtod(colon + 1, NULL), rows);
    return true;
}

bool routing_begin(struct routing *r, uint64_t count, uint64_t k, uint64_t rows,
                   const char **why)
{
    const char *text = routing_text();
    struct tag tag;

    *why = NULL;
    if (!text || count > ROUTING_EXPERTS || k >= count)
        return false;
    tag_now(&tag);
    r->seed = seed_of();
    r->site = tag.module;
    r->count = (uint32_t)count;
    if (!weigh_experts(r, text, rows)) {
        *why = "--routing's file has shares of another number of experts than "
               "a topk chooses among: all are taken to be chosen equally often";
        return false;
    }
    for (uint32_t i = 1; i < r->count; i++)
        r->cumulative[i] += r->cumulative[i - 1];
    return r->cumulative[count - 1] > 0;
}

/* ROW's number from 0 to below 1 in draw DRAW of its choice. */
static double even_at(const struct routing *r, uint64_t row, uint64_t draw)
{
    double step =
        draw < STEPS ? steps[draw] : draw_uniform(r->seed, r->site, ~draw);
    double x = draw_uniform(r->seed, ~r->site, draw) + (double)row * step;

    return x - (double)(uint64_t)x;
}

/* The expert that X of 0 to 1 is. */
static uint32_t expert_at(const struct routing *r, double x)
{
    uint32_t low = 0, high = r->count - 1;

    x *= r->cumulative[r->count - 1];
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (r->cumulative[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_chosen(const uint32_t *chosen, uint64_t count, uint32_t expert)
{
    for (uint64_t i = 0; i < count; i++)
        if (chosen[i] == expert)
            return true;
    return false;
}

/* Draws again what the row has already; where that takes too long, the next
 * expert that it has not. */
void routing_choose(const struct routing *r, uint64_t row, uint64_t k,
                    uint32_t *chosen)
{
    for (uint64_t i = 0; i < k; i++) {
        uint32_t expert = 0;
        for (uint64_t try = 0; try < TRIES; try++) {
            expert = expert_at(r, even_at(r, row, try * k + i));
            if (!is_chosen(chosen, i, expert))
                break;
        }
        while (is_chosen(chosen, i, expert))
            expert = (expert + 1) % r->count;
        chosen[i] = expert;
    }
}
