/* SPDX-License-Identifier: Apache-2.0
 * Device memory and events of another process of the run. Only the place and
 * the size of the memory are shared, not its contents. It counts as the owner's
 * memory. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_IPC_H
#define MEMSIM_CAPTURE_CORE_WORK_IPC_H

#include <stdbool.h>

#include "capture/core/base/core.h"

#define IPC_HANDLE_BYTES 64

/* The handle of the whole allocation that holds ADDRESS. */
CORE_API int memsim_ipc_export(uint64_t address,
                               unsigned char handle[IPC_HANDLE_BYTES]);

/* Its start here; opened again, the same one. */
CORE_API int memsim_ipc_open(const unsigned char handle[IPC_HANDLE_BYTES],
                             uint64_t *address);
CORE_API int memsim_ipc_close(uint64_t address);

CORE_API int memsim_ipc_export_event(uint64_t event,
                                     unsigned char handle[IPC_HANDLE_BYTES]);
CORE_API int memsim_ipc_open_event(const unsigned char handle[IPC_HANDLE_BYTES],
                                   uint64_t *event);

/* For reset.c: memory of other processes on DEVICE is open no more. */
void ipc_reset(int device);

#endif
