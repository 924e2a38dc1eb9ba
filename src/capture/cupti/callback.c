/* SPDX-License-Identifier: Apache-2.0
 * The callback interface: names, and who subscribes. Nobody is called: to
 * enable callbacks of the runtime's or the driver's calls is refused, so that
 * a profiler that needs them says so. Of resources (contexts, modules) Kineto
 * wants to hear when it starts, and can do without. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

/* CUPTI knows one subscriber a process; what it points to is nobody's. */
static struct CUpti_Subscriber_st *subscriber_now;
static char subscriber_only;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                           CUpti_CallbackFunc callback, void *data)
{
    struct CUpti_Subscriber_st *none = NULL;

    (void)callback;
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

static bool is_of_calls(CUpti_CallbackDomain domain)
{
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ||
           domain == CUPTI_CB_DOMAIN_DRIVER_API;
}

static CUptiResult enable(uint32_t on, CUpti_SubscriberHandle subscriber,
                          bool of_calls)
{
    if ((void *)subscriber != &subscriber_only)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return on && of_calls ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain,
                                CUpti_CallbackId id)
{
    (void)id;
    return enable(on, subscriber, is_of_calls(domain));
}

CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain)
{
    return enable(on, subscriber, is_of_calls(domain));
}

CUptiResult cuptiEnableAllDomains(uint32_t on,
                                  CUpti_SubscriberHandle subscriber)
{
    return enable(on, subscriber, true);
}

#define RUNTIME(name)                                                          \
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name, #name}
#define DRIVER(name)                                                           \
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name, #name}

/* Only the calls that are recorded (record.c) have a name here. */
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id,
                                 const char **name)
{
    static const struct {
        CUpti_CallbackDomain domain;
        uint32_t id;
        const char *name;
    } names[] = {
        RUNTIME(cudaLaunchKernel_v7000),
        RUNTIME(cudaLaunchKernelExC_v11060),
        RUNTIME(cudaLaunchCooperativeKernel_v9000),
        RUNTIME(cudaMemcpyAsync_v3020),
        RUNTIME(cudaMemsetAsync_v3020),
        RUNTIME(cudaLaunchHostFunc_v10000),
        RUNTIME(cudaGraphLaunch_v10000),
        RUNTIME(cudaEventRecord_v3020),
        RUNTIME(cudaStreamWaitEvent_v3020),
        RUNTIME(cudaStreamSynchronize_v3020),
        RUNTIME(cudaDeviceSynchronize_v3020),
        RUNTIME(cudaEventSynchronize_v3020),
        RUNTIME(cudaMalloc_v3020),
        RUNTIME(cudaFree_v3020),
        RUNTIME(cudaStreamCreateWithPriority_v5050),
        RUNTIME(cudaStreamDestroy_v5050),
        RUNTIME(cudaEventCreateWithFlags_v3020),
        RUNTIME(cudaEventDestroy_v3020),
        DRIVER(cuLaunchKernel),
        DRIVER(cuLaunchKernelEx),
    };

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (names[i].domain == domain && names[i].id == id) {
            *name = names[i].name;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
