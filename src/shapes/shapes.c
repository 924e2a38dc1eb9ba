/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

#define NONE UINT32_MAX

/* The texts are indices. */
struct shapes_operator {
    uint32_t name, texts[4]; /* NONE: not told */
    struct operator_progress progress;
};

static uint32_t text_id(struct shapes *s, const char *text)
{
    uint64_t key = hash_text(HASH_START, text);
    void *known;

    for (; (known = map_get(&s->text_ids, key)); key++)
        if (!strcmp(s->texts[(uintptr_t)known - 1], text))
            return (uint32_t)((uintptr_t)known - 1);
    xgrow(&s->texts, s->text_count, &s->text_capacity, sizeof(char *));
    s->texts[s->text_count++] = xstrdup(text);
    map_put(&s->text_ids, key, (void *)(uintptr_t)s->text_count);
    return (uint32_t)s->text_count - 1;
}

static uint32_t text_or_none(struct shapes *s, const char *text)
{
    return text ? text_id(s, text) : NONE;
}

void shapes_add(struct shapes *s, const struct profile_event *e)
{
    if (!e->input_dims || !e->input_types || e->external_id == KINETO_NONE)
        return;
    xgrow(&s->operators, s->count, &s->capacity, sizeof *s->operators);
    s->operators[s->count++] = (struct shapes_operator){
        .name = text_id(s, e->name),
        .texts = {[OPERATOR_DIMS] = text_id(s, e->input_dims),
                  [OPERATOR_TYPES] = text_id(s, e->input_types),
                  [OPERATOR_STRIDES] = text_or_none(s, e->input_strides),
                  [OPERATOR_CONCRETE] = text_or_none(s, e->concrete_inputs)},
    };
    map_put(&s->by_id, (uint64_t)e->external_id, (void *)(uintptr_t)s->count);
}

static struct shapes_operator *operator_of(struct shapes *s, int64_t id)
{
    void *known =
        id == KINETO_NONE ? NULL : map_get(&s->by_id, (uint64_t)id);

    return known ? &s->operators[(uintptr_t)known - 1] : NULL;
}

void shapes_note(struct shapes *s, int64_t external_id, const char *kernel)
{
    struct shapes_operator *o = operator_of(s, external_id);

    if (o)
        operator_note(&o->progress, kernel);
}

static const struct work_kernel *kernel_of(struct shapes *s, const char *name)
{
    uint64_t key = (uint64_t)text_id(s, name) + 1;
    struct work_kernel *kernel = map_get(&s->kernels, key);

    if (!kernel) {
        kernel = xcalloc(1, sizeof *kernel);
        work_kernel_read(name, kernel);
        map_put(&s->kernels, key, kernel);
    }
    return kernel;
}

static const char *text_of(const struct shapes *s, uint32_t id)
{
    return id == NONE ? NULL : s->texts[id];
}

static bool call_read(const struct shapes *s, const struct shapes_operator *o,
                      struct operator_call *call)
{
    const char *texts[4];

    for (unsigned i = 0; i < 4; i++)
        texts[i] = text_of(s, o->texts[i]);
    return operator_read(call, s->texts[o->name], texts);
}

/* Do the models know the work of LAUNCH? */
static bool is_known(const struct work_kernel *kernel,
                     const struct trace_launch *launch)
{
    const struct op op =
        op_of_record(TRACE_LAUNCH, (const uint64_t *)launch);
    struct work work;

    work_describe_launch(&op, kernel, &work);
    return work.source == WORK_EXACT || work.source == WORK_RULE;
}

bool shapes_describe(struct shapes *s, int64_t external_id, const char *name,
                     struct trace_launch *launch)
{
    const struct work_kernel *kernel = kernel_of(s, name);
    struct shapes_operator *o = operator_of(s, external_id);
    struct operator_call call;

    struct trace_launch made = *launch;

    if (!(o && call_read(s, o, &call) &&
          operator_describe(&call, &o->progress, kernel, name, &made)) ||
        !is_known(kernel, &made)) {
        made = *launch;
        operator_describe_grid(kernel, &made);
    }
    if (!is_known(kernel, &made))
        return false;
    *launch = made;
    return true;
}

uint32_t shapes_keep(struct shapes *s, const char *work)
{
    return text_id(s, work);
}

bool shapes_told(struct shapes *s, uint32_t work, const char *name,
                 struct trace_launch *launch)
{
    struct trace_launch made = *launch;
    uint64_t *words = &made.a;
    char *end;
    unsigned long rule = strtoul(s->texts[work], &end, 16);

    for (unsigned i = 0; i < TRACE_LAUNCH_WORDS && *end == ' '; i++)
        words[i] = strtoull(end, &end, 16);
    made.shared_bytes_rule =
        trace_pack((uint32_t)made.shared_bytes_rule, (uint32_t)rule);
    if (*end || rule > TRACE_RULE_WORK || !is_known(kernel_of(s, name), &made))
        return false;
    *launch = made;
    return true;
}

void shapes_fini(struct shapes *s)
{
    size_t cursor = 0;

    for (void *kernel; (kernel = map_next(&s->kernels, &cursor));)
        free(kernel);
    for (size_t i = 0; i < s->text_count; i++)
        free(s->texts[i]);
    free(s->texts);
    free(s->operators);
    map_fini(&s->by_id);
    map_fini(&s->text_ids);
    map_fini(&s->kernels);
    *s = (struct shapes){.count = 0};
}
