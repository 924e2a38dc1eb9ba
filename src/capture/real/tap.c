/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/tap.h"

#include <cuda.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/memory/device.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/work/kernel.h"
#include "capture/core/work/submit.h"
#include "capture/real/captures.h"
#include "capture/real/card.h"
#include "common/trace/session.h"

#define LOOK_EACH    1024 /* launches; and at 1, 2, 4, ... of them: kernels are
                             loaded as they are used */
#define COPY_DEFAULT 4    /* cudaMemcpyDefault */
#define UNKNOWN_NAME "a kernel whose name the driver does not tell"

int tap_begin(const struct real_call *call, uint64_t stream)
{
    int device = card_current();

    if (device < 0)
        return device;
    if (captures_on)
        captures_meet(device, stream);
    real_tell(call);
    return device;
}

/* --- kernels -------------------------------------------------------------- */

/* The name of the driver's FUNCTION, which may be a kernel of a library. */
static const char *driver_name(const void *function)
{
    const char *name = NULL;
    CUresult (*of_function)(const char **, CUfunction) =
        (CUresult(*)(const char **, CUfunction))real_look_up("cuFuncGetName");
    CUresult (*of_kernel)(const char **, CUkernel) =
        (CUresult(*)(const char **, CUkernel))real_look_up("cuKernelGetName");

    if (of_function && !of_function(&name, (CUfunction)function) && name)
        return name;
    if (of_kernel && !of_kernel(&name, (CUkernel)function) && name)
        return name;
    return UNKNOWN_NAME;
}

static struct kernel *kernel_meet(const void *function)
{
    const char *name = driver_name(function);
    char *kept = memsim_pages_keep(strlen(name) + 1);

    if (!kept)
        return NULL;
    memsim_kernel_register(function, strcpy(kept, name), NULL);
    return memsim_kernel_get(function);
}

void tap_kernel_of(const void *kernel, const void *host)
{
    const struct kernel *known = memsim_kernel_get(host);

    if (known)
        memsim_kernel_register(kernel, record_name(known->name), NULL);
}

/* Counts a launch; after an out-of-memory error the program goes on. */
static void launch_count(int device)
{
    static _Atomic uint64_t launches;
    uint64_t number = atomic_fetch_add(&launches, 1) + 1;
    struct session_usage *usage = device_usage(device);

    if (usage)
        atomic_fetch_add_explicit(&usage->launches, 1, memory_order_relaxed);
    process_goes_on();
    if (number % LOOK_EACH == 0 || !(number & (number - 1)))
        card_look(device);
}

void tap_synchronized(const struct real_call *call)
{
    int device = card_current();

    TAP(call, SYNC_DEVICE);
    if (device >= 0)
        card_look(device);
}

void tap_end(int device, uint64_t stream)
{
    captures_count(stream);
    launch_count(device);
}

static struct kernel *kernel_find(const void *function)
{
    struct kernel *known = memsim_kernel_get(function);

    return known ? known : kernel_meet(function);
}

uint32_t tap_name(const void *function)
{
    const struct kernel *kernel = kernel_find(function);

    return kernel ? kernel->name : 0;
}

void tap_launch(const struct real_call *call, const void *function,
                 const struct kernel_launch *launch)
{
    uint64_t words[TRACE_LAUNCH_WORDS] = {0};
    const struct kernel *kernel = kernel_find(function);
    int device = kernel ? tap_begin(call, launch->stream) : -1;
    if (device < 0)
        return;
    enum trace_rule rule = kernel->rule && launch->arguments
                               ? kernel_rule_apply(kernel, launch, words)
                               : TRACE_RULE_NONE;
    submit_launch(kernel->name, device, launch, rule, words);
    tap_end(device, launch->stream);
}

void tap_product(const struct real_call *call, uint32_t name,
                 const struct gemm *g)
{
    int device = g->m && g->n && g->batch ? tap_begin(call, g->stream) : -1;

    if (device < 0)
        return;
    gemm_record(name, g, device);
    tap_end(device, g->stream);
}

/* --- copies, sets --------------------------------------------------------- */

static bool is_device(uint64_t address)
{
    unsigned type = 0;

    return !REAL_FUNCTION(cuPointerGetAttribute)(
               &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) &&
           type == CU_MEMORYTYPE_DEVICE;
}

static int direction_find(uint64_t destination, uint64_t source)
{
    bool from = is_device(source);

    if (is_device(destination))
        return from ? TRACE_DEVICE_TO_DEVICE : TRACE_HOST_TO_DEVICE;
    return from ? TRACE_DEVICE_TO_HOST : TRACE_HOST_TO_HOST;
}

static bool is_pinned(uint64_t destination, uint64_t source, int direction)
{
    struct host_range range;

    if (direction == TRACE_HOST_TO_DEVICE)
        return memsim_host_find(source, &range);
    return direction == TRACE_DEVICE_TO_HOST &&
           memsim_host_find(destination, &range);
}

void tap_copy(const struct real_call *call, uint64_t destination,
               uint64_t source, uint64_t bytes, int direction, uint64_t stream,
               bool blocking)
{
    int device = bytes ? tap_begin(call, stream) : -1;

    if (device < 0)
        return;
    if (direction == COPY_DEFAULT)
        direction = direction_find(destination, source);
    RECORD(COPY, .device = (uint64_t)device, .stream = stream,
           .direction = (uint64_t)direction, .destination = destination,
           .source = source, .bytes = bytes, .blocking = blocking,
           .peer = (uint64_t)device,
           .pinned = is_pinned(destination, source, direction));
}

void tap_set(const struct real_call *call, uint64_t address, uint64_t value,
              uint64_t bytes, uint64_t stream, bool blocking)
{
    if (bytes)
        TAP_ON(call, stream, SET, .address = address, .value = value,
                .bytes = bytes, .blocking = blocking);
}

/* --- the host's memory ---------------------------------------------------- */

void tap_host(const void *p, uint64_t bytes, enum host_kind kind,
               uint32_t flags)
{
    int device = card_current();

    if (device >= 0 && p && bytes)
        host_real_give((uint64_t)p, bytes, kind, flags, device);
}
