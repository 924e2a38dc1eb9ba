/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_op.h"

#include <string.h>

#include "kernels/work.h"

#define TABLE_BYTES   65536
#define FEW_ELEMENTS  1024 /* of flags and counts that ranks exchange */
#define ADDRESS_LEAST (UINT64_C(1) << 40) /* words above it are addresses */

/* How a word holds numbers. */
enum form {
    FORM_NUMBER,
    FORM_DIMENSION, /* SIZE_UNEVEN counts */
    FORM_TABLE,     /* bytes: of a small table, such as of a kernel's chunks, at
                       worst an estimate */
    FORM_FEW,       /* the same of few elements */
    FORM_PAIR,      /* two of 32 bits */
    FORM_SIDES,     /* the same of dimensions */
    FORM_STRIDED,   /* struct trace_strided */
    FORM_ANY,       /* a number, or something else: then it stays */
    FORM_BLOCKS,    /* a pair, of blocks or threads: at worst an estimate */
};

#define W(kind, field, form)                                                   \
    {                                                                          \
        TRACE_##kind, offsetof(TRACE_STRUCT_##kind, field) / sizeof(uint64_t), \
            FORM_##form                                                        \
    }

/* The words of operations that say how large they are. What is not here, such
 * as types, streams and addresses, stays. */
static const struct word {
    enum trace_kind kind;
    size_t index;
    enum form form;
} words[] = {
    W(GEMM, m, DIMENSION),     W(GEMM, n, DIMENSION),
    W(GEMM, k, DIMENSION),     W(GEMM, batch, NUMBER),
    W(GEMM, lda_ldb, PAIR),    W(GEMM, ldc_ldd, PAIR),
    W(GEMM, stride_a, NUMBER), W(GEMM, stride_b, NUMBER),
    W(GEMM, stride_c, NUMBER), W(LIBRARY_CALL, a, ANY),
    W(LIBRARY_CALL, b, ANY),   W(LIBRARY_CALL, c, ANY),
    W(LIBRARY_CALL, d, ANY),   W(LIBRARY_CALL, e, ANY),
    W(LIBRARY_CALL, f, ANY),   W(COPY, bytes, TABLE),
    W(SET, bytes, NUMBER),     W(COLLECTIVE, count, FEW),
    W(COLLECTIVE, bytes, FEW), W(BATCH, samples, NUMBER),
    W(BATCH, tokens, NUMBER),
};

/* The words a to h of a launch, by rule; NULL: none. '-' stays. */
static const char *const launch_words[] = {
    [TRACE_RULE_ELEMENTWISE] = "n-------", [TRACE_RULE_FOREACH] = "n-b-----",
    [TRACE_RULE_WORDS] = "****----",       [TRACE_RULE_REDUCE] = "****----",
    [TRACE_RULE_SIZES] = "********",       [TRACE_RULE_STRIDED] = "n-ssssss",
    [TRACE_RULE_REDUCTION] = "nnbn----",   [TRACE_RULE_CAT] = "n-------",
    [TRACE_RULE_ATTENTION] = "ppppnn--",   [TRACE_RULE_BLOCKS] = "nn------",
};

/* Those of TRACE_RULE_WORK, by family (src/kernels/work_pack.c). */
static const char *work_letters(const struct trace_launch *l)
{
    switch ((enum work_family)(l->h & 255)) {
    case WORK_GEMM:
        return "ddpp----";
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        return "pppp----";
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
        return "ppppp---";
    case WORK_OTHER: /* recurrent networks */
        return "pppp----";
    default:
        return "nnnnnb--";
    }
}

/* How the words of L hold numbers; NULL: none does. */
static const char *letters_of(const struct trace_launch *l)
{
    uint64_t rule = l->shared_bytes_rule >> 32;

    if (rule == TRACE_RULE_WORK)
        return work_letters(l);
    return rule < sizeof launch_words / sizeof *launch_words
               ? launch_words[rule]
               : NULL;
}

struct making {
    struct size_op *op;
    const struct size_points *p;
};

static void weaken_law(struct making *m, enum size_law law, uint64_t first,
                       uint64_t second)
{
    size_law_weaken(&m->op->law, m->op->bad, law, first, second);
}

static uint64_t size_number(struct making *m, uint64_t first, uint64_t second)
{
    uint64_t wanted;

    weaken_law(m, size_law_number(m->p, first, second, &wanted), first, second);
    return wanted;
}

static uint64_t make_dimension(struct making *m, uint64_t first,
                               uint64_t second)
{
    uint64_t wanted;

    weaken_law(m, size_law_dimension(m->p, first, second, &wanted), first,
               second);
    return wanted;
}

