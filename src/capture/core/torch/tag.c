/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/tag.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "capture/core/run/process.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/cpu_look.h"
#include "capture/core/torch/kept.h"
#include "capture/core/torch/tag_operator.h"
#include "capture/core/torch/tag_sequence.h"

#define MODULES_MAX (1u << 24)
#define DEPTH       256

struct module {
    uint32_t root, name;
};

/* The modules that a thread is in, the innermost last. Deeper ones are only
 * counted. */
static _Thread_local struct {
    struct {
        uint32_t module;
        bool recomputes; /* entered by a node of autograd */
    } open[DEPTH];
    unsigned depth;
} inside;

static _Thread_local uint32_t within; /* of a compiled graph's modules */
static bool started;
static struct module *modules; /* by id */
static _Atomic uint32_t module_top;
static _Atomic uint32_t current_phase;

void memsim_tag_start(void)
{
    void *library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);

    if (started || !library)
        return;
    modules = memsim_pages_reserve(0, MODULES_MAX * sizeof *modules);
    if (!modules)
        return;
    sequence_attach(library);
    operator_attach(library);
    started = true;
    RECORD(PHASE, .phase = TRACE_PHASE_INIT);
}

static void module_record(uint32_t id)
{
    if (modules[id].name)
        RECORD(MODULE, .module = id, .root = modules[id].root,
               .name = modules[id].name);
}

void memsim_tag_module(uint32_t id, uint32_t root, const char *name)
{
    if (!started || id >= MODULES_MAX)
        return;
    modules[id] = (struct module){root, memsim_name(name)};
    if (atomic_load(&module_top) < id)
        atomic_store(&module_top, id);
    module_record(id);
}

/* A trace begins, in which no module has a name yet. */
static void modules_record(void)
{
    uint32_t top = atomic_load(&module_top);

    if (!started)
        return;
    for (uint32_t id = 1; id <= top; id++)
        module_record(id);
    RECORD(PHASE, .phase = atomic_load(&current_phase));
}

void memsim_tag_end(void)
{
    if (started)
        RECORD(PHASE, .phase = atomic_load(&current_phase));
}

static void phase_set(uint32_t phase)
{
    if (atomic_exchange_explicit(&current_phase, phase, memory_order_relaxed) !=
        phase)
        RECORD(PHASE, .phase = phase);
}

static unsigned innermost_tag(void)
{
    return (inside.depth < DEPTH ? inside.depth : DEPTH) - 1;
}

uint32_t memsim_tag_top(void)
{
    return inside.depth ? inside.open[innermost_tag()].module : 0;
}

static bool tag_recomputes(void)
{
    return inside.depth && inside.open[innermost_tag()].recomputes;
}

void memsim_tag_enter(uint32_t id)
{
    uint32_t module;
    bool in_node = sequence_node(&module);

    if (!inside.depth && !in_node) {
        kept_round();
        cpu_look_round();
    }
    if (inside.depth < DEPTH) {
        inside.open[inside.depth].module = id;
        inside.open[inside.depth].recomputes = in_node;
    }
    inside.depth++;
    sequence_change(id);
    phase_set(in_node ? TRACE_PHASE_RECOMPUTE : TRACE_PHASE_FORWARD);
    RECORD(MODULE_ENTER, .module = id);
}

/* How many modules stay open where ID is left; those that an exception kept
 * from being left go with it. */
static unsigned depth_below(uint32_t id)
{
    for (unsigned i = inside.depth; i-- > 0;)
        if (i >= DEPTH || inside.open[i].module == id)
            return i;
    return inside.depth;
}

void memsim_tag_leave(uint32_t id)
{
    unsigned below = depth_below(id);

    if (below == inside.depth)
        return;
    inside.depth = below;
    sequence_change(memsim_tag_top());
    RECORD(MODULE_LEAVE, .module = id);
}

void memsim_tag_cut(uint32_t depth)
{
    while (inside.depth > depth) {
        uint32_t id = memsim_tag_top();
        inside.depth--;
        RECORD(MODULE_LEAVE, .module = id);
    }
    sequence_change(memsim_tag_top());
}

void memsim_tag_within(uint32_t id)
{
    within = id;
}

void memsim_tag_range(const char *name)
{
    operator_range_set(name);
}

void memsim_tag_step(int begins)
{
    kept_restart(KEPT_OPTIMIZER);
    phase_set(begins ? TRACE_PHASE_OPTIMIZER : TRACE_PHASE_OTHER);
}

void memsim_tag_storage(uint64_t address, uint32_t id, uint32_t category,
                        uint32_t element_bytes, uint32_t name)
{
    RECORD(STORAGE, .address = address, .module = id, .category = category,
           .element_bytes = element_bytes, .name = name);
}

void memsim_tag_input(uint64_t address, uint32_t id)
{
    RECORD(INPUT, .address = address, .module = id);
}

void memsim_tag_batch(uint32_t id, uint64_t samples, uint64_t tokens,
                      uint32_t learns, uint64_t values)
{
    RECORD(BATCH, .module = id, .samples = samples, .tokens = tokens,
           .learns = learns, .values = values);
}

void memsim_tag_output(uint64_t address, uint32_t id)
{
    RECORD(OUTPUT, .address = address, .module = id);
}

/* Where nothing is at work: what is computed of a forward's results, a loss
 * say, still belongs to it. */
static uint32_t phase_between(void)
{
    uint32_t phase = atomic_load_explicit(&current_phase, memory_order_relaxed);

    return phase == TRACE_PHASE_INIT || phase == TRACE_PHASE_FORWARD
               ? phase
               : TRACE_PHASE_OTHER;
}

void tag_now(struct tag *tag)
{
    *tag = (struct tag){0};
    if (!started)
        return;
    bool in_node = sequence_node(&tag->module);
    if (in_node && !tag_recomputes()) {
        tag->phase = TRACE_PHASE_BACKWARD;
    } else if (inside.depth) {
        tag->module = within ? within : memsim_tag_top();
        tag->phase = in_node ? TRACE_PHASE_RECOMPUTE : TRACE_PHASE_FORWARD;
    } else {
        tag->phase =
            operator_in_step() ? TRACE_PHASE_OPTIMIZER : phase_between();
    }
    phase_set(tag->phase);
    tag->operation = operator_name();
    tag->range = operator_range();
}

static _Thread_local const struct tag *lent;

void tag_lend(const struct tag *tag)
{
    lent = tag;
}

void tag_names(const char **operation, const char **module)
{
    struct tag tag;

    if (lent)
        tag = *lent;
    else
        tag_now(&tag);
    *operation = tag.operation ? record_name(tag.operation) : NULL;
    *module = tag.module && modules[tag.module].name
                  ? record_name(modules[tag.module].name)
                  : NULL;
}

void tag_text(char *text, size_t bytes)
{
    const char *what, *module;

    tag_names(&what, &module);
    *text = 0;
    if (module && what)
        snprintf(text, bytes, " (%s in %s)", what, module);
    else if (module || what)
        snprintf(text, bytes, " (%s%s)", module ? "in " : "",
                 module ? module : what);
}

static struct process_hook hook = {.at_open = modules_record};

__attribute__((constructor)) static void tag_hook(void)
{
    process_hook_add(&hook);
}
