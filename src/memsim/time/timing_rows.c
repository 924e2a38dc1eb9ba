/* SPDX-License-Identifier: Apache-2.0
 * Sums by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "kernels/kernel_words.h"
#include "memsim/time/timing_internal.h"

void tally_add(struct tally *t, uint64_t key, double ns)
{
    uintptr_t place = (uintptr_t)map_get(&t->places, key + 1);

    if (!place) {
        xgrow(&t->rows, t->count, &t->capacity, sizeof *t->rows);
        t->rows[t->count++] = (struct tally_row){.key = key};
        place = t->count;
        map_put(&t->places, key + 1, (void *)place);
    }
    t->rows[place - 1].ns += ns;
    t->rows[place - 1].calls++;
}

double tally_get(const struct tally *t, uint64_t key)
{
    uintptr_t place = (uintptr_t)map_get(&t->places, key + 1);

    return place ? t->rows[place - 1].ns : 0;
}

void tally_fini(struct tally *t)
{
    map_fini(&t->places);
    free(t->rows);
}

uint64_t operator_key(const struct simulation_op *op)
{
    if (op->kind == OP_LAUNCH || op->kind == OP_LIBRARY_CALL ||
        op->kind == OP_COLLECTIVE)
        return op->name | (uint64_t)op->kind << 32;
    return (uint64_t)op->kind << 32 | (uint64_t)op->price.family << 40 |
           (uint64_t)op->price.engine << 48;
}

/* A profile has NCCL's kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). */
static void collective_name(const char *name, char *text, size_t size)
{
    static const char *const kernels[] = {"ncclDevKernel_", "ncclKernel_"};

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        size_t length = strlen(kernels[i]);
        if (!strncmp(name, kernels[i], length)) {
            name += length;
            snprintf(text, size, "nccl%.*s", (int)strcspn(name, "_("), name);
            return;
        }
    }
    snprintf(text, size, "%.*s", (int)strcspn(name, "("), name);
}

void operator_name(const struct simulation_op *op,
                   const struct trace_names *names, char *text, size_t size)
{
    static const char *const copies[SIM_ENGINES] = {
        [SIM_COMPUTE] = "copy on the device",
        [SIM_COPY_IN] = "copy to the device",
        [SIM_COPY_OUT] = "copy to the host",
        [SIM_COPY_PEER] = "copy between devices",
    };
    const char *name = trace_names_get(names, op->name);

    if (op->delay)
        snprintf(text, size, "delay");
    else if (op->kind == OP_LAUNCH)
        kernel_words(name, text, size);
    else if (op->kind == OP_COPY && copies[op->price.engine])
        snprintf(text, size, "%s", copies[op->price.engine]);
    else if (op->kind == OP_SET)
        snprintf(text, size, "memory set");
    else if (op->kind == OP_HOST_FUNCTION)
        snprintf(text, size, "%s",
                 op->price.answer.basis == COST_MEASURED ? TIMING_PAUSE
                                                         : "host function");
    else if (op->kind == OP_COLLECTIVE)
        collective_name(name, text, size);
    else if (op->kind == OP_LIBRARY_CALL)
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, "%s", work_family_name(op->price.family));
    for (char *c = text; *c && op->kind != OP_LAUNCH; c++)
        if (*c == '_')
            *c = ' ';
}

static int row_compare(const void *a, const void *b)
{
    const struct timing_row *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

size_t rows_finish(struct timing_row *rows, size_t count)
{
    qsort(rows, count, sizeof *rows, row_compare);
    while (count > TIMING_ROWS)
        free(rows[--count].name);
    return count;
}

void rows_free(struct timing_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(rows[i].name);
    free(rows);
}
