/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <stddef.h>

#include "common/base/hash.h"

#define TILE 128

struct list {
    float *x;
    unsigned count;
};

static void value_add(struct list *list, double value)
{
    list->x[list->count++] = (float)value;
}

static void add_log(struct list *list, double value)
{
    value_add(list, log2(fmax(value, 1e-3)));
}

static double tiles_of(double extent, double tile)
{
    return ceil(fmax(extent, 1) / tile);
}

/* The share of TILES' last wave that is used, over all waves. */
static double wave_fill(const struct cost_gpu *gpu, double tiles)
{
    double sms = fmax(gpu->sm_count, 1);

    return tiles / (sms * ceil(tiles / sms));
}

static double tile_fill(double extent, double tile)
{
    return extent / (tile * tiles_of(extent, tile));
}

/* How often 2 divides EXTENT, at most 7 times: 16-byte loads of 16-bit
 * elements need 3, whole tiles 6 or 7. */
static double alignment_of(uint64_t extent)
{
    int bits = extent ? __builtin_ctzll(extent) : 7;

    return bits < 7 ? bits : 7;
}

static void add_limits(struct list *list, const struct cost_gpu *gpu,
                       const struct work *work)
{
    static const struct cost_roofline compute = {0, 1, 1e6, 0};
    static const struct cost_roofline memory = {0, 1e6, 1, 0};
    double compute_ns = cost_roofline_ns(&compute, gpu, work);
    double memory_ns = cost_roofline_ns(&memory, gpu, work);

    add_log(list, fmax(compute_ns, memory_ns));
    add_log(list, fmax(compute_ns, 1e-3) / fmax(memory_ns, 1e-3));
}

static void add_tiles(struct list *list, const struct cost_gpu *gpu,
                      double tiles)
{
    add_log(list, tiles / fmax(gpu->sm_count, 1));
    value_add(list, wave_fill(gpu, tiles));
}

/* What whole tiles in whole waves compute, over the M x N x BATCH asked for. */
static double tile_waste(const struct cost_gpu *gpu, double m, double n,
                         double batch, double tile_m, double tile_n)
{
    double tiles = tiles_of(m, tile_m) * tiles_of(n, tile_n) * batch;

    return tile_m * tile_n * tiles /
           (wave_fill(gpu, tiles) * fmax(m * n * batch, 1));
}

static void gemm_features(struct list *list, const struct cost_gpu *gpu,
                          const struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    double batch = (double)g->batch;

    add_log(list, m);
    add_log(list, n);
    add_log(list, k);
    add_log(list, batch);
    add_log(list, m * n * batch);
    add_limits(list, gpu, work);
    add_tiles(list, gpu, tiles_of(m, TILE) * tiles_of(n, TILE) * batch);
    value_add(list,
              wave_fill(gpu, tiles_of(m, 256) * tiles_of(n, TILE) * batch));
    value_add(list,
              wave_fill(gpu, tiles_of(m, TILE) * tiles_of(n, 256) * batch));
    value_add(list, wave_fill(gpu, tiles_of(m, 64) * tiles_of(n, 64) * batch));
    value_add(list, tile_fill(m, TILE));
    value_add(list, tile_fill(n, TILE));
    value_add(list, alignment_of(g->m));
    value_add(list, alignment_of(g->n));
    value_add(list, alignment_of(g->k));
    value_add(list, g->transpose_a + 2 * g->transpose_b);
    add_log(list, tile_waste(gpu, m, n, batch, 128, 128));
    add_log(list, fmin(tile_waste(gpu, m, n, batch, 256, 128),
                       tile_waste(gpu, m, n, batch, 128, 256)));
    add_log(list, tile_waste(gpu, m, n, batch, 64, 64));
}

/* How many query heads that share keys the kernel packs into one tile: flash
 * attention 2 does so where there is one query (seqlenq_ngroups_swapped of its
 * flash_api.cpp), 3 wherever lengths vary (should_pack_gqa of its
 * heuristics.h). */
static double packed_heads(const struct work_attention_shape *s)
{
    bool packs = s->kernel == WORK_ATTENTION_FLASH3 ||
                 (s->kernel == WORK_ATTENTION_FLASH2 && s->queries == 1);

    return packs && s->kv_heads && s->kv_heads < s->heads
               ? (double)s->heads / (double)s->kv_heads
               : 1;
}

