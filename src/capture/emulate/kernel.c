/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/emulate/kernel.h"

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>

#include "capture/core/run/process.h"
#include "capture/emulate/ptx.h"
#include "capture/real/real.h"
#include "common/trace/session.h"

#define THREADS 512 /* of a block, as NCCL's */
#define STAMPS  4096 /* more than works that a GPU has to do at a time */
#define WIDE    16  /* bytes that are copied at a time, where all is aligned */
#define NAME(type) EMULATED_NAME(type)

/* --- which of them -------------------------------------------------------- */

enum form {
    FORM_BYTES,
    FORM_WIDE,
    FORM_F32,
    FORM_F64,
    FORM_F16,
    FORM_BF16,
    FORM_I8,
    FORM_I32,
    FORM_I64,
    FORM_DELAY,
    FORMS,
};

static const char *const names[FORMS] = {
    [FORM_BYTES] = NAME("c"),
    [FORM_WIDE] = NAME("5uint4"),
    [FORM_F32] = NAME("f"),
    [FORM_F64] = NAME("d"),
    [FORM_F16] = NAME("6__half"),
    [FORM_BF16] = NAME("13__nv_bfloat16"),
    [FORM_I8] = NAME("a"),
    [FORM_I32] = NAME("i"),
    [FORM_I64] = NAME("l"),
    [FORM_DELAY] = EMULATED_DELAY,
};

static const struct {
    uint8_t bytes, form; /* of a type, where it is multiplied */
} types[] = {
    [ncclInt8] = {1, FORM_I8},        [ncclUint8] = {1, FORM_I8},
    [ncclInt32] = {4, FORM_I32},      [ncclUint32] = {4, FORM_I32},
    [ncclInt64] = {8, FORM_I64},      [ncclUint64] = {8, FORM_I64},
    [ncclFloat16] = {2, FORM_F16},    [ncclFloat32] = {4, FORM_F32},
    [ncclFloat64] = {8, FORM_F64},    [ncclBfloat16] = {2, FORM_BF16},
    [ncclFloat8e4m3] = {1, FORM_BYTES}, [ncclFloat8e5m2] = {1, FORM_BYTES},
};

static enum form form_of(const struct emulated *k, uint64_t *count)
{
    uint64_t bytes = k->count * types[k->type].bytes;

    *count = k->count;
    if (k->factor != 1 && types[k->type].form != FORM_BYTES)
        return (enum form)types[k->type].form;
    bool wide = !((k->send | k->receive | bytes) % WIDE);
    *count = wide ? bytes / WIDE : bytes;
    return wide ? FORM_WIDE : FORM_BYTES;
}

/* --- the card ------------------------------------------------------------- */

static struct card {
    bool tried;
    CUresult result;
    CUfunction functions[FORMS];
    CUdeviceptr last; /* when the last one ended; 0: not wanted so far */
    CUdeviceptr stamps; /* STAMPS times; 0: likewise */
} cards[SESSION_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of cards */

static CUresult card_load(struct card *card)
{
    CUmodule module;
    CUresult rc = REAL_FUNCTION(cuModuleLoadData)(&module, emulated_code);

    for (int f = 0; f < FORMS && !rc; f++)
        rc = REAL_FUNCTION(cuModuleGetFunction)(&card->functions[f], module,
                                                names[f]);
    if (rc)
        memsim_note("the driver refuses the kernel that stands for NCCL's "
                    "(it answers %d): it needs compute capability 7.0",
                    (int)rc);
    return rc;
}

/* COUNT times in *TIMES, all 0. */
static CUresult times_make(CUdeviceptr *times, size_t count)
{
    size_t bytes = count * sizeof(uint64_t);
    CUresult rc = REAL_FUNCTION(cuMemAlloc)(times, bytes);

    return rc ? rc : REAL_FUNCTION(cuMemsetD8)(*times, 0, bytes);
}

/* DEVICE with the code on it; and with what kernels that lag, or stamps, need.
 */
static struct card *card_open(int device, bool lags, bool stamps)
{
    struct card *card = &cards[device];

    pthread_mutex_lock(&lock);
    if (!card->tried)
        card->result = card_load(card);
    card->tried = true;
    if (lags && !card->last && !card->result)
        card->result = times_make(&card->last, 1);
    if (stamps && !card->stamps && !card->result)
        card->result = times_make(&card->stamps, STAMPS);
    pthread_mutex_unlock(&lock);
    return card;
}

int kernel_launch(int device, const struct emulated *k)
{
    struct card *card = card_open(device, k->lag > 0, false);
    uint64_t count, send = k->send, receive = k->receive, shares = k->shares;
    uint64_t ns = k->ns, nodes = k->nodes, gate = k->gate, ticket = k->ticket;
    enum form form = form_of(k, &count);
    double factor = k->factor, lag = k->lag;
    CUdeviceptr last = k->lag > 0 ? card->last : 0;
    void *arguments[] = {&send,  &receive, &count, &shares, &factor, &ns,
                         &nodes, &lag,     &last,  &gate,   &ticket};

    if (card->result)
        return (int)card->result;
    return (int)REAL_FUNCTION(cuLaunchKernel)(
        card->functions[form], k->blocks, 1, 1, THREADS, 1, 1, 0,
        (CUstream)k->stream, arguments, NULL);
}

int kernel_delay(int device, const struct emulated_delay *d)
{
    struct card *card = card_open(device, false, d->stamp);
    uint64_t ns = d->ns, parts = d->parts;
    CUdeviceptr last =
        d->stamp ? card->stamps + d->stamp % STAMPS * sizeof(uint64_t) : 0;
    void *arguments[] = {&ns, &parts, &last};

    if (card->result)
        return (int)card->result;
    return (int)cuLaunchKernel(card->functions[FORM_DELAY], 1, 1, 1, 1, 1, 1, 0,
                               (CUstream)d->stream, arguments, NULL);
}
