/* SPDX-License-Identifier: Apache-2.0
 * Sorting: CUB's radix sort as torch calls it (cuda/cub.cuh), sorts of rows in
 * place (SortUtils.cuh), selection of the largest (TensorTopK.cu), and samples
 * (MultinomialKernel.cu). Where keys are not known nothing moves: the order of
 * the input is as good a guess as any, and a permutation. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_merge.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/routing.h"
#include "capture/core/base/pages.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"

static bool keys_in_order(const void *context, uint64_t a, uint64_t b)
{
    (void)context;
    return a <= b;
}

static struct merge_item *keys_merge(struct merge_item *items, uint64_t count)
{
    return merge_sort(items, count, keys_in_order, NULL);
}

/* The number's bits in an order in which unsigned comparison is the number's:
 * cub::Traits<T>::TwiddleIn. */
static uint64_t bits_of(enum number_type type, uint32_t bytes, const char *from)
{
    uint64_t bits = 0, sign = UINT64_C(1) << (8 * bytes - 1);

    memcpy(&bits, from, bytes);
    if (type == NUMBER_U8 || type == NUMBER_BOOL)
        return bits;
    if (number_is_float(type) && bits == sign) /* -0 is 0, as in cub */
        bits = 0;
    if (number_is_float(type) && bits & sign)
        return ~bits & (sign | (sign - 1));
    return bits ^ sign;
}

static uint64_t key_bits(enum number_type type, uint64_t address)
{
    const struct values_window *w = values_window(address);
    uint32_t bytes = number_bytes(type);

    return w ? bits_of(type, bytes, values_at(w, address - w->base, bytes)) : 0;
}

static uint64_t bits_between(uint64_t key, uint32_t first, uint32_t last)
{
    key >>= first;
    return last - first < 64 ? key & ((UINT64_C(1) << (last - first)) - 1)
                             : key;
}

/* Pairs of which VALUES may be absent (0). */
struct pairs {
    uint64_t keys_in, keys_out, values_in, values_out, count;
    uint32_t first_bit, last_bit;
};

static void pairs_copy(const struct compute *c, const struct pairs *p)
{
    uint32_t bytes = number_bytes(c->types[0]);

    memsim_values_copy(p->keys_out, p->keys_in, p->count * bytes);
    if (c->bytes && p->values_in)
        memsim_values_copy(p->values_out, p->values_in, p->count * c->bytes);
}

/* Puts the elements of BYTES at FROM into the order of PLACES. */
static void elements_place(uint64_t to, uint64_t from, uint32_t bytes,
                           const uint32_t *places, uint64_t count)
{
    const struct values_window *w = values_window(from);
    char *out = values_known(from, count * bytes)
                    ? values_write(to, count * bytes, true)
                    : NULL;

    if (!out) {
        for (uint64_t i = 0; i < count; i++)
            compute_move(to + i * bytes, from + (uint64_t)places[i] * bytes,
                         bytes);
        return;
    }
    const char *in = values_at(w, from - w->base, count * bytes);
    for (uint64_t i = 0; i < count; i++)
        memcpy(out + i * bytes, in + (uint64_t)places[i] * bytes, bytes);
}

static void pairs_place(const struct compute *c, const struct pairs *p,
                        const uint32_t *places)
{
    elements_place(p->keys_out, p->keys_in, number_bytes(c->types[0]), places,
                   p->count);
    if (c->bytes && p->values_in)
        elements_place(p->values_out, p->values_in, c->bytes, places, p->count);
}

#define DIGIT_BITS 8 /* of a pass of CUB's: RADIX_BITS of its policies */

/* The digits of the keys, which lie at FROM. */
static void digits_read(const struct compute *c, const struct pairs *p,
                        const char *from, unsigned char *digits)
{
    uint32_t bytes = number_bytes(c->types[0]);
    unsigned char mask =
        (unsigned char)bits_between(255, 0, p->last_bit - p->first_bit);
    unsigned char flip = c->form ? mask : 0;

    for (uint64_t i = 0; i < p->count; i++, from += bytes)
        digits[i] =
            (unsigned char)bits_between(bits_of(c->types[0], bytes, from),
                                        p->first_bit, p->last_bit) ^
            flip;
}

