/* SPDX-License-Identifier: Apache-2.0
 * NVML: how the GPUs reach one another and the host. GPUs with NVLink are
 * joined by switches, as in a server of eight. */
#include <string.h>

#include "capture/nvml/nvml_card.h"

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t peer,
                                    nvmlGpuP2PCapsIndex_t what,
                                    nvmlGpuP2PStatus_t *status)
{
    NEED_CARD(device, card);
    NEED_CARD(peer, other);
    bool linked = nvml_gpu()->nvlink_links > 0;
    *status = what == NVML_P2P_CAPS_INDEX_NVLINK && !linked
                  ? NVML_P2P_STATUS_NOT_SUPPORTED
                  : NVML_P2P_STATUS_OK;
    return card == other ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static nvmlReturn_t link_check(nvmlDevice_t device, unsigned link)
{
    NEED_CARD(device, card);
    if (link >= NVML_NVLINK_MAX_LINKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return link < nvml_gpu()->nvlink_links ? NVML_SUCCESS
                                           : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      nvmlEnableState_t *state)
{
    nvmlReturn_t rc = link_check(device, link);

    if (!rc)
        *state = NVML_FEATURE_ENABLED;
    return rc;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device,
                                           unsigned int link,
                                           nvmlNvLinkCapability_t what,
                                           unsigned int *can)
{
    nvmlReturn_t rc = link_check(device, link);

    (void)what;
    if (!rc)
        *can = 1;
    return rc;
}

nvmlReturn_t
nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                    nvmlIntNvLinkDeviceType_t *type)
{
    nvmlReturn_t rc = link_check(device, link);

    if (!rc)
        *type = NVML_NVLINK_DEVICE_TYPE_SWITCH;
    return rc;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
                                                 unsigned int link,
                                                 nvmlPciInfo_t *pci)
{
    nvmlReturn_t rc = link_check(device, link);

    if (rc)
        return rc;
    memset(pci, 0, sizeof *pci);
    pci->bus = 0xc0; /* the switch's: no GPU has this one */
    strcpy(pci->busIdLegacy, "0000:C0:00.0");
    strcpy(pci->busId, "00000000:C0:00.0");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device,
                                                 nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t *level)
{
    NEED_CARD(device, card);
    NEED_CARD(other, second);
    *level = card == second ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}

static nvmlReturn_t number_give(nvmlDevice_t device, unsigned value,
                                unsigned *out)
{
    NEED_CARD(device, card);
    *out = value;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
                                                 unsigned int *generation)
{
    return number_give(device, nvml_gpu()->pcie_generation, generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device,
                                                unsigned int *generation)
{
    return number_give(device, nvml_gpu()->pcie_generation, generation);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device,
                                            unsigned int *lanes)
{
    return number_give(device, nvml_gpu()->pcie_lanes, lanes);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device,
                                           unsigned int *lanes)
{
    return number_give(device, nvml_gpu()->pcie_lanes, lanes);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device,
                                         nvmlPcieUtilCounter_t counter,
                                         unsigned int *kbps)
{
    (void)counter;
    return number_give(device, 0, kbps);
}
