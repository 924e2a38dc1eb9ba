/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/size_prices.h"

#include <stdlib.h>

#include "fits/cost_fit.h"
#include "memsim/study/study_time.h"
#include "playback/price.h"

int size_prices_open(struct size_prices *s, const char *path, struct err *err)
{
    struct err unknown = {""};

    if (study_gpu(path, &s->gpu, &unknown))
        return 0;
    s->image = cost_fit_load(&s->gpu, NULL, err);
    return s->image ? 0 : -1;
}

static void pricer_drop(struct size_prices *s)
{
    if (s->pricer)
        pricer_destroy(s->pricer);
    s->pricer = NULL;
}

void size_prices_close(struct size_prices *s)
{
    pricer_drop(s);
    free(s->image);
    s->image = NULL;
}

/* Another recording has other numbers of names. */
static struct pricer *pricer_of(struct size_prices *s,
                                const struct trace_names *names)
{
    const struct price_options options = {.gpu = &s->gpu, .image = s->image};

    if (s->pricer && s->names != names)
        pricer_drop(s);
    if (!s->pricer)
        s->pricer = pricer_create(&options);
    s->names = names;
    return s->pricer;
}

uint64_t size_prices_find(void *context, const struct op *op,
                          const struct trace_names *names)
{
    struct size_prices *s = context;
    struct price price;

    pricer_price(pricer_of(s, names), op, names, NULL, &price);
    bool guessed = price.answer.basis == COST_FALLBACK &&
                   op->kind != OP_COLLECTIVE; /* its bytes are known */
    return guessed ? 0 : price.answer.ns;
}
