/* SPDX-License-Identifier: Apache-2.0
 * PyTorch tells an observer of every operator, node of autograd and range of
 * record_function (ATen/record_function.h). Ours notes which run, and asks for
 * a name only when one is wanted: it costs some tens of nanoseconds each, and
 * neither the profiler nor its user notices. */
#include "capture/core/torch/tag_operator.h"

#include <dlfcn.h>
#include <string.h>

#include "capture/core/run/record.h"
#include "common/base/text_begins.h"

#define DEPTH        64
#define RANGE_DEPTH  16
#define SCOPES       10 /* at::RecordScope::NUM_SCOPES, from 1.11 on */
#define STEP_PREFIX  "Optimizer.step#"
#define ACCUMULATION "torch::autograd::AccumulateGrad"

enum scope { SCOPE_FUNCTION, SCOPE_BACKWARD_FUNCTION, SCOPE_USER = 7 };

/* at::RecordFunctionCallback, which is passed by value. A start callback
 * returns a std::unique_ptr in memory that the caller gives. */
struct callback {
    void *(*start)(void **result, const void *function);
    void (*end)(const void *function, void *context);
    double sampling;
    bool scopes[SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
};

/* What runs on a thread, the innermost last. Deeper ones are only counted. */
static _Thread_local struct {
    const void *functions[DEPTH];
    uint64_t serials[DEPTH];
    uint64_t started; /* so far */
    unsigned depth;
    struct {
        const void *function;
        uint32_t name;
        bool step;
    } ranges[RANGE_DEPTH];
    unsigned range_depth;
} running;

static const char *(*function_name)(const void *function);

static void *function_start(void **result, const void *function)
{
    running.started++;
    if (running.depth < DEPTH) {
        running.functions[running.depth] = function;
        running.serials[running.depth] = running.started;
    }
    running.depth++;
    *result = NULL;
    return result;
}

static void function_end(const void *function, void *context)
{
    (void)function;
    (void)context;
    if (running.depth)
        running.depth--;
}

/* The ranges of PyTorch's own parallelism: few, and always the same ones. A
 * user's may have a number in it, and each would be a name for ever. */
static bool is_known_range(const char *name)
{
    static const char *const prefixes[] = {
        STEP_PREFIX,
        "FSDP::",
        "FullyShardedDataParallel.",
        "DistributedDataParallel.",
        "torch.distributed.",
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (text_begins(name, prefixes[i]))
            return true;
    return false;
}

static void range_push(const void *function, const char *name)
{
    if (running.range_depth == RANGE_DEPTH)
        return;
    running.ranges[running.range_depth].function = function;
    running.ranges[running.range_depth].name = memsim_name(name);
    running.ranges[running.range_depth].step = text_begins(name, STEP_PREFIX);
    running.range_depth++;
}

/* A range may end on another thread; then it is not found here, and goes with
 * the next one around it. */
static void range_pop(const void *function)
{
    for (unsigned i = running.range_depth; i-- > 0;)
        if (running.ranges[i].function == function) {
            running.range_depth = i;
            return;
        }
}

static void *range_start(void **result, const void *function)
{
    const char *name = function_name(function);

    *result = NULL;
    if (is_known_range(name))
        range_push(function, name);
    return result;
}

static void range_end(const void *function, void *context)
{
    (void)context;
    range_pop(function);
}

void operator_range_set(const char *name)
{
    if (name)
        range_push(NULL, name);
    else
        range_pop(NULL);
}

void operator_attach(void *library)
{
    void (*add)(struct callback callback);
    struct callback functions = {
        .start = function_start,
        .end = function_end,
        .sampling = 1,
        .scopes = {[SCOPE_FUNCTION] = true, [SCOPE_BACKWARD_FUNCTION] = true},
    };
    struct callback ranges = {
        .start = range_start,
        .end = range_end,
        .sampling = 1,
        .scopes = {[SCOPE_USER] = true},
    };

    *(void **)&add = dlsym(
        library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
    *(void **)&function_name = dlsym(library, "_ZNK2at14RecordFunction4nameEv");
    if (!add || !function_name)
        return;
    add(functions);
    add(ranges);
}

/* What only makes room for another operator, or for autograd's engine. */
static bool is_plumbing(const char *name)
{
    static const char *const prefixes[] = {
        "aten::empty",
        "aten::new_empty",
        "aten::resize",
        "autograd::engine",
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (text_begins(name, prefixes[i]))
            return true;
    return false;
}

uint32_t operator_name(void)
{
    unsigned depth = running.depth < DEPTH ? running.depth : DEPTH;
    const char *innermost = NULL, *best = NULL;

    for (unsigned i = depth; i-- > 0;) {
        const char *name = function_name(running.functions[i]);
        if (!strcmp(name, ACCUMULATION))
            return memsim_name(name);
        innermost = innermost ? innermost : name;
        if (!best && !is_plumbing(name))
            best = name;
    }
    best = best ? best : innermost;
    return best ? memsim_name(best) : 0;
}

uint32_t operator_outermost(void)
{
    return running.depth ? memsim_name(function_name(running.functions[0])) : 0;
}

bool operator_runs(const char *name)
{
    for (unsigned i = running.depth < DEPTH ? running.depth : DEPTH; i-- > 0;)
        if (!strcmp(function_name(running.functions[i]), name))
            return true;
    return false;
}

uint64_t operator_serial(void)
{
    return running.depth && running.depth <= DEPTH
               ? running.serials[running.depth - 1]
               : 0;
}

uint32_t operator_range(void)
{
    return running.range_depth ? running.ranges[running.range_depth - 1].name
                               : 0;
}

bool operator_in_step(void)
{
    for (unsigned i = running.range_depth; i-- > 0;)
        if (running.ranges[i].step)
            return true;
    return false;
}
