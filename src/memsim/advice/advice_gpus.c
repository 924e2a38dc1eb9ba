/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_gpus.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/result/gpu_need.h"

#define NAMES_SHOWN 6
#define SIZE_LENGTH 16

/* The device that uses most without a limit; NULL: not known of each. What a
 * replay finds is of one process, so GPUs that several share are not known. */
static const struct result_device *find_largest(const struct result *r)
{
    const struct result_device *largest = NULL;

    for (struct result_walk w = {NULL}; result_walk_next(r, &w);) {
        const struct result_device *d = w.device;
        if (!d->advised || d->advice_ends || !d->unlimited_bytes ||
            d->others_bytes)
            return NULL;
        if (!largest || d->unlimited_bytes > largest->unlimited_bytes)
            largest = d;
    }
    return largest;
}

/* "NAME, NAME and 3 larger ones", to be freed; NULL: none. */
static char *list_names(const struct gpu *list, size_t count,
                        const struct gpu_need *need)
{
    char *text = NULL;
    size_t fitting = 0;

    for (size_t i = 0; i < count; i++) {
        if (!gpu_need_is_met(need, &list[i]) || fitting++ >= NAMES_SHOWN)
            continue;
        char *more = xasprintf("%s%s%s", text ? text : "", text ? ", " : "",
                               list[i].name);
        free(text);
        text = more;
    }
    if (fitting <= NAMES_SHOWN)
        return text;
    char *all = xasprintf("%s and %zu more", text, fitting - NAMES_SHOWN);
    free(text);
    return all;
}

void advice_gpus(struct result *result)
{
    const struct result_device *d = find_largest(result);
    struct gpu *list;
    struct err err = {""};
    size_t count;
    char size[SIZE_LENGTH];

    if (!d)
        return;
    if (gpu_list_by_memory(&list, &count, &err)) {
        result_note(result, "the GPUs that it fits on are not known: %s",
                    err.text);
        return;
    }
    const struct gpu_need need = {d->unlimited_bytes, d->context_bytes,
                                  result->code};
    char *names = list_names(list, count, &need);
    units_format_bytes(d->unlimited_bytes, size, sizeof size);
    if (names)
        result_note(result, "without a limit it uses %s, and fits on %s", size,
                    names);
    else
        result_note(result,
                    "without a limit it uses %s: no GPU of the catalogue "
                    "has that much",
                    size);
    free(names);
    free(list);
}
