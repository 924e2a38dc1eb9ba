/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/job_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/demangle.h"
#include "common/base/hash.h"
#include "common/base/xmalloc.h"

#define FACTOR_MAX 1e6
#define LAYERS_MAX 1024
#define SIZE_MOST  (1u << 30)

/* Sizes of the job. */
static const char *const sizes[] = {"hidden", "seq", "batch"};

static int refuse_unknown(const char *text, size_t length, struct err *err)
{
    return err_set(err,
                   "--change: unknown change '%.*s'; expected "
                   "time:NAME=FACTOR, overlap:NAME, layers=N, stages=P, "
                   "or hidden, seq, batch or "
                   "precision=OLD:NEW",
                   (int)length, text);
}

static int parse_time(const char *text, size_t length, struct job_change *c,
                      struct err *err)
{
    const char *equals = memrchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : 0;
    char *end;

    c->factor = equals ? strtod(equals + 1, &end) : 0;
    if (!name || name >= sizeof c->name || end != text + length ||
        !(c->factor > 0) || c->factor > FACTOR_MAX)
        return err_set(err,
                       "--change: '%.*s' is not of the form NAME=FACTOR with a "
                       "factor above 0",
                       (int)length, text);
    snprintf(c->name, sizeof c->name, "%.*s", (int)name, text);
    return 0;
}

static int parse_overlap(const char *text, size_t length, struct job_change *c,
                         struct err *err)
{
    if (!length || length >= sizeof c->name)
        return err_set(err, "--change: overlap: needs a name");
    snprintf(c->name, sizeof c->name, "%.*s", (int)length, text);
    return 0;
}

static bool parse_count(const char **at, uint32_t most, uint32_t *count)
{
    char *end;
    unsigned long value =
        **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : 0;

    if (!value || value > most)
        return false;
    *count = (uint32_t)value;
    *at = end;
    return true;
}

/* "=24", "=12:24", ":decoder.layers=24" */
static int parse_layers(const char *text, size_t length, struct job_change *c,
                        struct err *err)
{
    const char *at = memchr(text, '=', length);
    size_t name = at ? (size_t)(at - text) : 0;
    bool whole = at && name != 1 && name < sizeof c->name && (++at, true) &&
                 parse_count(&at, LAYERS_MAX, &c->wanted);

    if (whole && *at == ':') {
        at++;
        c->recorded = c->wanted;
        whole = parse_count(&at, LAYERS_MAX, &c->wanted);
    }
    if (!whole || at != text + length)
        return err_set(err,
                       "--change: 'layers%.*s' is not of the form "
                       "layers[:MODULES]=[OLD:]NEW with numbers from 1 to %d",
                       (int)length, text, LAYERS_MAX);
    if (name)
        snprintf(c->name, sizeof c->name, "%.*s", (int)name - 1, text + 1);
    return 0;
}

/* "=64:128" */
static int parse_size(const char *name, const char *text, size_t length,
                      struct job_change *c, struct err *err)
{
    const char *at = text + 1;

    snprintf(c->name, sizeof c->name, "%s", name);
    if (length < 2 || *text != '=' ||
        !parse_count(&at, SIZE_MOST, &c->recorded) || *at++ != ':' ||
        !parse_count(&at, SIZE_MOST, &c->wanted) || at != text + length)
        return err_set(err,
                       "--change: '%s%.*s' is not of the form %s=OLD:NEW with "
                       "numbers from 1 to %u",
                       name, (int)length, text, name, SIZE_MOST);
    if (c->recorded == c->wanted)
        return err_set(err, "--change: %s is %u already", name, c->wanted);
    return 0;
}

/* The size that the first LENGTH bytes of TEXT name; NULL: none. */
static const char *size_of(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (length == strlen(sizes[i]) && !memcmp(text, sizes[i], length))
            return sizes[i];
    return NULL;
}

/* "=4x2"; what it says is read by memsim/change. */
static int parse_stages(const char *text, size_t length, struct job_change *c,
                        struct err *err)
{
    c->kind = CHANGE_STAGES;
    if (length < 2 || *text != '=' || length > sizeof c->name)
        return err_set(err,
                       "--change: 'stages%.*s' is not of the form stages=P[xV] "
                       "or stages=N+N...[xV]",
                       (int)length, text);
    snprintf(c->name, sizeof c->name, "%.*s", (int)length - 1, text + 1);
    return 0;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && !memcmp(text, word, length);
}

/* "=fp16:bf16" */
static int parse_precision(const char *text, size_t length,
                           struct job_change *c, struct err *err)
{
    const char *colon = memchr(text, ':', length);
    size_t from = colon ? (size_t)(colon - text) : 0;

