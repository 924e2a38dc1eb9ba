/* SPDX-License-Identifier: Apache-2.0
 * Random numbers, as the GPU would draw them: the grid-stride kernels of
 * aten/src/ATen/native/cuda/DistributionTemplates.h over cuRAND's Philox
 * generator, whose seed and place the host knows. So randint, randperm's keys
 * and bernoulli_(p) are true, and a few numbers of rand. */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

enum form { FORM_RANGE, FORM_WHOLE, FORM_UNIFORM, FORM_BERNOULLI, FORM_OTHER };

/* Whether the closure finds its place by a stride or an OffsetCalculator. */
enum layout { LAYOUT_STRIDE, LAYOUT_OFFSETS };

/* at::PhiloxCudaState: where captured for a graph the seed and the offset are
 * addresses of them, and this kernel's own offset comes to it. A flag says so
 * further on, whose place changed: addresses of the GPU's tell as well. */
struct philox_state {
    uint64_t seed, offset;
    uint32_t offset_in_graph;
};

/* What the kernel does with each number. */
struct draw {
    enum form form;
    enum number_type type;
    uint64_t range;
    uint64_t inverse; /* of a range of 32 bits: 2^64 / range, rounded up */
    int64_t base;
    double probability;
    float scale, from, to;
};

struct target {
    const struct compute *compute;
    const char *closure;
    uint64_t data;
    int32_t stride;
    int64_t *words; /* where DATA is kept, or NULL */
};

#define UNROLL 4

/* Threads whose numbers are drawn at once: a round waits for its products, and
 * most threads of a grid draw once. */
#define LANES 16

/* Philox4x32-10: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3
 * (SC 2011), figure 2. X: counters in, numbers out. */
#define PHILOX_ROUNDS 10

static const uint32_t philox_factors[2] = {0xd2511f53, 0xcd9e8d57};
static const uint32_t philox_steps[2] = {0x9e3779b9, 0xbb67ae85};

static void philox_portable(uint64_t seed, uint32_t x[4][LANES])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t a = (uint64_t)philox_factors[0] * x[0][i];
            uint64_t b = (uint64_t)philox_factors[1] * x[2][i];

            x[0][i] = (uint32_t)(b >> 32) ^ x[1][i] ^ key[0];
            x[2][i] = (uint32_t)(a >> 32) ^ x[3][i] ^ key[1];
            x[1][i] = (uint32_t)b;
            x[3][i] = (uint32_t)a;
        }
        key[0] += philox_steps[0];
        key[1] += philox_steps[1];
    }
}

#ifdef __x86_64__
/* The same, four lanes in a register: each in the low half of 64 bits, of which
 * the high half means nothing. */
__attribute__((target("avx2"))) static void philox_avx2(uint64_t seed,
                                                        uint32_t x[4][LANES])
{
    const __m256i factor[2] = {_mm256_set1_epi64x(philox_factors[0]),
                               _mm256_set1_epi64x(philox_factors[1])};
    const __m256i step[2] = {_mm256_set1_epi32((int)philox_steps[0]),
                             _mm256_set1_epi32((int)philox_steps[1])};
    __m256i key[2] = {_mm256_set1_epi32((int)seed),
                      _mm256_set1_epi32((int)(seed >> 32))};
    __m256i v[4][LANES / 4];

#pragma GCC unroll 4
    for (int w = 0; w < 4; w++)
#pragma GCC unroll 4
        for (int i = 0; i < LANES / 4; i++)
            v[w][i] = _mm256_cvtepu32_epi64(
                _mm_loadu_si128((const __m128i *)&x[w][4 * i]));
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
#pragma GCC unroll 4
        for (int i = 0; i < LANES / 4; i++) {
            __m256i a = _mm256_mul_epu32(factor[0], v[0][i]);
            __m256i b = _mm256_mul_epu32(factor[1], v[2][i]);

            v[0][i] = _mm256_srli_epi64(b, 32) ^ v[1][i] ^ key[0];
            v[2][i] = _mm256_srli_epi64(a, 32) ^ v[3][i] ^ key[1];
            v[1][i] = b;
            v[3][i] = a;
        }
        key[0] = _mm256_add_epi32(key[0], step[0]);
        key[1] = _mm256_add_epi32(key[1], step[1]);
    }
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < LANES; i++)
            x[w][i] = (uint32_t)((const uint64_t *)v[w])[i];
}
#endif