static bool digits_differ(const unsigned char *digits, uint64_t count)
{
    return memcmp(digits, digits + 1, count - 1);
}

/* From how many elements have each digit to where the first of them goes. */
static void starts_sum(uint32_t starts[1 << DIGIT_BITS])
{
    uint32_t sum = 0;

    for (uint32_t d = 0; d < 1 << DIGIT_BITS; d++) {
        uint32_t of_digit = starts[d];

        starts[d] = sum;
        sum += of_digit;
    }
}

/* Counting sort, stable. */
static void digits_sort(const unsigned char *digits, uint64_t count,
                        uint32_t *places)
{
    uint32_t starts[1 << DIGIT_BITS] = {0};

    for (uint64_t i = 0; i < count; i++)
        starts[digits[i]]++;
    starts_sum(starts);
    for (uint64_t i = 0; i < count; i++)
        places[starts[digits[i]]++] = (uint32_t)i;
}

/* What most sorts are, an index tensor's: int64_t, with as wide values that are
 * known as well, a digit at a time. */
static const uint64_t *words_of(const struct compute *c, const struct pairs *p)
{
    const struct values_window *w = values_window(p->values_in);

    if (c->types[0] != NUMBER_I64 || c->bytes != 8 || !w ||
        p->last_bit - p->first_bit > DIGIT_BITS ||
        !values_known(p->values_in, p->count * 8))
        return NULL;
    return (const uint64_t *)values_at(w, p->values_in - w->base, p->count * 8);
}

/* A thread's last pass. CUB's passes go back and forth between two places:
 * where one moved nothing, both hold the same, and the next need not copy it
 * back. In which bits keys differ no pass changes. */
static _Thread_local struct {
    struct pairs pairs;
    uint64_t differ;
    bool copied;
} last;

static bool follows_last(const struct pairs *p)
{
    return last.pairs.last_bit == p->first_bit && !values_are_diverted() &&
           last.pairs.count == p->count && last.pairs.keys_out == p->keys_in &&
           last.pairs.values_out == p->values_in;
}

static bool returns_last(const struct pairs *p)
{
    return last.pairs.keys_in == p->keys_out &&
           last.pairs.values_in == p->values_out;
}

/* The bits in which not all keys are the same. */
static uint64_t words_differ(const uint64_t *keys, uint64_t count)
{
    uint64_t bits[4] = {0}, i = 0;

    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            bits[k] |= keys[i + (uint64_t)k] ^ keys[0];
    for (; i < count; i++)
        bits[0] |= keys[i] ^ keys[0];
    return bits[0] | bits[1] | bits[2] | bits[3];
}

/* Counting sort of keys and values in one go. */
static void words_place(const struct compute *c, const struct pairs *p,
                        const uint64_t *keys, const uint64_t *values,
                        uint64_t mask)
{
    uint64_t flip = (uint64_t)INT64_MIN >> p->first_bit ^ (c->form ? mask : 0);
    uint64_t bytes = p->count * 8;
    uint64_t *keys_out = (uint64_t *)values_write(p->keys_out, bytes, true);
    uint64_t *values_out = (uint64_t *)values_write(p->values_out, bytes, true);
    uint32_t starts[1 << DIGIT_BITS] = {0};

    if (!keys_out || !values_out)
        return;
    for (uint64_t i = 0; i < p->count; i++)
        starts[(keys[i] >> p->first_bit ^ flip) & mask]++;
    starts_sum(starts);
    for (uint64_t i = 0; i < p->count; i++) {
        uint32_t to = starts[(keys[i] >> p->first_bit ^ flip) & mask]++;

        keys_out[to] = keys[i];
        values_out[to] = values[i];
    }
}

static void words_sort(const struct compute *c, const struct pairs *p,
                       const uint64_t *keys, const uint64_t *values)
{
    uint64_t mask = bits_between(UINT64_MAX, 0, p->last_bit - p->first_bit);
    bool follows = follows_last(p);
    uint64_t differ = follows ? last.differ : words_differ(keys, p->count);
    bool moves = differ >> p->first_bit & mask;

    if (moves)
        words_place(c, p, keys, values, mask);
    else if (!follows || !last.copied || !returns_last(p))
        pairs_copy(c, p);
    last.pairs = *p;
    last.differ = differ;
    last.copied = !moves;
}

