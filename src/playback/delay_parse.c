/* SPDX-License-Identifier: Apache-2.0
 * The table language of --delay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "playback/delay.h"

#define NS_MOST     3600e9 /* an hour */
#define FACTOR_MOST 1e6
#define STEP_MOST   1000000000

/* A piece of the option's text. */
struct piece {
    const char *text;
    size_t length;
};

static bool is_word(const struct piece *p, const char *word)
{
    return p->length == strlen(word) && !memcmp(p->text, word, p->length);
}

/* What is before the first EQUALS of P, and what is behind; NULL text: no
 * EQUALS. */
static struct piece split_piece(const struct piece *p, struct piece *value)
{
    const char *equals = memchr(p->text, '=', p->length);
    size_t name = equals ? (size_t)(equals - p->text) : p->length;

    *value = equals ? (struct piece){equals + 1, p->length - name - 1}
                    : (struct piece){NULL, 0};
    return (struct piece){p->text, name};
}

/* A number from 0 to MOST at the start of P; *REST is what follows. */
static bool number_read(const struct piece *p, double most, double *number,
                        struct piece *rest)
{
    char text[32], *end;

    if (!p->length || p->length >= sizeof text ||
        !strchr("0123456789.", p->text[0]))
        return false;
    memcpy(text, p->text, p->length);
    text[p->length] = '\0';
    *number = strtod(text, &end);
    size_t used = (size_t)(end - text);
    *rest = (struct piece){p->text + used, p->length - used};
    return used && *number >= 0 && *number <= most;
}

static bool count_read(const struct piece *p, uint32_t most, uint32_t *count)
{
    struct piece rest;
    double number;

    if (!number_read(p, most, &number, &rest) || rest.length ||
        memchr(p->text, '.', p->length) || memchr(p->text, 'e', p->length))
        return false;
    *count = (uint32_t)number;
    return true;
}

static int entry_refuse(const struct piece *at, const char *wanted,
                        struct err *err)
{
    return err_set(err, "--delay: '%.*s' is not %s", (int)at->length, at->text,
                   wanted);
}

/* "2ms" or "1.5x" */
static bool amount_read(const struct piece *p, struct delay *d)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    struct piece rest;
    double number;

    if (!number_read(p, NS_MOST, &number, &rest))
        return false;
    if (is_word(&rest, "x") && number >= 1 && number <= FACTOR_MOST) {
        d->factor = number;
        return d->kind != DELAY_HOST;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (is_word(&rest, units[i].unit) && number * units[i].ns <= NS_MOST) {
            d->ns = (uint64_t)(number * units[i].ns + 0.5);
            return true;
        }
    return false;
}

static int what_read(const struct piece *at, struct delay *d, struct err *err)
{
    struct piece value;
    const struct piece name = split_piece(at, &value);
    const struct {
        const char *word;
        enum delay_kind kind;
    } words[] = {{"link", DELAY_LINK},
                 {"gpu", DELAY_GPU},
                 {"host", DELAY_HOST},
                 {"die", DELAY_DEATH}};

    if (!value.text || !name.length || name.length >= sizeof d->name)
        return entry_refuse(at,
                            "of the form WHAT=AMOUNT, as ncclAllReduce=2ms, "
                            "link=2x, gpu=1.3x, host=5ms or die=STEP",
                            err);
    snprintf(d->name, sizeof d->name, "%.*s", (int)name.length, name.text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(&name, words[i].word))
            d->kind = words[i].kind;
    if (d->kind == DELAY_DEATH)
        return count_read(&value, STEP_MOST, &d->from_step)
                   ? 0
                   : entry_refuse(at, "of the form die=STEP, a number from 0",
                                  err);
    if (amount_read(&value, d))
        return 0;
    return entry_refuse(at,
                        d->kind == DELAY_HOST
                            ? "of the form host=5ms: a time, at most an hour, "
                              "in ns, us, ms or s"
                            : "an amount that is known: a time such as 2ms "
                              "(ns, us, ms or s, at most an hour), or 1.5x, "
                              "at least 1x",
                        err);
}