/* Blocks of the grid where a tile has TILE_Q rows. */
static double attention_tiles(const struct work_attention_shape *s,
                              double tile_q)
{
    double packed = packed_heads(s);

    return (double)s->batch * (double)s->heads / packed *
           tiles_of((double)s->queries * packed, tile_q);
}

/* Kernels for few queries or keys have smaller tiles. */
static double usual_tile(double extent)
{
    return extent <= TILE / 2 ? TILE / 2 : TILE;
}

double cost_attention_flops(const struct work_attention_shape *s)
{
    double tile_q =
        s->tile_q ? s->tile_q
                  : usual_tile((double)s->queries * packed_heads(s));
    double tile_k = s->tile_k ? s->tile_k : usual_tile((double)s->keys);
    double q = attention_tiles(s, tile_q) * tile_q; /* of all heads */
    double k = tiles_of((double)s->keys, tile_k) * tile_k;
    double head = s->padded_head_size ? s->padded_head_size
                                      : tiles_of((double)s->head_size, 32) * 32;
    double value = s->value_size && s->value_size != s->head_size
                       ? tiles_of((double)s->value_size, 32) * 32
                       : head;
    double square = q * k;

    if (s->causal)
        square = fmin(square, square / 2 + q * tile_k / 2);
    return 2 * square * (head + value);
}

static void attention_features(struct list *list, const struct cost_gpu *gpu,
                               const struct work *work)
{
    const struct work_attention_shape *s = &work->attention;
    double heads = (double)s->batch * (double)s->heads;

    add_log(list, heads);
    add_log(list, (double)s->heads / fmax((double)s->kv_heads, 1));
    add_log(list, (double)s->queries);
    add_log(list, (double)s->keys);
    add_log(list, (double)s->head_size);
    value_add(list, s->causal);
    add_log(list, heads * (double)s->queries);
    add_limits(list, gpu, work);
    add_tiles(list, gpu, attention_tiles(s, TILE));
    value_add(list, wave_fill(gpu, attention_tiles(s, 192)));
    value_add(list, tile_fill((double)s->queries, TILE));
    value_add(list, tile_fill((double)s->keys, TILE));
    value_add(list, s->kernel);
    add_log(list, (double)s->batch);
}

static void convolution_features(struct list *list, const struct cost_gpu *gpu,
                                 const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    double groups = fmax((double)c->groups, 1);
    double pixels = (double)c->n * (double)c->out_h * (double)c->out_w;
    double in = (double)c->c / groups, out = (double)c->k / groups;
    double filter = (double)(c->r * c->s * (c->t ? c->t : 1));

    add_log(list, (double)c->n);
    add_log(list, in);
    add_log(list, out);
    add_log(list, (double)c->h);
    add_log(list, (double)c->w);
    add_log(list, filter);
    value_add(list, (double)c->stride_h);
    add_log(list, groups);
    add_log(list, pixels);
    add_log(list, in * filter);
    add_limits(list, gpu, work);
    add_tiles(list, gpu, tiles_of(pixels, TILE) * tiles_of(out, TILE) * groups);
    value_add(list, wave_fill(gpu, tiles_of(pixels, TILE) * tiles_of(out, 64)));
    value_add(list, tile_fill(out, TILE));
    value_add(list, tile_fill(pixels, TILE));
    value_add(list, alignment_of(c->c));
    value_add(list, alignment_of(c->k));
    value_add(list, (double)c->layout);
    value_add(list, (double)(c->out_h % 4));
    value_add(list, (double)(c->pad_h * 2 + 1) / (double)(c->r ? c->r : 1));
}

static void rows_features(struct list *list, const struct cost_gpu *gpu,
                          const struct work *work)
{
    const struct work_rows *r = &work->rows;

    add_log(list, (double)r->rows);
    add_log(list, (double)r->columns);
    add_log(list, (double)(r->rows * r->columns));
    add_log(list, work->read_bytes + work->written_bytes);
    add_limits(list, gpu, work);
    add_log(list, (double)r->stride);
    value_add(list, work->element_bytes);
    add_log(list, (double)r->rows / fmax(gpu->sm_count, 1));
    value_add(list, alignment_of(r->columns));
    value_add(list, wave_fill(gpu, (double)r->rows));
}

