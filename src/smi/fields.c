/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "smi/smi.h"

#define MIB (1ull << 20)

static bool number_write(nvmlReturn_t status, unsigned long long value,
                         char out[SMI_TEXT])
{
    if (status)
        return false;
    snprintf(out, SMI_TEXT, "%llu", value);
    return true;
}

static bool write_word(nvmlReturn_t status, const char *text,
                       char out[SMI_TEXT])
{
    if (status)
        return false;
    snprintf(out, SMI_TEXT, "%s", text);
    return true;
}

static bool read_timestamp(nvmlDevice_t device, char out[SMI_TEXT])
{
    struct timeval now;
    struct tm tm;

    (void)device;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &tm);
    size_t length = strftime(out, SMI_TEXT, "%Y/%m/%d %H:%M:%S", &tm);
    snprintf(out + length, SMI_TEXT - length, ".%03ld",
             (long)(now.tv_usec / 1000));
    return true;
}

static bool read_driver(nvmlDevice_t device, char out[SMI_TEXT])
{
    (void)device;
    return !smi_nvml.nvmlSystemGetDriverVersion(out, SMI_TEXT);
}

static bool read_count(nvmlDevice_t device, char out[SMI_TEXT])
{
    unsigned count = 0;

    (void)device;
    nvmlReturn_t status = smi_nvml.nvmlDeviceGetCount_v2(&count);
    return number_write(status, count, out);
}

static bool read_index(nvmlDevice_t device, char out[SMI_TEXT])
{
    unsigned index = 0;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetIndex(device, &index);
    return number_write(status, index, out);
}

static bool read_name(nvmlDevice_t device, char out[SMI_TEXT])
{
    return !smi_nvml.nvmlDeviceGetName(device, out, SMI_TEXT);
}

static bool read_uuid(nvmlDevice_t device, char out[SMI_TEXT])
{
    return !smi_nvml.nvmlDeviceGetUUID(device, out, SMI_TEXT);
}

static bool read_bus(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlPciInfo_t pci = {.busId = ""};

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetPciInfo_v3(device, &pci);
    return write_word(status, pci.busId, out);
}

static bool read_capability(nvmlDevice_t device, char out[SMI_TEXT])
{
    int major, minor;

    if (smi_nvml.nvmlDeviceGetCudaComputeCapability(device, &major, &minor))
        return false;
    snprintf(out, SMI_TEXT, "%d.%d", major, minor);
    return true;
}

/* --- memory, in MiB ------------------------------------------------------- */

static nvmlReturn_t memory_read(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    *memory = (nvmlMemory_v2_t){.version = nvmlMemory_v2};
    return smi_nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
}

#define READ_MEMORY(name, member)                                              \
    static bool name(nvmlDevice_t device, char out[SMI_TEXT])                  \
    {                                                                          \
        nvmlMemory_v2_t memory;                                                \
        nvmlReturn_t status = memory_read(device, &memory);                    \
        return number_write(status, memory.member / MIB, out);                 \
    }
READ_MEMORY(read_total, total)
READ_MEMORY(read_reserved, reserved)
READ_MEMORY(read_used, used)
READ_MEMORY(read_free, free)

/* --- how it is doing ------------------------------------------------------ */

static bool read_utilization(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlUtilization_t rates = {0};

    nvmlReturn_t status =
        smi_nvml.nvmlDeviceGetUtilizationRates(device, &rates);
    return number_write(status, rates.gpu, out);
}

static bool read_utilization_memory(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlUtilization_t rates = {0};

    nvmlReturn_t status =
        smi_nvml.nvmlDeviceGetUtilizationRates(device, &rates);
    return number_write(status, rates.memory, out);
}

static bool read_temperature(nvmlDevice_t device, char out[SMI_TEXT])
{
    unsigned celsius = 0;

    nvmlReturn_t status =
        smi_nvml.nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU,
                                          &celsius);
    return number_write(status, celsius, out);
}

static bool write_watts(nvmlReturn_t status, unsigned milliwatts,
                        char out[SMI_TEXT])
{
    if (status)
        return false;
    snprintf(out, SMI_TEXT, "%u.%02u", milliwatts / 1000,
             milliwatts % 1000 / 10);
    return true;
}

