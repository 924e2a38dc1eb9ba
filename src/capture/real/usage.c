/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/usage.h"

#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"
#include "capture/real/real.h"
#include "common/trace/session.h"

#define LIBRARY   "libnvidia-ml.so.1"
#define PROCESSES 256 /* of a GPU; with more it is not known */
#define LOOK_NS   UINT64_C(100000000)
#define BUS_BYTES 32
/* What makes a GPU slower than it could be: power, heat, and what slows it down
 * for either. */
#define SLOWED                                                                 \
    (nvmlClocksThrottleReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown | \
     nvmlClocksThrottleReasonSwThermalSlowdown |                               \
     nvmlClocksThrottleReasonHwThermalSlowdown |                               \
     nvmlClocksThrottleReasonHwPowerBrakeSlowdown)

#define FUNCTIONS(X)                                                           \
    X(nvmlDeviceGetHandleByPciBusId_v2)                                        \
    X(nvmlDeviceGetComputeRunningProcesses_v3)                                 \
    X(nvmlDeviceGetClockInfo)                                                  \
    X(nvmlDeviceGetCurrentClocksThrottleReasons)

static struct {
    nvmlReturn_t (*init)(void);
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} nvml;

static struct seen {
    nvmlDevice_t device; /* NULL: not known */
    bool tried;
    _Atomic uint64_t last_ns;
    _Atomic uint32_t looks, slowed, least_mhz, most_mhz;
} seen[SESSION_DEVICES];

/* --- the library ---------------------------------------------------------- */

static bool is_open;

static void open_once(void)
{
    void *library = REAL(dlopen)(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

    if (!library)
        return;
    nvml.init = (nvmlReturn_t(*)(void))dlsym(library, "nvmlInit_v2");
#define X(name) nvml.name = (__typeof__(&name))dlsym(library, #name);
    FUNCTIONS(X)
#undef X
    is_open = nvml.init && nvml.nvmlDeviceGetHandleByPciBusId_v2 &&
              !nvml.init();
}

static bool nvml_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_once);
    return is_open;
}

/* NVML's handle of DEVICE, whose number may be another one there. */
static nvmlDevice_t handle_of(int device)
{
    struct seen *s = &seen[device];
    char bus[BUS_BYTES];

    if (s->tried || !nvml_open())
        return s->device;
    s->tried = true;
    if (REAL_FUNCTION(cuDeviceGetPCIBusId)(bus, sizeof bus, device) ||
        nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &s->device))
        s->device = NULL;
    return s->device;
}

/* --- memory --------------------------------------------------------------- */

bool usage_own_bytes(int device, uint64_t *bytes)
{
    static _Thread_local nvmlProcessInfo_t all[PROCESSES];
    nvmlDevice_t handle = handle_of(device);
    unsigned count = PROCESSES;

    if (!handle || !nvml.nvmlDeviceGetComputeRunningProcesses_v3 ||
        nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, all))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (all[i].pid == (unsigned)getpid()) {
            *bytes = all[i].usedGpuMemory;
            return *bytes != (uint64_t)NVML_VALUE_NOT_AVAILABLE;
        }
    return false;
}

/* --- clocks --------------------------------------------------------------- */

static void look_at_usage(struct seen *s)
{
    unsigned long long reasons = 0;
    unsigned mhz = 0;

    if (!nvml.nvmlDeviceGetClockInfo ||
        nvml.nvmlDeviceGetClockInfo(s->device, NVML_CLOCK_SM, &mhz))
        return;
    if (nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons(s->device, &reasons);
    atomic_fetch_add(&s->slowed, (reasons & SLOWED) != 0);
    if (!atomic_fetch_add(&s->looks, 1) || mhz < s->least_mhz)
        s->least_mhz = mhz;
    if (mhz > s->most_mhz)
        s->most_mhz = mhz;
}

void usage_look(int device)
{
    struct seen *s = &seen[device];
    uint64_t now = clock_now(), last = s->last_ns;

    if ((last && now - last < LOOK_NS) ||
        !atomic_compare_exchange_strong(&s->last_ns, &last, now))
        return;
    if (handle_of(device))
        look_at_usage(s);
}

static void conclude_usage(void)
{
    for (int i = 0; i < SESSION_DEVICES; i++)
        if (seen[i].slowed)
            memsim_note("GPU %d was slowed down for heat or power in %u of %u "
                        "looks at it: its SMs ran at %u to %u MHz",
                        i, seen[i].slowed, seen[i].looks, seen[i].least_mhz,
                        seen[i].most_mhz);
}

static struct process_hook hook = {.at_end = conclude_usage};

__attribute__((constructor)) static void usage_hook(void)
{
    process_hook_add(&hook);
}
