/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/emulate/parcel.h"

#include <cuda.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/core/base/raw_call.h"
#include "capture/core/memory/values.h"
#include "capture/core/run/peers.h"
#include "capture/core/run/process.h"
#include "capture/nccl/gpu.h"
#include "capture/real/real.h"
#include "common/trace/session.h"

#define PARCELS    16
#define ITEMS      64                 /* calls of a group */
#define SIDE_BYTES (UINT64_C(2) << 20) /* of what goes out, or comes in */
#define GATE_BYTES 4096
#define SLEEP_MS   1

enum state { FREE, TAKEN, POSTED, OPEN };

struct item {
    struct exchange_wait wait; /* its buffers are in the parcel's memory */
    uint64_t to;               /* the GPU's, for what comes in */
    uint64_t bytes;            /* of it; 0: nothing comes */
};

static struct parcel {
    _Atomic uint32_t state;
    uint32_t count;
    uint64_t stream, ticket, posted_ms;
    uint64_t sent, brought; /* bytes of the sides that are used */
    char *memory;           /* pinned: the gate, and both sides; NULL: none */
    struct item items[ITEMS];
} parcels[PARCELS];

static _Atomic uint32_t posts; /* a futex: they were so many */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who takes one */
static uint64_t tickets;

/* --- who is there --------------------------------------------------------- */

bool parcel_is_real(const struct communicator *c, int rank)
{
    const struct session *s = memsim_session();

    return s && s->rank_count > 1 &&
           memsim_peer_is_real(c->places ? c->places[rank] : (uint32_t)rank);
}

bool parcel_has_peers(const struct communicator *c)
{
    const struct session *s = memsim_session();

    for (int r = 0; s && s->rank_count > 1 && r < c->ranks; r++)
        if (r != c->rank && parcel_is_real(c, r))
            return true;
    return false;
}

/* --- the host's memory, as the exchange sees it --------------------------- */

bool nccl_gpu_take(uint64_t address, uint64_t bytes, void *data,
                   unsigned char *marks)
{
    if (!address || !bytes)
        return false;
    memcpy(data, (const void *)address, bytes);
    memset(marks, VALUES_GIVEN, bytes);
    return true;
}

void nccl_gpu_give(uint64_t address, uint64_t bytes, const void *data,
                   const unsigned char *marks)
{
    (void)marks;
    memcpy((void *)address, data, bytes);
}

/* As a simulated GPU's unknown memory reads. */
void nccl_gpu_forget(uint64_t address, uint64_t bytes)
{
    memset((void *)address, 0, bytes);
}

/* --- the thread ----------------------------------------------------------- */

static uint64_t real_ms(void)
{
    struct timespec t = {0};
    const long a[6] = {CLOCK_MONOTONIC, (long)&t};

    raw_call(SYS_clock_gettime, a);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static _Atomic uint64_t *gate_of(const struct parcel *p)
{
    return (_Atomic uint64_t *)(void *)p->memory;
}

/* The first of P that is waited for; NULL: all have come. */
static struct item *waits_for(struct parcel *p, uint64_t waited_ms)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (!exchange_has_come(&p->items[i].wait, waited_ms))
            return &p->items[i];
    return NULL;
}

/* Opens P's gate if all has come. Returns what is waited for, or NULL. */
static struct item *look_at(struct parcel *p)
{
    struct item *late = waits_for(p, real_ms() - p->posted_ms);

    if (late)
        return late;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->items[i].bytes)
            exchange_take(&p->items[i].wait.e);
    atomic_store(&p->state, OPEN);
    atomic_store(gate_of(p), p->ticket);
    return NULL;
}

static void *parcels_serve(void *unused)
{
    for (;;) {
        uint32_t seen = atomic_load(&posts);
        struct item *late = NULL;

        for (int i = 0; i < PARCELS; i++)
            if (atomic_load(&parcels[i].state) == POSTED) {
                struct item *item = look_at(&parcels[i]);
                late = item ? item : late;
            }
        if (late)
            exchange_sleep(&late->wait, SLEEP_MS);
        else
            raw_futex(&posts, FUTEX_WAIT, seen, NULL);
    }
    return unused;
}

