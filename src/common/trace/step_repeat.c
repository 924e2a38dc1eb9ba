/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/step_repeat.h"

#include "common/base/hash.h"
#include "common/base/xmalloc.h"
#include "common/trace/step.h"

#define MOST_CALLS   4096     /* of one repetition */
#define MOST_LOOKS   50000000 /* at marks, for a program that repeats nothing */
#define WARM_UP_PART 4        /* at most this part of the calls comes before */

void step_repeat_begin(struct step_repeat *r, uint64_t module)
{
    xgrow(&r->marks, r->count, &r->capacity, sizeof *r->marks);
    r->marks[r->count++] = hash_word(hash_word(1, module), r->copies);
    r->copies = 0;
}

static bool feeds_card(const struct trace_item *item)
{
    return item->head.kind == TRACE_COPY &&
           trace_as_copy(item)->direction == TRACE_HOST_TO_DEVICE;
}

void step_repeat_take(struct step_repeat *r, const struct trace_item *item,
                      bool inside)
{
    unsigned kind = item->head.kind;

    if (!inside)
        r->copies += feeds_card(item);
    else if (r->count && step_is_work(kind))
        r->marks[r->count - 1] = hash_word(r->marks[r->count - 1], kind);
}

/* The first of the calls from which on each is as the one LENGTH before it,
 * counted from the end; r->count - LENGTH: none is. Adds to *LOOKS. */
static size_t repeats_from(const struct step_repeat *r, size_t length,
                           size_t *looks)
{
    size_t i = r->count - length;

    while (i > 0 && r->marks[i - 1] == r->marks[i - 1 + length]) {
        i--;
        ++*looks;
    }
    return i;
}

size_t step_repeat_find(const struct step_repeat *r, size_t *first)
{
    size_t looks = 0, shorter = 0, shorter_from = SIZE_MAX;

    *first = 0;
    for (size_t length = 1; length <= r->count / 2 && length <= MOST_CALLS &&
                            looks < MOST_LOOKS;
         length++) {
        size_t from = repeats_from(r, length, &looks);
        size_t most = r->count / WARM_UP_PART;

        if (from < shorter_from) {
            shorter = length;
            shorter_from = from;
        }
        if (r->count - from < 2 * length ||
            from > (most > length ? most : length))
            continue;
        length = shorter_from <= from ? shorter : length;
        *first = r->count % length;
        return length;
    }
    return 1;
}

void step_repeat_fini(struct step_repeat *r)
{
    xfree(r->marks);
    *r = (struct step_repeat){.marks = NULL};
}
