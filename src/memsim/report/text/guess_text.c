/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/guess_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/report/text/text_columns.h"

#define SHOWN 8

struct place {
    struct result_guess sum; /* its module is the first's */
    size_t modules;
};

/* The line of the script that asked, and what it asked by. */
static bool is_same(const struct result_guess *a, const struct result_guess *b)
{
    return !strcmp(a->operation, b->operation) && !strcmp(a->where, b->where) &&
           !strcmp(a->what, b->what);
}

static void places_add(struct place *places, size_t *count,
                       const struct result_guess *g)
{
    size_t i = 0;

    while (i < *count && !is_same(&places[i].sum, g))
        i++;
    if (i == *count) {
        places[(*count)++] = (struct place){*g, 1};
        return;
    }
    places[i].sum.times += g->times;
    places[i].sum.elements += g->elements;
    places[i].sum.chosen += g->chosen;
    places[i].modules += strcmp(places[i].sum.module, g->module) != 0;
}

static int by_times(const void *one, const void *other)
{
    const struct place *a = one, *b = other;

    if (a->sum.times != b->sum.times)
        return a->sum.times < b->sum.times ? 1 : -1;
    int order = strcmp(a->sum.where, b->sum.where);
    return order ? order : strcmp(a->sum.operation, b->sum.operation);
}

/* "aten::topk in layers.0" */
static void asker_text(const struct place *p, char *text, size_t size)
{
    const struct result_guess *g = &p->sum;

    if (p->modules > 1)
        snprintf(text, size, "%s in %zu modules", g->operation, p->modules);
    else
        snprintf(text, size, "%s%s%s", g->operation, g->module[0] ? " in " : "",
                 g->module);
}

/* "train.py:31 reads 3 numbers that memsim does not compute ..." */
static void place_write(const struct place *p, FILE *out)
{
    const struct result_guess *g = &p->sum;
    char asker[2 * SESSION_NAME_BYTES + 8], times[40] = "";
    char text[6 * SESSION_NAME_BYTES];

    asker_text(p, asker, sizeof asker);
    if (g->times > 1)
        snprintf(times, sizeof times, ", in %" PRIu64 " calls", g->times);
    int n = snprintf(text, sizeof text, "%s%s%s%s ",
                     g->where[0] ? g->where : asker, g->where[0] ? " (" : "",
                     g->where[0] ? asker : "", g->where[0] ? ")" : "");
    size_t length = n > 0 ? (size_t)n : 0;
    if (g->is_read)
        n = snprintf(text + length, sizeof text - length,
                     "reads %" PRIu64 " integer%s or flag%s that memsim does "
                     "not compute%s, and gets 0",
                     g->chosen, g->chosen == 1 ? "" : "s",
                     g->chosen == 1 ? "" : "s", times);
    else
        n = snprintf(text + length, sizeof text - length,
                     "is taken to choose %" PRIu64 " of %" PRIu64
                     " elements%s",
                     g->chosen, g->elements, times);
    if (g->where[0] && n > 0)
        snprintf(text + length + n, sizeof text - length - (size_t)n,
                 "; --assume %s=X sets %s", g->where,
                 g->is_read ? "another value" : "another share");
    text_write_wrapped(out, "  guess:", text);
}

void guess_text_write(const struct result *r, FILE *out)
{
    struct place *places = xcalloc(r->guess_count + 1, sizeof *places);
    size_t count = 0;

    for (size_t i = 0; i < r->guess_count; i++)
        places_add(places, &count, &r->guesses[i]);
    qsort(places, count, sizeof *places, by_times);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        place_write(&places[i], out);
    if (count > SHOWN || r->guesses_dropped)
        fprintf(out, "  guess: %zu more places, see --json\n",
                (count > SHOWN ? count - SHOWN : 0) + r->guesses_dropped);
    free(places);
}
