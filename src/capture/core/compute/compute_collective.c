/* SPDX-License-Identifier: Apache-2.0
 * memsim's own kernel in the place of one of NCCL's (capture/emulate), where a
 * simulated GPU plays the real one: all ranks send what this one sends. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/base/raw_call.h"
#include "capture/core/compute/compute.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_pack.h"
#include "capture/core/memory/values_reduce.h"

#define MOST_BYTES (UINT64_C(1) << 20) /* of a share: more is not known */

/* (send, receive, elements, shares, factor, ns, nodes, lag, last, gate,
 * ticket); the names are those of kernel.c of capture/emulate. */
enum { SEND, RECEIVE, ELEMENTS, SHARES, FACTOR, GATE = 9, TICKET };

#define LOOK_NS 100000 /* of this machine's time, between looks at the gate */

static const struct {
    const char *name;
    enum number_type type;
    uint32_t bytes;
} types[] = {
    {"collectiveIcE", NUMBER_NONE, 1}, {"collectiveI5uint4E", NUMBER_NONE, 16},
    {"collectiveIaE", NUMBER_I8, 1},   {"collectiveIiE", NUMBER_I32, 4},
    {"collectiveIlE", NUMBER_I64, 8},  {"collectiveIfE", NUMBER_F32, 4},
    {"collectiveIdE", NUMBER_F64, 8},  {"collectiveI6__halfE", NUMBER_F16, 2},
    {"collectiveI13__nv_bfloat16E", NUMBER_BF16, 2},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reduce_side side; /* room for a share; with LOCK */

static bool side_open(void)
{
    if (!side.data)
        side.data = memsim_pages_reserve(0, MOST_BYTES);
    if (!side.marks)
        side.marks = memsim_pages_reserve(0, MOST_BYTES);
    side.weight = 1;
    return side.data && side.marks;
}

/* What a rank gets: TYPE NONE is copied. */
static void share_make(const struct compute *c, uint64_t elements,
                       double factor)
{
    const struct reduction r = {.kind = REDUCE_SUM,
                                .type = c->types[0],
                                .bytes = c->bytes,
                                .scale = factor,
                                .count = elements};

    if (c->types[0] != NUMBER_NONE)
        memsim_reduce_first(&r, &side);
}

/* Until the other real ranks have come (emulate/parcel.h), which is not in the
 * simulated time. */
static void gate_wait(const struct kernel_launch *launch)
{
    const _Atomic uint64_t *gate =
        (const _Atomic uint64_t *)compute_u64(launch, GATE);
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const long a[6] = {(long)&pause};

    while (gate && atomic_load(gate) < compute_u64(launch, TICKET))
        raw_call(SYS_nanosleep, a);
}

static void run_collective(const struct compute *c,
                           const struct kernel_launch *launch)
{
    uint64_t elements = compute_u64(launch, ELEMENTS);
    uint64_t shares = compute_u64(launch, SHARES);
    uint64_t to = compute_u64(launch, RECEIVE), bytes = elements * c->bytes;
    double factor;

    gate_wait(launch);
    memcpy(&factor, launch->arguments[FACTOR], sizeof factor);
    if (!shares || !bytes)
        return;
    pthread_mutex_lock(&lock);
    bool known = bytes <= MOST_BYTES && side_open() &&
                 memsim_values_take(compute_u64(launch, SEND), bytes,
                                    side.data, side.marks);
    if (known)
        share_make(c, elements, factor);
    for (uint64_t i = 0; i < shares && known; i++)
        memsim_values_give(to + i * bytes, bytes, side.data, side.marks);
    pthread_mutex_unlock(&lock);
    if (!known)
        memsim_values_forget(to, bytes * shares);
}

bool compute_collective_parse(const char *name, struct compute *c)
{
    c->run = run_collective;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(name, types[i].name)) {
            c->types[0] = types[i].type;
            c->bytes = types[i].bytes;
            return true;
        }
    return false;
}
