/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "capture/core/memory/device.h"
#include "common/trace/session.h"

/* Which peers each device may reach: a bit for each. Like the real one, this
 * holds for the process, not for a thread. */
static _Atomic uint32_t peers[SESSION_DEVICES];

static int peer_check(int peer)
{
    int device = memsim_device_current();

    return peer < 0 || peer >= memsim_device_count() || peer == device
               ? CORE_INVALID_DEVICE
               : memsim_device_open(device);
}

int memsim_device_peer_enable(int peer, uint32_t flags)
{
    int rc = flags ? CORE_INVALID_VALUE : peer_check(peer);

    if (rc)
        return rc;
    return atomic_fetch_or(&peers[memsim_device_current()], 1u << peer) >>
                       peer &
                   1
               ? CORE_PEER_ENABLED
               : CORE_OK;
}

int memsim_device_peer_disable(int peer)
{
    int rc = peer_check(peer);

    if (rc)
        return rc;
    return atomic_fetch_and(&peers[memsim_device_current()], ~(1u << peer)) >>
                       peer &
                   1
               ? CORE_OK
               : CORE_PEER_NOT_ENABLED;
}

void device_peer_reset(int device)
{
    atomic_store(&peers[device], 0);
}

bool device_peer_enabled(int device, int peer)
{
    return atomic_load(&peers[device]) >> peer & 1;
}