static void keys_sort(const struct compute *c, const struct pairs *p,
                      const char *from, struct merge_item *items,
                      uint32_t *places)
{
    uint32_t bytes = number_bytes(c->types[0]);

    for (uint64_t i = 0; i < p->count; i++, from += bytes) {
        uint64_t key = bits_between(bits_of(c->types[0], bytes, from),
                                    p->first_bit, p->last_bit);

        items[i] = (struct merge_item){c->form ? ~key : key, i};
    }
    const struct merge_item *sorted = keys_merge(items, p->count);
    for (uint64_t i = 0; i < p->count; i++)
        places[i] = (uint32_t)sorted[i].place;
}

/* ITEMS is what there is room for: pairs to sort, or digits. */
static void pairs_order(const struct compute *c, const struct pairs *p,
                        struct merge_item *items)
{
    const struct values_window *w = values_window(p->keys_in);
    const char *keys = values_at(w, p->keys_in - w->base,
                                 p->count * number_bytes(c->types[0]));
    uint32_t *places = (uint32_t *)(items + 2 * p->count);
    unsigned char *digits = (unsigned char *)items;
    const uint64_t *values = words_of(c, p);

    if (values) {
        words_sort(c, p, (const uint64_t *)keys, values);
        return;
    }
    if (p->last_bit - p->first_bit > DIGIT_BITS) {
        keys_sort(c, p, keys, items, places);
    } else {
        digits_read(c, p, keys, digits);
        if (!digits_differ(digits, p->count)) {
            pairs_copy(c, p);
            return;
        }
        digits_sort(digits, p->count, places);
    }
    pairs_place(c, p, places);
}

/* Room for any sort, kept from one to the next: new pages cost more than most
 * sorts. */
#define ROOM_BYTES                                                             \
    (COMPUTE_INTEGERS * (2 * sizeof(struct merge_item) + sizeof(uint32_t)))

static _Atomic(struct merge_item *) room;

static struct merge_item *room_take(void)
{
    struct merge_item *items = atomic_exchange(&room, NULL);

    return items ? items : memsim_pages_reserve(0, ROOM_BYTES);
}

static void room_give(struct merge_item *items)
{
    struct merge_item *other = atomic_exchange(&room, items);

    if (other)
        munmap(other, ROOM_BYTES);
}

static void pairs_sort(const struct compute *c, const struct pairs *p)
{
    uint32_t bytes = number_bytes(c->types[0]);

    if (!p->count || !values_window(p->keys_in) || !values_window(p->keys_out))
        return;
    if (p->count > COMPUTE_INTEGERS ||
        !values_known(p->keys_in, p->count * bytes)) {
        pairs_copy(c, p);
        return;
    }
    struct merge_item *items = room_take();
    if (!items)
        return;
    pairs_order(c, p, items);
    room_give(items);
}

/* (keys in, keys out, values in, values out, count, first bit, last bit) */
static void run_sort_tile(const struct compute *c,
                          const struct kernel_launch *launch)
{
    pairs_sort(c, &(struct pairs){.keys_in = compute_u64(launch, 0),
                                  .keys_out = compute_u64(launch, 1),
                                  .values_in = compute_u64(launch, 2),
                                  .values_out = compute_u64(launch, 3),
                                  .count = compute_u32(launch, 4),
                                  .first_bit = compute_u32(launch, 5),
                                  .last_bit = compute_u32(launch, 6)});
}

/* (lookback, counters, bins out, bins in, keys out, keys in, values out,
 * values in, count, first bit, bits): one digit at a time. */
static void run_sort_pass(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint32_t bit = compute_u32(launch, 9);

    pairs_sort(c, &(struct pairs){.keys_out = compute_u64(launch, 4),
                                  .keys_in = compute_u64(launch, 5),
                                  .values_out = compute_u64(launch, 6),
                                  .values_in = compute_u64(launch, 7),
                                  .count = compute_u32(launch, 8),
                                  .first_bit = bit,
                                  .last_bit = bit + compute_u32(launch, 10)});
}

/* "policy_hubI" or "DeviceRadixSortPolicyI", then the key's and the value's
 * types; then the order. */
