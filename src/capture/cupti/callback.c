/* SPDX-License-Identifier: Apache-2.0
 * The callback interface: names, and who subscribes. Of the calls into the
 * runtime and the driver the subscriber hears of those that are recorded
 * (record.c): when a call is done, of its begin and of its end. A launch of a
 * graph is a call of the runtime, and in it one of the driver. Resources
 * (contexts, modules, graphs' nodes) can be enabled, and nobody hears of them.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

#include "capture/core/run/process.h"
#include "capture/core/work/graph.h"
#include "capture/cupti/record.h"

#define IDS   2048 /* of a domain's calls; CUDA 13 has 810 at most */
#define WORDS (IDS / 64)

/* CUPTI knows one subscriber a process; what it points to is nobody's. */
static struct CUpti_Subscriber_st *subscriber_now;
static char subscriber_only;
static CUpti_CallbackFunc subscriber_function;
static void *subscriber_data;

/* --- which calls ---------------------------------------------------------- */

static _Atomic uint64_t wanted[CUPTI_CB_DOMAIN_SIZE][WORDS];

/* A domain's set; NULL: nobody is ever told of it. */
static _Atomic uint64_t *wanted_of(CUpti_CallbackDomain domain)
{
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ||
                   domain == CUPTI_CB_DOMAIN_DRIVER_API
               ? wanted[domain]
               : NULL;
}

static bool is_wanted(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return atomic_load_explicit(&wanted[domain][id / 64],
                                memory_order_relaxed) >>
               id % 64 &
           1;
}

static void want_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          bool on)
{
    _Atomic uint64_t *words = wanted_of(domain);
    uint64_t bit = UINT64_C(1) << id % 64;

    if (words && id < IDS && on)
        atomic_fetch_or(&words[id / 64], bit);
    else if (words && id < IDS)
        atomic_fetch_and(&words[id / 64], ~bit);
}

static void want_all(CUpti_CallbackDomain domain, bool on)
{
    _Atomic uint64_t *words = wanted_of(domain);

    for (size_t i = 0; words && i < WORDS; i++)
        atomic_store(&words[i], on ? UINT64_MAX : 0);
}

static bool wants_any(void)
{
    for (size_t domain = 0; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        for (size_t i = 0; i < WORDS; i++)
            if (atomic_load(&wanted[domain][i]))
                return true;
    return false;
}

/* --- telling -------------------------------------------------------------- */

/* One of the two sites of a call. What it returned is always success: a call
 * that failed has no record. */
static void call_site(const struct activity *call, CUpti_CallbackDomain domain,
                      CUpti_CallbackId id, CUpti_ApiCallbackSite where,
                      const void *parameters)
{
    static _Thread_local uint64_t own; /* the subscriber's, for both sites */
    uint64_t success = 0;
    const char *name = NULL;

    if (!is_wanted(domain, id))
        return;
    cuptiGetCallbackName(domain, id, &name);
    subscriber_function(
        subscriber_data, domain, id,
        &(CUpti_CallbackData){
            .callbackSite = where,
            .functionName = name,
            .functionParams = parameters,
            .functionReturnValue = where == CUPTI_API_EXIT ? &success : NULL,
            .contextUid = call->device + 1,
            .correlationData = &own,
            .correlationId = (uint32_t)call->call,
        });
}

static void tell_launch(const struct activity *call,
                        CUpti_ApiCallbackSite where)
{
    const cuGraphLaunch_params driver = {(CUgraphExec)call->graph,
                                         (CUstream)call->stream};

    call_site(call, CUPTI_CB_DOMAIN_DRIVER_API,
              CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, where, &driver);
}

static void call_tell(const struct activity *call)
{
    const cudaGraphLaunch_v10000_params graph = {(cudaGraphExec_t)call->graph,
                                                 (cudaStream_t)call->stream};
    bool is_graph = call->kind == OP_GRAPH_LAUNCH;
    const void *parameters = is_graph ? &graph : NULL;
    CUpti_CallbackDomain domain = record_is_driver(call)
                                      ? CUPTI_CB_DOMAIN_DRIVER_API
                                      : CUPTI_CB_DOMAIN_RUNTIME_API;
    CUpti_CallbackId id = record_callback_id(call);

    call_site(call, domain, id, CUPTI_API_ENTER, parameters);
    if (is_graph) {
        tell_launch(call, CUPTI_API_ENTER);
        tell_launch(call, CUPTI_API_EXIT);
    }
    call_site(call, domain, id, CUPTI_API_EXIT, parameters);
}

static void note_without_clock(void)
{
    if (memsim_session() && !memsim_session()->simulated_clock)
        memsim_note("CUPTI calls nobody back with --real-clock: profilers that "
                    "subscribe to calls, as Triton's, have no data");
}

/* --- who subscribes ------------------------------------------------------- */

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                           CUpti_CallbackFunc callback, void *data)
{
    struct CUpti_Subscriber_st *none = NULL;

    if (!subscriber)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!__atomic_compare_exchange_n(
            &subscriber_now, &none,
            (struct CUpti_Subscriber_st *)&subscriber_only, 0, __ATOMIC_SEQ_CST,
            __ATOMIC_SEQ_CST))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber_function = callback;
    subscriber_data = data;
    *subscriber = (struct CUpti_Subscriber_st *)&subscriber_only;
    return CUPTI_SUCCESS;
}

/* From now on the subscriber gets calls if any are wanted, else none. */
static void hear_calls(void)
{
    bool wants = wants_any() && subscriber_function;

    memsim_activity_hear(wants ? call_tell : NULL);
    if (wants)
        note_without_clock();
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    if ((void *)subscriber != &subscriber_only)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (unsigned domain = 0; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        want_all((CUpti_CallbackDomain)domain, false);
    hear_calls();
    __atomic_store_n(&subscriber_now, NULL, __ATOMIC_SEQ_CST);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain,
                                CUpti_CallbackId id)
{
    if ((void *)subscriber != &subscriber_only)
        return CUPTI_ERROR_INVALID_PARAMETER;
    want_callback(domain, id, on);
    if (wanted_of(domain))
        hear_calls();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain)
{
    if ((void *)subscriber != &subscriber_only)
        return CUPTI_ERROR_INVALID_PARAMETER;
    want_all(domain, on);
    if (wanted_of(domain))
        hear_calls();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t on,
                                  CUpti_SubscriberHandle subscriber)
{
    CUptiResult rc = CUPTI_SUCCESS;

    for (unsigned domain = 0; !rc && domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        rc = cuptiEnableDomain(on, subscriber, (CUpti_CallbackDomain)domain);
    return rc;
}

/* --- names and numbers ---------------------------------------------------- */

/* A graph and what was made of it have the number that the records of its
 * kernels bear. */
CUptiResult cuptiGetGraphExecId(CUgraphExec handle, uint32_t *id)
{
    const struct graph_exec *exec = memsim_graph_exec_get((uint64_t)handle);

    if (!exec || !id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *id = (uint32_t)exec->body->id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphId(CUgraph handle, uint32_t *id)
{
    const struct graph_body *body = memsim_graph_get((uint64_t)handle);

    if (!body || !id)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *id = (uint32_t)body->id;
    return CUPTI_SUCCESS;
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
        DRIVER(cuGraphLaunch),
    };

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (names[i].domain == domain && names[i].id == id) {
            *name = names[i].name;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
