/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/workspace_range.h"

#include <stdio.h>
#include <string.h>

#include "common/trace/size_range.h"

/* By capability times ten, as records have it; data/workspaces/cudnn.csv names
 * the measurements. */
static const struct {
    unsigned capability;
    const char *name;
} sources[] = {
    {70, "measured on a V100 in 2021"},
    {90, "measured on an H100 or H200"},
    {0, "assumed by analogy"}, /* last */
};
#define SOURCES (sizeof sources / sizeof *sources)

static void raise_to(uint64_t *value, uint64_t to)
{
    if (*value < to)
        *value = to;
}

/* What came last is not a workspace: it is there on a real GPU, too. */
static void last_settle(struct workspace_range *r)
{
    if (r->last_bytes) {
        raise_to(&r->least_bytes, r->now_bytes - r->under_bytes);
        raise_to(&r->most_bytes, r->now_bytes + r->over_bytes);
    }
    r->last_bytes = 0;
}

void workspace_range_hold(struct workspace_range *r,
                          const struct size_range *size, uint64_t *under_bytes,
                          uint64_t *over_bytes)
{
    *under_bytes = size->bytes - size->least_bytes;
    *over_bytes = size->most_bytes - size->bytes;
    r->under_bytes += *under_bytes;
    r->over_bytes += *over_bytes;
    r->gpus |= UINT64_C(1) << (SOURCES - 1);
}

void workspace_range_give_back(struct workspace_range *r, uint64_t under_bytes,
                               uint64_t over_bytes)
{
    r->under_bytes -= under_bytes;
    r->over_bytes -= over_bytes;
}

void workspace_range_alloc(struct workspace_range *r,
                           const struct trace_block_alloc *alloc)
{
    last_settle(r);
    r->last_bytes = alloc->block_bytes;
    r->now_bytes = alloc->allocated_bytes;
}

void workspace_range_free(struct workspace_range *r,
                          const struct trace_block_free *freed)
{
    last_settle(r);
    r->now_bytes = freed->allocated_bytes;
}

void workspace_range_convolution(struct workspace_range *r,
                                 const struct trace_convolution *c)
{
    if (c->workspace_most <= c->workspace_bytes) {
        last_settle(r);
        return;
    }
    bool lent = c->workspace_bytes && r->last_bytes >= c->workspace_bytes;
    uint64_t without = r->now_bytes - (lent ? r->last_bytes : 0);
    if (lent)
        r->last_bytes = 0;
    last_settle(r);
    raise_to(&r->least_bytes, without - r->under_bytes);
    raise_to(&r->most_bytes, without + r->over_bytes + c->workspace_most);
    for (unsigned i = 0; i < SOURCES; i++)
        if (sources[i].capability == c->workspace_gpu)
            r->gpus |= UINT64_C(1) << i;
}

void workspace_range_end(struct workspace_range *r)
{
    last_settle(r);
}

bool workspace_range_matters(const struct workspace_range *r)
{
    return r->most_bytes - r->least_bytes > r->most_bytes / 100;
}

const char *workspace_range_source(const struct workspace_range *r, char *text,
                                   uint64_t size)
{
    int used = 0;

    *text = '\0';
    for (unsigned i = 0; i < SOURCES; i++)
        if (r->gpus >> i & 1 && (uint64_t)used < size)
            used += snprintf(text + used, size - (uint64_t)used, "%s%s",
                             used ? " or " : "", sources[i].name);
    return text;
}
