/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_image.h"

#include <math.h>

double cost_segments_ns(const struct cost_segments *s, double bytes)
{
    double x = log(fmax(bytes, 1));

    if (x < s->k1)
        return exp(fmax(s->y1 + s->b1 * (x - s->k1), s->least));
    if (x > s->k2)
        return exp(s->y2 + (x - s->k2));
    return exp(s->y1 + (s->y2 - s->y1) * (x - s->k1) / (s->k2 - s->k1));
}

const char *cost_segments_check(const struct cost_segments *s, size_t size)
{
    if (size < sizeof *s)
        return "the segments are cut short";
    if (!isfinite(s->k1) || !isfinite(s->k2) || !isfinite(s->y1) ||
        !isfinite(s->y2) || !isfinite(s->b1) || !isfinite(s->least))
        return "the segments are not numbers";
    if (!(s->k1 < s->k2))
        return "the segments' breaks do not ascend";
    if (s->y2 < s->y1 || s->b1 < 0 || s->least > s->y1)
        return "the segments fall as bytes grow";
    return NULL;
}
