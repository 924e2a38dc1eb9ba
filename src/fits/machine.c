/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/machine.h"
#include "common/base/err.h"
#include "common/catalogue/gpu.h"

#include <stdio.h>
#include <string.h>

/* GPUs of racks that NVLink joins: NVIDIA's data sheets of the NVL72 systems.
 */
static const struct {
    const char *word, *gpu;
    uint32_t rack_gpus;
} racks[] = {{"GB200", "b200", 72}, {"GB300", "b200", 72}};

/* What NCCL takes one NVLink for, 1e9 bytes a second each way, by compute
 * capability (NVIDIA/nccl src/graph/topo.h, SM*_NVLINK_BW). */
static double link_gbps(double capability)
{
    static const struct {
        double capability, gbps;
    } rows[] = {{10, 40.1}, {9, 20.6}, {8.7, 20}, {8.6, 12}, {8, 20}, {7, 20},
                {0, 18}};
    size_t i = 0;

    while (capability < rows[i].capability)
        i++;
    return rows[i].gbps;
}

/* TEXT itself, without what is in brackets, or its first word that the
 * catalogue knows. */
int machine_gpu(const char *text, struct gpu *gpu)
{
    struct err ignored = {""};
    char name[64];

    if (!*text || strchr(text, '/'))
        return -1;
    if (!gpu_load(text, gpu, &ignored))
        return 0;
    snprintf(name, sizeof name, "%s", text);
    char *bracket = strstr(name, " (");
    if (bracket)
        *bracket = '\0';
    err_clear(&ignored);
    if (!gpu_load(name, gpu, &ignored))
        return 0;
    for (char *rest = name, *word; (word = strtok_r(rest, " ", &rest));) {
        err_clear(&ignored);
        if (!strchr(word, '/') && !strstr(word, ".json") &&
            !gpu_load(word, gpu, &ignored))
            return 0;
    }
    return -1;
}

void machine_find(const char *text, struct fit_machine *machine)
{
    struct gpu gpu;

    *machine = (struct fit_machine){0};
    for (size_t i = 0; i < sizeof racks / sizeof *racks; i++)
        if (strstr(text, racks[i].word)) {
            machine->rack_gpus = racks[i].rack_gpus;
            text = racks[i].gpu;
        }
    if (machine_gpu(text, &gpu))
        return;
    double capability = gpu.capability_major + gpu.capability_minor / 10.0;
    machine->link_gbps = gpu.nvlink_links * link_gbps(capability);
    machine->nvls = capability >= 9 && gpu.nvlink_links >= 18;
}
