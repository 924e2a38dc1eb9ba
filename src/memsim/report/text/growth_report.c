/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/growth_report.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "memsim/attribution/stack_text.h"
#include "memsim/report/text/text_columns.h"

#define SIZE_LENGTH 16
#define KINDS       5 /* that the summary lists */
#define NAME_LENGTH 64
#define CALLS_MOST  1000000 /* of an evaluation */
#define GRAPH_KINDS 3 /* a graph keeps blocks of at least so many kinds */

static bool device_grows(const struct result_device *d)
{
    return d->growth.step_bytes != 0;
}

const struct result_device *growth_first(const struct result *result)
{
    const struct result_device *first = NULL;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (device_grows(w.device) &&
            (!first || w.device->growth.least < first->growth.least))
            first = w.device;
    return first;
}

/* --- words ---------------------------------------------------------------- */

/* "790 steps", "784 to 795 steps". */
static const char *steps_text(const struct result_growth *g, char *out,
                              size_t size)
{
    if (g->least == g->most)
        snprintf(out, size, "%" PRIu64 " steps", g->least);
    else
        snprintf(out, size, "%" PRIu64 " to %" PRIu64 " steps", g->least,
                 g->most);
    return out;
}

const char *growth_verdict(const struct result_device *d, uint64_t job_steps,
                           char *out, size_t size)
{
    char steps[64];

    steps_text(&d->growth, steps, sizeof steps);
    if (job_steps)
        snprintf(out, size, ": it runs out after %s of %" PRIu64, steps,
                 job_steps);
    else
        snprintf(out, size, ": it lasts %s", steps);
    return out;
}

static const char *module_name(const struct attribution *a, size_t module)
{
    return module == SIZE_MAX ? "" : a->modules[module].name;
}

/* What a kind of blocks is, in words. */
static void kind_text(const struct attribution *a,
                      const struct attribution_growth *g, char *out,
                      size_t size)
{
    const char *module = module_name(a, g->module);
    const char *operation = g->operation ? g->operation : "blocks";
    const char *name = strstr(operation, "::");
    char text[3 * NAME_LENGTH];

    if (g->form == GROWTH_VARIED)
        operation = "blocks of different kinds";
    snprintf(text, sizeof text, "%s%s%s (%s%s)", name ? name + 2 : operation,
             *module ? " of " : "", module,
             attribution_category_name(g->category),
             g->form == GROWTH_TENSOR ? ", a tensor that grows" : "");
    text_quote(out, size, text);
}

/* --- the likely cause ----------------------------------------------------- */

struct growth_sums {
    uint64_t bytes[TRACE_CATEGORY_COUNT], tensor_bytes, all_bytes;
    size_t activations; /* kinds */
};

static struct growth_sums sums_make(const struct attribution *a)
{
    struct growth_sums s = {.all_bytes = 0};

    for (size_t i = 0; i < a->growth_count; i++) {
        const struct attribution_growth *g = &a->growth[i];
        s.bytes[g->category] += g->step_bytes;
        s.all_bytes += g->step_bytes;
        s.activations += g->category == TRACE_CATEGORY_ACTIVATION;
        if (g->form == GROWTH_TENSOR)
            s.tensor_bytes += g->step_bytes;
    }
    return s;
}

static const char *cause_text(const struct attribution *a)
{
    const struct growth_sums s = sums_make(a);
    uint64_t half = s.all_bytes / 2;

    if (!a->growth_count)
        return "The blocks stay as many, but they spread over more segments. "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids that.";

    if (s.tensor_bytes > half)
        return "Each step appends to a tensor, as torch.cat of a cache does. "
               "Bound it, or move it to the CPU.";
    if (s.bytes[TRACE_CATEGORY_OPTIMIZER] > half)
        return "The optimizer gets state for more parameters with each step.";
    if (s.bytes[TRACE_CATEGORY_INPUT] > half)
        return "Batches are kept after their step: in a list, or by a graph "
               "that is kept.";
    if (s.bytes[TRACE_CATEGORY_GRADIENT] > half)
        return "Gradients are kept after their step.";
    if (s.activations >= GRAPH_KINDS)
        return "The graph of each step is kept: a list of losses, a sum of "
               "losses, or outputs that need a gradient do that. Keep "
               "loss.item() or loss.detach().";
    return "Tensors of each step are kept: in a list, a cache or a hook. "
           "Move them to the CPU (x.detach().cpu()), or keep fewer.";
}