static bool radix_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "10policy_hubI");

    if (!text)
        text = name_after(name, "21DeviceRadixSortPolicyI");
    if (!text || !name_types(&text, c->types, 1))
        return false;
    c->bytes = !text_begins(text, "NS0_8NullType") ? name_bytes(text) : 0;
    c->form = strstr(name, "SortOrderE1E") || strstr(name, "ELb1E");
    return true;
}

bool compute_sort_tile_parse(const char *name, struct compute *c)
{
    c->run = run_sort_tile;
    return radix_parse(name, c);
}

bool compute_sort_pass_parse(const char *name, struct compute *c)
{
    c->run = run_sort_pass;
    return radix_parse(name, c);
}

/* A row of LENGTH, read out of device memory, sorted and put back. */
struct rows {
    struct compute_tensor keys, values;
    uint32_t count, length, key_stride, value_stride;
    bool descending;
};

struct element {
    unsigned char key[8], value[8];
    bool key_known, value_known;
};

static uint64_t element_address(const struct compute_tensor *tensor,
                                uint64_t row, uint64_t i, uint32_t stride,
                                uint32_t bytes)
{
    return tensor->data +
           (compute_tensor_offset(tensor, row) + i * stride) * bytes;
}

static void element_get(uint64_t address, uint32_t bytes, unsigned char *to,
                        bool *known)
{
    const struct values_window *w = values_window(address);

    *known = values_known(address, bytes);
    if (w && values_known_at(w, address - w->base) == VALUES_ASSUMED)
        compute_assume();
    if (w)
        memcpy(to, values_at(w, address - w->base, bytes), bytes);
}

static void element_put(uint64_t address, uint32_t bytes,
                        const unsigned char *from, bool known)
{
    char *to = values_write_as(address, bytes, known ? compute_mark() : 0);

    if (to)
        memcpy(to, from, bytes);
}

static void row_sort(const struct compute *c, const struct rows *r,
                     uint64_t row, struct merge_item *items,
                     struct element *copies)
{
    uint32_t kb = number_bytes(c->types[0]), vb = number_bytes(c->types[1]);

    for (uint64_t i = 0; i < r->length; i++) {
        uint64_t key = element_address(&r->keys, row, i, r->key_stride, kb);
        struct element *e = &copies[i];

        element_get(key, kb, e->key, &e->key_known);
        element_get(element_address(&r->values, row, i, r->value_stride, vb),
                    vb, e->value, &e->value_known);
        if (!e->key_known)
            return;
        uint64_t bits = key_bits(c->types[0], key);
        items[i] = (struct merge_item){r->descending ? ~bits : bits, i};
    }
    const struct merge_item *sorted = keys_merge(items, r->length);
    for (uint64_t i = 0; i < r->length; i++) {
        const struct element *e = &copies[sorted[i].place];

        element_put(element_address(&r->keys, row, i, r->key_stride, kb), kb,
                    e->key, e->key_known);
        element_put(element_address(&r->values, row, i, r->value_stride, vb),
                    vb, e->value, e->value_known);
    }
}

/* (TensorInfo keys, rows, length, stride, TensorInfo values, stride, order) */
static void run_sort_rows(const struct compute *c,
                          const struct kernel_launch *launch)
{
    struct rows r = {.count = compute_u32(launch, 1),
                     .length = compute_u32(launch, 2),
                     .key_stride = compute_u32(launch, 3),
                     .value_stride = compute_u32(launch, 5)};
    size_t size =
        r.length * (2 * sizeof(struct merge_item) + sizeof(struct element));

    if (!compute_tensor_read(launch->arguments[0], &r.keys) ||
        !compute_tensor_read(launch->arguments[4], &r.values) || !r.length ||
        (uint64_t)r.count * r.length > COMPUTE_INTEGERS)
        return;
    r.descending = c->form == 2
                       ? *(const unsigned char *)launch->arguments[6] & 1
                       : c->form;
    struct merge_item *items = memsim_pages_reserve(0, size);
    if (!items)
        return;
    for (uint64_t row = 0; row < r.count; row++)
        row_sort(c, &r, row, items, (struct element *)(items + 2ul * r.length));
    munmap(items, size);
}

