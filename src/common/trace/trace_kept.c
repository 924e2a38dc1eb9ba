/* SPDX-License-Identifier: Apache-2.0
 * A dictionary of records without thread and time, and a list of occurrences:
 *
 *     number of the record * 4 + flags     thread and ordinal only where the
 *     ns since the one before              flags say so: otherwise the thread
 *     [thread] [ordinals since then]       is the same, the ordinal the next
 *
 * All are variable-length integers, 7 bits a byte, the lowest first. */
#include "common/trace/trace_kept.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"

#define BLOCK_BYTES      (256u << 10)
#define OCCURRENCE_BYTES (4 * 10) /* at most */
#define ENTRY_BYTES      64 /* beside its fields and its text: map and array */

enum { HAS_THREAD = 1, HAS_ORDINAL = 2, FLAG_BITS = 2 };

struct entry {
    struct entry *next;    /* of the same hash */
    struct entry *follows; /* came after it the last time */
    uint32_t number;
    uint32_t text_bytes;
    uint16_t kind, fields;
    uint64_t words[]; /* the fields, then the text */
};

struct block {
    size_t used;
    unsigned char bytes[BLOCK_BYTES];
};

struct trace_kept {
    size_t most_bytes, bytes;
    bool dropped;
    struct map by_hash;
    struct entry **entries;
    size_t entry_count, entry_capacity;
    struct block **blocks;
    size_t block_count, block_capacity;
    struct entry *last;
    uint64_t time_ns, next_ordinal;
    uint32_t thread;
};

struct trace_kept *trace_kept_create(size_t most_bytes)
{
    struct trace_kept *k = xcalloc(1, sizeof *k);

    k->most_bytes = most_bytes;
    return k;
}

static void kept_drop(struct trace_kept *k)
{
    for (size_t i = 0; i < k->entry_count; i++)
        free(k->entries[i]);
    for (size_t i = 0; i < k->block_count; i++)
        free(k->blocks[i]);
    free(k->entries);
    free(k->blocks);
    map_fini(&k->by_hash);
    *k = (struct trace_kept){.dropped = true};
}

void trace_kept_destroy(struct trace_kept *k)
{
    if (k)
        kept_drop(k);
    free(k);
}

bool trace_kept_is_whole(const struct trace_kept *k)
{
    return !k->dropped;
}

size_t trace_kept_bytes(const struct trace_kept *k)
{
    return k->bytes;
}

/* --- the dictionary ------------------------------------------------------- */

static uint64_t item_hash(const struct trace_item *item)
{
    uint64_t hash = item->head.kind, word = 0;

    for (uint32_t i = 0; i < item->head.fields; i++)
        hash = hash_word(hash, item->fields[i]);
    for (uint32_t i = 0; i < item->head.text_bytes; i += sizeof word) {
        size_t left = item->head.text_bytes - i;
        word = 0;
        memcpy(&word, item->text + i, left < sizeof word ? left : sizeof word);
        hash = hash_word(hash, word);
    }
    return hash;
}

static bool entry_is(const struct entry *e, const struct trace_item *item)
{
    const struct trace_record *head = &item->head;

    return e->kind == head->kind && e->fields == head->fields &&
           e->text_bytes == head->text_bytes &&
           !memcmp(e->words, item->fields, head->fields * sizeof *e->words) &&
           (!head->text_bytes ||
            !memcmp(e->words + e->fields, item->text, head->text_bytes));
}

static struct entry *entry_new(struct trace_kept *k,
                               const struct trace_item *item)
{
    const struct trace_record *head = &item->head;
    size_t words = head->fields + (head->text_bytes + 7u) / 8;
    struct entry *e = xmalloc(sizeof *e + words * sizeof *e->words);

    *e = (struct entry){.number = (uint32_t)k->entry_count,
                        .text_bytes = head->text_bytes,
                        .kind = head->kind,
                        .fields = head->fields};
    memcpy(e->words, item->fields, head->fields * sizeof *e->words);
    if (head->text_bytes)
        memcpy(e->words + head->fields, item->text, head->text_bytes);
    xgrow(&k->entries, k->entry_count, &k->entry_capacity,
          sizeof(struct entry *));
    k->entries[k->entry_count++] = e;
    k->bytes += sizeof *e + words * sizeof *e->words + ENTRY_BYTES;
    return e;
}

