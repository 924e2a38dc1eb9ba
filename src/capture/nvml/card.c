/* SPDX-License-Identifier: Apache-2.0
 * NVML: what each GPU is, from the catalogue, and how it is doing. The fake
 * GPU is always cool and never idle while a process has it open. */
#include <string.h>

#include "capture/nvml/nvml_card.h"

#define TEMPERATURE     35 /* degrees Celsius, of an idle GPU */

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name,
                               unsigned int length)
{
    NEED_CARD(device, card);
    return nvml_text(name, length, nvml_gpu()->device_name);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                int *minor)
{
    NEED_CARD(device, card);
    *major = (int)nvml_gpu()->capability_major;
    *minor = (int)nvml_gpu()->capability_minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device,
                                       nvmlDeviceArchitecture_t *architecture)
{
    NEED_CARD(device, card);
    uint32_t capability =
        nvml_gpu()->capability_major * 10 + nvml_gpu()->capability_minor;
    *architecture = capability >= 100  ? NVML_DEVICE_ARCH_BLACKWELL
                    : capability >= 90 ? NVML_DEVICE_ARCH_HOPPER
                    : capability == 89 ? NVML_DEVICE_ARCH_ADA
                    : capability >= 80 ? NVML_DEVICE_ARCH_AMPERE
                    : capability >= 75 ? NVML_DEVICE_ARCH_TURING
                    : capability >= 70 ? NVML_DEVICE_ARCH_VOLTA
                    : capability >= 60 ? NVML_DEVICE_ARCH_PASCAL
                                       : NVML_DEVICE_ARCH_UNKNOWN;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    NEED_CARD(device, card);
    *brand = strstr(nvml_gpu()->device_name, "GeForce") ? NVML_BRAND_GEFORCE
                                                        : NVML_BRAND_NVIDIA;
    return NVML_SUCCESS;
}

static uint64_t memory_free(unsigned card)
{
    return nvml_usage(card)->capacity_bytes -
           atomic_load(&nvml_usage(card)->used_bytes);
}

/* What the driver keeps of the GPU, and cudaMemGetInfo does not count. */
static uint64_t memory_reserved(void)
{
    uint64_t whole = (uint64_t)nvml_gpu()->smi_memory_mib << 20;

    return whole > nvml_gpu()->memory_bytes ? whole - nvml_gpu()->memory_bytes
                                            : 0;
}

/* nvml.h: of version 1, `used` is the sum of reserved and allocated memory. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    NEED_CARD(device, card);
    memory->total = nvml_usage(card)->capacity_bytes + memory_reserved();
    memory->free = memory_free(card);
    memory->used = memory->total - memory->free;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device,
                                        nvmlMemory_v2_t *memory)
{
    NEED_CARD(device, card);
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = nvml_usage(card)->capacity_bytes + memory_reserved();
    memory->reserved = memory_reserved();
    memory->free = memory_free(card);
    memory->used = memory->total - memory->reserved - memory->free;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device,
                                         nvmlBAR1Memory_t *memory)
{
    uint64_t total = 1;

    NEED_CARD(device, card);
    while (total < nvml_usage(card)->capacity_bytes)
        total *= 2;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Free = total};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device,
                                         unsigned int *bits)
{
    NEED_CARD(device, card);
    *bits = nvml_gpu()->memory_bus_bits;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores)
{
    NEED_CARD(device, card);
    *cores = nvml_gpu()->sm_count * nvml_gpu()->fp32_lanes_per_sm;
    return NVML_SUCCESS;
}

static bool is_used(unsigned card)
{
    return atomic_load(&nvml_usage(card)->used_bytes) > 0;
}

/* Scripts print such figures as if a GPU had been measured. */
static void note_invented(void)
{
    memsim_note("NVML (nvidia-smi) was asked for utilization, power, energy or "
                "temperature: these are not simulated. The answers are "
                "constants");
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                           nvmlUtilization_t *utilization)
{
    NEED_CARD(device, card);
    note_invented();
    utilization->gpu = is_used(card) ? 100 : 0;
    utilization->memory = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device,
                                             unsigned int *utilization,
                                             unsigned int *period_us)
{
    NEED_CARD(device, card);
    *utilization = 0;
    *period_us = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device,
                                             unsigned int *utilization,
                                             unsigned int *period_us)
{
    return nvmlDeviceGetEncoderUtilization(device, utilization, period_us);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                      nvmlTemperatureSensors_t sensor,
                                      unsigned int *temperature)
{
    NEED_CARD(device, card);
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    note_invented();
    *temperature = TEMPERATURE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device,
                                               unsigned int *milliwatts)
{
    NEED_CARD(device, card);
    *milliwatts = nvml_gpu()->power_watts * 1000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device,
                                             unsigned int *milliwatts)
{
    return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device,
                                                      unsigned int *milliwatts)
{
    return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device,
                                     unsigned int *milliwatts)
{
    NEED_CARD(device, card);
    note_invented();
    *milliwatts = 1000 * (is_used(card) ? nvml_gpu()->power_watts
                                       : nvml_gpu()->idle_watts);
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_read(nvmlClockType_t type, unsigned *mhz)
{
    if (type >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = type == NVML_CLOCK_MEM ? nvml_gpu()->clock_memory_mhz
                                  : nvml_gpu()->clock_boost_mhz;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                    unsigned int *mhz)
{
    NEED_CARD(device, card);
    return clock_read(type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device,
                                       nvmlClockType_t type, unsigned int *mhz)
{
    NEED_CARD(device, card);
    return clock_read(type, mhz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type,
                                nvmlClockId_t id, unsigned int *mhz)
{
    (void)id;
    NEED_CARD(device, card);
    return clock_read(type, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device,
                                            nvmlClockType_t type,
                                            unsigned int *mhz)
{
    NEED_CARD(device, card);
    return clock_read(type, mhz);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons)
{
    NEED_CARD(device, card);
    *reasons = nvmlClocksEventReasonNone;
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                          unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device,
                                           nvmlPstates_t *state)
{
    NEED_CARD(device, card);
    *state = NVML_PSTATE_0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long *mj)
{
    NEED_CARD(device, card);
    note_invented();
    *mj = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t answer_off(nvmlDevice_t device, nvmlEnableState_t *state)
{
    NEED_CARD(device, card);
    *state = NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device,
                                        nvmlEnableState_t *state)
{
    return answer_off(device, state);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device,
                                      nvmlEnableState_t *state)
{
    return answer_off(device, state);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device,
                                          nvmlEnableState_t *state)
{
    NEED_CARD(device, card);
    *state = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *now,
                                  nvmlEnableState_t *pending)
{
    NEED_CARD(device, card);
    *now = *pending =
        nvml_gpu()->ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
                                         nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    (void)type;
    (void)counter;
    NEED_CARD(device, card);
    if (!nvml_gpu()->ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device,
                                      nvmlComputeMode_t *mode)
{
    NEED_CARD(device, card);
    *mode = NVML_COMPUTEMODE_DEFAULT;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device,
                                        unsigned int *multi)
{
    NEED_CARD(device, card);
    *multi = 0;
    return NVML_SUCCESS;
}

/* No NVLink fabric of several machines. Versions 2 and 3 begin alike. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                         nvmlGpuFabricInfoV_t *info)
{
    NEED_CARD(device, card);
    memset(info->clusterUuid, 0, sizeof info->clusterUuid);
    info->status = NVML_SUCCESS;
    info->cliqueId = 0;
    info->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    info->healthMask = 0;
    return NVML_SUCCESS;
}