/* Past literals, "Li16E" and "Lin2E". */
static const char *literals_end(const char *text)
{
    while (text && *text == 'L' && strchr(text, 'E'))
        text = strchr(text, 'E') + 1;
    return text;
}

bool compute_sort_rows_parse(const char *name, struct compute *c)
{
    const char *text = literals_end(name_after(name, "SortKVInPlaceI"));

    c->run = run_sort_rows;
    if (!text || !name_types(&text, c->types, 2))
        return false;
    /* A comparison by name, or an argument that says whether to descend. */
    c->form = strstr(name, "4GTOpI") ? 1 : strstr(name, "4LTOpI") ? 0 : 2;
    return strstr(name, "TensorInfoIT") && !strstr(text, "mEEv");
}

struct topk {
    struct compute_tensor in, values, indices;
    uint64_t length, k, rows, in_stride, value_stride, index_stride;
    bool largest;
};

/* The value at a place that is a guess is one, too. */
static void topk_put(const struct compute *c, const struct topk *t,
                     uint64_t row, uint64_t rank, uint64_t from)
{
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t index =
        element_address(&t->indices, row, rank, (uint32_t)t->index_stride, 8);
    long double x = 0;
    bool known = compute_load(
        c->types[0],
        element_address(&t->in, row, from, (uint32_t)t->in_stride, bytes), &x);

    compute_store(c->types[0],
                  element_address(&t->values, row, rank,
                                  (uint32_t)t->value_stride, bytes),
                  x, known);
    compute_store(NUMBER_I64, index, from, true);
}

static uint64_t any_place(const struct topk *t, uint64_t row, uint64_t i)
{
    return compute_any_place(t->length, t->k, row, i);
}

/* Whether anything of the row is known, or came of what is. */
static bool row_has_some(const struct compute *c, const struct topk *t,
                         uint64_t row)
{
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t first =
        element_address(&t->in, row, 0, (uint32_t)t->in_stride, bytes);
    uint64_t end = element_address(&t->in, row, t->length - 1,
                                   (uint32_t)t->in_stride, bytes);
    const struct values_window *w = values_window(first);

    return w && end >= first &&
           values_some(w, first - w->base, end - first + bytes);
}

/* Chooses by what the row's elements are, or came of; between equal ones, each
 * place as often. Sets *GUESSED where something is not known. */
static void topk_row(const struct compute *c, const struct topk *t,
                     uint64_t row, struct merge_item *items, bool *guessed)
{
    uint32_t bytes = number_bytes(c->types[0]);
    bool known = true;

    for (uint64_t i = 0; i < t->length && known; i++)
        known = values_known(
            element_address(&t->in, row, i, (uint32_t)t->in_stride, bytes),
            bytes);
    if (!known)
        compute_assume();
    *guessed |= !known;
    for (uint64_t i = 0; i < t->length; i++) {
        uint64_t place = known ? i : any_place(t, row, i);
        uint64_t bits = key_bits(
            c->types[0],
            element_address(&t->in, row, place, (uint32_t)t->in_stride, bytes));

        items[i] = (struct merge_item){t->largest ? ~bits : bits, place};
    }
    const struct merge_item *sorted = keys_merge(items, t->length);
    for (uint64_t i = 0; i < t->k; i++)
        topk_put(c, t, row, i, sorted[i].place);
}

/* The places that ROW is taken to choose: by R, or NULL: equally often. */
static void topk_guess(const struct compute *c, const struct topk *t,
                       const struct routing *r, uint64_t row)
{
    uint32_t chosen[ROUTING_EXPERTS];

    if (r)
        routing_choose(r, row, t->k, chosen);
    for (uint64_t i = 0; i < t->k; i++)
        topk_put(c, t, row, i, r ? chosen[i] : any_place(t, row, i));
}

static void topk_rows(const struct compute *c,
                      const struct kernel_launch *launch, const struct topk *t,
                      struct merge_item *items)
{
    static _Thread_local struct routing routing;
    const char *why = NULL;
    bool guessed = false, asked = false, routed = false;