    c->kind = CHANGE_PRECISION;
    if (from < 2 || *text != '=' || length - from < 2 ||
        from >= sizeof c->name || length - from > sizeof c->to)
        return err_set(err,
                       "--change: 'precision%.*s' is not of the form "
                       "precision=OLD:NEW, such as fp16:bf16",
                       (int)length, text);
    snprintf(c->name, sizeof c->name, "%.*s", (int)from - 1, text + 1);
    snprintf(c->to, sizeof c->to, "%.*s", (int)(length - from) - 1, colon + 1);
    return 0;
}

/* Is what the first LENGTH bytes of TEXT name changed in the recording? */
static bool is_of_recording(const char *text, size_t length)
{
    return is_word(text, length, "layers") || is_word(text, length, "stages") ||
           is_word(text, length, "precision") || size_of(text, length);
}

/* A change of the recording itself, of which there is one at most. */
static int parse_recording(const char *text, size_t length, size_t kind,
                           struct job_change *c, struct err *err)
{
    const char *size = size_of(text, kind);

    if (is_word(text, kind, "stages"))
        return parse_stages(text + kind, length - kind, c, err);
    if (is_word(text, kind, "precision"))
        return parse_precision(text + kind, length - kind, c, err);
    c->kind = size ? CHANGE_SIZE : CHANGE_LAYERS;
    return size ? parse_size(size, text + kind, length - kind, c, err)
                : parse_layers(text + kind, length - kind, c, err);
}

static int parse_one(const char *text, size_t length,
                     struct job_changes *changes, struct err *err)
{
    size_t kind = strcspn(text, ":=,;");
    const char *colon = kind < length && text[kind] == ':' ? text + kind : NULL;
    struct job_change *c = &changes->all[changes->count];

    if (changes->count == CHANGES_MAX)
        return err_set(err, "--change: more than %d changes", CHANGES_MAX);
    if (is_of_recording(text, kind)) {
        if (job_changes_recording(changes))
            return err_set(err, "--change: one of layers, hidden, seq, batch, "
                                "stages and precision at a time");
        changes->count++;
        return parse_recording(text, length, kind, c, err);
    }
    changes->count++;
    if (colon && kind == 4 && !memcmp(text, "time", 4)) {
        c->kind = CHANGE_TIME;
        return parse_time(colon + 1, length - 5, c, err);
    }
    if (colon && kind == 7 && !memcmp(text, "overlap", 7)) {
        c->kind = CHANGE_OVERLAP;
        return parse_overlap(colon + 1, length - 8, c, err);
    }
    return refuse_unknown(text, kind < length ? kind : length, err);
}

int job_changes_parse(const char *text, struct job_changes *changes,
                      struct err *err)
{
    *changes = (struct job_changes){.count = 0};
    while (*text) {
        size_t length = strcspn(text, ",;");
        if (parse_one(text, length, changes, err))
            return -1;
        text += length + (text[length] != '\0');
    }
    return 0;
}

bool job_change_is_of_recording(const struct job_change *c)
{
    return c->kind != CHANGE_TIME && c->kind != CHANGE_OVERLAP;
}

const struct job_change *
job_changes_recording(const struct job_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        if (job_change_is_of_recording(&changes->all[i]))
            return &changes->all[i];
    return NULL;
}

/* Is an operation of NAME, of FAMILY, of those that C names: by a part of the
 * name, or by the family? */
static bool is_meant(const struct job_change *c, const char *name,
                     enum work_family family)
{
    return strstr(name, c->name) || !strcmp(work_family_name(family), c->name);
}

/* The effect on operations of NAME, of FAMILY. */
static struct simulation_effect *effect_make(struct job_changes *changes,
                                             const char *name,
                                             enum work_family family)
{
    struct simulation_effect *effect = xcalloc(1, sizeof *effect);

    effect->factor = 1;
    for (size_t i = 0; i < changes->count; i++) {
        const struct job_change *c = &changes->all[i];
        if (job_change_is_of_recording(c) || !is_meant(c, name, family))
            continue;
        changes->found[i] = true;
        if (c->kind == CHANGE_TIME)
            effect->factor *= c->factor;
        else
            effect->overlaps = true;
    }
    return effect;
}

static struct simulation_effect effect_of(void *context, const struct op *op,
                                          const struct trace_names *names,
                                          enum work_family family)
{
    struct job_changes *changes = context;
    const char *mangled = trace_names_get(names, op->name);
    uint64_t key = (hash_text(HASH_START, mangled) << 6) + 2 * family + 1;
    struct simulation_effect *effect = map_get(&changes->effects, key);
    char name[1024];

    if (!effect) {
        demangle(mangled, name, sizeof name);
        effect = effect_make(changes, name, family);
        map_put(&changes->effects, key, effect);
    }
    return *effect;
}

void job_changes_apply(struct job_changes *changes,
                       struct simulation_options *simulation)
{
    changes->hook = (struct simulation_change){effect_of, changes};
    simulation->change = &changes->hook;
}

void job_changes_fini(struct job_changes *changes)
{
    size_t cursor = 0;

    for (void *effect; (effect = map_next(&changes->effects, &cursor));)
        free(effect);
    map_fini(&changes->effects);
}