/* --- writing -------------------------------------------------------------- */

static void write_kind(const struct attribution *a,
                       const struct attribution_growth *g, FILE *out)
{
    char size[SIZE_LENGTH], name[NAME_LENGTH], where[NAME_LENGTH];

    kind_text(a, g, name, sizeof name);
    stack_line(g->stack, where, sizeof where);
    fprintf(out, "  %12s  %s%s%s\n",
            units_format_bytes(g->step_bytes, size, sizeof size), name,
            *where ? ", " : "", where);
}

void growth_text_write(const struct result_device *d, const char *dim,
                       const char *plain, FILE *out)
{
    const struct attribution *a = d->attribution;
    char size[SIZE_LENGTH], steps[64] = "";

    if (!device_grows(d))
        return;
    if (d->growth.most)
        steps_text(&d->growth, steps, sizeof steps);
    fprintf(out, "  %sgrows by %s with each step%s%s%s\n", dim,
            units_format_bytes(d->growth.step_bytes, size, sizeof size),
            *steps ? ", memory lasts " : "", steps, plain);
    for (size_t i = 0; i < a->growth_count && i < KINDS; i++)
        write_kind(a, &a->growth[i], out);
    if (a->growth_held_bytes)
        fprintf(out, "  %12s  fragments: segments that PyTorch cannot give "
                     "back\n",
                units_format_bytes(a->growth_held_bytes, size, sizeof size));
    if (a->growth_count > KINDS)
        fprintf(out, "  %12s  and %zu more kinds of blocks\n", "",
                a->growth_count - KINDS);
    text_write_wrapped(out, "   ", cause_text(a));
}

/* What a block of BYTES takes at most of PyTorch's segments. Each holds whole
 * blocks: of many, one less, where a block of the call lies between them. */
static uint64_t packed_bytes(uint64_t bytes)
{
    uint64_t segment = bytes <= MIB ? 2 * MIB : 20 * MIB;
    uint64_t whole = segment / bytes;

    if (bytes >= 10 * MIB)
        return bytes;
    return segment / (whole > 3 ? whole - 1 : whole);
}

/* The calls that memory lasts for, the recorded ones included: at least all
 * that is free for the driver is used, at most all that PyTorch cached, too. A
 * tensor that grows is there twice while it is copied. Returns whether that
 * matters: no evaluation has more calls than CALLS_MOST. */
static bool calls_last(const struct result_device *d, uint64_t *least,
                       uint64_t *most)
{
    const struct attribution *a = d->attribution;

    if (!a || !a->calls_growth.step_bytes)
        return false;
    uint64_t beside = d->peak_used_bytes - d->peak_reserved_bytes;
    uint64_t bytes = a->calls_growth.step_bytes;
    bool tensor = a->calls_growth.form == GROWTH_TENSOR;
    uint64_t need = tensor ? 2 * bytes : packed_bytes(bytes);
    uint64_t grown = a->calls * bytes;
    uint64_t live = beside + a->calls_bytes;
    uint64_t other = live > grown ? live - grown : 0;

    *least = a->calls + d->headroom_bytes / need;
    *most = d->capacity_bytes > other
                ? (d->capacity_bytes - other) / (tensor ? need : bytes)
                : 0;
    if (*most < *least)
        *most = *least;
    return *least <= CALLS_MOST;
}

void growth_calls_write(const struct result_device *d, FILE *out)
{
    const struct attribution *a = d->attribution;
    char size[SIZE_LENGTH], name[NAME_LENGTH], where[NAME_LENGTH], text[320];
    uint64_t least, most;

    if (!calls_last(d, &least, &most))
        return;
    kind_text(a, &a->calls_growth, name, sizeof name);
    stack_line(a->calls_growth.stack, where, sizeof where);
    snprintf(text, sizeof text,
             "memory grows by %s with each call without gradients (%s%s%s): an "
             "evaluation lasts %" PRIu64 " to %" PRIu64
             " calls, %u were recorded",
             units_format_bytes(a->calls_growth.step_bytes, size, sizeof size),
             name, *where ? ", " : "", where, least, most, a->calls);
    text_write_wrapped(out, "  evaluation:", text);
}

