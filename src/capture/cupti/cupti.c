/* SPDX-License-Identifier: Apache-2.0
 * As much of CUPTI as a profiler needs to start, to find no activity, and to
 * stop: Kineto (libkineto/src/CuptiActivityApi.cpp, CuptiCallbackApi.cpp), and
 * through it torch.profiler. Enabling, flushing and subscribing do nothing, so
 * their stubs in api/cupti.api serve; here is what answers in host memory. */
#include <stddef.h>
#include "capture/core/run/clock.h"

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

/* There is no activity whose times it would have to match. */
CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = memsim_clock_unix();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context,
                                              uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

/* The stack of ids is not kept, as nothing is recorded that would carry one;
 * who wants the id back is told so. Kineto passes NULL. */
CUptiResult
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                      uint64_t *last)
{
    (void)kind;
    return last ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
}

/* Only the results that we return have a name here. */
CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    static const struct {
        CUptiResult result;
        const char *text;
    } names[] = {
        {CUPTI_SUCCESS, "CUPTI_SUCCESS"},
        {CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
        {CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
        {CUPTI_ERROR_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED"},
        {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
         "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
    };

    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (names[i].result == result) {
            *text = names[i].text;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
