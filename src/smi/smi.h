/* SPDX-License-Identifier: Apache-2.0
 * nvidia-smi over the NVML that the process finds. */
#ifndef MEMSIM_SMI_SMI_H
#define MEMSIM_SMI_SMI_H

#include <stdbool.h>
#include <stddef.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#define SMI_TEXT 128

/* The functions that are called, as members of struct smi_nvml. */
#define SMI_FUNCTIONS(X)                                                       \
    X(nvmlInit_v2)                                                             \
    X(nvmlSystemGetDriverVersion)                                              \
    X(nvmlSystemGetCudaDriverVersion)                                          \
    X(nvmlSystemGetProcessName)                                                \
    X(nvmlDeviceGetCount_v2)                                                   \
    X(nvmlDeviceGetHandleByIndex_v2)                                           \
    X(nvmlDeviceGetIndex)                                                      \
    X(nvmlDeviceGetName)                                                       \
    X(nvmlDeviceGetUUID)                                                       \
    X(nvmlDeviceGetPciInfo_v3)                                                 \
    X(nvmlDeviceGetCudaComputeCapability)                                      \
    X(nvmlDeviceGetMemoryInfo_v2)                                              \
    X(nvmlDeviceGetUtilizationRates)                                           \
    X(nvmlDeviceGetTemperature)                                                \
    X(nvmlDeviceGetPowerUsage)                                                 \
    X(nvmlDeviceGetEnforcedPowerLimit)                                         \
    X(nvmlDeviceGetClockInfo)                                                  \
    X(nvmlDeviceGetMaxClockInfo)                                               \
    X(nvmlDeviceGetPerformanceState)                                           \
    X(nvmlDeviceGetPersistenceMode)                                            \
    X(nvmlDeviceGetEccMode)                                                    \
    X(nvmlDeviceGetComputeMode)                                                \
    X(nvmlDeviceGetDisplayActive)                                              \
    X(nvmlDeviceGetCurrPcieLinkGeneration)                                     \
    X(nvmlDeviceGetMaxPcieLinkGeneration)                                      \
    X(nvmlDeviceGetCurrPcieLinkWidth)                                          \
    X(nvmlDeviceGetMaxPcieLinkWidth)                                           \
    X(nvmlDeviceGetComputeRunningProcesses_v3)

#define SMI_MEMBER(name) __typeof__(name) *name;
struct smi_nvml {
    SMI_FUNCTIONS(SMI_MEMBER)
};
#undef SMI_MEMBER

extern struct smi_nvml smi_nvml;

/* Something that can be asked of a GPU. */
struct smi_field {
    const char *names; /* "name,gpu_name" */
    const char *unit;  /* of the number, and of the heading; NULL: none */
    const char *section, *label; /* in -q; NULL: not there */
    bool (*read)(nvmlDevice_t device, char out[SMI_TEXT]); /* false: [N/A] */
};

extern const struct smi_field smi_fields[];

/* Of names with commas between them: sets *NAME and *LENGTH to the next one and
 * moves *AT behind it. False: there is none. */
bool smi_name_next(const char **at, const char **name, size_t *length);

/* Is NAME of LENGTH bytes one of NAMES? */
bool smi_names_have(const char *names, const char *name, size_t length);

/* The field called NAME of LENGTH bytes; NULL: there is none. */
const struct smi_field *smi_field_find(const char *name, size_t length);

/* Writes its value to OUT, with the unit or without. */
void smi_field_text(const struct smi_field *field, nvmlDevice_t device,
                    bool unit, char out[SMI_TEXT + 16]);

/* "Sun Nov 22 23:14:02 2026" */
void smi_time(char out[SMI_TEXT]);

/* The GPUs to show. */
struct smi_gpus {
    nvmlDevice_t all[64];
    unsigned count;
};

void smi_table(const struct smi_gpus *gpus);
void smi_list(const struct smi_gpus *gpus);
void smi_log(const struct smi_gpus *gpus);

#endif
