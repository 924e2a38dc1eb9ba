/* SPDX-License-Identifier: Apache-2.0
 * NVML: start, end, versions, and the GPUs' handles. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/memory/device_attribute.h"
#include "capture/core/memory/device.h"
#include "capture/nvml/nvml_card.h"

#define DRIVER_TEXT  "580.82.07" /* a data centre driver that has CUDA 13.0 */
#define CUDA_VERSION 13000

static atomic_int started;
static char handles[SESSION_DEVICES]; /* their addresses are the handles */

nvmlReturn_t nvml_card(nvmlDevice_t handle, unsigned *card)
{
    size_t number = (size_t)((char *)handle - handles);

    if (!atomic_load(&started))
        return NVML_ERROR_UNINITIALIZED;
    if (!handle || number >= memsim_node_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *card = (unsigned)number;
    return NVML_SUCCESS;
}

const struct gpu *nvml_gpu(void)
{
    return &memsim_session()->gpu;
}

struct session_device *nvml_usage(unsigned card)
{
    memsim_process_reclaim(card);
    return &memsim_session()->devices[memsim_node_card((int)card)];
}

nvmlReturn_t nvml_text(char *out, unsigned length, const char *text)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    if (!memsim_session()) {
        memsim_device_count(); /* which says why */
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    if (!memsim_node_devices() && !(flags & NVML_INIT_FLAG_NO_GPUS))
        return NVML_ERROR_GPU_NOT_FOUND;
    atomic_fetch_add(&started, 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    int count = atomic_load(&started);

    while (count && !atomic_compare_exchange_weak(&started, &count, count - 1))
        ;
    return count ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
        [NVML_ERROR_GPU_NOT_FOUND] = "GPU not found",
    };
    size_t i = result;

    return i < sizeof texts / sizeof *texts && texts[i] ? texts[i]
                                                        : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return atomic_load(&started) ? nvml_text(version, length, DRIVER_TEXT)
                                 : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return nvml_text(version, length, "13." DRIVER_TEXT);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    *version = CUDA_VERSION;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name,
                                      unsigned int length)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NVML_ERROR_NOT_FOUND;
    ssize_t n = length ? read(fd, name, length - 1) : -1;
    close(fd);
    if (n < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    name[n] = '\0'; /* what follows the program's name are its arguments */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!atomic_load(&started))
        return NVML_ERROR_UNINITIALIZED;
    *count = memsim_node_devices();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index,
                                           nvmlDevice_t *device)
{
    if (!atomic_load(&started))
        return NVML_ERROR_UNINITIALIZED;
    if (index >= memsim_node_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)&handles[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index,
                                        nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* GPU i is on bus i + 1, and so says memsim_attribute_bus(). */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *text,
                                              nvmlDevice_t *device)
{
    unsigned domain, bus;

    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || !bus)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t rc = nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
    return rc == NVML_ERROR_INVALID_ARGUMENT ? NVML_ERROR_NOT_FOUND : rc;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *text,
                                           nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

static void uuid_write(unsigned card, char out[64])
{
    unsigned char b[16];

    memsim_card_uuid((int)card, b);
    snprintf(out, 64,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
             "%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid,
                               unsigned int length)
{
    char text[64];

    NEED_CARD(device, card);
    uuid_write(card, text);
    return nvml_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    char text[64];

    if (!atomic_load(&started))
        return NVML_ERROR_UNINITIALIZED;
    for (unsigned i = 0; i < memsim_node_devices(); i++) {
        uuid_write(i, text);
        if (!strcmp(text, uuid))
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    NEED_CARD(device, card);
    *index = card;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *number)
{
    return nvmlDeviceGetIndex(device, number);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    NEED_CARD(device, card);
    uint8_t bus = (uint8_t)(card + 1);
    memset(pci, 0, sizeof *pci);
    pci->bus = bus;
    pci->pciDeviceId = 0x10de; /* NVIDIA; which of its GPUs is not told */
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", bus);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}
