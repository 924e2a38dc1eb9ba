/* SPDX-License-Identifier: Apache-2.0
 * NVML agrees with CUDA, and sees every process of the run. */
#include <cuda_runtime_api.h>
#include <nvml.h>

#include "answers.h"
#include "check.h"

#define MIB (1ul << 20)

static nvmlDevice_t card(void)
{
    nvmlDevice_t device = NULL;

    CHECK(!nvmlInit());
    CHECK(!nvmlDeviceGetHandleByIndex(0, &device));
    return device;
}

TEST(nothing_before_init)
{
    unsigned count;

    CHECK_CODE(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
    CHECK_CODE(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    CHECK(!nvmlInit());
    CHECK(!nvmlDeviceGetCount(&count));
    CHECK(count == 1);
    CHECK(!nvmlShutdown());
    CHECK_CODE(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
    CHECK_STR(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized");
}

TEST(memory_is_what_nvidia_smi_shows)
{
    nvmlMemory_v2_t two = {.version = nvmlMemory_v2};
    nvmlDevice_t device = card();
    nvmlMemory_t one;
    char name[96];
    size_t available, total;
    void *p;

    CHECK(!nvmlDeviceGetMemoryInfo(device, &one));
    CHECK(!nvmlDeviceGetName(device, name, sizeof name));
    if (!strcmp(name, "NVIDIA H100 80GB HBM3")) /* the default */
        CHECK_UINT(one.total, 81559 * MIB);
    CHECK(!cudaMalloc(&p, 100 * MIB));
    CHECK(!cudaMemGetInfo(&available, &total));
    CHECK(!nvmlDeviceGetMemoryInfo(device, &one));
    CHECK(!nvmlDeviceGetMemoryInfo_v2(device, &two));
    CHECK_UINT(one.free, available);
    CHECK_UINT(one.used, one.total - one.free);
    CHECK_UINT(two.used, total - available);
    CHECK_UINT(two.reserved, two.total - total);
    answer((int64_t)one.total, "bytes of nvml, total");
    answer((int64_t)two.reserved, "bytes of nvml, reserved");
    two.version = 1;
    int code = nvmlDeviceGetMemoryInfo_v2(device, &two);
    answer(code, "code of nvmlDeviceGetMemoryInfo_v2, version 1");
    if (!is_real())
        CHECK_CODE(code, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

/* Of the context's memory, what is not the process's. */
#define DRIVER_PART 9240576

TEST(processes_are_listed)
{
    nvmlDevice_t device = card();
    nvmlProcessInfo_t infos[8];
    unsigned count = 8, others;
    size_t available, total;
    void *p;

    CHECK(!nvmlDeviceGetComputeRunningProcesses(device, &count, infos));
    others = count;
    CHECK(!cudaMalloc(&p, 64 * MIB));
    CHECK(!cudaMemGetInfo(&available, &total));
    count = 8;
    CHECK(!nvmlDeviceGetComputeRunningProcesses(device, &count, infos));
    CHECK(count == others + 1);
    if (!is_real()) /* a container may number processes in its own way */
        CHECK(infos[count - 1].pid == (unsigned)getpid());
    if (!others) {
        answer((int64_t)(total - available - infos[0].usedGpuMemory),
               "bytes used that are no process's");
        CHECK_UINT(infos[0].usedGpuMemory, total - available - DRIVER_PART);
    }
    count = 0;
    CHECK_CODE(nvmlDeviceGetComputeRunningProcesses(device, &count, NULL),
               NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(count == others + 1);
}

TEST(names_agree)
{
    nvmlDevice_t device = card(), again;
    struct cudaDeviceProp p;
    nvmlPciInfo_t pci;
    char text[96], bus[32];
    unsigned mhz;
    int khz;

    CHECK(!cudaGetDeviceProperties(&p, 0));
    CHECK(!nvmlDeviceGetName(device, text, sizeof text));
    CHECK_STR(text, p.name);
    CHECK_CODE(nvmlDeviceGetName(device, text, 5),
               NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(!nvmlDeviceGetUUID(device, text, sizeof text));
    CHECK(!strncmp(text, "GPU-", 4));
    CHECK(!nvmlDeviceGetHandleByUUID(text, &again));
    CHECK(again == device);
    CHECK(!cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(!nvmlDeviceGetHandleByPciBusId(bus, &again));
    CHECK(again == device);
    CHECK(!nvmlDeviceGetPciInfo(device, &pci));
    CHECK((int)pci.bus == p.pciBusID);
    CHECK(!nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &mhz));
    CHECK(!cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    CHECK(mhz > 0 && (is_real() || mhz * 1000 == (unsigned)khz));
    CHECK_CODE(nvmlDeviceGetHandleByIndex(99, &again),
               NVML_ERROR_INVALID_ARGUMENT);
    need_fake("invented handles");
    CHECK_CODE(nvmlDeviceGetName((nvmlDevice_t)&p, text, sizeof text),
               NVML_ERROR_INVALID_ARGUMENT);
}