static bool read_power(nvmlDevice_t device, char out[SMI_TEXT])
{
    unsigned milliwatts = 0;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetPowerUsage(device, &milliwatts);
    return write_watts(status, milliwatts, out);
}

static bool read_power_limit(nvmlDevice_t device, char out[SMI_TEXT])
{
    unsigned milliwatts = 0;

    nvmlReturn_t status =
        smi_nvml.nvmlDeviceGetEnforcedPowerLimit(device, &milliwatts);
    return write_watts(status, milliwatts, out);
}

#define READ_CLOCK(name, call, type)                                           \
    static bool name(nvmlDevice_t device, char out[SMI_TEXT])                  \
    {                                                                          \
        unsigned mhz = 0;                                                      \
        nvmlReturn_t status = smi_nvml.call(device, type, &mhz);               \
        return number_write(status, mhz, out);                                 \
    }
READ_CLOCK(read_clock, nvmlDeviceGetClockInfo, NVML_CLOCK_SM)
READ_CLOCK(read_clock_graphics, nvmlDeviceGetClockInfo, NVML_CLOCK_GRAPHICS)
READ_CLOCK(read_clock_memory, nvmlDeviceGetClockInfo, NVML_CLOCK_MEM)
READ_CLOCK(read_clock_max, nvmlDeviceGetMaxClockInfo, NVML_CLOCK_SM)
READ_CLOCK(read_clock_memory_max, nvmlDeviceGetMaxClockInfo, NVML_CLOCK_MEM)

static bool read_state(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlPstates_t state = NVML_PSTATE_0;

    if (smi_nvml.nvmlDeviceGetPerformanceState(device, &state))
        return false;
    snprintf(out, SMI_TEXT, "P%d", (int)state);
    return true;
}

/* --- modes ---------------------------------------------------------------- */