static void add_kind(cJSON *kinds, const struct attribution *a,
                     const struct attribution_growth *g)
{
    static const char *const forms[] = {
        [GROWTH_BLOCKS] = "blocks",
        [GROWTH_TENSOR] = "tensor",
        [GROWTH_VARIED] = "varied",
    };
    cJSON *kind = json_add_object(kinds);

    cJSON_AddStringToObject(kind, "form", forms[g->form]);
    cJSON_AddStringToObject(kind, "operator", g->operation ? g->operation : "");
    cJSON_AddStringToObject(kind, "module", module_name(a, g->module));
    cJSON_AddStringToObject(kind, "category",
                            attribution_category_name(g->category));
    if (g->stack)
        cJSON_AddStringToObject(kind, "stack", g->stack);
    json_add_bytes(kind, "step_bytes", g->step_bytes);
}

static void add_calls(cJSON *device, const struct result_device *d)
{
    const struct attribution *a = d->attribution;
    uint64_t least, most;

    if (!calls_last(d, &least, &most))
        return;
    cJSON *growth = cJSON_AddObjectToObject(device, "evaluation_growth");
    json_add_bytes(growth, "call_bytes", a->calls_growth.step_bytes);
    json_add_uint(growth, "calls", a->calls);
    json_add_uint(growth, "lasts_least_calls", least);
    json_add_uint(growth, "lasts_most_calls", most);
    add_kind(cJSON_AddArrayToObject(growth, "kinds"), a, &a->calls_growth);
}

struct growth_rate growth_host_sum(const struct growth_rate *rates)
{
    struct growth_rate sum = {0};

    for (int i = 0; i < GROWTH_HOST_KINDS; i++) {
        sum.bytes += rates[i].bytes;
        sum.least += rates[i].least;
        sum.most += rates[i].most;
    }
    return sum;
}

cJSON *growth_json_add_host(cJSON *to, const char *name,
                            const struct growth_rate *rates)
{
    static const char *const names[GROWTH_HOST_KINDS] = {
        [GROWTH_HOST_TENSORS] = "tensors_step_bytes",
        [GROWTH_HOST_PINNED] = "pinned_step_bytes",
        [GROWTH_HOST_HEAP] = "objects_step_bytes",
    };
    cJSON *growth = cJSON_AddObjectToObject(to, name);
    const struct growth_rate sum = growth_host_sum(rates);

    for (int i = 0; i < GROWTH_HOST_KINDS; i++)
        json_add_bytes(growth, names[i], rates[i].bytes);
    json_add_bytes(growth, "step_least_bytes", sum.least);
    json_add_bytes(growth, "step_most_bytes", sum.most);
    return growth;
}

static void add_host(cJSON *device, const struct attribution *a)
{
    for (int i = 0; i < GROWTH_HOST_KINDS; i++)
        if (a->host_growth[i].bytes) {
            growth_json_add_host(device, "host_growth", a->host_growth);
            return;
        }
}

void growth_json_add(cJSON *device, const struct result_device *d)
{
    const struct attribution *a = d->attribution;

    if (!a)
        return;
    json_add_uint(device, "growth_steps", a->growth_steps);
    add_host(device, a);
    add_calls(device, d);
    if (!device_grows(d))
        return;
    cJSON *growth = cJSON_AddObjectToObject(device, "growth");
    json_add_bytes(growth, "step_bytes", d->growth.step_bytes);
    if (d->growth.most) {
        json_add_uint(growth, "lasts_least_steps", d->growth.least);
        json_add_uint(growth, "lasts_most_steps", d->growth.most);
        cJSON_AddBoolToObject(growth, "replayed", d->growth.replayed);
    }
    cJSON_AddStringToObject(growth, "cause", cause_text(a));
    if (a->growth_held_bytes)
        json_add_bytes(growth, "fragment_bytes", a->growth_held_bytes);
    cJSON *kinds = cJSON_AddArrayToObject(growth, "kinds");
    for (size_t i = 0; i < a->growth_count; i++)
        add_kind(kinds, a, &a->growth[i]);
}
