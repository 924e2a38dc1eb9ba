/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_expected.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"

void expected_differ(struct expected *e, const char *format, ...)
{
    struct replay_plan *plan = e->plan;
    va_list args;

    if (!plan->exact)
        return;
    plan->exact = false;
    int n = snprintf(plan->difference, sizeof plan->difference,
                     "event %" PRIu64 ": ", e->index);
    va_start(args, format);
    vsnprintf(plan->difference + n, sizeof plan->difference - (size_t)n, format,
              args);
    va_end(args);
}

struct replay_op *expected_head(struct expected *e)
{
    while (e->first < e->count && e->ops[e->first].kind != REPLAY_SEGMENT)
        e->first++;
    return e->first < e->count ? &e->ops[e->first] : NULL;
}

static void expected_pop(struct expected *e)
{
    e->first++;
    e->progress = 0;
}

void expected_reset(struct expected *e)
{
    e->first = e->count = 0;
    e->progress = 0;
}

static uint64_t device_malloc(void *context, uint64_t bytes)
{
    struct expected *e = context;
    struct replay_op *head = expected_head(e);

    if (!head || head->action != ALLOC_SEGMENT_ALLOC)
        return 0; /* what comes next shows that the device refused */
    if (head->bytes != bytes)
        expected_differ(e,
                        "a segment of %" PRIu64 " bytes, recorded are %" PRIu64,
                        bytes, head->bytes);
    uint64_t address = head->address;
    expected_pop(e);
    return address;
}

static void device_free(void *context, uint64_t address, uint64_t bytes)
{
    struct expected *e = context;
    struct replay_op *head = expected_head(e);

    (void)bytes;
    if (head && head->action == ALLOC_SEGMENT_FREE && head->address == address)
        expected_pop(e);
    else
        expected_differ(e,
                        "the segment at %#" PRIx64
                        " is given back, which is not "
                        "recorded here",
                        address);
}

/* The first page of a new expandable segment is its first address. */
static uint64_t device_reserve(void *context, uint64_t bytes)
{
    struct expected *e = context;
    struct replay_op *head = expected_head(e);

    (void)bytes;
    if (!head || head->action != ALLOC_SEGMENT_MAP)
        return 0;
    return head->address;
}

static void device_unreserve(void *context, uint64_t address, uint64_t bytes)
{
    (void)context;
    (void)address;
    (void)bytes;
}

/* Is ADDRESS what comes next of a recorded map or unmap? */
static bool chunk_matches(struct expected *e, enum alloc_action action,
                          uint64_t address, uint64_t bytes)
{
    struct replay_op *head = expected_head(e);

    if (!head || head->action != action)
        return false;
    if (head->address + e->progress != address)
        expected_differ(e, "a page at %#" PRIx64 ", recorded is %#" PRIx64,
                        address, head->address + e->progress);
    e->progress += bytes;
    if (e->progress >= head->bytes)
        expected_pop(e);
    return true;
}

static bool device_map(void *context, uint64_t address, uint64_t bytes)
{
    return chunk_matches(context, ALLOC_SEGMENT_MAP, address, bytes);
}

static void device_unmap(void *context, uint64_t address, uint64_t bytes)
{
    struct expected *e = context;

    if (!chunk_matches(e, ALLOC_SEGMENT_UNMAP, address, bytes))
        expected_differ(e,
                        "the page at %#" PRIx64 " is given back, which is not "
                        "recorded here",
                        address);
}

static uint64_t device_free_bytes(void *context)
{
    (void)context;
    return 0;
}

struct alloc_driver expected_driver(struct expected *e)
{
    return (struct alloc_driver){
        .context = e,
        .malloc = device_malloc,
        .free = device_free,
        .reserve = device_reserve,
        .unreserve = device_unreserve,
        .map = device_map,
        .unmap = device_unmap,
        .free_bytes = device_free_bytes,
    };
}

void expected_add(struct expected *e, const struct replay_op *op)
{
    xgrow(&e->ops, e->count, &e->capacity, sizeof *e->ops);
    e->ops[e->count++] = *op;
}

bool expected_any(const struct expected *e,
                  bool (*is)(const struct replay_op *))
{
    for (size_t i = e->first; i < e->count; i++)
        if (is(&e->ops[i]))
            return true;
    return false;
}

void expected_fini(struct expected *e)
{
    free(e->ops);
}
