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
    int rc = memsim_device_check(peer);

    if (!rc && peer == device)
        rc = CORE_PEER_UNSUPPORTED; /* as an H200 says */
    return rc ? rc : memsim_device_open(device);
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
