/* SPDX-License-Identifier: Apache-2.0
 * The forms for people, as the driver 580 prints them. */
#include <stdio.h>
#include <string.h>

#include "smi/smi.h"

static const char *value_text(const char *name, nvmlDevice_t device, bool unit,
                              char out[SMI_TEXT + 16])
{
    smi_field_text(smi_field_find(name, strlen(name)), device, unit, out);
    return out;
}

static void read_versions(char driver[SMI_TEXT], char cuda[SMI_TEXT])
{
    int version = 0;

    strcpy(driver, "N/A");
    strcpy(cuda, "N/A");
    smi_nvml.nvmlSystemGetDriverVersion(driver, SMI_TEXT);
    if (!smi_nvml.nvmlSystemGetCudaDriverVersion(&version))
        snprintf(cuda, SMI_TEXT, "%d.%d", version / 1000, version % 1000 / 10);
}

/* "70W" of "70.00" */
static void watts_text(const char *name, nvmlDevice_t device, char out[16])
{
    char text[SMI_TEXT + 16];

    value_text(name, device, false, text);
    snprintf(out, 16, "%.*sW", (int)(strcspn(text, ".") % 8), text);
}

static void row_readings(nvmlDevice_t device)
{
    char celsius[SMI_TEXT + 16], state[SMI_TEXT + 16], used[SMI_TEXT + 16];
    char total[SMI_TEXT + 16], load[SMI_TEXT + 16], mode[SMI_TEXT + 16];
    char draw[16], limit[16], power[64], memory[64];

    watts_text("power.draw", device, draw);
    watts_text("power.limit", device, limit);
    value_text("memory.used", device, false, used);
    value_text("memory.total", device, false, total);
    snprintf(power, sizeof power, "%s / %5s", draw, limit);
    snprintf(memory, sizeof memory, "%.9sMiB / %6.9sMiB", used, total);
    printf("| N/A %4sC    %-4s %21s | %22s | %6s%% %12s |\n",
           value_text("temperature.gpu", device, false, celsius),
           value_text("pstate", device, false, state), power, memory,
           value_text("utilization.gpu", device, false, load),
           value_text("compute_mode", device, false, mode));
}

static void show_row(nvmlDevice_t device)
{
    char index[SMI_TEXT + 16], name[SMI_TEXT + 16], bus[SMI_TEXT + 16];
    char persistence[SMI_TEXT + 16], ecc[SMI_TEXT + 16];

    value_text("persistence_mode", device, false, persistence);
    value_text("ecc.mode.current", device, false, ecc);
    printf("| %3s  %-26.26s %7s | %18.18s Off | %20s |\n",
           value_text("index", device, false, index),
           value_text("name", device, false, name),
           strcmp(persistence, "Enabled") ? "Off" : "On",
           value_text("pci.bus_id", device, false, bus),
           strcmp(ecc, "Enabled") ? "N/A" : "0");
    row_readings(device);
    printf("| %39s | %22s | %20s |\n"
           "+-----------------------------------------+------------------------"
           "+----------------------+\n",
           "", "", "N/A");
}

static bool show_processes(nvmlDevice_t device)
{
    nvmlProcessInfo_t all[64];
    unsigned count = 64;
    char index[SMI_TEXT + 16], name[SMI_TEXT];

    if (smi_nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, all))
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (smi_nvml.nvmlSystemGetProcessName(all[i].pid, name, sizeof name))
            strcpy(name, "-");
        printf("| %4s   N/A  N/A %16u      C   %-34.34s %8lluMiB |\n",
               value_text("index", device, false, index), all[i].pid, name,
               all[i].usedGpuMemory >> 20);
    }
    return count > 0;
}

void smi_table(const struct smi_gpus *gpus)
{
    char now[SMI_TEXT], driver[SMI_TEXT], cuda[SMI_TEXT];
    bool any = false;

    smi_time(now);
    read_versions(driver, cuda);
    printf("%s       \n"
           "+-----------------------------------------------------------------"
           "------------------------+\n"
           "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n"
           "+-----------------------------------------+------------------------"
           "+----------------------+\n"
           "| GPU  Name                 Persistence-M | Bus-Id          Disp.A "
           "| Volatile Uncorr. ECC |\n"
           "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage "
           "| GPU-Util  Compute M. |\n"
           "|                                         |                        "
           "|               MIG M. |\n"
           "|=========================================+========================"
           "+======================|\n",
           now, driver, driver, cuda);
    for (unsigned i = 0; i < gpus->count; i++)
        show_row(gpus->all[i]);
    puts("\n"
         "+-------------------------------------------------------------------"
         "----------------------+\n"
         "| Processes:                                                        "
         "                      |\n"
         "|  GPU   GI   CI              PID   Type   Process name             "
         "           GPU Memory |\n"
         "|        ID   ID                                                    "
         "           Usage      |\n"
         "|==================================================================="
         "======================|");
    for (unsigned i = 0; i < gpus->count; i++)
        any |= show_processes(gpus->all[i]);
    if (!any)
        puts("|  No running processes found                                  "
             "                           |");
    puts("+-------------------------------------------------------------------"
         "----------------------+");
}

void smi_list(const struct smi_gpus *gpus)
{
    char index[SMI_TEXT + 16], name[SMI_TEXT + 16], uuid[SMI_TEXT + 16];

    for (unsigned i = 0; i < gpus->count; i++)
        printf("GPU %s: %s (UUID: %s)\n",
               value_text("index", gpus->all[i], false, index),
               value_text("name", gpus->all[i], false, name),
               value_text("uuid", gpus->all[i], false, uuid));
}

static void log_line(int indent, const char *label, const char *text)
{
    printf("%*s%-*s : %s\n", indent, "", 54 - indent, label, text);
}

static void log_gpu(nvmlDevice_t device)
{
    char text[SMI_TEXT + 16];
    const char *section = "";

    printf("GPU %s\n", value_text("pci.bus_id", device, false, text));
    for (const struct smi_field *f = smi_fields; f->names; f++) {
        if (!f->section)
            continue;
        if (*f->section && strcmp(f->section, section))
            printf("    %s\n", f->section);
        section = f->section;
        smi_field_text(f, device, true, text);
        log_line(*section ? 8 : 4, f->label,
                 strcmp(text, "[N/A]") ? text : "N/A");
    }
    puts("");
}

void smi_log(const struct smi_gpus *gpus)
{
    char now[SMI_TEXT], driver[SMI_TEXT], cuda[SMI_TEXT], count[SMI_TEXT];

    smi_time(now);
    read_versions(driver, cuda);
    snprintf(count, sizeof count, "%u", gpus->count);
    puts("\n==============NVSMI LOG==============\n");
    log_line(0, "Timestamp", now);
    log_line(0, "Driver Version", driver);
    log_line(0, "CUDA Version", cuda);
    puts("");
    log_line(0, "Attached GPUs", count);
    for (unsigned i = 0; i < gpus->count; i++)
        log_gpu(gpus->all[i]);
}
