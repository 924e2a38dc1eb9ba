/* SPDX-License-Identifier: Apache-2.0
 * NVML: which processes of the run use a GPU, and how much of it. */
#include <string.h>

#include "capture/nvml/nvml_card.h"
#include "capture/core/memory/device.h"

#define NO_INSTANCE 0xffffffffu /* the GPU is not partitioned */

/* The next process after *SLOT - 1 that has memory of CARD. */
static const struct session_process *next_user(unsigned card, uint32_t *slot)
{
    struct session *session = memsim_session();

    for (; *slot < memsim_process_count(); ++*slot) {
        struct session_process *p = &session->processes[*slot];

        if (atomic_load(&p->usage[card].used) && memsim_process_lives(*slot)) {
            ++*slot;
            return p;
        }
    }
    return NULL;
}

/* What NVML says that P has of CARD: the driver's own part of a context is not
 * the process's. */
static uint64_t bytes_of(const struct session_process *p, unsigned card)
{
    uint64_t used = atomic_load(&p->usage[card].used);
    uint64_t own = memsim_device_gpu()->context_driver_bytes;

    return used > own ? used - own : used;
}

/* Writes one process into place I of the caller's array. */
typedef void process_write(void *infos, uint32_t i, uint32_t pid,
                           uint64_t bytes);

static nvmlReturn_t list_processes(nvmlDevice_t device, unsigned *count,
                                   void *infos, process_write *write)
{
    const struct session_process *p;
    uint32_t slot = 0, found = 0;

    NEED_CARD(device, card);
    if (!count || (*count && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    while ((p = next_user(card, &slot)))
        if (found++ < *count)
            write(infos, found - 1, p->pid, bytes_of(p, card));
    nvmlReturn_t rc =
        found > *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = found;
    return rc;
}

static void write_v1(void *infos, uint32_t i, uint32_t pid, uint64_t bytes)
{
    ((nvmlProcessInfo_v1_t *)infos)[i] =
        (nvmlProcessInfo_v1_t){.pid = pid, .usedGpuMemory = bytes};
}

static void write_v2(void *infos, uint32_t i, uint32_t pid, uint64_t bytes)
{
    ((nvmlProcessInfo_v2_t *)infos)[i] =
        (nvmlProcessInfo_v2_t){.pid = pid,
                               .usedGpuMemory = bytes,
                               .gpuInstanceId = NO_INSTANCE,
                               .computeInstanceId = NO_INSTANCE};
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
                                                  unsigned int *count,
                                                  nvmlProcessInfo_v1_t *infos)
{
    return list_processes(device, count, infos, write_v1);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
    nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos)
{
    return list_processes(device, count, infos, write_v2);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                     unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    return list_processes(device, count, infos, write_v2);
}

/* Nobody draws. */
static nvmlReturn_t list_none(nvmlDevice_t device, unsigned *count)
{
    NEED_CARD(device, card);
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device,
                                                   unsigned int *count,
                                                   nvmlProcessInfo_v1_t *infos)
{
    (void)infos;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(
    nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos)
{
    (void)infos;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                      unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    return list_none(device, count);
}
