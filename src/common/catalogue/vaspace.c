/* SPDX-License-Identifier: Apache-2.0
 *
 * The window is a row of tiles:
 *
 *   [ gap ][ used | free | used ][ used | free ][ gap ][ used | slab ][ gap ]
 *          '---- one chunk ----''-- another --'        '-- another --'
 *
 * A gap belongs to no chunk. What is held takes addresses without memory. A
 * slab is a 2 MiB page of small allocations, whose tiles are in a second row
 * over the same window, where that page is a chunk and all else gap. Each row
 * is a treap by address that knows the widest free and gap tile of each
 * subtree, and a list to find the neighbours. */
#include "common/catalogue/vaspace.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)64 << 10)

/* Where cudaMalloc finds places in the upper chunk of code, and how much of the
 * lower one: PyTorch's first allocation is the 2 MiB at CODE_FIRST. */
#define CODE_FIRST (UINT64_C(414) << 20)
#define CODE_ABOVE (UINT64_C(490) << 20)
#define CODE_BELOW (INT64_C(6) << 20)

enum kind { KIND_GAP, KIND_FREE, KIND_USED, KIND_SLAB, KIND_HELD };

struct vaspace_tile {
    struct vaspace_tile *left, *right; /* in the treap */
    struct vaspace_tile *prev, *next;  /* in the list */
    uint64_t start, bytes;
    uint64_t asked_bytes; /* of a used tile */
    uint64_t chunk;       /* where its chunk starts, 0 for a gap */
    uint64_t widest[2];   /* in this subtree, by KIND_GAP and KIND_FREE */
    uint32_t priority;
    enum kind kind;
};

struct vaspace_page {
    struct vaspace_page *next;
    struct vaspace_tile tiles[];
};

