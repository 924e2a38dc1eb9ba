/* SPDX-License-Identifier: Apache-2.0
 * A link that drops packets: of the collectives between nodes in which rank 0
 * takes part, one in a hundred waits 200 ms for what is sent again, and each
 * takes 1 us a MiB longer.
 *
 *     cc -shared -fPIC -I PREFIX/share/memsim/include one_bad_link.c -o link.so
 *     memsim run --delay-lib ./link.so --nnodes 2 --nproc-per-node 8 -- \
 *         python train.py
 */
#include <memsim_delay.h>

const unsigned memsim_delay_version = MEMSIM_DELAY_VERSION;

/* Equal calls get equal answers: a hash in place of a random number. */
static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t memsim_delay(const struct memsim_delay_call *call)
{
    if (!call->between_nodes || call->rank)
        return 0;
    uint64_t again = hash(call->number + 1) % 100 == 0 ? 200000000 : 0;
    return again + (call->bytes >> 20) * 1000;
}
