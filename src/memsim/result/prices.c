/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/prices.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_text.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"

#define GPUS_MAX 1e6 /* of a node */

static int take_price(struct prices *p, const char *path, const cJSON *item,
                      struct err *err)
{
    struct gpu gpu;

    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0) ||
        !isfinite(item->valuedouble))
        return err_set(err,
                       "%s: '%s' has no price: a number above 0, for an hour "
                       "of one GPU",
                       path, item->string);
    if (gpu_load(item->string, &gpu, err))
        return -1;
    p->list = xreallocarray(p->list, p->count + 1, sizeof *p->list);
    p->list[p->count++] =
        (struct gpu_price){xstrdup(gpu.name), item->valuedouble};
    return 0;
}

static int file_read(struct prices *p, const char *path, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);
    cJSON *root = text ? json_text_parse(text, length, path, err) : NULL;
    const cJSON *item;
    int rc = root ? 0 : -1;

    free(text);
    if (root && !cJSON_IsObject(root))
        rc = err_set(err,
                     "%s: is not an object with prices, as in "
                     "{\"h100-sxm-80gb\": 2.99}",
                     path);
    cJSON_ArrayForEach(item, root)
    {
        if (!rc)
            rc = take_price(p, path, item, err);
    }
    cJSON_Delete(root);
    return rc;
}

int prices_read(struct prices *prices, const char *text, struct err *err)
{
    char *end, *last;
    double hour = strtod(text, &end), gpus = 1;

    *prices = (struct prices){0};
    if (end == text || (*end && *end != '/'))
        return file_read(prices, text, err);
    if (*end == '/') {
        gpus = strtod(end + 1, &last);
        if (last == end + 1 || *last || !(gpus >= 1) || gpus > GPUS_MAX ||
            floor(gpus) != gpus)
            return err_set(err,
                           "--price: '%s': after the / stands how many GPUs "
                           "the node has, as in 98.5/8",
                           text);
    }
    if (!(hour > 0) || !isfinite(hour))
        return err_set(err,
                       "--price: '%s' is no price: a finite number above 0, "
                       "for an hour of one GPU",
                       text);
    prices->all = hour / gpus;
    return 0;
}

void prices_fini(struct prices *prices)
{
    for (size_t i = 0; i < prices->count; i++)
        free(prices->list[i].gpu);
    free(prices->list);
}

double prices_of(const struct prices *prices, const char *gpu)
{
    for (size_t i = 0; i < prices->count; i++)
        if (!strcmp(prices->list[i].gpu, gpu))
            return prices->list[i].hour;
    return prices->all;
}

double gpu_hours_of(double tokens, double per_second, uint64_t gpus)
{
    return per_second > 0 ? tokens / per_second / 3600 * (double)gpus : 0;
}
