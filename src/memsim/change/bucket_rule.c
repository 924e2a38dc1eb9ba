/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/bucket_rule.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define MIB           (UINT64_C(1) << 20)
#define DEFAULT_FIRST MIB        /* _DEFAULT_FIRST_BUCKET_BYTES */
#define DEFAULT_CAP   (25 * MIB) /* bucket_cap_mb */

size_t bucket_cut(const struct bucket_rule *rule,
                  const struct bucket_gradients *g, size_t *ends)
{
    uint64_t bytes = 0;
    size_t count = 0;

    for (size_t i = 0; i < g->count; i++) {
        bytes += g->sizes[i] * g->each;
        if (bytes < (count ? rule->others : rule->first) && i + 1 < g->count)
            continue;
        ends[count++] = i + 1;
        bytes = 0;
    }
    return count;
}

static bool rule_makes(const struct bucket_rule *rule,
                       const struct bucket_gradients *g, const size_t *ends,
                       size_t count)
{
    size_t *made = xcalloc(g->count + 1, sizeof *made);
    bool same = bucket_cut(rule, g, made) == count &&
                !memcmp(made, ends, count * sizeof *ends);

    free(made);
    return same;
}

bool bucket_rule_find(struct bucket_rule *rule,
                      const struct bucket_gradients *g, const size_t *ends,
                      size_t count)
{
    uint64_t above = 0, most = UINT64_MAX; /* the cap is in (ABOVE, MOST] */
    size_t at = 0;

    *rule = (struct bucket_rule){DEFAULT_FIRST, DEFAULT_CAP};
    if (rule_makes(rule, g, ends, count))
        return true;
    for (size_t b = 0; b < count; b++) {
        uint64_t bytes = 0;
        for (; at < ends[b]; at++)
            bytes += g->sizes[at] * g->each;
        uint64_t less = bytes - g->sizes[at - 1] * g->each;
        above = less > above ? less : above;
        if (b + 1 < count && bytes < most)
            most = bytes;
    }
    uint64_t cap = (above / MIB + 1) * MIB;
    *rule = (struct bucket_rule){cap, cap};
    return cap <= most && most - cap < MIB && rule_makes(rule, g, ends, count);
}