static void draw_philox(uint64_t seed, uint32_t x[4][LANES])
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        philox_avx2(seed, x);
        return;
    }
#endif
    philox_portable(seed, x);
}

/* curand4() for the nth time after curand_init(seed, thread, offset), of LANES
 * threads from THREAD on; PyTorch's offsets are multiples of 4, one of which is
 * a step of the counter. */
static void draw_curand(const struct philox_state *state, uint64_t thread,
                        uint64_t nth, uint32_t x[4][LANES])
{
    uint64_t step = state->offset / 4 + nth;

    for (uint64_t i = 0; i < LANES; i++) {
        x[0][i] = (uint32_t)step;
        x[1][i] = (uint32_t)(step >> 32);
        x[2][i] = (uint32_t)(thread + i);
        x[3][i] = (uint32_t)((thread + i) >> 32);
    }
    draw_philox(state->seed, x);
}

/* curand_uniform4(): (0, 1] */
static float uniform_of(uint32_t x)
{
    return (float)x * 0x1p-32f + 0x1p-33f;
}

/* transformation::uniform_int of ATen/core/TransformationHelper.h */
static long double whole_of(enum number_type type, uint64_t x)
{
    uint32_t bits = 8 * number_bytes(type);

    if (type == NUMBER_BOOL)
        return x & 1;
    return x & ((UINT64_C(1) << (type == NUMBER_U8 ? 8 : bits - 1)) - 1);
}

static long double draw_integer(const struct draw *d, uint64_t x)
{
    if (d->form == FORM_WHOLE)
        return whole_of(d->type, x);
    return (int64_t)(x % d->range + (uint64_t)d->base);
}

static long double draw_float(const struct draw *d, uint32_t x)
{
    float u = uniform_of(x);

    if (d->form == FORM_BERNOULLI)
        return u < d->probability;
    float value = (float)((double)u * d->scale + d->from);
    return value == d->to ? d->from : value;
}

/* X modulo a range of 32 bits: D. Lemire et al., Faster remainder by direct
 * computation (2019). */
static uint32_t draw_within(const struct draw *d, uint32_t x)
{
    return (uint32_t)(((unsigned __int128)(d->inverse * x) * d->range) >> 64);
}

/* The numbers that one curand4() makes. */
static int draw_numbers(const struct compute *c, const struct draw *d,
                        const uint32_t *x, long double *out)
{
    if (c->scalar == NUMBER_I64) {
        for (int i = 0; i < 2; i++)
            out[i] = draw_integer(d, (uint64_t)x[2 * i] << 32 | x[2 * i + 1]);
        return 2;
    }
    for (int i = 0; i < UNROLL; i++)
        out[i] = c->scalar == NUMBER_F32 ? draw_float(d, x[i])
                                         : draw_integer(d, x[i]);
    return UNROLL;
}

static uint64_t target_place(const struct target *t, uint64_t index)
{
    uint64_t offset;

    if (t->compute->layout == LAYOUT_STRIDE)
        return t->data + (uint64_t)((int64_t)index * t->stride);
    compute_offsets(t->closure, 1, index, &offset);
    return t->data + offset;
}

/* What LANES threads drew at once, of which the first draws for INDEX: the
 * numbers of one thread lie as many elements apart as there are threads. */
struct drawn {
    const struct target *target;
    const struct draw *draw;
    uint64_t index, lanes, threads, count;
    uint32_t x[4][LANES];
};