    for (uint64_t row = 0; row < t->rows; row++) {
        if (items && row_has_some(c, t, row)) {
            topk_row(c, t, row, items, &guessed);
            continue;
        }
        if (!asked)
            routed = routing_begin(&routing, t->length, t->k, t->rows, &why);
        asked = guessed = true;
        compute_assume();
        topk_guess(c, t, routed ? &routing : NULL, row);
    }
    if (!why)
        why = routed ? "topk of values computed on the GPU: taken to choose "
                       "places as --routing says"
                     : "topk of values computed on the GPU: taken to choose "
                       "all places equally often, as a router in balance would";
    if (guessed)
        compute_guess_note(c, launch, t->rows * t->length, t->rows * t->k, why);
}

/* gatherTopK (TensorInfo in, length, k, bool largest, rows, stride, TensorInfo
 * values, stride, TensorInfo indices, stride, ...) */
static void run_topk(const struct compute *c,
                     const struct kernel_launch *launch)
{
    struct topk t = {.length = compute_u32(launch, 1),
                     .k = compute_u32(launch, 2),
                     .largest =
                         *(const unsigned char *)launch->arguments[3] & 1,
                     .rows = compute_u32(launch, 4),
                     .in_stride = compute_u32(launch, 5),
                     .value_stride = compute_u32(launch, 7),
                     .index_stride = compute_u32(launch, 9)};
    size_t size = 2 * t.length * sizeof(struct merge_item);

    if (!compute_tensor_read(launch->arguments[0], &t.in) ||
        !compute_tensor_read(launch->arguments[6], &t.values) ||
        !compute_tensor_read(launch->arguments[8], &t.indices) || !t.length ||
        t.k > t.length || t.rows * t.k > COMPUTE_INTEGERS)
        return;
    bool fits = t.rows * t.length <= COMPUTE_INTEGERS;
    struct merge_item *items = fits ? memsim_pages_reserve(0, size) : NULL;
    topk_rows(c, launch, &t, items);
    if (items)
        munmap(items, size);
}

bool compute_topk_parse(const char *name, struct compute *c)
{
    /* of one block for a row, or several: the same as far as RUN reads */
    const char *text = name_after(name, "btopk10gatherTopKI");

    c->run = run_topk;
    return text && name_types(&text, c->types, 1) && *text == 'j';
}

/* sampleMultinomialWithReplacement (philox, int samples, int64_t *out, int64_t
 * rows, int categories, ...): the categories in turn. */
static void run_sample(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t samples = compute_u32(launch, 1), out = compute_u64(launch, 2);
    uint64_t rows = compute_u64(launch, 3), categories = compute_u32(launch, 4);

    if (!categories || samples * rows > COMPUTE_INTEGERS || !values_window(out))
        return;
    compute_assume();
    for (uint64_t i = 0; i < samples * rows; i++)
        compute_store(NUMBER_I64, out + 8 * i, i % categories, true);
    compute_guess_note(c, launch, rows * categories, samples * rows,
                       "random samples (multinomial): taken to be each "
                       "category in turn");
}

bool compute_sample_parse(const char *name, struct compute *c)
{
    c->run = run_sample;
    return strstr(name, "32sampleMultinomialWithReplacementI");
}

/* kthvalue, median and mode: of each row one element and its place. */
enum rank { RANK_KTH, RANK_MEDIAN, RANK_MODE };

struct ranked {
    struct compute_tensor in, values, indices;
    uint64_t length, rows, stride, k;
    bool ignores_nan;
};

/* The place, in SORTED, that is wanted of a row with NANS at its end. */
static uint64_t rank_of(const struct compute *c, const struct ranked *r,
                        const struct merge_item *sorted, uint64_t nans)
{
    uint64_t best = 0, longest = 0, start = 0;

    if (c->form == RANK_KTH)
        return r->k - 1;
    if (c->form == RANK_MEDIAN)
        return nans && (!r->ignores_nan || nans == r->length)
                   ? r->length - nans
                   : (r->length - nans - 1) / 2;
    for (uint64_t i = 1; i <= r->length; i++) {
        if (i < r->length && sorted[i].key == sorted[start].key)
            continue;
        if (i - start > longest) {
            longest = i - start;
            best = i - 1;
        }
        start = i;
    }
    return best;
}