/* A number of 32 bits that may be an estimate. */
static uint32_t make_estimate(struct making *m, uint32_t first, uint32_t second)
{
    uint64_t wanted;
    enum size_law law = size_law_number(m->p, first, second, &wanted);

    if (law <= SIZE_SUM) {
        weaken_law(m, law, first, second);
    } else {
        wanted = size_law_estimate(m->p, first, second);
        weaken_law(m, SIZE_POWER, first, second);
        m->op->rounded = true;
    }
    return wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX;
}

static uint64_t make_pair(struct making *m, uint64_t first, uint64_t second)
{
    uint64_t low = size_number(m, (uint32_t)first, (uint32_t)second);
    uint64_t high = size_number(m, first >> 32, second >> 32);

    return trace_pack((uint32_t)low, (uint32_t)high);
}

static uint64_t make_sides(struct making *m, uint64_t first, uint64_t second)
{
    uint64_t low = make_dimension(m, (uint32_t)first, (uint32_t)second);
    uint64_t high = make_dimension(m, first >> 32, second >> 32);

    return trace_pack((uint32_t)low, (uint32_t)high);
}

/* Bytes between elements that reach the most that the word can hold stay. */
static uint32_t make_stride(struct making *m, uint32_t first, uint32_t second,
                            uint32_t most)
{
    if (first == most || second == most)
        return most;
    uint64_t wanted = size_number(m, first, second);
    return wanted < most ? (uint32_t)wanted : most;
}

static uint64_t make_strided(struct making *m, uint64_t first, uint64_t second)
{
    struct trace_strided a = trace_strided_unpack(first);
    struct trace_strided b = trace_strided_unpack(second);

    a.elements = size_number(m, a.elements, b.elements);
    a.inner_bytes = make_stride(m, a.inner_bytes, b.inner_bytes, UINT16_MAX);
    a.least_bytes = make_stride(m, a.least_bytes, b.least_bytes, UINT8_MAX);
    return trace_strided_pack(&a);
}

static uint64_t make_any(struct making *m, uint64_t first, uint64_t second)
{
    uint64_t wanted;

    if (first >= ADDRESS_LEAST || second >= ADDRESS_LEAST)
        return first;
    enum size_law law = size_law_number(m->p, first, second, &wanted);
    if (law == SIZE_NONE)
        return first;
    weaken_law(m, law, first, second);
    return wanted;
}

/* A number that is at worst an estimate below MOST. */
static uint64_t make_small(struct making *m, uint64_t first, uint64_t second,
                           uint32_t most)
{
    return first < most && second < most
               ? make_estimate(m, (uint32_t)first, (uint32_t)second)
               : size_number(m, first, second);
}

static uint64_t make_word(struct making *m, enum form form, uint64_t first,
                          uint64_t second)
{
    switch (form) {
    case FORM_NUMBER:
        return size_number(m, first, second);
    case FORM_DIMENSION:
        return make_dimension(m, first, second);
    case FORM_TABLE:
        return make_small(m, first, second, TABLE_BYTES);
    case FORM_FEW:
        return make_small(m, first, second, FEW_ELEMENTS);
    case FORM_PAIR:
        return make_pair(m, first, second);
    case FORM_SIDES:
        return make_sides(m, first, second);
    case FORM_STRIDED:
        return make_strided(m, first, second);
    case FORM_ANY:
        return make_any(m, first, second);
    case FORM_BLOCKS:
        break;
    }
    return trace_pack(
        make_estimate(m, (uint32_t)first, (uint32_t)second),
        make_estimate(m, (uint32_t)(first >> 32), (uint32_t)(second >> 32)));
}

/* --- launches ------------------------------------------------------------- */

static enum form form_of(char letter)
{
    switch (letter) {
    case 'n':
        return FORM_NUMBER;
    case 'p':
        return FORM_PAIR;
    case 'd':
        return FORM_SIDES;
    case 's':
        return FORM_STRIDED;
    case 'b':
        return FORM_BLOCKS;
    default:
        return FORM_ANY;
    }
}

/* Blocks of a kernel that takes elements one after the other. */
static bool grid_of_elements(const struct trace_launch *a,
                             const struct trace_launch *b,
                             struct trace_launch *wanted)
{
    const uint64_t elements[3] = {a->a, b->a, wanted->a};
    uint64_t blocks;

    if (a->grid_x_y >> 32 != 1 || b->grid_x_y >> 32 != 1 ||
        size_law_blocks(elements, (uint32_t)a->grid_x_y, (uint32_t)b->grid_x_y,
                        (uint32_t)(a->grid_z_block_x >> 32),
                        &blocks) == SIZE_NONE ||
        blocks > UINT32_MAX)
        return false;
    wanted->grid_x_y = trace_pack((uint32_t)blocks, 1);
    return true;
}