static void keep_words(const struct drawn *n)
{
    uint64_t index = n->index;

    for (int k = 0; k < UNROLL && index < n->count; k++, index += n->threads) {
        int64_t *to = n->target->words + index;
        uint64_t left = n->count - index;

        for (uint64_t i = 0; i < n->lanes && i < left; i++)
            to[i] = draw_within(n->draw, n->x[k][i]) + n->draw->base;
    }
}

static void keep_any(const struct drawn *n)
{
    const struct compute *c = n->target->compute;

    for (uint64_t i = 0; i < n->lanes; i++) {
        const uint32_t x[] = {n->x[0][i], n->x[1][i], n->x[2][i], n->x[3][i]};
        uint64_t index = n->index + i;
        long double values[UNROLL];
        int made = draw_numbers(c, n->draw, x, values);

        for (int k = 0; k < made && index < n->count; k++, index += n->threads)
            compute_store(c->types[0], target_place(n->target, index),
                          values[k], true);
    }
}

static void draw_all(const struct target *t, const struct draw *d,
                     const struct philox_state *state, uint64_t threads,
                     uint64_t count)
{
    uint64_t unroll = t->compute->scalar == NUMBER_I64 ? 2 : UNROLL;
    struct drawn n = {
        .target = t, .draw = d, .threads = threads, .count = count};

    for (uint64_t thread = 0; thread < threads && thread < count;
         thread += LANES) {
        n.index = thread;
        n.lanes = threads - thread < LANES ? threads - thread : LANES;
        for (uint64_t nth = 0; n.index < count; nth++) {
            draw_curand(state, thread, nth, n.x);
            if (t->words)
                keep_words(&n);
            else
                keep_any(&n);
            n.index += threads * unroll;
        }
    }
}

/* The functor's captures: {uint64_t range; int64_t base}, {double p},
 * {float range, from, to}, nothing. */
static bool draw_read(const struct compute *c, const char *functor,
                      struct draw *d)
{
    *d = (struct draw){.form = (enum form)c->form, .type = c->types[0]};
    switch (d->form) {
    case FORM_RANGE:
        memcpy(&d->range, functor, sizeof d->range);
        memcpy(&d->base, functor + 8, sizeof d->base);
        d->inverse = d->range ? UINT64_MAX / d->range + 1 : 0;
        return d->range;
    case FORM_BERNOULLI:
        memcpy(&d->probability, functor, sizeof d->probability);
        return d->probability >= 0 && d->probability <= 1;
    case FORM_UNIFORM:
        memcpy(&d->scale, functor, sizeof d->scale);
        memcpy(&d->from, functor + 4, sizeof d->from);
        memcpy(&d->to, functor + 8, sizeof d->to);
        return d->scale == d->to - d->from;
    case FORM_OTHER:
        return false;
    case FORM_WHOLE:
        break;
    }
    return true;
}

/* The closure is {char *data; int stride; functor} or {OffsetCalculator; char
 * *data; functor}. Returns where the functor is, or NULL. */
static const char *target_read(const struct compute *c, const char *closure,
                               struct target *t)
{
    const uint32_t after = (OFFSETS_BYTES(1) + 7) & ~7u;

    *t = (struct target){.compute = c, .closure = closure};
    if (c->layout == LAYOUT_OFFSETS) {
        memcpy(&t->data, closure + after, sizeof t->data);
        return compute_offsets_valid(closure) ? closure + after + 8 : NULL;
    }
    memcpy(&t->data, closure, sizeof t->data);
    memcpy(&t->stride, closure + 8, sizeof t->stride);
    return closure + (c->form == FORM_UNIFORM ? 12 : 16);
}

static bool state_read(const void *argument, struct philox_state *state)
{
    long double seed, offset;

    memcpy(state, argument, sizeof *state);
    if (!values_window(state->seed) || !values_window(state->offset))
        return true;
    if (!compute_load(NUMBER_I64, state->seed, &seed) ||
        !compute_load(NUMBER_I64, state->offset, &offset))
        return false;
    state->seed = (uint64_t)(int64_t)seed;
    state->offset = (uint64_t)(int64_t)offset + state->offset_in_graph;
    return true;
}

