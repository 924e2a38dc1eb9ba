/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/graph_steps.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/work/carry.h"
#include "capture/core/memory/device.h"
#include "capture/core/work/graph.h"
#include "capture/core/work/kernel.h"
#include "capture/core/base/handle.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/base/pages.h"
#include "capture/core/work/stream.h"
#include "capture/core/torch/tag.h"
#include "capture/core/memory/values.h"

#define CHUNK_BYTES        (UINT64_C(64) << 10)
#define ARGUMENT_BYTES_MAX (UINT64_C(64) << 20) /* of one graph */

static const struct graph_changes no_changes;

struct step_chunk {
    struct step_chunk *next;
    uint64_t used;
};

struct kernel_step {
    compute_run *run;
    const struct compute *compute;
    struct kernel_launch launch;
    struct tag tag; /* where it was captured */
    void *arguments[CARRY_ARGUMENTS];
};

/* BYTES, at most a chunk's, for as long as STEPS lives. */
static void *steps_keep(struct graph_steps *steps, uint64_t bytes)
{
    struct step_chunk *chunk = steps->chunks;

    bytes = (bytes + 15) & ~UINT64_C(15);
    if (!chunk || chunk->used + bytes > CHUNK_BYTES) {
        chunk = memsim_pages_reserve(0, CHUNK_BYTES);
        if (!chunk)
            return NULL;
        chunk->next = steps->chunks;
        chunk->used = sizeof *chunk;
        steps->chunks = chunk;
    }
    void *place = (char *)chunk + chunk->used;
    chunk->used += bytes;
    return place;
}

void graph_steps_add(struct graph_steps *steps, enum step_kind kind,
                     const uint64_t words[STEP_WORDS])
{
    struct step *step = steps_keep(steps, sizeof *step);

    if (!step)
        return;
    step->kind = kind;
    memcpy(step->words, words, sizeof step->words);
    if (steps->last)
        steps->last->next = step;
    else
        steps->first = step;
    steps->last = step;
    steps->count++;
}

static uint64_t arguments_bytes(const struct compute *compute,
                                const struct kernel_launch *launch)
{
    uint64_t bytes = 0;

    for (int i = 0; i < CARRY_ARGUMENTS; i++)
        bytes += (carry->argument_bytes(compute, launch, i) + 15u) & ~15u;
    return bytes;
}

/* Of the arguments, which the caller may change when the launch returns, that
 * which is read when they are used: no byte beyond one. */
static struct kernel_step *kernel_keep(struct graph_steps *steps,
                                       compute_run *run,
                                       const struct compute *compute,
                                       const struct kernel_launch *launch)
{
    uint64_t bytes = arguments_bytes(compute, launch);
    struct kernel_step *k = steps->argument_bytes + bytes > ARGUMENT_BYTES_MAX
                                ? NULL
                                : steps_keep(steps, sizeof *k + bytes);

    if (!k)
        return NULL;
    steps->argument_bytes += bytes;
    k->run = run;
    k->compute = compute;
    k->launch = *launch;
    k->launch.arguments = k->arguments;
    tag_now(&k->tag);
    char *place = (char *)(k + 1);
    for (int i = 0; i < CARRY_ARGUMENTS; i++) {
        uint32_t size = carry->argument_bytes(compute, launch, i);

        if (!size)
            continue;
        k->arguments[i] = memcpy(place, launch->arguments[i], size);
        place += (size + 15u) & ~15u;
    }
    return k;
}

static void add_words(struct graph_steps *steps, enum step_kind kind,
                      uint64_t a, uint64_t b)
{
    graph_steps_add(steps, kind, (const uint64_t[STEP_WORDS]){a, b});
}

static void compute_add(struct graph_steps *steps, const struct kernel *kernel,
                        const struct kernel_launch *launch)
{
    struct values_log log = {0};
    const struct kernel_step *kept = NULL;

    values_divert(&log);
    carry_run(kernel->compute, kernel->run, launch);
    values_divert(NULL);
    if (log.is_needed)
        kept = kernel_keep(steps, kernel->run, kernel->compute, launch);
    if (kept)
        add_words(steps, STEP_KERNEL, (uint64_t)kept,
                  log.count ? log.pieces[0].address : 0);
    for (uint32_t i = 0; !kept && i < log.count; i++)
        add_words(steps, STEP_FORGET, log.pieces[i].address,
                  log.pieces[i].bytes);
}

