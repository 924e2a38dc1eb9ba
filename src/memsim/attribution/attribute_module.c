/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/attribute_internal.h"

static struct module_row *row_get(struct module_table *t, uint32_t id)
{
    if (id >= t->count) {
        size_t count = (size_t)id + id / 2 + 64;
        t->rows = xreallocarray(t->rows, count, sizeof *t->rows);
        memset(t->rows + t->count, 0, (count - t->count) * sizeof *t->rows);
        t->count = count;
    }
    return &t->rows[id];
}

/* Two paths share a key by chance once in 2^64: a row would hang elsewhere in
 * the tree. */
static uint64_t path_key(uint32_t root, const char *path, size_t length)
{
    uint64_t hash = hash_bytes(HASH_START, &root, sizeof root);

    hash = hash_bytes(hash, path, length);
    return hash ? hash : 1;
}

/* The nearest module above PATH that is there. */
static uint32_t parent_find(const struct module_table *t, uint32_t root,
                            const char *path)
{
    size_t length = strlen(path);

    while (length) {
        while (length && path[length - 1] != '.')
            length--;
        if (!length)
            break;
        uint64_t key = path_key(root, path, --length);
        uint32_t id = (uint32_t)(uintptr_t)map_get(&t->paths, key);
        if (id)
            return id;
    }
    return root;
}

static bool is_above(const struct module_table *t, uint32_t id, uint32_t below)
{
    for (; below; below = t->rows[below].parent)
        if (below == id)
            return true;
    return false;
}

void module_table_name(struct module_table *t, uint32_t id, uint32_t root,
                       const char *name, uint32_t *old_parent)
{
    if (!id || id >= MODULES_MAX || root >= MODULES_MAX) {
        *old_parent = 0;
        return;
    }
    row_get(t, root);
    struct module_row *row = row_get(t, id);
    *old_parent = row->parent;
    free(row->path);
    row->path = xstrdup(name);
    row->named = true;
    row->root = root;
    row->parent = root == id ? 0 : parent_find(t, root, name);
    if (row->parent == id || is_above(t, id, row->parent))
        row->parent = 0; /* two roots that contain each other */
    if (root == id)
        return;
    t->rows[root].has_children = true;
    map_put(&t->paths, path_key(root, name, strlen(name)),
            (void *)(uintptr_t)id);
}

void module_table_call(struct module_table *t, uint32_t id)
{
    if (id < t->count)
        t->rows[id].calls++;
}

void module_table_fini(struct module_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->rows[i].path);
    free(t->rows);
    map_fini(&t->paths);
}

static bool is_model(const struct module_table *t, uint32_t id)
{
    const struct module_row *row = &t->rows[id];

    return row->named && row->root == id && row->has_children;
}

void module_table_count(struct module_table *t)
{
    struct map seen = {0}; /* how many of a name */

    t->models = 0;
    for (uint32_t id = 1; id < t->count; id++) {
        if (!is_model(t, id))
            continue;
        const char *name = t->rows[id].path;
        uint64_t key = path_key(0, name, strlen(name));
        uintptr_t nth = (uintptr_t)map_get(&seen, key) + 1;
        map_put(&seen, key, (void *)nth);
        t->rows[id].nth = (unsigned)nth;
        t->models++;
    }
    map_fini(&seen);
}

char *module_table_title(const struct module_table *t, uint32_t id)
{
    const struct module_row *row = id < t->count ? &t->rows[id] : NULL;

    if (!row || !row->named)
        return xstrdup("");
    const struct module_row *root = &t->rows[row->root];
    if (!root->named)
        return xstrdup(row->path);
    if (row->root != id && t->models <= 1)
        return xstrdup(row->path);
    const char *dot = row->root == id ? "" : ".";
    const char *path = row->root == id ? "" : row->path;
    if (root->nth > 1)
        return xasprintf("%s#%u%s%s", root->path, root->nth, dot, path);
    return xasprintf("%s%s%s", root->path, dot, path);
}

static struct holding *holding_get(struct holdings *h, uint32_t id)
{
    if (id >= h->count) {
        size_t count = (size_t)id + id / 2 + 64;
        h->rows = xreallocarray(h->rows, count, sizeof *h->rows);
        memset(h->rows + h->count, 0, (count - h->count) * sizeof *h->rows);
        h->count = count;
    }
    return &h->rows[id];
}

static void holdings_climb(struct holdings *h, const struct module_table *t,
                           uint32_t id, int64_t bytes)
{
    while (id && id < MODULES_MAX) {
        struct holding *holding = holding_get(h, id);
        holding->bytes += (uint64_t)bytes;
        if (bytes > 0 && holding->bytes > holding->peak_bytes)
            holding->peak_bytes = holding->bytes;
        id = id < t->count ? t->rows[id].parent : 0;
    }
}

void holdings_add(struct holdings *h, const struct module_table *t, uint32_t id,
                  int64_t bytes)
{
    if (id && id < MODULES_MAX)
        holding_get(h, id)->self_bytes += (uint64_t)bytes;
    holdings_climb(h, t, id, bytes);
}

void holdings_move(struct holdings *h, const struct module_table *t,
                   uint32_t id, uint32_t old_parent)
{
    uint32_t parent = id < t->count ? t->rows[id].parent : 0;

    if (parent == old_parent || id >= h->count || !h->rows[id].bytes)
        return;
    int64_t bytes = (int64_t)h->rows[id].bytes;
    holdings_climb(h, t, old_parent, -bytes);
    holdings_climb(h, t, parent, bytes);
}

void holdings_fini(struct holdings *h)
{
    free(h->rows);
}
