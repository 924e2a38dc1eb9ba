/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/cluster_gpu.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/catalogue/gpu.h"
#include "fits/machine.h"
#include "runtime/cost/cost.h"

/* Adapters of the usual node with such GPUs; the first row that is true of one
 * counts. Sources: NVIDIA's user guides of DGX B300 (8 ConnectX-8 of 800
 * Gbit/s), DGX B200, H200 and H100 (8 ConnectX-7 of 400), DGX A100 (8
 * ConnectX-6 of 200), DGX-1 and DGX-2 (4 and 8 ConnectX of 100, one for two
 * GPUs). The last row, of GPUs without NVLink, is a guess: 100 Gbit/s. */
static const struct adapter {
    double capability; /* at least */
    bool nvlink;
    uint32_t gpus; /* that share one */
    double gbps;
} adapters[] = {
    {10.3, true, 1, 100}, {9, true, 1, 50},    {8, true, 1, 25},
    {6, true, 2, 12.5},   {0, false, 1, 12.5},
};

/* What collectives reach of a line, and a step's latency: as in data/clusters,
 * dgx-h100 and pcie-a100 (their "sources"). */
#define NVLINK_REACHES    0.81
#define NVLINK_LATENCY_US 2.4
#define PCIE_REACHES      0.77
#define PCIE_LATENCY_US   5.0
#define NETWORK_REACHES   0.92
#define NETWORK_US        8.8
#define NETWORK_PCIE_US   16.6

bool cluster_gpu_parse(const char *name, char *gpu, size_t size,
                       uint32_t *width)
{
    const char *colon = strrchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : 0;
    char *end;

    if (!length || length >= size || colon[1] < '1' || colon[1] > '9')
        return false;
    unsigned long number = strtoul(colon + 1, &end, 10);
    if (*end || number > CLUSTER_WIDTH_MAX)
        return false;
    memcpy(gpu, name, length);
    gpu[length] = '\0';
    *width = (uint32_t)number;
    return true;
}

static const struct adapter *adapter_find(const struct gpu *gpu)
{
    double capability = gpu->capability_major + gpu->capability_minor / 10.0;
    const struct adapter *a = adapters;

    while (a->capability > capability + 1e-6 ||
           (a->nvlink && !(gpu->nvlink_gbps > 0)))
        a++;
    return a;
}

static struct fit_level level_make(const char *name, double gbps,
                                   double latency_us)
{
    struct fit_level level = {
        .known = true,
        .latency_us = latency_us,
        .piece_count = 1,
        .pieces[0] = {.base_gbps = gbps, .steepness = 1},
    };

    snprintf(level.name, sizeof level.name, "%s-node", name);
    return level;
}

static void levels_set(struct cluster *c, const struct gpu *gpu,
                       const struct adapter *a)
{
    struct fit_level *levels = c->fit.levels[FIT_CORRECTED];
    bool nvlink = gpu->nvlink_gbps > 0;
    double adapters_per_node = (double)c->gpus_per_node / a->gpus;
    struct cost_gpu limits;

    cost_gpu_set(gpu, &limits);
    levels[FIT_INTRA] =
        nvlink ? level_make("intra", NVLINK_REACHES * gpu->nvlink_gbps,
                            NVLINK_LATENCY_US)
               : level_make("intra", PCIE_REACHES * limits.pcie_gbps,
                            PCIE_LATENCY_US);
    levels[FIT_INTER] = level_make(
        "inter",
        NETWORK_REACHES * a->gbps *
            (adapters_per_node > 1 ? adapters_per_node : 1),
        nvlink ? NETWORK_US : NETWORK_PCIE_US);
    memcpy(c->fit.levels[FIT_PUBLISHED], levels,
           sizeof c->fit.levels[FIT_PUBLISHED]);
}

int cluster_gpu_make(const char *name, struct cluster *cluster, struct err *err)
{
    struct cluster c = {.name = ""};
    char text[PATH_MAX], shared[32] = "a GPU";
    struct gpu gpu;
    uint32_t width;

    if (!cluster_gpu_parse(name, text, sizeof text, &width))
        return err_set(err, "%s: not of the form GPU:N", name);
    if (gpu_load(text, &gpu, err))
        return -1;
    const struct adapter *a = adapter_find(&gpu);
    snprintf(c.name, sizeof c.name, "%.48s:%" PRIu32, gpu.name, width);
    snprintf(c.gpu, sizeof c.gpu, "%s", gpu.name);
    memcpy(c.fit.name, c.name, sizeof c.fit.name);
    machine_find(gpu.device_name, &c.fit.machine);
    c.gpus_per_host = width;
    c.gpus_per_node =
        c.fit.machine.rack_gpus > width ? c.fit.machine.rack_gpus : width;
    if (a->gpus > 1)
        snprintf(shared, sizeof shared, "for %" PRIu32 " GPUs", a->gpus);
    snprintf(c.about, sizeof c.about,
             "%s by its data sheet, %g GB/s an adapter, one %s",
             gpu.nvlink_gbps > 0 ? "NVLink" : "PCIe", a->gbps, shared);
    c.by_gpu = true;
    levels_set(&c, &gpu, a);
    if (fit_check(&c.fit, name, err))
        return -1;
    *cluster = c;
    return 0;
}
