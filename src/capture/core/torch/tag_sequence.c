/* SPDX-License-Identifier: Apache-2.0
 * Changes are kept in chunks of one thread each, out of a ring of them: the
 * oldest is taken again when all are used, threads that end leave theirs
 * behind. So the last half a million changes are known, in 8 MiB: a step of a
 * large model has some ten thousand. */
#include "capture/core/torch/tag_sequence.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "capture/core/base/pages.h"

#define CHUNKS        128u
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
 * function.h, node.h): the same from 2.0 on, behind what counts its uses. */
struct node {
    uint64_t sequence;
    uint64_t topological;
    bool has_parent, hooks_fired;
    uint64_t thread;
};

/* libstdc++'s _Sp_counted_base, and c10::intrusive_ptr_target as far as the
 * lower half of its count. */
struct control {
    void *table;
    _Atomic int32_t uses;
};

/* std::shared_ptr<Node>, or c10::intrusive_ptr<Node>, which is `node` alone. */
struct held_node {
    char *node;
    struct control *control;
};

/* How a PyTorch holds its nodes: until 2.11 they are std::shared_ptr, after it
 * c10::intrusive_ptr, which its functions' mangled names tell. */
static const struct holding {
    const char *function; /* torch::autograd::impl::set_grad_accumulator */
    size_t head_bytes;    /* of a node, before what `struct node` has */
    bool intrusive;
} holdings[] = {
    {"_ZN5torch8autograd4impl20set_grad_accumulatorERKN2at6TensorESt8weak_ptr"
     "INS0_4NodeEE",
     24, false},
    {"_ZN5torch8autograd4impl20set_grad_accumulatorERKN2at6TensorEN3c1018weak_"
     "intrusive_ptrINS0_4NodeENS6_6detail34intrusive_target_default_null_type"
     "IS8_EEEE",
     16, true},
};

static uint64_t (*sequence_peek)(void);
static uint64_t (*thread_current)(void);
static struct held_node *(*node_current)(struct held_node *result);
static const struct holding *holding; /* NULL: in a way we do not know */

static struct chunk *chunks;
static _Atomic uint32_t taken;
static _Thread_local struct chunk *mine, *last;

/* PyTorch's own names for at::sequence_number::peek(),
 * at::RecordFunction::currentThreadId() and
 * torch::autograd::get_current_node(), which returns its pointer in memory that
 * the caller gives. */
void sequence_attach(void *library)
{
    *(void **)&sequence_peek = dlsym(library, "_ZN2at15sequence_number4peekEv");
    *(void **)&thread_current =
        dlsym(library, "_ZN2at14RecordFunction15currentThreadIdEv");
    *(void **)&node_current =
        dlsym(library, "_ZN5torch8autograd16get_current_nodeEv");
    for (size_t i = 0; i < sizeof holdings / sizeof *holdings; i++)
        if (dlsym(library, holdings[i].function))
            holding = &holdings[i];
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

/* Whoever evaluates the node holds it, and NodeGuard does, so ours is never
 * the last use, nor the last but one, at which an intrusive_ptr's target would
 * have to tell its PyObject. */
static void held_node_release(const struct held_node *held)
{
    struct control *control = held->control;

    if (holding->intrusive)
        control = (struct control *)held->node;
    if (control)
        atomic_fetch_sub(&control->uses, 1);
}

bool sequence_node(uint32_t *module)
{
    struct held_node held = {0};

    *module = 0;
    if (!node_current || !holding || !chunks)
        return false;
    node_current(&held);
    if (!held.node)
        return false;
    const struct node *node =
        (const struct node *)(held.node + holding->head_bytes);
    *module = module_of(node->thread, node->sequence);
    held_node_release(&held);
    return true;
}