static void rank_row(const struct compute *c, const struct ranked *r,
                     uint64_t row, struct merge_item *items)
{
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t nans = 0, value = element_address(&r->values, row, 0, 0, bytes);
    uint64_t index = element_address(&r->indices, row, 0, 0, 8);
    bool known = items;
    long double x;

    for (uint64_t i = 0; i < r->length && known; i++) {
        uint64_t at =
            element_address(&r->in, row, i, (uint32_t)r->stride, bytes);

        known = compute_load(c->types[0], at, &x);
        nans += isnan(x) != 0;
        items[i] = (struct merge_item){key_bits(c->types[0], at), i};
    }
    if (!known) {
        compute_store(c->types[0], value, 0, false);
        compute_store(NUMBER_I64, index, 0, false);
        return;
    }
    const struct merge_item *sorted = keys_merge(items, r->length);
    uint64_t place = sorted[rank_of(c, r, sorted, nans)].place;
    compute_move(
        value, element_address(&r->in, row, place, (uint32_t)r->stride, bytes),
        bytes);
    compute_store(NUMBER_I64, index, (long double)place, true);
}

static void rank_rows(const struct compute *c, const struct ranked *r)
{
    bool fits = r->length && r->rows * r->length <= COMPUTE_INTEGERS;
    size_t size = 2 * r->length * sizeof(struct merge_item);
    struct merge_item *items = fits ? memsim_pages_reserve(0, size) : NULL;

    for (uint64_t row = 0; row < r->rows && row < COMPUTE_INTEGERS; row++)
        rank_row(c, r, row, items);
    if (items)
        munmap(items, size);
}

/* gatherKthValue(TensorInfo in, length, k, rows, stride, TensorInfo values,
 * TensorInfo indices) */
static void run_kth(const struct compute *c, const struct kernel_launch *launch)
{
    struct ranked r = {.length = compute_u32(launch, 1),
                       .k = compute_u32(launch, 2),
                       .rows = compute_u32(launch, 3),
                       .stride = compute_u32(launch, 4)};

    if (compute_tensor_read(launch->arguments[0], &r.in) &&
        compute_tensor_read(launch->arguments[5], &r.values) &&
        compute_tensor_read(launch->arguments[6], &r.indices) && r.k &&
        r.k <= r.length)
        rank_rows(c, &r);
}

bool compute_kth_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "14gatherKthValueI");

    c->run = run_kth;
    c->form = RANK_KTH;
    return text && name_types(&text, c->types, 1) && *text == 'i';
}

/* gatherMedian(TensorInfo values, TensorInfo indices, TensorInfo in, length,
 * rows, stride, ignore NaN) */
static void run_median(const struct compute *c,
                       const struct kernel_launch *launch)
{
    struct ranked r = {.length = compute_u32(launch, 3),
                       .rows = compute_u32(launch, 4),
                       .stride = compute_u32(launch, 5),
                       .ignores_nan =
                           *(const unsigned char *)launch->arguments[6] & 1};

    if (compute_tensor_read(launch->arguments[0], &r.values) &&
        compute_tensor_read(launch->arguments[1], &r.indices) &&
        compute_tensor_read(launch->arguments[2], &r.in))
        rank_rows(c, &r);
}

bool compute_median_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "12gatherMedianI");

    c->run = run_median;
    c->form = RANK_MEDIAN;
    return text && name_types(&text, c->types, 1) && *text == 'j';
}

/* compute_mode(const T *in, TensorInfo values, TensorInfo indices, int64_t
 * length, int64_t rows): rows in one piece */
static void run_mode(const struct compute *c,
                     const struct kernel_launch *launch)
{
    struct ranked r = {.length = compute_u64(launch, 3),
                       .rows = compute_u64(launch, 4),
                       .stride = 1};

    if (!compute_tensor_read(launch->arguments[1], &r.values) ||
        !compute_tensor_read(launch->arguments[2], &r.indices) ||
        r.rows * r.length > UINT32_MAX)
        return;
    r.in = (struct compute_tensor){.data = compute_u64(launch, 0),
                                   .dims = 1,
                                   .sizes = {(uint32_t)r.rows},
                                   .strides = {(uint32_t)r.length}};
    if (r.rows && values_window(r.in.data))
        rank_rows(c, &r);
}

bool compute_mode_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "12compute_modeI");

    c->run = run_mode;
    c->form = RANK_MODE;
    return text && name_types(&text, c->types, 1);
}