/* PyTorch's kernel for up to 1024 columns computes their next power of two
 * (PersistentSoftmax.cuh); above that a block of up to 1024 threads goes over a
 * row (SoftMax.cu). */
#define SOFTMAX_COLUMNS 1024

static void softmax_features(struct list *list, const struct cost_gpu *gpu,
                             const struct work *work)
{
    double columns = fmax((double)work->rows.columns, 1);

    rows_features(list, gpu, work);
    value_add(list, columns / exp2(ceil(log2(columns))));
    value_add(list, columns <= SOFTMAX_COLUMNS);
    value_add(list, tile_fill(columns, SOFTMAX_COLUMNS));
}

static void plain_features(struct list *list, const struct cost_gpu *gpu,
                           const struct work *work)
{
    double elements = fmax((double)work->elements, 1);

    add_log(list, elements);
    add_log(list, work->read_bytes + work->written_bytes);
    add_limits(list, gpu, work);
    /* not bytes an element: types would stand for who measured them */
    value_add(list, work->read_bytes / fmax(work->written_bytes, 1));
}

typedef void fill_features(struct list *list, const struct cost_gpu *gpu,
                           const struct work *work);

/* Trees do not serve families of these shapes. */
#define none_features NULL
#define sort_features NULL

#define FILLER(id, name, shape) [WORK_##id] = shape##_features,
static fill_features *const fillers[WORK_FAMILIES] = {
    WORK_FAMILY_LIST(FILLER)};
#undef FILLER

unsigned cost_features(const struct cost_gpu *gpu, const struct work *work,
                       uint32_t source, float x[COST_FEATURES])
{
    struct list list = {x, 0};

    if ((unsigned)work->family >= WORK_FAMILIES || !fillers[work->family])
        return 0;
    value_add(&list, source);
    fillers[work->family](&list, gpu, work);
    return list.count;
}

static bool is_packed(const struct work_gemm *g)
{
    uint64_t a = g->transpose_a ? g->m : g->k;
    uint64_t b = g->transpose_b ? g->k : g->n;

    return (!g->lda || g->lda == a) && (!g->ldb || g->ldb == b) &&
           (!g->ldc || g->ldc == g->n);
}

#define PUT(...)                                                               \
    put_words(words, (const uint64_t[]){__VA_ARGS__},                          \
              sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static unsigned put_words(uint64_t *words, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = from[i];
    return (unsigned)count;
}

unsigned cost_shape_words(const struct work *work,
                          uint64_t words[COST_SHAPE_WORDS])
{
    const struct work_gemm *g = &work->gemm;
    const struct work_attention_shape *a = &work->attention;
    const struct work_convolution *c = &work->convolution;

    switch (work->family) {
    case WORK_GEMM:
        if (!is_packed(g) || g->shared_a || g->shared_b)
            return 0;
        return PUT(g->m, g->n, g->k, g->batch,
                   g->transpose_a + 2u * g->transpose_b);
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        return PUT(a->batch, a->heads, a->kv_heads, a->queries, a->keys,
                   a->head_size, a->value_size, a->causal, a->kernel);
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
        return PUT(c->n, c->c, c->h, c->w, c->k, c->r, c->s, c->d, c->t,
                   c->stride_h, c->stride_w, c->pad_h, c->pad_w, c->dilation_h,
                   c->dilation_w, c->groups, c->layout);
    default:
        return 0;
    }
}

uint64_t cost_words_key(enum work_family family, enum work_type type,
                        const uint64_t *words, unsigned count)
{
    uint64_t hash = hash_word(hash_word(0, family), type);

    for (unsigned i = 0; i < count; i++)
        hash = hash_word(hash, words[i]);
    return hash ? hash : 1;
}

uint64_t cost_shape_key(const struct work *work)
{
    uint64_t words[COST_SHAPE_WORDS];
    unsigned count = cost_shape_words(work, words);

    return count ? cost_words_key(work->family, work->type, words, count) : 0;
}