static void *map_get(size_t bytes, void *context)
{
    (void)context;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void map_put(void *p, size_t bytes, void *context)
{
    (void)context;
    munmap(p, bytes);
}

static int spare_refill(struct vaspace *v)
{
    struct vaspace_page *page = v->memory.get(PAGE_BYTES, v->memory.context);
    size_t count = (PAGE_BYTES - sizeof *page) / sizeof *page->tiles;

    if (!page)
        return -1;
    page->next = v->pages;
    v->pages = page;
    for (size_t i = 0; i < count; i++) {
        page->tiles[i].next = v->spare;
        v->spare = &page->tiles[i];
    }
    return 0;
}

/* An operation cuts at most four tiles out of others; with those at hand it
 * cannot fail half way. */
static int spare_reserve(struct vaspace *v)
{
    struct vaspace_tile *t = v->spare;

    for (int i = 0; i < 4; i++, t = t->next)
        if (!t)
            return spare_refill(v);
    return 0;
}

static uint32_t next_priority(struct vaspace *v)
{
    v->seed ^= v->seed << 13; /* xorshift32: any spread will do */
    v->seed ^= v->seed >> 17;
    v->seed ^= v->seed << 5;
    return v->seed;
}

static struct vaspace_tile *tile_new(struct vaspace *v, uint64_t start,
                                     uint64_t bytes)
{
    struct vaspace_tile *t = v->spare;

    v->spare = t->next;
    *t = (struct vaspace_tile){
        .start = start, .bytes = bytes, .priority = next_priority(v)};
    return t;
}

static void tile_pull(struct vaspace_tile *t)
{
    for (int kind = KIND_GAP; kind <= KIND_FREE; kind++) {
        uint64_t widest = t->kind == (enum kind)kind ? t->bytes : 0;

        if (t->left && t->left->widest[kind] > widest)
            widest = t->left->widest[kind];
        if (t->right && t->right->widest[kind] > widest)
            widest = t->right->widest[kind];
        t->widest[kind] = widest;
    }
}

static void treap_split(struct vaspace_tile *t, uint64_t at,
                        struct vaspace_tile **below,
                        struct vaspace_tile **above)
{
    if (!t) {
        *below = *above = NULL;
        return;
    }
    if (t->start < at) {
        treap_split(t->right, at, &t->right, above);
        *below = t;
    } else {
        treap_split(t->left, at, below, &t->left);
        *above = t;
    }
    tile_pull(t);
}

static struct vaspace_tile *treap_merge(struct vaspace_tile *below,
                                        struct vaspace_tile *above)
{
    if (!below || !above)
        return below ? below : above;
    if (below->priority > above->priority) {
        below->right = treap_merge(below->right, above);
        tile_pull(below);
        return below;
    }
    above->left = treap_merge(below, above->left);
    tile_pull(above);
    return above;
}

static void treap_insert(struct vaspace_tile **root, struct vaspace_tile *t)
{
    if (!*root || t->priority > (*root)->priority) {
        treap_split(*root, t->start, &t->left, &t->right);
        *root = t;
    } else {
        treap_insert(
            t->start < (*root)->start ? &(*root)->left : &(*root)->right, t);
    }
    tile_pull(*root);
}

static void treap_remove(struct vaspace_tile **root, struct vaspace_tile *t)
{
    if (*root == t) {
        *root = treap_merge(t->left, t->right);
        return;
    }
    treap_remove(t->start < (*root)->start ? &(*root)->left : &(*root)->right,
                 t);
    tile_pull(*root);
}

/* Brings the sums on the way to T up to date after T changed. */
static void treap_refresh(struct vaspace_tile *root, struct vaspace_tile *t)
{
    if (root != t)
        treap_refresh(t->start < root->start ? root->left : root->right, t);
    tile_pull(root);
}

static struct vaspace_tile *lowest_tile(struct vaspace_tile *t, enum kind kind,
                                        uint64_t bytes)
{
    while (t && t->widest[kind] >= bytes) {
        if (t->left && t->left->widest[kind] >= bytes)
            t = t->left;
        else if (t->kind == kind && t->bytes >= bytes)
            return t;
        else
            t = t->right;
    }
    return NULL;
}

static struct vaspace_tile *highest_tile(struct vaspace_tile *t, enum kind kind,
                                         uint64_t bytes)
{
    while (t && t->widest[kind] >= bytes) {
        if (t->right && t->right->widest[kind] >= bytes)
            t = t->right;
        else if (t->kind == kind && t->bytes >= bytes)
            return t;
        else
            t = t->left;
    }
    return NULL;
}

/* The tile that holds ADDRESS, which lies in the window. */
static struct vaspace_tile *locate_tile(const struct vaspace_level *level,
                                        uint64_t address)
{
    struct vaspace_tile *t = level->root;

    while (address < t->start || address - t->start >= t->bytes)
        t = address < t->start ? t->left : t->right;
    return t;
}

/* [ ------- t ------- ] => [ -- t -- ][ result ], cut at address AT. */
static struct vaspace_tile *tile_cut(struct vaspace *v,
                                     struct vaspace_level *level,
                                     struct vaspace_tile *t, uint64_t at)
{
    struct vaspace_tile *rest = tile_new(v, at, t->start + t->bytes - at);

    rest->kind = t->kind;
    rest->chunk = t->chunk;
    rest->prev = t;
    rest->next = t->next;
    if (t->next)
        t->next->prev = rest;
    t->next = rest;
    t->bytes = at - t->start;
    treap_refresh(level->root, t);
    treap_insert(&level->root, rest);
    return rest;
}

/* [ -- t -- ][ next ] => [ ------- t ------- ] where both are the same. */
static void tile_join_next(struct vaspace *v, struct vaspace_level *level,
                           struct vaspace_tile *t)
{
    struct vaspace_tile *gone = t->next;

    if (!gone || gone->kind != t->kind || gone->chunk != t->chunk)
        return;
    treap_remove(&level->root, gone);
    t->bytes += gone->bytes;
    t->next = gone->next;
    if (t->next)
        t->next->prev = t;
    treap_refresh(level->root, t);
    gone->next = v->spare;
    v->spare = gone;
}

/* Returns the tile that now holds what T held. */
static struct vaspace_tile *tile_set(struct vaspace *v,
                                     struct vaspace_level *level,
                                     struct vaspace_tile *t, enum kind kind,
                                     uint64_t chunk)
{
    t->kind = kind;
    t->chunk = chunk;
    treap_refresh(level->root, t);
    if (kind != KIND_GAP && kind != KIND_FREE)
        return t;
    tile_join_next(v, level, t);
    struct vaspace_tile *before = t->prev;
    if (!before || before->kind != kind || before->chunk != chunk)
        return t;
    tile_join_next(v, level, before);
    return before;
}

static void chunk_open(struct vaspace *v, struct vaspace_level *level,
                       uint64_t start, uint64_t bytes)
{
    struct vaspace_tile *t = locate_tile(level, start);

    if (t->start < start)
        t = tile_cut(v, level, t, start);
    if (t->bytes > bytes)
        tile_cut(v, level, t, start + bytes);
    tile_set(v, level, t, KIND_FREE, start);
}

/* The lowest free place in an open chunk, or NULL. */
static struct vaspace_tile *level_take(struct vaspace *v,
                                       struct vaspace_level *level,
                                       uint64_t asked_bytes, enum kind kind)
{
    uint64_t bytes = (asked_bytes + level->align - 1) & ~(level->align - 1);
    struct vaspace_tile *t = lowest_tile(level->root, KIND_FREE, bytes);

    if (!t)
        return NULL;
    if (t->bytes > bytes)
        tile_cut(v, level, t, t->start + bytes);
    t->asked_bytes = asked_bytes;
    return tile_set(v, level, t, kind, t->chunk);
}

/* Frees used tile T; an emptied chunk becomes gap. Returns whether it did. */
static bool level_give(struct vaspace *v, struct vaspace_level *level,
                       struct vaspace_tile *t)
{
    t = tile_set(v, level, t, KIND_FREE, t->chunk);
    if (t->start != t->chunk || (t->next && t->next->chunk == t->chunk))
        return false;
    tile_set(v, level, t, KIND_GAP, 0);
    return true;
}

/* Reserves the addresses of a new chunk that BYTES fit in. */
static int window_open(struct vaspace *v, uint64_t bytes)
{
    bool ascends = v->model == VASPACE_ASCENDING;
    uint64_t unit = ascends ? VASPACE_GRANULE_BYTES : VASPACE_CHUNK_BYTES;
    uint64_t whole = (bytes + unit - 1) & ~(unit - 1);
    struct vaspace_tile *gap =
        ascends ? lowest_tile(v->large.root, KIND_GAP, whole)
                : highest_tile(v->large.root, KIND_GAP, whole);

    if (!gap)
        return -1;
    uint64_t start = ascends ? gap->start : gap->start + gap->bytes - whole;
    chunk_open(v, &v->large, start, whole);
    return 0;
}

static struct vaspace_tile *place_take(struct vaspace *v, uint64_t bytes,
                                       enum kind kind)
{
    struct vaspace_tile *t = level_take(v, &v->large, bytes, kind);

    if (!t && !window_open(v, bytes))
        t = level_take(v, &v->large, bytes, kind);
    return t;
}

static struct vaspace_tile *large_take(struct vaspace *v, uint64_t bytes,
                                       enum kind kind)
{
    uint64_t granule = VASPACE_GRANULE_BYTES;

    if (bytes > v->size_bytes)
        return NULL;
    uint64_t whole = (bytes + granule - 1) & ~(granule - 1);
    if (whole > v->limit_bytes - v->used_bytes)
        return NULL;
    struct vaspace_tile *t = place_take(v, bytes, kind);
    if (t)
        v->used_bytes += t->bytes;
    return t;
}

static void large_give(struct vaspace *v, struct vaspace_tile *t)
{
    v->used_bytes -= t->bytes;
    level_give(v, &v->large, t);
}

static struct vaspace_tile *small_take(struct vaspace *v, uint64_t bytes)
{
    struct vaspace_tile *t = level_take(v, &v->small, bytes, KIND_USED);

    if (t)
        return t;
    struct vaspace_tile *slab = large_take(v, VASPACE_GRANULE_BYTES, KIND_SLAB);
    if (!slab)
        return NULL;
    chunk_open(v, &v->small, slab->start, slab->bytes);
    return level_take(v, &v->small, bytes, KIND_USED);
}

static void small_give(struct vaspace *v, struct vaspace_tile *t)
{
    uint64_t slab = t->chunk;

    if (level_give(v, &v->small, t))
        large_give(v, locate_tile(&v->large, slab));
}

static int level_init(struct vaspace *v, struct vaspace_level *level,
                      uint64_t align)
{
    level->align = align;
    if (spare_reserve(v))
        return -1;
    level->root = tile_new(v, v->base, v->size_bytes);
    tile_pull(level->root);
    return 0;
}

/* A new chunk of BYTES at START, taken without memory. */
static void hold_chunk(struct vaspace *v, uint64_t start, uint64_t bytes)
{
    chunk_open(v, &v->large, start, bytes);
    struct vaspace_tile *t = locate_tile(&v->large, start);
    t->asked_bytes = bytes;
    tile_set(v, &v->large, t, KIND_HELD, start);
}

/* Makes BYTES at START, inside what is held, a free part of its chunk. */
static void hold_open(struct vaspace *v, uint64_t start, uint64_t bytes)
{
    struct vaspace_tile *t = locate_tile(&v->large, start);

    if (t->start < start) {
        struct vaspace_tile *before = t;

        t = tile_cut(v, &v->large, t, start);
        before->asked_bytes = before->bytes;
    }
    if (t->bytes > bytes) {
        struct vaspace_tile *rest = tile_cut(v, &v->large, t, start + bytes);

        rest->asked_bytes = rest->bytes;
    }
    tile_set(v, &v->large, t, KIND_FREE, t->chunk);
}

static int code_place(struct vaspace *v)
{
    const uint64_t bytes = VASPACE_CODE_BYTES;

    if (v->model != VASPACE_CODE || v->size_bytes < 4 * bytes)
        return 0;
    for (int i = 1; i <= 2; i++) {
        if (spare_reserve(v))
            return -1;
        hold_chunk(v, v->base + v->size_bytes - (uint64_t)i * bytes, bytes);
    }
    if (spare_reserve(v))
        return -1;
    v->code = v->base + v->size_bytes - bytes;
    hold_open(v, v->code + CODE_FIRST, VASPACE_GRANULE_BYTES);
    return 0;
}

static int code_load(struct vaspace *v)
{
    static const struct {
        int64_t start;
        uint64_t bytes;
    } holes[] = {{-CODE_BELOW, CODE_BELOW},
                 {0, CODE_FIRST},
                 {CODE_ABOVE, VASPACE_CODE_BYTES - CODE_ABOVE}};
    uint64_t code = v->code;

    v->code = 0;
    for (int i = 0; code && i < 3; i++) {
        if (spare_reserve(v))
            return -1;
        hold_open(v, code + (uint64_t)holes[i].start, holes[i].bytes);
    }
    return 0;
}

static int hold_block(struct vaspace *v, uint64_t bytes)
{
    if (!bytes)
        return 0;
    return spare_reserve(v) || !place_take(v, bytes, KIND_HELD) ? -1 : 0;
}

int vaspace_library(struct vaspace *v, const char *who, uint64_t bytes)
{
    uint64_t rest = bytes % VASPACE_CHUNK_BYTES;

    if (v->model != VASPACE_CODE)
        return 0;
    if (!strcmp(who, "kernels"))
        return code_load(v);
    if (strcmp(who, "cublas") && strcmp(who, "cudnn"))
        return 0;
    return hold_block(v, bytes - rest) || hold_block(v, rest) ? -1 : 0;
}

enum vaspace_model vaspace_model_of(enum vaspace_model order, unsigned major)
{
    return order == VASPACE_CHUNKS && major == 9 ? VASPACE_CODE : order;
}

int vaspace_init(struct vaspace *v, uint64_t base, uint64_t size_bytes,
                 enum vaspace_model model, const struct vaspace_memory *memory)
{
    if (!base || !size_bytes || base % VASPACE_CHUNK_BYTES ||
        size_bytes % VASPACE_CHUNK_BYTES || base + size_bytes < base)
        return -1;
    *v = (struct vaspace){.base = base,
                          .size_bytes = size_bytes,
                          .limit_bytes = UINT64_MAX,
                          .model = model,
                          .memory = {.get = map_get, .put = map_put}};
    if (memory)
        v->memory = *memory;
    return vaspace_reset(v);
}

void vaspace_fini(struct vaspace *v)
{
    while (v->pages) {
        struct vaspace_page *page = v->pages;

        v->pages = page->next;
        if (v->memory.put)
            v->memory.put(page, PAGE_BYTES, v->memory.context);
    }
    v->spare = v->large.root = v->small.root = NULL;
}

int vaspace_reset(struct vaspace *v)
{
    vaspace_fini(v);
    v->used_bytes = v->count = v->code = 0;
    v->seed = 2463534242; /* fixed: equal calls give equal trees */
    if (level_init(v, &v->large, VASPACE_GRANULE_BYTES))
        return -1;
    if (level_init(v, &v->small, VASPACE_SMALL_ALIGN))
        return -1;
    return code_place(v);
}

void vaspace_limit(struct vaspace *v, uint64_t limit_bytes)
{
    v->limit_bytes = limit_bytes > v->used_bytes ? limit_bytes : v->used_bytes;
}

uint64_t vaspace_alloc(struct vaspace *v, uint64_t bytes)
{
    if (!bytes || spare_reserve(v))
        return 0;
    struct vaspace_tile *t = bytes < VASPACE_SMALL_BYTES
                                 ? small_take(v, bytes)
                                 : large_take(v, bytes, KIND_USED);
    if (!t)
        return 0;
    v->count++;
    return t->start;
}

/* The used tile that holds ADDRESS, or NULL; LEVEL says in which row. */
static struct vaspace_tile *used_find(const struct vaspace *v, uint64_t address)
{
    if (!v->large.root || address < v->base ||
        address - v->base >= v->size_bytes)
        return NULL;
    struct vaspace_tile *t = locate_tile(&v->large, address);
    if (t->kind == KIND_SLAB)
        t = locate_tile(&v->small, address);
    return t->kind == KIND_USED ? t : NULL;
}

uint64_t vaspace_free(struct vaspace *v, uint64_t address)
{
    struct vaspace_tile *t = used_find(v, address);

    if (!t || t->start != address)
        return 0;
    uint64_t asked_bytes = t->asked_bytes;
    if (locate_tile(&v->large, address) == t)
        large_give(v, t);
    else
        small_give(v, t);
    v->count--;
    return asked_bytes;
}

bool vaspace_find(const struct vaspace *v, uint64_t address, uint64_t *start,
                  uint64_t *bytes)
{
    const struct vaspace_tile *t = used_find(v, address);

    if (!t || address - t->start >= t->asked_bytes)
        return false;
    if (start)
        *start = t->start;
    if (bytes)
        *bytes = t->asked_bytes;
    return true;
}

/* The first used tile of one row that starts at FROM or above. */
static const struct vaspace_tile *level_next(const struct vaspace_level *level,
                                             uint64_t from)
{
    const struct vaspace_tile *t = locate_tile(level, from);

    if (t->start < from)
        t = t->next;
    while (t && t->kind != KIND_USED)
        t = t->next;
    return t;
}

bool vaspace_next(const struct vaspace *v, uint64_t from, uint64_t *start,
                  uint64_t *bytes)
{
    if (from < v->base)
        from = v->base;
    if (!v->large.root || from - v->base >= v->size_bytes)
        return false;
    const struct vaspace_tile *t = level_next(&v->large, from);
    const struct vaspace_tile *s = level_next(&v->small, from);
    if (s && (!t || s->start < t->start))
        t = s;
    if (!t)
        return false;
    *start = t->start;
    *bytes = t->asked_bytes;
    return true;
}

/* Joined where they can be, in order, without a hole. */
static bool tile_check(const struct vaspace_tile *t)
{
    const struct vaspace_tile *next = t->next;
    bool mergeable = t->kind == KIND_GAP || t->kind == KIND_FREE;

    if (!t->bytes || (t->kind == KIND_GAP) != (t->chunk == 0))
        return false;
    if (t->kind >= KIND_USED && (!t->asked_bytes || t->asked_bytes > t->bytes))
        return false;
    if (!next)
        return true;
    return next->prev == t && next->start == t->start + t->bytes &&
           !(mergeable && next->kind == t->kind && next->chunk == t->chunk);
}

bool vaspace_check(const struct vaspace *v)
{
    uint64_t used_bytes = 0;
    size_t count = 0;
    const struct vaspace_level *levels[] = {&v->large, &v->small};

    for (int i = 0; i < 2; i++) {
        const struct vaspace_tile *t = locate_tile(levels[i], v->base),
                                  *last = t;

        for (; t; last = t, t = t->next) {
            if (!tile_check(t))
                return false;
            count += t->kind == KIND_USED;
            if (i == 0 && (t->kind == KIND_USED || t->kind == KIND_SLAB))
                used_bytes += t->bytes;
        }
        if (last->start + last->bytes != v->base + v->size_bytes)
            return false;
    }
    return used_bytes == v->used_bytes && count == v->count;
}
