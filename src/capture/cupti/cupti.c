/* SPDX-License-Identifier: Apache-2.0
 * CUPTI: its version, its results' names, and who subscribes to callbacks. */
#include <stddef.h>

#include <cupti.h>

/* CUPTI knows one subscriber a process; what it points to is nobody's. */
static struct CUpti_Subscriber_st *subscriber_now;
static char subscriber_only;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                           CUpti_CallbackFunc callback, void *data)
{
    struct CUpti_Subscriber_st *none = NULL;

    (void)callback; /* nothing happens that it would be told of */
    (void)data;
    if (!subscriber)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!__atomic_compare_exchange_n(
            &subscriber_now, &none,
            (struct CUpti_Subscriber_st *)&subscriber_only, 0, __ATOMIC_SEQ_CST,
            __ATOMIC_SEQ_CST))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *subscriber = (struct CUpti_Subscriber_st *)&subscriber_only;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    if ((void *)subscriber != &subscriber_only)
        return CUPTI_ERROR_INVALID_PARAMETER;
    __atomic_store_n(&subscriber_now, NULL, __ATOMIC_SEQ_CST);
    return CUPTI_SUCCESS;
}

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
