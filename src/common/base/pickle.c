/* SPDX-License-Identifier: Apache-2.0
 * The machine of Python's Lib/pickletools.py, with the opcodes that build data.
 */
#include "common/base/pickle.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

struct pickle_items {
    struct pickle_items *next; /* all of a pickle's, to free them */
    struct pickle_value *values;
    size_t count, capacity;
};

struct values {
    struct pickle_value *values;
    size_t count, capacity;
};

struct pickle {
    struct pickle_items *all;
    struct pickle_value root;
};

struct machine {
    const unsigned char *data;
    size_t bytes, at;
    size_t opcode_at; /* of the opcode in hand, for messages */
    const char *origin;
    struct err *err;
    struct pickle *pickle;
    struct values stack, memo;
    size_t *marks; /* heights of the stack */
    size_t mark_count, mark_capacity;
    size_t held_bytes; /* of the values in memory */
    bool stopped;
};

static int pickle_fail(struct machine *m, const char *cause)
{
    return err_set(m->err, "%s:byte %zu: %s", m->origin, m->opcode_at, cause);
}

/* Makes room for one more of COUNT values. */
static void values_grow(struct machine *m, struct pickle_value **values,
                        size_t count, size_t *capacity)
{
    size_t before = *capacity;

    xgrow(values, count, capacity, sizeof **values);
    m->held_bytes += (*capacity - before) * sizeof **values;
}

static void values_add(struct machine *m, struct values *v,
                       struct pickle_value value)
{
    values_grow(m, &v->values, v->count, &v->capacity);
    v->values[v->count++] = value;
}

static int push_value(struct machine *m, struct pickle_value value)
{
    values_add(m, &m->stack, value);
    return 0;
}

static int push_number(struct machine *m, enum pickle_type type, int64_t number)
{
    return push_value(m, (struct pickle_value){.type = type, .number = number});
}

