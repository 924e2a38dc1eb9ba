/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define LAYERS_MAX 4096

/* The number behind PREFIX and a dot in NAME; -1: there is none. *REST is what
 * comes after it. */
static long index_in(const char *name, const char *prefix, size_t length,
                     const char **rest)
{
    char *end;

    if (strncmp(name, prefix, length) || name[length] != '.' ||
        name[length + 1] < '0' || name[length + 1] > '9')
        return -1;
    long index = strtol(name + length + 1, &end, 10);
    *rest = end;
    return (*end == '.' || !*end) && index < LAYERS_MAX ? index : -1;
}

/* The parameters of layer INDEX, compared with those of layer 0, which have
 * been put at FIRST. */
struct layer_list {
    const struct parameter **all;
    const char **names;
    size_t count;
};

static struct layer_list list_of(const struct layer_modules *m,
                                 const struct records *r, uint32_t layer)
{
    struct layer_list l = {
        xcalloc(r->parameter_count + 1, sizeof(const struct parameter *)),
        xcalloc(r->parameter_count + 1, sizeof(const char *)), 0};

    for (size_t i = 0; i < r->parameter_count; i++) {
        if (m->layer_of[i] != layer + 1)
            continue;
        index_in(records_module(r, r->parameters[i].module), m->prefix,
                 strlen(m->prefix), &l.names[l.count]);
        l.all[l.count++] = &r->parameters[i];
    }
    return l;
}

static void list_fini(struct layer_list *l)
{
    free(l->all);
    free(l->names);
}

static bool lists_equal(const struct layer_list *a, const struct layer_list *b)
{
    bool equal = a->count == b->count;

    for (size_t i = 0; equal && i < a->count; i++)
        equal = a->all[i]->elements == b->all[i]->elements &&
                !strcmp(a->names[i], b->names[i]);
    return equal;
}

/* Puts every parameter in its layer of M->prefix. */
static void assign_modules(struct layer_modules *m, const struct records *r)
{
    size_t length = strlen(m->prefix);
    const char *rest;

    m->count = 0;
    m->elements = 0;
    for (size_t i = 0; i < r->parameter_count; i++) {
        long index = index_in(records_module(r, r->parameters[i].module),
                              m->prefix, length, &rest);
        m->layer_of[i] = (uint32_t)(index + 1);
        if (m->layer_of[i] > m->count)
            m->count = m->layer_of[i];
        m->elements += index < 0 ? 0 : r->parameters[i].elements;
    }
}

/* Are the layers that `assign' found alike? */
static bool are_alike(struct layer_modules *m, const struct records *r)
{
    struct layer_list first = list_of(m, r, 0);
    bool alike = m->count >= 2 && first.count > 0;

    m->per_layer = first.count;
    for (uint32_t i = 1; alike && i < m->count; i++) {
        struct layer_list other = list_of(m, r, i);
        alike = lists_equal(&first, &other);
        list_fini(&other);
    }
    list_fini(&first);
    return alike;
}

/* Tries each prefix of NAME that a number follows; BEST keeps the largest. */
static void try_name(struct layer_modules *best, struct layer_modules *m,
                     const struct records *r, const char *name)
{
    for (const char *dot = name; (dot = strchr(dot, '.')); dot++) {
        size_t length = (size_t)(dot - name);
        if (length >= sizeof m->prefix || dot[1] < '0' || dot[1] > '9')
            continue;
        memcpy(m->prefix, name, length);
        m->prefix[length] = '\0';
        if (!strcmp(m->prefix, best->prefix))
            continue;
        assign_modules(m, r);
        if (m->elements <= best->elements || !are_alike(m, r))
            continue;
        uint32_t *layers = best->layer_of;
        *best = *m;
        best->layer_of = layers;
    }
}

int layer_modules_find(struct layer_modules *m, const struct records *r,
                       const char *prefix, struct err *err)
{
    struct layer_modules at = {.count = 0};

    *m = (struct layer_modules){.count = 0};
    at.layer_of = xcalloc(r->parameter_count + 1, sizeof *at.layer_of);
    m->layer_of = xcalloc(r->parameter_count + 1, sizeof *m->layer_of);
    for (size_t i = 0; !prefix && i < r->parameter_count; i++) {
        const char *name = records_module(r, r->parameters[i].module);
        const char *rest;
        if (!*m->prefix ||
            index_in(name, m->prefix, strlen(m->prefix), &rest) < 0)
            try_name(m, &at, r, name);
    }
    free(at.layer_of);
    if (prefix)
        snprintf(m->prefix, sizeof m->prefix, "%s", prefix);
    assign_modules(m, r);
    if (m->count >= 2 && are_alike(m, r))
        return 0;
    layer_modules_fini(m);
    if (prefix)
        return err_set(err,
                       "--change: the modules %s.0, %s.1 and so on are not "
                       "layers with the same parameters",
                       prefix, prefix);
    return err_set(err, "--change: no list of modules, as blocks.0 and "
                        "blocks.1, has layers with the same parameters");
}

void layer_modules_fini(struct layer_modules *m)
{
    free(m->layer_of);
    m->layer_of = NULL;
}