static struct entry *entry_find(struct trace_kept *k,
                                const struct trace_item *item)
{
    uint64_t hash = item_hash(item);
    struct entry *first = map_get(&k->by_hash, hash), *e = first;

    while (e && !entry_is(e, item))
        e = e->next;
    if (e)
        return e;
    e = entry_new(k, item);
    e->next = first;
    map_put(&k->by_hash, hash, e);
    return e;
}

/* The entry of ITEM; most often it is the one that came next the last time. */
static struct entry *entry_get(struct trace_kept *k,
                               const struct trace_item *item)
{
    struct entry *e = k->last ? k->last->follows : NULL;

    if (!e || !entry_is(e, item)) {
        e = entry_find(k, item);
        if (k->last)
            k->last->follows = e;
    }
    k->last = e;
    return e;
}

/* --- occurrences ---------------------------------------------------------- */

static void word_put(struct block *b, uint64_t value)
{
    while (value > 127) {
        b->bytes[b->used++] = (unsigned char)(value | 128);
        value >>= 7;
    }
    b->bytes[b->used++] = (unsigned char)value;
}

static uint64_t word_get(const struct block *b, size_t *at)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = b->bytes[(*at)++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

static struct block *block_get(struct trace_kept *k)
{
    struct block *last =
        k->block_count ? k->blocks[k->block_count - 1] : NULL;

    if (last && last->used + OCCURRENCE_BYTES <= sizeof last->bytes)
        return last;
    xgrow(&k->blocks, k->block_count, &k->block_capacity,
          sizeof(struct block *));
    last = xmalloc(sizeof *last);
    last->used = 0;
    k->blocks[k->block_count++] = last;
    k->bytes += sizeof *last;
    return last;
}

void trace_kept_add(struct trace_kept *k, const struct trace_item *item)
{
    unsigned flags = 0;

    if (k->dropped)
        return;
    struct block *b = block_get(k);
    if (item->head.thread != k->thread)
        flags |= HAS_THREAD;
    if (item->ordinal != k->next_ordinal)
        flags |= HAS_ORDINAL;
    word_put(b, (uint64_t)entry_get(k, item)->number << FLAG_BITS | flags);
    word_put(b, item->head.time_ns - k->time_ns);
    if (flags & HAS_THREAD)
        word_put(b, item->head.thread);
    if (flags & HAS_ORDINAL)
        word_put(b, item->ordinal - k->next_ordinal);
    k->time_ns = item->head.time_ns;
    k->thread = item->head.thread;
    k->next_ordinal = item->ordinal + 1;
    if (k->bytes > k->most_bytes)
        kept_drop(k);
}

static void item_set(const struct entry *e, struct trace_kept_cursor *c,
                     struct trace_item *item)
{
    memcpy(c->fields, e->words, e->fields * sizeof *c->fields);
    for (unsigned i = e->fields; i < c->written; i++)
        c->fields[i] = 0;
    c->written = e->fields;
    *item = (struct trace_item){
        .head = {.kind = e->kind,
                 .fields = e->fields,
                 .text_bytes = e->text_bytes,
                 .thread = c->thread,
                 .time_ns = c->time_ns},
        .fields = c->fields,
        .text = (const char *)(e->words + e->fields),
        .ordinal = c->ordinal++,
    };
}

bool trace_kept_next(const struct trace_kept *k, struct trace_kept_cursor *c,
                     struct trace_item *item)
{
    if (c->block < k->block_count && c->at == k->blocks[c->block]->used) {
        c->block++;
        c->at = 0;
    }
    if (c->block >= k->block_count)
        return false;
    const struct block *b = k->blocks[c->block];
    uint64_t head = word_get(b, &c->at);
    c->time_ns += word_get(b, &c->at);
    if (head & HAS_THREAD)
        c->thread = (uint32_t)word_get(b, &c->at);
    if (head & HAS_ORDINAL)
        c->ordinal += word_get(b, &c->at);
    item_set(k->entries[head >> FLAG_BITS], c, item);
    return true;
}