/* What most are: int64_t of a small range, in one piece, which need no way
 * through long double. */
static int64_t *target_words(const struct target *t, const struct draw *d,
                             uint64_t count)
{
    const struct compute *c = t->compute;

    if (c->layout != LAYOUT_STRIDE || t->stride != 8 ||
        c->types[0] != NUMBER_I64 || c->scalar == NUMBER_I64 ||
        d->form != FORM_RANGE || d->range > UINT32_MAX)
        return NULL;
    return (int64_t *)values_write(t->data, count * 8, true);
}

/* rand() and its kin, from 0 to 1. */
static bool is_standard_uniform(const struct compute *c, const char *functor)
{
    struct draw d;

    return c->form == FORM_UNIFORM && draw_read(c, functor, &d) &&
           d.from == 0 && d.to == 1;
}

/* (int or int64_t count, PhiloxCudaState, -, closure) */
static void run_random(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0);
    uint64_t threads = (uint64_t)launch->grid[0] * launch->block[0];
    uint64_t limit =
        number_is_float(c->types[0]) ? COMPUTE_FLOATS : COMPUTE_INTEGERS;
    struct philox_state state;
    struct target target;
    struct draw draw;

    const char *functor = target_read(c, launch->arguments[3], &target);
    if (!functor || !count || !threads || !values_window(target.data))
        return;
    if (count > limit || !state_read(launch->arguments[1], &state) ||
        !draw_read(c, functor, &draw)) {
        uint64_t last = target_place(&target, count - 1) - target.data;

        compute_forget(c->types[0], target.data,
                       last + number_bytes(c->types[0]));
        if (is_standard_uniform(c, functor))
            values_set_uniform(target.data, last + number_bytes(c->types[0]));
        return;
    }
    target.words = target_words(&target, &draw, count);
    draw_all(&target, &draw, &state, threads, count);
}

static uint32_t random_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    static const uint32_t functors[] = {[FORM_RANGE] = 16,
                                        [FORM_BERNOULLI] = 8,
                                        [FORM_UNIFORM] = 12,
                                        [FORM_WHOLE] = 0};
    uint32_t functor = functors[c->form];

    (void)launch;
    (void)i;
    if (c->layout == LAYOUT_OFFSETS)
        return ((OFFSETS_BYTES(1) + 7u) & ~7u) + 8 + functor;
    return (c->form == FORM_UNIFORM ? 12 : functor ? 16 : 12) + functor;
}

static bool form_parse(const char *name, struct compute *c)
{
    static const struct {
        const char *pattern;
        enum form form;
        bool is_float;
    } forms[] = {
        {"21random_from_to_kernelI", FORM_RANGE, false},
        {"13random_kernelI", FORM_WHOLE, false},
        {"14uniform_kernelI", FORM_UNIFORM, true},
        {"16bernoulli_kernelI", FORM_BERNOULLI, true},
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strstr(name, forms[i].pattern)) {
            c->form = forms[i].form;
            return forms[i].is_float == (c->scalar == NUMBER_F32);
        }
    return false;
}

bool compute_random_parse(const char *name, struct compute *c)
{
    /* <scalar_t, accscalar_t, ...>; then the second closure is the one with
     * an OffsetCalculator: "EUlijE0_". */
    const char *text = name_after(name, "27distribution_nullary_kernelI");
    const char *closure = name_after(name, "EUli");

    c->run = run_random;
    c->reach = random_reach;
    if (!text || !closure || !name_types(&text, c->types, 2))
        return false;
    c->scalar = c->types[1];
    c->layout = closure[2] == '_' ? LAYOUT_STRIDE : LAYOUT_OFFSETS;
    if (!form_parse(name, c) ||
        (c->form == FORM_UNIFORM && c->types[0] != NUMBER_F32) ||
        (c->form == FORM_WHOLE && number_is_float(c->types[0])))
        c->form = FORM_OTHER; /* normal_() and the like: not known */
    return true;
}