static bool write_enabled(nvmlReturn_t status, nvmlEnableState_t state,
                          char out[SMI_TEXT])
{
    return write_word(
        status, state == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled", out);
}

static bool read_persistence(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetPersistenceMode(device, &state);
    return write_enabled(status, state, out);
}

static bool read_display(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetDisplayActive(device, &state);
    return write_enabled(status, state, out);
}

static bool read_ecc(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlEnableState_t now = NVML_FEATURE_DISABLED, pending;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetEccMode(device, &now, &pending);
    return write_enabled(status, now, out);
}

static bool read_compute_mode(nvmlDevice_t device, char out[SMI_TEXT])
{
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;

    nvmlReturn_t status = smi_nvml.nvmlDeviceGetComputeMode(device, &mode);
    return write_word(status,
                      mode == NVML_COMPUTEMODE_DEFAULT ? "Default"
                                                       : "Exclusive_Process",
                      out);
}

static bool read_nothing(nvmlDevice_t device, char out[SMI_TEXT])
{
    (void)device;
    (void)out;
    return false;
}

#define READ_LINK(name, call)                                                  \
    static bool name(nvmlDevice_t device, char out[SMI_TEXT])                  \
    {                                                                          \
        unsigned value = 0;                                                    \
        nvmlReturn_t status = smi_nvml.call(device, &value);                   \
        return number_write(status, value, out);                               \
    }
READ_LINK(read_gen, nvmlDeviceGetCurrPcieLinkGeneration)
READ_LINK(read_gen_max, nvmlDeviceGetMaxPcieLinkGeneration)
READ_LINK(read_width, nvmlDeviceGetCurrPcieLinkWidth)
READ_LINK(read_width_max, nvmlDeviceGetMaxPcieLinkWidth)

/* The names are those of `nvidia-smi --help-query-gpu'. */
const struct smi_field smi_fields[] = {
    {"timestamp", NULL, NULL, NULL, read_timestamp},
    {"driver_version", NULL, NULL, NULL, read_driver},
    {"count", NULL, NULL, NULL, read_count},
    {"name,gpu_name", NULL, "", "Product Name", read_name},
    {"persistence_mode", NULL, "", "Persistence Mode", read_persistence},
    {"index", NULL, NULL, NULL, read_index},
    {"serial,gpu_serial", NULL, "", "Serial Number", read_nothing},
    {"uuid,gpu_uuid", NULL, "", "GPU UUID", read_uuid},
    {"vbios_version", NULL, "", "VBIOS Version", read_nothing},
    {"pci.bus_id,gpu_bus_id", NULL, "PCI", "Bus Id", read_bus},
    {"pcie.link.gen.current,pcie.link.gen.gpucurrent", NULL, "PCI",
     "PCIe Generation, Current", read_gen},
    {"pcie.link.gen.max", NULL, "PCI", "PCIe Generation, Max", read_gen_max},
    {"pcie.link.width.current", NULL, "PCI", "Link Width, Current",
     read_width},
    {"pcie.link.width.max", NULL, "PCI", "Link Width, Max", read_width_max},
    {"fan.speed", "%", "", "Fan Speed", read_nothing},
    {"pstate", NULL, "", "Performance State", read_state},
    {"memory.total", "MiB", "FB Memory Usage", "Total", read_total},
    {"memory.reserved", "MiB", "FB Memory Usage", "Reserved", read_reserved},
    {"memory.used", "MiB", "FB Memory Usage", "Used", read_used},
    {"memory.free", "MiB", "FB Memory Usage", "Free", read_free},
    {"compute_mode", NULL, "", "Compute Mode", read_compute_mode},
    {"compute_cap", NULL, NULL, NULL, read_capability},
    {"utilization.gpu", "%", "Utilization", "GPU", read_utilization},
    {"utilization.memory", "%", "Utilization", "Memory",
     read_utilization_memory},
    {"display_active", NULL, NULL, NULL, read_display},
    {"display_mode", NULL, NULL, NULL, read_display},
    {"mig.mode.current", NULL, "MIG Mode", "Current", read_nothing},
    {"ecc.mode.current", NULL, "ECC Mode", "Current", read_ecc},
    {"ecc.mode.pending", NULL, "ECC Mode", "Pending", read_ecc},
    {"temperature.gpu", NULL, "Temperature", "GPU Current Temp",
     read_temperature},
    {"temperature.memory", NULL, NULL, NULL, read_nothing},
    {"power.draw,power.draw.average,power.draw.instant", "W",
     "GPU Power Readings", "Average Power Draw", read_power},
    {"power.limit,enforced.power.limit,power.default_limit,power.max_limit",
     "W", "GPU Power Readings", "Current Power Limit", read_power_limit},
    {"clocks.gr,clocks.current.graphics", "MHz", "Clocks", "Graphics",
     read_clock_graphics},
    {"clocks.sm,clocks.current.sm", "MHz", "Clocks", "SM", read_clock},
    {"clocks.mem,clocks.current.memory", "MHz", "Clocks", "Memory",
     read_clock_memory},
    {"clocks.max.sm,clocks.max.gr,clocks.max.graphics", "MHz", "Max Clocks",
     "SM", read_clock_max},
    {"clocks.max.mem,clocks.max.memory", "MHz", "Max Clocks", "Memory",
     read_clock_memory_max},
    {0},
};

bool smi_name_next(const char **at, const char **name, size_t *length)
{
    if (!**at)
        return false;
    *name = *at;
    *length = strcspn(*at, ",");
    *at += *length + ((*at)[*length] == ',');
    return true;
}

bool smi_names_have(const char *names, const char *name, size_t length)
{
    const char *one;
    size_t size;

    while (smi_name_next(&names, &one, &size))
        if (size == length && !strncmp(one, name, size))
            return true;
    return false;
}

const struct smi_field *smi_field_find(const char *name, size_t length)
{
    for (const struct smi_field *f = smi_fields; f->names; f++)
        if (smi_names_have(f->names, name, length))
            return f;
    return NULL;
}

void smi_field_text(const struct smi_field *field, nvmlDevice_t device,
                    bool unit, char out[SMI_TEXT + 16])
{
    char value[SMI_TEXT];

    if (!field->read(device, value))
        strcpy(out, "[N/A]");
    else
        snprintf(out, SMI_TEXT + 16, "%s%s%s", value,
                 unit && field->unit ? " " : "",
                 unit && field->unit ? field->unit : "");
}

void smi_time(char out[SMI_TEXT])
{
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(out, SMI_TEXT, "%a %b %e %H:%M:%S %Y", &tm);
}