void graph_steps_kernel(struct graph_steps *steps, const struct kernel *kernel,
                        const struct kernel_launch *launch)
{
    if (!launch->arguments)
        return;
    if (kernel->run)
        compute_add(steps, kernel, launch);
    kernel_blocks_step(steps, kernel, launch);
    for (uint32_t i = 0, left = kernel->pointers; left; i++, left >>= 1) {
        uint64_t address;

        if (!(left & 1))
            continue;
        memcpy(&address, launch->arguments[i], sizeof address);
        if (memsim_values_is_device(address))
            add_words(steps, STEP_GIVE, address, (uint64_t)kernel);
    }
}

/* What STEP refers to, for a step of TO; false where there is no room. */
static bool step_share(struct graph_steps *to, const struct step *step,
                       uint64_t words[STEP_WORDS])
{
    const struct kernel_step *k = (const struct kernel_step *)step->words[0];
    struct kernel_step *kept;

    memcpy(words, step->words, sizeof step->words);
    if (step->kind == STEP_CHILD)
        atomic_fetch_add(&((struct graph_body *)words[0])->references, 1);
    if (step->kind != STEP_KERNEL)
        return true;
    kept = kernel_keep(to, k->run, k->compute, &k->launch);
    if (kept)
        kept->tag = k->tag;
    words[0] = (uint64_t)kept;
    return kept;
}

void graph_steps_copy(struct graph_steps *to, const struct graph_steps *from)
{
    uint64_t words[STEP_WORDS];

    for (const struct step *s = from->first; s; s = s->next)
        if (step_share(to, s, words)) {
            graph_steps_add(to, s->kind, words);
            if (to->last)
                to->last->node = s->node;
        }
    to->claimed = to->last;
}

void graph_steps_claim(struct graph_steps *steps, uint32_t node)
{
    struct step *s = steps->claimed ? steps->claimed->next : steps->first;

    for (; s; s = s->next)
        if (s->kind != STEP_FRESH)
            s->node = node;
    add_words(steps, STEP_NODE, 0, 0);
    steps->claimed = steps->last;
    if (steps->last)
        steps->last->node = node;
}

void graph_steps_fini(struct graph_steps *steps)
{
    for (const struct step *s = steps->first; s; s = s->next)
        if (s->kind == STEP_CHILD)
            graph_body_release((struct graph_body *)s->words[0]);
    for (struct step_chunk *c = steps->chunks, *next; c; c = next) {
        next = c->next;
        munmap(c, CHUNK_BYTES);
    }
    *steps = (struct graph_steps){0};
}

/* Which words of a step are addresses that are certainly read or written. */
static const unsigned char addresses[] = {
    [STEP_FORGET] = 1, [STEP_COPY] = 3,   [STEP_SET] = 1,
    [STEP_GIVE] = 1,   [STEP_KERNEL] = 2, [STEP_NODE] = 0,
};

void graph_steps_mark(struct graph_steps *steps)
{
    for (struct step *s = steps->first; s; s = s->next)
        for (uint32_t i = 0; addresses[s->kind] >> i; i++)
            if (addresses[s->kind] >> i & 1 &&
                memsim_device_find(s->words[i], NULL, NULL, NULL))
                s->lives |= 1u << i;
}

void graph_steps_check(const struct graph_steps *steps, int device)
{
    for (const struct step *s = steps->first; s; s = s->next) {
        const struct kernel *kernel = (const struct kernel *)s->words[1];

        for (uint32_t i = 0; s->lives >> i; i++)
            if (s->lives >> i & 1)
                misuse_graph(s->kind == STEP_GIVE ? kernel : NULL, s->words[i],
                             device);
        if (s->kind == STEP_GIVE)
            misuse_given(kernel, s->words[0], device);
    }
}

static const struct graph_body *child_of(const struct step *step)
{
    return (const struct graph_body *)step->words[0];
}

static uint64_t actions_most(const struct graph_steps *steps,
                             const struct graph_changes *changes)
{
    uint64_t most = steps->count;

    for (const struct step *s = steps->first; s; s = s->next)
        if (s->kind == STEP_CHILD)
            most += actions_most(&child_of(s)->steps, &child_of(s)->changes);
    for (uint32_t i = 0; i < changes->count; i++)
        if (changes->of[i].work)
            most += actions_most(&changes->of[i].work->steps, &no_changes);
    return most;
}

