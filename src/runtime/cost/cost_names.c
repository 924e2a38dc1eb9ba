/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost.h"

static const char *const bases[COST_BASES] = {
    [COST_MEASURED] = "measured", [COST_FITTED] = "fitted",
    [COST_BORROWED] = "borrowed", [COST_ESTIMATED] = "estimated",
    [COST_ROOFLINE] = "roofline", [COST_FALLBACK] = "fallback",
};

const char *cost_basis_name(enum cost_basis basis)
{
    return (unsigned)basis < COST_BASES ? bases[basis] : "unknown";
}