/* No signal of the program's is for it. */
static void serve_start(void)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, parcels_serve, NULL))
        memsim_note("no thread for what ranks send each other: they wait for "
                    "ever");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- on the stream -------------------------------------------------------- */

static void on_post(void *data)
{
    struct parcel *p = data;

    for (uint32_t i = 0; i < p->count; i++)
        exchange_post(&p->items[i].wait.e);
    p->posted_ms = real_ms();
    atomic_store(&p->state, POSTED);
    atomic_fetch_add(&posts, 1);
    raw_futex(&posts, FUTEX_WAKE, INT32_MAX, NULL);
}

static void on_brought(void *data)
{
    atomic_store(&((struct parcel *)data)->state, FREE);
}

static bool is_captured(uint64_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return REAL_FUNCTION(cuStreamIsCapturing)((CUstream)stream, &status) ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct parcel *parcel_take(void)
{
    for (int i = 0; i < PARCELS; i++) {
        uint32_t none = FREE;

        if (atomic_compare_exchange_strong(&parcels[i].state, &none, TAKEN))
            return &parcels[i];
    }
    return NULL;
}

static bool has_memory(struct parcel *p)
{
    void *memory = NULL;

    if (!p->memory &&
        !REAL_FUNCTION(cuMemHostAlloc)(&memory, GATE_BYTES + 2 * SIDE_BYTES,
                                       CU_MEMHOSTALLOC_PORTABLE |
                                           CU_MEMHOSTALLOC_DEVICEMAP)) {
        memset(memory, 0, GATE_BYTES);
        p->memory = memory;
    }
    return p->memory;
}

struct parcel *parcel_open(uint64_t stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct timespec pause = {.tv_nsec = 100000};
    const long a[6] = {(long)&pause};
    struct parcel *p;

    if (is_captured(stream))
        return NULL;
    pthread_once(&once, serve_start);
    while (!(p = parcel_take()))
        raw_call(SYS_nanosleep, a);
    if (!has_memory(p)) {
        atomic_store(&p->state, FREE);
        return NULL;
    }
    p->stream = stream;
    p->count = 0;
    p->sent = p->brought = 0;
    pthread_mutex_lock(&lock);
    p->ticket = ++tickets;
    pthread_mutex_unlock(&lock);
    return p;
}

/* BYTES of the SIDE (0: out, 1: in), of which *USED are. */
static uint64_t side_take(const struct parcel *p, int side, uint64_t *used,
                          uint64_t bytes)
{
    uint64_t at = (uint64_t)p->memory + GATE_BYTES +
                  (uint64_t)side * SIDE_BYTES + *used;

    *used += (bytes + 15) & ~UINT64_C(15);
    return at;
}

bool parcel_add(struct parcel *p, const struct exchange *e)
{
    bool small = exchange_is_small(e);
    uint64_t out = small ? exchange_sent(e) : 0;
    uint64_t in = small ? exchange_received(e) : 0;

    if (p->count == ITEMS || p->sent + out > SIDE_BYTES - 16 ||
        p->brought + in > SIDE_BYTES - 16)
        return false;
    struct item *item = &p->items[p->count++];
    *item = (struct item){.wait = {.e = *e}, .to = e->receive, .bytes = in};
    struct exchange *own = &item->wait.e;
    own->send = out ? side_take(p, 0, &p->sent, out) : 0;
    own->receive = in ? side_take(p, 1, &p->brought, in) : 0;
    if (!small)
        own->share = 0; /* that it comes is all that travels */
    if (out)
        REAL_FUNCTION(cuMemcpyDtoHAsync)((void *)own->send, e->send, out,
                                         (CUstream)p->stream);
    return true;
}

void parcel_send(struct parcel *p)
{
    REAL_FUNCTION(cuLaunchHostFunc)((CUstream)p->stream, on_post, p);
}

void parcel_bring(struct parcel *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->items[i].bytes)
            REAL_FUNCTION(cuMemcpyHtoDAsync)(
                p->items[i].to, (const void *)p->items[i].wait.e.receive,
                p->items[i].bytes, (CUstream)p->stream);
    REAL_FUNCTION(cuLaunchHostFunc)((CUstream)p->stream, on_brought, p);
}

struct parcel_gate parcel_gate(const struct parcel *p)
{
    return (struct parcel_gate){(uint64_t)p->memory, p->ticket};
}