/* "20%" */
static bool jitter_read(const struct piece *p, struct delay *d)
{
    struct piece rest;
    double percent;

    if (!number_read(p, 100, &percent, &rest) || !is_word(&rest, "%"))
        return false;
    d->jitter = percent / 100;
    return true;
}

/* A condition; what NAME has in place of VALUE is said in *WANTED. */
static bool condition_read(const struct piece *name, const struct piece *value,
                           struct delay *d, const char **wanted)
{
    uint32_t seed;
    const struct {
        const char *word;
        uint32_t *count;
        uint32_t least;
    } counts[] = {{"rank", &d->rank, 0},
                  {"node", &d->node, 0},
                  {"every", &d->every, 1},
                  {"from-step", &d->from_step, 0},
                  {"to-step", &d->to_step, 0},
                  {"seed", &seed, 0}};

    *wanted = "of the form jitter=20%, at most 100%";
    if (is_word(name, "jitter"))
        return jitter_read(value, d);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!is_word(name, counts[i].word))
            continue;
        *wanted = "a whole number, from 0 (every: from 1) to 1000000000";
        if (!count_read(value, STEP_MOST, counts[i].count) ||
            *counts[i].count < counts[i].least)
            return false;
        d->seed = is_word(name, "seed") ? seed : d->seed;
        return true;
    }
    *wanted = "a condition that is known: rank=R, node=N, every=N, jitter=P%, "
              "seed=S, from-step=K and to-step=K are";
    return false;
}

static int entry_check(const struct piece *at, const struct delay *d,
                       struct err *err)
{
    if (d->to_step < d->from_step)
        return entry_refuse(at, "a range of steps: to-step is before from-step",
                            err);
    if (d->kind == DELAY_DEATH && (d->rank == DELAY_ANY || d->every != 1 ||
                                   d->jitter > 0 || d->node != DELAY_ANY))
        return entry_refuse(at, "of the form die=STEP,rank=R", err);
    return 0;
}

static int entry_read(const struct piece *entry, struct delay *d,
                      struct err *err)
{
    const char *wanted, *at = entry->text, *end = at + entry->length;

    *d = (struct delay){.rank = DELAY_ANY,
                        .node = DELAY_ANY,
                        .every = 1,
                        .to_step = DELAY_NEVER};
    for (bool first = true; at; first = false) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct piece value, p = {at, (size_t)((comma ? comma : end) - at)};
        const struct piece name = split_piece(&p, &value);
        at = comma ? comma + 1 : NULL;
        if (first && what_read(&p, d, err))
            return -1;
        if (!first && (!value.text ||
                       !condition_read(&name, &value, d, &wanted)))
            return entry_refuse(&p,
                                value.text ? wanted
                                           : "a condition NAME=VALUE, as "
                                             "rank=3",
                                err);
    }
    return entry_check(entry, d, err);
}

int delays_parse(const char *text, struct delays *d, struct err *err)
{
    const char *end;

    if (!strcmp(text, "none"))
        return 0;
    for (const char *at = text; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ';');
        const struct piece entry = {at, (size_t)(end - at)};
        if (!entry.length && (at > text || *end)) /* a semicolon too many */
            continue;
        if (d->count == DELAYS_MAX)
            return err_set(err, "--delay: more than %d entries", DELAYS_MAX);
        if (entry_read(&entry, &d->all[d->count], err))
            return -1;
        d->count++;
    }
    return 0;
}

char *delay_text(const struct delay *d, char *out, size_t size)
{
    if (d->kind == DELAY_DEATH)
        snprintf(out, size, "die=%u,rank=%u", d->from_step, d->rank);
    else if (d->factor > 0)
        snprintf(out, size, "%s=%gx", d->name, d->factor);
    else if (d->ns % 1000000)
        snprintf(out, size, "%s=%gus", d->name, (double)d->ns / 1e3);
    else
        snprintf(out, size, "%s=%gms", d->name, (double)d->ns / 1e6);
    return out;
}
