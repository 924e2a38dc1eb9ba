/* SPDX-License-Identifier: Apache-2.0
 * Changes are kept in chunks of one thread each, out of a ring of them: the
 * oldest is taken again when all are used, threads that end leave theirs
 * behind. So the last two million changes are known, in 32 MiB. */
#include "capture/core/tag_sequence.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "capture/core/pages.h"

#define CHUNKS        512u
#define CHUNK_CHANGES 4096u

struct change {
    uint64_t sequence; /* of the first node */
    uint64_t module;
};

struct chunk {
    _Atomic uint64_t thread; /* as PyTorch numbers threads; 0: not in use */
    _Atomic uint32_t count;
    struct change changes[CHUNK_CHANGES];
};

/* As far as it is read of torch::autograd::Node (torch/csrc/autograd/
 * function.h): the same from 2.0 on. */
struct node {
    void *table;
    void *shared_from_this[2];
    uint64_t sequence;
    uint64_t topological;
    bool has_parent;
    uint64_t thread;
};

/* std::shared_ptr<Node>, and libstdc++'s _Sp_counted_base behind it. */
struct shared_node {
    struct node *node;
    struct control {
        void *table;
        _Atomic int32_t uses;
    } * control;
};

static uint64_t (*sequence_peek)(void);
static uint64_t (*thread_current)(void);
static struct shared_node *(*node_current)(struct shared_node *result);

static struct chunk *chunks;
static _Atomic uint32_t taken;
static _Thread_local struct chunk *mine, *last;

/* PyTorch's own names for at::sequence_number::peek(),
 * at::RecordFunction::currentThreadId() and
 * torch::autograd::get_current_node(), which returns its shared_ptr in memory
 * that the caller gives. */
void sequence_attach(void *library)
{
    *(void **)&sequence_peek = dlsym(library, "_ZN2at15sequence_number4peekEv");
    *(void **)&thread_current =
        dlsym(library, "_ZN2at14RecordFunction15currentThreadIdEv");
    *(void **)&node_current =
        dlsym(library, "_ZN5torch8autograd16get_current_nodeEv");
    chunks = memsim_pages_reserve(0, CHUNKS * sizeof *chunks);
}

static struct chunk *chunk_take(uint64_t thread)
{
    struct chunk *c = &chunks[atomic_fetch_add(&taken, 1) % CHUNKS];

    atomic_store(&c->thread, 0);
    atomic_store(&c->count, 0);
    atomic_store(&c->thread, thread);
    return c;
}

void sequence_change(uint32_t module)
{
    if (!sequence_peek || !thread_current || !chunks)
        return;
    uint64_t sequence = sequence_peek(), thread = thread_current();
    uint32_t count = mine ? atomic_load(&mine->count) : 0;
    if (!mine || count == CHUNK_CHANGES ||
        atomic_load(&mine->thread) != thread) {
        mine = chunk_take(thread);
        count = 0;
    }
    bool again = count && mine->changes[count - 1].sequence == sequence;
    mine->changes[again ? count - 1 : count] =
        (struct change){sequence, module};
    if (!again)
        atomic_store(&mine->count, count + 1);
}

static bool chunk_covers(const struct chunk *c, uint64_t thread,
                         uint64_t sequence)
{
    return atomic_load(&c->thread) == thread && atomic_load(&c->count) &&
           c->changes[0].sequence <= sequence;
}

/* The chunk of THREAD with the last change at or before SEQUENCE. */
static struct chunk *chunk_find(uint64_t thread, uint64_t sequence)
{
    struct chunk *best = NULL;

    for (uint32_t i = 0; i < CHUNKS && i < atomic_load(&taken); i++) {
        struct chunk *c = &chunks[i];
        if (chunk_covers(c, thread, sequence) &&
            (!best || c->changes[0].sequence > best->changes[0].sequence))
            best = c;
    }
    return best;
}

static bool chunk_ends_before(const struct chunk *c, uint64_t sequence)
{
    uint32_t count = atomic_load(&c->count);

    return c->changes[count - 1].sequence < sequence;
}

static uint32_t chunk_module(const struct chunk *c, uint64_t sequence)
{
    uint32_t low = 0, high = atomic_load(&c->count);

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (c->changes[middle].sequence <= sequence)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)c->changes[low].module;
}

static uint32_t module_of(uint64_t thread, uint64_t sequence)
{
    if (sequence == UINT64_MAX) /* AccumulateGrad: every parameter's */
        return 0;
    if (!last || !chunk_covers(last, thread, sequence) ||
        chunk_ends_before(last, sequence))
        last = chunk_find(thread, sequence);
    return last ? chunk_module(last, sequence) : 0;
}

/* Whoever evaluates the node holds it too, so ours is never the last use. */
static void shared_node_release(struct shared_node *shared)
{
    if (shared->control)
        atomic_fetch_sub(&shared->control->uses, 1);
}

bool sequence_node(uint32_t *module)
{
    struct shared_node shared = {0};

    *module = 0;
    if (!node_current || !chunks)
        return false;
    node_current(&shared);
    if (!shared.node)
        return false;
    *module = module_of(shared.node->thread, shared.node->sequence);
    shared_node_release(&shared);
    return true;
}
