/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_marks.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"
#include "memsim/change/layer_period.h"

#define ADDRESS_LEAST (UINT64_C(1) << 40) /* words above it are addresses */

/* Words that are addresses differ from layer to layer. */
static uint64_t mix_words(uint64_t hash, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = hash_word(hash,
                         words[i] < ADDRESS_LEAST ? words[i] : ADDRESS_LEAST);
    return hash;
}

static uint64_t mark_launch(uint64_t hash, const struct trace_launch *l)
{
    uint32_t rule = (uint32_t)(l->shared_bytes_rule >> 32);

    hash = hash_word(hash, l->name);
    hash = hash_word(hash, l->stream);
    hash = mix_words(hash, &l->grid_x_y, 4);
    if (rule == TRACE_RULE_STRIDED)
        return hash_bytes(hash, &l->a, TRACE_LAUNCH_WORDS * sizeof l->a);
    return mix_words(hash, &l->a, TRACE_LAUNCH_WORDS);
}

static uint64_t mark_collective(uint64_t hash, const struct trace_collective *c)
{
    const uint64_t words[] = {c->name,  c->stream,    c->communicator,
                              c->count, c->type,      c->operation,
                              c->bytes, c->send != 0, c->receive != 0};

    return hash_bytes(hash, words, sizeof words);
}

/* Library calls that set something are no operations. */
static bool is_operation(const struct records *r, const struct record *record)
{
    const struct trace_work *work;

    if (record->kind == TRACE_HOST_FUNCTION)
        return false;
    if (record->kind != TRACE_LIBRARY_CALL)
        return record->kind >= TRACE_LAUNCH && record->kind <= TRACE_COLLECTIVE;
    work = (const struct trace_work *)records_fields(r, record);
    return !strstr(trace_names_get(&r->names, work->name), "Set");
}

/* A profile may lack the shapes of some operators and the bytes of some
 * collectives: what they are is not what repeats. */
static uint64_t mark_imported(uint64_t hash, const struct record *record,
                              const uint64_t *f)
{
    const struct trace_collective *c = (const struct trace_collective *)f;
    struct trace_launch l;

    if (record->kind == TRACE_COLLECTIVE)
        return hash_word(hash_word(hash_word(hash, c->name), c->stream),
                         c->communicator);
    l = *(const struct trace_launch *)f;
    l.shared_bytes_rule &= UINT32_MAX;
    memset(&l.a, 0, TRACE_LAUNCH_WORDS * sizeof l.a);
    return mark_launch(hash, &l);
}

static uint64_t mark_of(const struct records *r, const struct record *record)
{
    const uint64_t *f = records_fields(r, record);
    uint64_t hash =
        hash_word(hash_word(HASH_START, record->kind), record->thread);
    struct trace_gemm gemm;

    if (r->imported && (record->kind == TRACE_LAUNCH ||
                        record->kind == TRACE_COLLECTIVE))
        return mark_imported(hash, record, f);

    switch (record->kind) {
    case TRACE_LAUNCH:
        return mark_launch(hash, (const struct trace_launch *)f);
    case TRACE_COLLECTIVE:
        return mark_collective(hash, (const struct trace_collective *)f);
    case TRACE_GEMM:
        gemm = *(const struct trace_gemm *)f;
        gemm.alignment = 0; /* of addresses */
        return hash_bytes(hash, &gemm, sizeof gemm);
    case TRACE_COPY:
        hash = hash_word(hash, ((const struct trace_copy *)f)->direction);
        return hash_word(hash, ((const struct trace_copy *)f)->bytes);
    case TRACE_SET:
        return hash_word(hash, ((const struct trace_set *)f)->bytes);
    default:
        hash = mix_words(hash, f, record->field_count);
        return hash_bytes(hash, records_text(r, record), record->text_bytes);
    }
}

static enum segment_kind kind_of(const struct records *r, uint32_t phase)
{
    if (r->imported)
        return SEGMENT_WHOLE;
    switch (phase) {
    case TRACE_PHASE_INIT:
        return SEGMENT_NONE;
    case TRACE_PHASE_FORWARD:
        return SEGMENT_FORWARD;
    case TRACE_PHASE_BACKWARD:
    case TRACE_PHASE_RECOMPUTE:
        return SEGMENT_BACKWARD;
    default:
        return SEGMENT_AFTER;
    }
}

static void op_add(struct layer_marks *m, const struct records *r, size_t index)
{
    if (!is_operation(r, &r->all[index]))
        return;
    xgrow(&m->ops, m->count, &m->capacity, sizeof *m->ops);
    xgrow(&m->marks, m->count, &m->marks_capacity, sizeof *m->marks);
    m->ops[m->count] = index;
    m->marks[m->count++] = mark_of(r, &r->all[index]);
}

static void segment_begin(struct layer_marks *m, const struct segment *segment)
{
    xgrow(&m->segments, m->segment_count, &m->segment_capacity,
          sizeof *m->segments);
    m->segments[m->segment_count++] = *segment;
}

static void step_split(struct layer_marks *m, const struct records *r,
                       uint32_t index)
{
    const struct step *step = &r->steps.steps[index];
    enum segment_kind last = SEGMENT_NONE;

    for (size_t i = step->first; i < step->end && i < r->count; i++) {
        enum segment_kind kind = kind_of(r, r->all[i].phase);
        if (kind != last || i == step->first)
            segment_begin(m, &(struct segment){.kind = kind,
                                               .step = index,
                                               .warm_up = step->warm_up,
                                               .first = m->count,
                                               .from = i});
        last = kind;
        op_add(m, r, i);
        m->segments[m->segment_count - 1].end = m->count;
        m->segments[m->segment_count - 1].until = i + 1;
    }
}

void layer_marks_make(struct layer_marks *m, const struct records *r)
{
    *m = (struct layer_marks){.count = 0};
    for (size_t i = 0; i < r->steps.count; i++)
        step_split(m, r, (uint32_t)i);
}

void layer_marks_fini(struct layer_marks *m)
{
    free(m->ops);
    free(m->marks);
    free(m->segments);
}

size_t layer_marks_behind(const struct layer_marks *m, const struct records *r,
                          size_t op)
{
    size_t at = m->ops[op - 1] + 1;

    while (at < m->ops[op] &&
           (r->all[at].kind == TRACE_EVENT_RECORD ||
            (r->imported && r->all[at].kind == TRACE_MARK)))
        at++;
    return at;
}

size_t layer_run_end(const struct layer_marks *m, const struct records *r,
                     size_t op, size_t end)
{
    uint32_t thread = r->all[m->ops[op]].thread;

    while (op < end && r->all[m->ops[op]].thread == thread)
        op++;
    return op;
}

bool layer_op_is_list(const struct layer_marks *m, const struct records *r,
                      size_t op)
{
    const struct record *record = &r->all[m->ops[op]];
    const struct trace_work *work =
        (const struct trace_work *)records_fields(r, record);

    return record->kind == TRACE_LAUNCH &&
           strstr(trace_names_get(&r->names, work->name), "multi_tensor_apply");
}

uint32_t layer_marks_guess(const struct layer_marks *m,
                           const struct records *r)
{
    size_t first = 0, count = 0;

    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];
        for (size_t op = s->first, next; op < s->end; op = next) {
            next = layer_run_end(m, r, op, s->end);
            if (next - op <= count)
                continue;
            first = op;
            count = next - op;
        }
    }
    return layer_count_guess(m->marks + first, count);
}