/* The stack below the last mark is out of reach but for POP_MARK and such. */
static size_t floor_of(const struct machine *m)
{
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static struct pickle_value *value_at(struct machine *m, size_t depth)
{
    size_t reachable = m->stack.count - floor_of(m);

    return depth < reachable ? &m->stack.values[m->stack.count - 1 - depth]
                             : NULL;
}

static const unsigned char *bytes_take(struct machine *m, size_t bytes)
{
    const unsigned char *p = m->data + m->at;

    if (bytes > m->bytes - m->at) {
        pickle_fail(m, "cut short");
        return NULL;
    }
    m->at += bytes;
    return p;
}

/* An unsigned little-endian number of BYTES. */
static int take_number(struct machine *m, size_t bytes, uint64_t *number)
{
    const unsigned char *p = bytes_take(m, bytes);

    if (!p)
        return -1;
    *number = 0;
    for (size_t i = 0; i < bytes; i++)
        *number |= (uint64_t)p[i] << (8 * i);
    return 0;
}

static struct pickle_items *items_new(struct machine *m)
{
    struct pickle_items *items = xcalloc(1, sizeof *items);

    items->next = m->pickle->all;
    m->pickle->all = items;
    m->held_bytes += sizeof *items;
    return items;
}

/* Takes the top COUNT values off the stack, as items. */
static struct pickle_items *items_take(struct machine *m, size_t count)
{
    struct pickle_items *items = items_new(m);

    m->stack.count -= count;
    if (!count)
        return items;
    items->values = xreallocarray(NULL, count, sizeof *items->values);
    memcpy(items->values, m->stack.values + m->stack.count,
           count * sizeof *items->values);
    items->count = items->capacity = count;
    m->held_bytes += count * sizeof *items->values;
    return items;
}

/* Opcodes. ARGUMENT is the table's: a width, a count, a type or a value. */

static int op_proto(struct machine *m, int argument)
{
    uint64_t version;

    if (take_number(m, (size_t)argument, &version))
        return -1;
    return version >= 2 && version <= 5 ? 0
                                        : pickle_fail(m, "unknown protocol");
}

/* A FRAME only tells how far to read ahead. */
static int op_skip(struct machine *m, int argument)
{
    return bytes_take(m, (size_t)argument) ? 0 : -1;
}

static int op_stop(struct machine *m, int argument)
{
    (void)argument;
    if (m->stack.count != 1 || m->mark_count)
        return pickle_fail(m, "does not end with one value");
    m->pickle->root = m->stack.values[0];
    m->stopped = true;
    return 0;
}

static int op_mark(struct machine *m, int argument)
{
    (void)argument;
    size_t before = m->mark_capacity;
    xgrow(&m->marks, m->mark_count, &m->mark_capacity, sizeof *m->marks);
    m->held_bytes += (m->mark_capacity - before) * sizeof *m->marks;
    m->marks[m->mark_count++] = m->stack.count;
    return 0;
}

/* Takes the last mark away; *COUNT values are above it. */
static int mark_take(struct machine *m, size_t *count)
{
    if (!m->mark_count)
        return pickle_fail(m, "no mark on the stack");
    *count = m->stack.count - m->marks[--m->mark_count];
    return 0;
}

static int op_pop(struct machine *m, int argument)
{
    (void)argument;
    if (value_at(m, 0)) {
        m->stack.count--;
        return 0;
    }
    if (!m->mark_count)
        return pickle_fail(m, "the stack is empty");
    m->mark_count--;
    return 0;
}

static int op_pop_mark(struct machine *m, int argument)
{
    size_t count = 0;

    (void)argument;
    if (mark_take(m, &count))
        return -1;
    m->stack.count -= count;
    return 0;
}

static int op_none(struct machine *m, int argument)
{
    return push_number(m, PICKLE_NONE, argument);
}

static int op_bool(struct machine *m, int argument)
{
    return push_number(m, PICKLE_BOOL, argument);
}

static int op_unsigned(struct machine *m, int argument)
{
    uint64_t number;

    if (take_number(m, (size_t)argument, &number))
        return -1;
    return push_number(m, PICKLE_INT, (int64_t)number);
}

static int op_int32(struct machine *m, int argument)
{
    uint64_t number;

    if (take_number(m, (size_t)argument, &number))
        return -1;
    return push_number(m, PICKLE_INT, (int32_t)(uint32_t)number);
}

/* A two's complement number of a length given in ARGUMENT bytes. Nine bytes
 * are one of 64 bits without a sign. */
static int op_long(struct machine *m, int argument)
{
    uint64_t length, number = 0;

    if (take_number(m, (size_t)argument, &length))
        return -1;
    if (length > 9)
        return pickle_fail(m, "a number of more than 64 bits");
    const unsigned char *p = bytes_take(m, length);
    if (!p)
        return -1;
    for (size_t i = 0; i < length && i < 8; i++)
        number |= (uint64_t)p[i] << (8 * i);
    if (length == 9 && p[8])
        return pickle_fail(m, "a number of more than 64 bits");
    if (length && length < 8 && p[length - 1] & 0x80)
        number |= UINT64_MAX << (8 * length);
    return push_number(m, PICKLE_INT, (int64_t)number);
}

static int op_float(struct machine *m, int argument)
{
    const unsigned char *p = bytes_take(m, (size_t)argument);
    struct pickle_value v = {.type = PICKLE_FLOAT};
    uint64_t bits = 0;

    if (!p)
        return -1;
    for (int i = 0; i < 8; i++) /* the only number that is big-endian */
        bits = bits << 8 | p[i];
    memcpy(&v.real, &bits, sizeof bits);
    return push_value(m, v);
}

static int op_string(struct machine *m, int argument)
{
    uint64_t length;

    if (take_number(m, (size_t)argument, &length))
        return -1;
    if (length > UINT32_MAX)
        return pickle_fail(m, "too long a string");
    const unsigned char *p = bytes_take(m, length);
    if (!p)
        return -1;
    return push_value(m, (struct pickle_value){.type = PICKLE_STRING,
                                               .text_bytes = (uint32_t)length,
                                               .text = (const char *)p});
}

static int op_empty(struct machine *m, int argument)
{
    return push_value(m,
                      (struct pickle_value){.type = (enum pickle_type)argument,
                                            .items = items_new(m)});
}

/* A tuple of the top ARGUMENT values. */
static int op_tuple_of(struct machine *m, int argument)
{
    if (!value_at(m, (size_t)argument - 1))
        return pickle_fail(m, "the stack is empty");
    return push_value(
        m, (struct pickle_value){.type = PICKLE_TUPLE,
                                 .items = items_take(m, (size_t)argument)});
}

/* A list, tuple or dict of all down to the mark. */
static int op_from_mark(struct machine *m, int argument)
{
    enum pickle_type type = (enum pickle_type)argument;
    size_t count = 0;

    if (mark_take(m, &count))
        return -1;
    if (type == PICKLE_DICT && count % 2)
        return pickle_fail(m, "a key without a value");
    return push_value(
        m, (struct pickle_value){.type = type, .items = items_take(m, count)});
}

/* Adds the top COUNT values to the container below them. */
static int add_items(struct machine *m, size_t count, enum pickle_type type)
{
    struct pickle_value *container = value_at(m, count);

    if (!container || container->type != type)
        return pickle_fail(m, "nothing to add to");
    if (type == PICKLE_DICT && count % 2)
        return pickle_fail(m, "a key without a value");
    struct pickle_items *items = container->items;
    for (size_t i = 0; i < count; i++) {
        values_grow(m, &items->values, items->count, &items->capacity);
        items->values[items->count++] =
            m->stack.values[m->stack.count - count + i];
    }
    m->stack.count -= count;
    return 0;
}

static int op_append(struct machine *m, int argument)
{
    (void)argument;
    return add_items(m, 1, PICKLE_LIST);
}

static int op_setitem(struct machine *m, int argument)
{
    (void)argument;
    return add_items(m, 2, PICKLE_DICT);
}

static int op_add_from_mark(struct machine *m, int argument)
{
    size_t count = 0;

    if (mark_take(m, &count))
        return -1;
    return add_items(m, count, (enum pickle_type)argument);
}

static int memo_put(struct machine *m, uint64_t index)
{
    const struct pickle_value *value = value_at(m, 0);

    if (!value)
        return pickle_fail(m, "the stack is empty");
    if (index > m->memo.count)
        return pickle_fail(m, "a memo out of order");
    if (index == m->memo.count)
        values_add(m, &m->memo, *value);
    else
        m->memo.values[index] = *value;
    return 0;
}

static int op_put(struct machine *m, int argument)
{
    uint64_t index;

    return take_number(m, (size_t)argument, &index) ? -1 : memo_put(m, index);
}

static int op_memoize(struct machine *m, int argument)
{
    (void)argument;
    return memo_put(m, m->memo.count);
}

static int op_get(struct machine *m, int argument)
{
    uint64_t index;

    if (take_number(m, (size_t)argument, &index))
        return -1;
    if (index >= m->memo.count)
        return pickle_fail(m, "a memo that was never made");
    return push_value(m, m->memo.values[index]);
}

static const struct opcode {
    int (*run)(struct machine *m, int argument);
    int argument;
} opcodes[UCHAR_MAX + 1] = {
    [0x80] = {op_proto, 1},
    [0x95] = {op_skip, 8}, /* FRAME */
    ['.'] = {op_stop, 0},
    ['('] = {op_mark, 0},
    ['0'] = {op_pop, 0},
    ['1'] = {op_pop_mark, 0},
    ['N'] = {op_none, 0},
    [0x88] = {op_bool, 1},
    [0x89] = {op_bool, 0},
    ['K'] = {op_unsigned, 1}, /* BININT1 */
    ['M'] = {op_unsigned, 2}, /* BININT2 */
    ['J'] = {op_int32, 4},    /* BININT */
    [0x8a] = {op_long, 1},
    [0x8b] = {op_long, 4},
    ['G'] = {op_float, 8},
    [0x8c] = {op_string, 1}, /* SHORT_BINUNICODE */
    ['X'] = {op_string, 4},  /* BINUNICODE */
    [0x8d] = {op_string, 8}, /* BINUNICODE8 */
    [']'] = {op_empty, PICKLE_LIST},
    [')'] = {op_empty, PICKLE_TUPLE},
    ['}'] = {op_empty, PICKLE_DICT},
    [0x85] = {op_tuple_of, 1},
    [0x86] = {op_tuple_of, 2},
    [0x87] = {op_tuple_of, 3},
    ['l'] = {op_from_mark, PICKLE_LIST},
    ['t'] = {op_from_mark, PICKLE_TUPLE},
    ['d'] = {op_from_mark, PICKLE_DICT},
    ['a'] = {op_append, 0},
    ['s'] = {op_setitem, 0},
    ['e'] = {op_add_from_mark, PICKLE_LIST},
    ['u'] = {op_add_from_mark, PICKLE_DICT},
    ['q'] = {op_put, 1},
    ['r'] = {op_put, 4},
    [0x94] = {op_memoize, 0},
    ['h'] = {op_get, 1},
    ['j'] = {op_get, 4},
};

static int opcode_refuse(struct machine *m, unsigned char code)
{
    return err_set(m->err,
                   "%s:byte %zu: opcode %#04x builds more than plain data; a "
                   "memory snapshot has none such",
                   m->origin, m->opcode_at, code);
}

/* Some opcodes of one byte make values of fifty: a small hostile file could
 * take all memory. */
static int check_memory(struct machine *m)
{
    if (m->held_bytes / PICKLE_MEMORY_FACTOR <
        m->bytes + PICKLE_MEMORY_BASE / PICKLE_MEMORY_FACTOR)
        return 0;
    return pickle_fail(m, "too many values for a file of this size");
}

static int pickle_run(struct machine *m)
{
    while (!m->stopped) {
        m->opcode_at = m->at;
        const unsigned char *code = bytes_take(m, 1);
        if (!code)
            return -1;
        const struct opcode *o = &opcodes[*code];
        if (!o->run)
            return opcode_refuse(m, *code);
        if (o->run(m, o->argument) || check_memory(m))
            return -1;
    }
    return m->at == m->bytes ? 0 : pickle_fail(m, "goes on after its end");
}

struct pickle *pickle_parse(const void *data, size_t bytes, const char *origin,
                            struct err *err)
{
    struct machine m = {.data = data,
                        .bytes = bytes,
                        .origin = origin,
                        .err = err,
                        .pickle = xcalloc(1, sizeof *m.pickle)};
    int rc = pickle_run(&m);

    free(m.stack.values);
    free(m.memo.values);
    free(m.marks);
    if (!rc)
        return m.pickle;
    pickle_free(m.pickle);
    return NULL;
}

void pickle_free(struct pickle *pickle)
{
    if (!pickle)
        return;
    while (pickle->all) {
        struct pickle_items *items = pickle->all;

        pickle->all = items->next;
        free(items->values);
        free(items);
    }
    free(pickle);
}

const struct pickle_value *pickle_root(const struct pickle *pickle)
{
    return &pickle->root;
}

size_t pickle_count(const struct pickle_value *value)
{
    return value && value->type >= PICKLE_LIST ? value->items->count : 0;
}

const struct pickle_value *pickle_item(const struct pickle_value *value,
                                       size_t index)
{
    return index < pickle_count(value) ? &value->items->values[index] : NULL;
}

const struct pickle_value *pickle_find(const struct pickle_value *dict,
                                       const char *key, uint64_t *budget)
{
    size_t length = strlen(key), count = pickle_count(dict);

    if (!count || dict->type != PICKLE_DICT)
        return NULL;
    /* A key that is given twice has its last value. */
    for (size_t i = count; i >= 2 && *budget; i -= 2) {
        const struct pickle_value *k = &dict->items->values[i - 2];

        --*budget;
        if (k->type == PICKLE_STRING && k->text_bytes == length &&
            !memcmp(k->text, key, length))
            return k + 1;
    }
    return NULL;
}
