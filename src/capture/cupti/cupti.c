/* SPDX-License-Identifier: Apache-2.0
 * CUPTI: its version and its results' names. */
#include <stddef.h>

#include <cupti.h>

CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

#define NAMED(result) {CUPTI_ERROR_##result, "CUPTI_ERROR_" #result}

/* Only the results that we return have a name here. */
CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    static const struct {
        CUptiResult result;
        const char *text;
    } names[] = {
        {CUPTI_SUCCESS, "CUPTI_SUCCESS"},
        NAMED(INVALID_PARAMETER),
        NAMED(INVALID_OPERATION),
        NAMED(INVALID_KIND),
        NAMED(MAX_LIMIT_REACHED),
        NAMED(NOT_SUPPORTED),
        NAMED(PARAMETER_SIZE_NOT_SUFFICIENT),
        NAMED(QUEUE_EMPTY),
        NAMED(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
    };

    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (names[i].result == result) {
            *text = names[i].text;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