/* The actions from FIRST on are ranges to forget, in the order of their
 * addresses, none of which touches another: [ADDRESS, END) joins them. */
static void range_insert(struct graph_plan *plan, uint32_t first,
                         uint64_t address, uint64_t end)
{
    struct graph_action *a = plan->actions;
    uint32_t low = first, high = plan->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (a[middle].address + a[middle].bytes < address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; high < plan->count && a[high].address <= end; high++) {
        if (a[high].address < address)
            address = a[high].address;
        if (a[high].address + a[high].bytes > end)
            end = a[high].address + a[high].bytes;
    }
    memmove(a + low + 1, a + high, (plan->count - high) * sizeof *a);
    plan->count += 1 + low - high;
    a[low] = (struct graph_action){NULL, address, end - address};
}

static uint32_t plan_fill(struct graph_plan *plan, uint32_t first,
                          const struct graph_steps *steps,
                          const struct graph_changes *changes, uint32_t nodes);

/* FIRST is where the run of ranges begins that ends the plan; returns the same
 * for what comes next. */
static uint32_t step_fill(struct graph_plan *plan, uint32_t first,
                          const struct step *s)
{
    switch (s->kind) {
    case STEP_FORGET:
    case STEP_FRESH:
        range_insert(plan, first, s->words[0], s->words[0] + s->words[1]);
        return first;
    case STEP_CHILD:
        return plan_fill(plan, first, &child_of(s)->steps,
                         &child_of(s)->changes, UINT32_MAX);
    case STEP_GIVE:
    case STEP_NODE:
        return first;
    default:
        plan->actions[plan->count++].step = s;
        return plan->count;
    }
}

static uint32_t plan_fill(struct graph_plan *plan, uint32_t first,
                          const struct graph_steps *steps,
                          const struct graph_changes *changes, uint32_t nodes)
{
    for (const struct step *s = steps->first; s; s = s->next) {
        const struct graph_change *change = graph_change_of(changes, s->node);

        if (s->node > nodes || (change && change->is_off))
            continue;
        if (!change || !change->work)
            first = step_fill(plan, first, s);
        else if (s->kind == STEP_NODE)
            first = plan_fill(plan, first, &change->work->steps, &no_changes,
                              UINT32_MAX);
    }
    return first;
}

void graph_plan_init(struct graph_plan *plan, const struct graph_steps *steps,
                     const struct graph_changes *changes, uint32_t nodes)
{
    uint64_t bytes = actions_most(steps, changes) * sizeof *plan->actions;

    *plan = (struct graph_plan){0};
    if (bytes)
        plan->actions = memsim_pages_reserve(0, bytes);
    if (!plan->actions)
        return;
    plan->mapped_bytes = bytes;
    plan_fill(plan, 0, steps, changes, nodes);
}

void graph_plan_fini(struct graph_plan *plan)
{
    if (plan->actions)
        munmap(plan->actions, plan->mapped_bytes);
    *plan = (struct graph_plan){0};
}

static void kernel_run(const struct kernel_step *k, uint64_t stream)
{
    struct kernel_launch launch = k->launch;

    launch.stream = stream;
    tag_lend(&k->tag);
    carry_run(k->compute, k->run, &launch);
    tag_lend(NULL);
}

static void step_run(const struct step *step, uint64_t stream)
{
    const uint64_t *w = step->words;

    switch (step->kind) {
    case STEP_COPY:
        memsim_values_copy(w[0], w[1], w[2]);
        return;
    case STEP_SET:
        memsim_values_fill(w[0], &w[1], w[2], w[3]);
        return;
    case STEP_HOST:
        ((void (*)(void *))w[0])((void *)w[1]);
        return;
    case STEP_EVENT: /* it may have been destroyed since */
        if (memsim_handle_get(HANDLE_EVENT, (const void *)w[0]))
            memsim_event_record(w[0], stream, false);
        return;
    case STEP_KERNEL:
        kernel_run((const struct kernel_step *)w[0], stream);
        return;
    default: /* the plan has none of the others */
        return;
    }
}

void graph_plan_run(const struct graph_plan *plan, uint64_t stream)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct graph_action *a = &plan->actions[i];

        if (a->step)
            step_run(a->step, stream);
        else
            memsim_values_forget(a->address, a->bytes);
    }
}
