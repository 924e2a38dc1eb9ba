/* SPDX-License-Identifier: Apache-2.0
 * Device attributes; the runtime and the driver number them alike. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_ATTRIBUTE_H
#define MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_ATTRIBUTE_H

#include "capture/core/base/core.h"

/* *VALUE of ATTRIBUTE (enum cudaDeviceAttr); CORE_INVALID_VALUE where there is
 * none of that number, CORE_INVALID_DEVICE. Needs no context. */
CORE_API int memsim_attribute(int device, int attribute, int *value);

/* The PCI bus that stands for DEVICE: "0000:01:00.0" is bus 1. */
CORE_API int memsim_attribute_bus(int device);

/* The 16 bytes of DEVICE's UUID, the same in every API. */
CORE_API void memsim_attribute_uuid(int device, unsigned char uuid[16]);
CORE_API void memsim_card_uuid(int card, unsigned char uuid[16]);

#endif