/* Threads of a block are between those of the recordings. */
static uint32_t is_between(uint32_t value, uint32_t a, uint32_t b)
{
    uint32_t least = a < b ? a : b, most = a < b ? b : a;

    return value < least ? least : value > most ? most : value;
}

static void make_grid(struct making *m, const struct trace_launch *a,
                      const struct trace_launch *b, struct trace_launch *wanted)
{
    uint64_t z =
        make_word(m, FORM_BLOCKS, a->grid_z_block_x, b->grid_z_block_x);
    uint64_t y = make_word(m, FORM_BLOCKS, a->block_y_z, b->block_y_z);

    wanted->grid_z_block_x = trace_pack(
        (uint32_t)z,
        is_between((uint32_t)(z >> 32), (uint32_t)(a->grid_z_block_x >> 32),
                   (uint32_t)(b->grid_z_block_x >> 32)));
    wanted->block_y_z = trace_pack(
        is_between((uint32_t)y, (uint32_t)a->block_y_z, (uint32_t)b->block_y_z),
        is_between((uint32_t)(y >> 32), (uint32_t)(a->block_y_z >> 32),
                   (uint32_t)(b->block_y_z >> 32)));
    if (!grid_of_elements(a, b, wanted))
        wanted->grid_x_y = make_word(m, FORM_BLOCKS, a->grid_x_y, b->grid_x_y);
}

/* The work's family and types are in h. */
static bool is_other_rule(const struct trace_launch *a,
                          const struct trace_launch *b)
{
    uint64_t rule = a->shared_bytes_rule >> 32;

    return rule != b->shared_bytes_rule >> 32 ||
           (rule == TRACE_RULE_WORK && a->h != b->h);
}

static void make_launch(struct making *m, const struct trace_launch *a,
                        const struct trace_launch *b)
{
    struct trace_launch *wanted = (struct trace_launch *)m->op->fields;
    const char *letters = letters_of(a);

    if (is_other_rule(a, b))
        m->op->other = true;
    else
        for (size_t i = 0; letters && letters[i]; i++)
            if (letters[i] != '-')
                (&wanted->a)[i] =
                    make_word(m, form_of(letters[i]), (&a->a)[i], (&b->a)[i]);
    make_grid(m, a, b, wanted);
}

/* --- all kinds ------------------------------------------------------------ */

static bool has_name(enum trace_kind kind)
{
    return kind == TRACE_LAUNCH || kind == TRACE_GEMM ||
           kind == TRACE_CONVOLUTION || kind == TRACE_ATTENTION ||
           kind == TRACE_LIBRARY_CALL || kind == TRACE_COLLECTIVE;
}

static void make_text(struct making *m, const struct records *a,
                      const struct record *first, const struct records *b,
                      const struct record *second)
{
    struct size_text t = {.first = records_text(a, first),
                          .second = records_text(b, second),
                          .first_bytes = first->text_bytes,
                          .second_bytes = second->text_bytes,
                          .wanted = m->op->text,
                          .room = sizeof m->op->text};

    m->op->text_bytes = size_law_text(m->p, &t);
    if (m->op->text_bytes >= sizeof m->op->text) {
        m->op->text_bytes = 0;
        t.law = SIZE_NONE;
    }
    weaken_law(m, t.law, t.bad[0], t.bad[1]);
}

/* Products of other types or layouts are others. */
static bool is_other_gemm(const uint64_t *x, const uint64_t *y)
{
    const struct trace_gemm *a = (const struct trace_gemm *)x;
    const struct trace_gemm *b = (const struct trace_gemm *)y;

    return a->types_a_b_c_d != b->types_a_b_c_d ||
           a->compute_scale != b->compute_scale ||
           a->transpose_a_b != b->transpose_a_b || a->epilogue != b->epilogue;
}

void size_op_make(struct size_op *op, const struct size_points *p,
                  const struct records *a, const struct record *first,
                  const struct records *b, const struct record *second)
{
    const uint64_t *x = records_fields(a, first),
                   *y = records_fields(b, second);
    struct making m = {op, p};

    *op = (struct size_op){.law = SIZE_SAME};
    memcpy(op->fields, x, sizeof op->fields);
    if (has_name(first->kind))
        op->other =
            strcmp(trace_names_get(&a->names, ((struct trace_work *)x)->name),
                   trace_names_get(&b->names, ((struct trace_work *)y)->name));
    if (first->kind == TRACE_GEMM && is_other_gemm(x, y))
        op->other = true;
    if (first->text_bytes || second->text_bytes)
        make_text(&m, a, first, b, second);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].kind == first->kind)
            op->fields[words[i].index] = make_word(
                &m, words[i].form, x[words[i].index], y[words[i].index]);
    if (first->kind == TRACE_LAUNCH)
        make_launch(&m, (const struct trace_launch *)x,
                    (const struct trace_launch *)y);
}
