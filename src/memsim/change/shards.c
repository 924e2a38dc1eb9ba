/* SPDX-License-Identifier: Apache-2.0
 * The calls are those of torch/distributed/fsdp/_fully_shard of PyTorch 2.11:
 * _fsdp_param_group.py says when, _fsdp_collectives.py what. */
#include "memsim/change/shards.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/gradient_groups.h"
#include "memsim/change/gradient_marks.h"
#include "memsim/change/insertion.h"
#include "memsim/change/layer_after.h"
#include "memsim/change/layer_lists.h"
#include "memsim/change/pipe_profile.h"
#include "memsim/change/replicas.h"
#include "memsim/change/side.h"

/* Handles that no profile has. */
#define COPY_STREAM    (UINT64_C(1) << 40)
#define GATHER_STREAM  (COPY_STREAM + 1)
#define SCATTER_STREAM (COPY_STREAM + 2)
#define COMMUNICATOR   (COPY_STREAM + 3)
#define EVENTS         (UINT64_C(1) << 41)

#define TYPE_FLOAT    7 /* ncclFloat32, ncclBfloat16 */
#define TYPE_BFLOAT16 9

#define COPY_THREADS 128 /* of a block that copies 16 bytes each */
#define COPY_BYTES   2048
#define LIST_THREADS 512

/* Of 2 and of 4 bytes, ids from 0 and from NAMES on. */
enum name {
    NAME_COPY_IN, /* a shard into what is gathered */
    NAME_COPY_OUT,
    NAME_JOIN, /* gradients into what is scattered */
    NAME_GATHER,
    NAME_SCATTER,
    NAMES,
};

#define COPY_LISTS(type)                                                       \
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"       \
    "at::native::(anonymous namespace)::TensorListMetadata<2>, "               \
    "at::native::(anonymous namespace)::UnaryOpFunctor<" type ", 2, 1, 1>, "   \
    "at::native::Copy<" type ", " type "> >("                                  \
    "at::native::(anonymous namespace)::TensorListMetadata<2>, "               \
    "at::native::(anonymous namespace)::UnaryOpFunctor<" type ", 2, 1, 1>, "   \
    "at::native::Copy<" type ", " type ">)"

static const char *const names[NAMES] = {
    NULL, /* by the type */
    "at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_kernel("
    "char**, char**, long*, long*, long*, long, long)",
    "void at::native::detail::chunk_cat_cuda_kernel<char, char>(char**, char*, "
    "long*, long*, long*, long*, long*, long*, long, long, long)",
    "ncclAllGather", "ncclReduceScatter"};

/* What is gathered at once: 0 is the rest, I + 1 layer I. */
struct unit {
    uint64_t *shards; /* elements of each parameter's */
    size_t count, capacity;
    uint64_t elements; /* of all ranks */
    uint64_t gathered, copied; /* the last events of its; 0: none */
};

struct sharding {
    struct pipe_cut cut;
    struct layer_modules modules; /* their count alone */
    struct rewrite *rewrite;
    struct unit *units;
    uint64_t each; /* bytes of an element */
    struct range members;
    uint32_t names; /* ids from here on */
    uint64_t events;
    uint64_t scattered; /* the last scatter's event; 0: none */
    struct insertion now; /* under way, if OPEN */
    bool open, begun;
};

/* --- places --------------------------------------------------------------- */

static void place_close(struct sharding *s, bool keep)
{
    if (!s->open)
        return;
    if (keep)
        insertion_keep(&s->now);
    rewrite_add(s->rewrite, &s->now.edit);
    s->open = false;
}

static void head_put(struct sharding *s)
{
    static const uint64_t streams[] = {COPY_STREAM, GATHER_STREAM,
                                       SCATTER_STREAM};

    s->begun = true;
    for (uint32_t i = 0; i < NAMES; i++)
        insertion_name(&s->now, s->names + i,
                       names[i]         ? names[i]
                       : s->each == 2 ? COPY_LISTS("c10::BFloat16")
                                      : COPY_LISTS("float"));
    insertion_communicator(&s->now, COMMUNICATOR, 0, &s->members);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        INSERTION_PUT(&s->now, 0, STREAM_CREATE, .stream = streams[i],
                      .flags = 1);
}

/* What is put now comes before record AT. */
static void place_open(struct sharding *s, size_t at)
{
    if (s->open && s->now.at == at)
        return;
    place_close(s, true);
    s->now = insertion_at((struct records *)(uintptr_t)s->cut.records, at);
    s->open = true;
    if (!s->begun)
        head_put(s);
}

/* --- calls ---------------------------------------------------------------- */

static uint64_t event_put(struct sharding *s, uint64_t stream)
{
    uint64_t event = EVENTS + s->events++;

    INSERTION_PUT(&s->now, INSERTION_CALL_NS, EVENT_RECORD, .stream = stream,
                  .event = event);
    return event;
}

static void wait_put(struct sharding *s, uint64_t stream, uint64_t event)
{
    if (event)
        INSERTION_PUT(&s->now, INSERTION_CALL_NS, STREAM_WAIT, .stream = stream,
                      .event = event);
}

/* _foreach_copy_ of the shards into one buffer. */
static void copy_in_put(struct sharding *s, const struct unit *u)
{
    struct list_launch *all;
    struct list_room room;

    list_room_get(2, LIST_PLAIN, &room);
    size_t count = list_cut(u->shards, u->count, &room, &all);
    for (size_t i = 0; i < count; i++)
        insertion_launch(
            &s->now, &(struct insertion_kernel){
                         s->names + NAME_COPY_IN, COPY_STREAM, all[i].blocks, 1,
                         LIST_THREADS, TRACE_RULE_FOREACH, all[i].elements,
                         all[i].tensors, all[i].blocks, 2});
    free(all);
}

/* A kernel on ROWS of BYTES each; tensors' sizes are copied to the GPU. */
static void rows_put(struct sharding *s, enum name name, uint64_t bytes,
                     uint64_t rows)
{
    bool joins = name == NAME_JOIN;

    INSERTION_PUT(&s->now, INSERTION_LAUNCH_NS, COPY, .stream = s->cut.stream,
                  .direction = TRACE_HOST_TO_DEVICE,
                  .bytes = bytes / COPY_BYTES * sizeof(uint64_t), .pinned = 1);
    insertion_launch(
        &s->now, &(struct insertion_kernel){
                     s->names + name, s->cut.stream,
                     (bytes + COPY_BYTES - 1) / COPY_BYTES, rows, COPY_THREADS,
                     TRACE_RULE_SIZES, joins ? bytes * rows : bytes,
                     joins ? bytes : rows, joins, 0});
}

/* Of a rank's shard. */
static uint64_t unit_bytes(const struct sharding *s, const struct unit *u)
{
    return u->elements / s->members.count * s->each;
}

static void collective_put(struct sharding *s, enum name name, uint64_t stream,
                           const struct unit *u)
{
    INSERTION_PUT(&s->now, INSERTION_LAUNCH_NS, COLLECTIVE,
                  .name = s->names + name, .stream = stream,
                  .communicator = COMMUNICATOR, .ranks = s->members.count,
                  .count = u->elements / s->members.count,
                  .type = s->each == 2 ? TYPE_BFLOAT16 : TYPE_FLOAT,
                  .bytes = u->elements * s->each);
}

/* foreach_all_gather */
static void gather_put(struct sharding *s, struct unit *u)
{
    if (!u->elements)
        return;
    copy_in_put(s, u);
    wait_put(s, GATHER_STREAM, event_put(s, COPY_STREAM));
    collective_put(s, NAME_GATHER, GATHER_STREAM, u);
    u->gathered = event_put(s, GATHER_STREAM);
}

/* foreach_all_gather_copy_out; what is gathered next waits for BEFORE. */
static void copy_out_put(struct sharding *s, struct unit *u, uint64_t before)
{
    if (!u->elements)
        return;
    wait_put(s, COPY_STREAM, before);
    wait_put(s, GATHER_STREAM, before);
    wait_put(s, s->cut.stream, u->gathered);
    rows_put(s, NAME_COPY_OUT, unit_bytes(s, u), s->members.count);
    u->copied = event_put(s, s->cut.stream);
}

/* foreach_reduce */
static void scatter_put(struct sharding *s, const struct unit *u)
{
    if (!u->elements)
        return;
    wait_put(s, s->cut.stream, s->scattered);
    rows_put(s, NAME_JOIN, unit_bytes(s, u), s->members.count);
    wait_put(s, SCATTER_STREAM, event_put(s, s->cut.stream));
    collective_put(s, NAME_SCATTER, SCATTER_STREAM, u);
    s->scattered = event_put(s, SCATTER_STREAM);
}

/* --- passes --------------------------------------------------------------- */

static void forward_put(struct sharding *s, const struct pipe_pass *p)
{
    struct unit *before = &s->units[0];

    place_open(s, p->from);
    uint64_t optimized = event_put(s, s->cut.stream);
    wait_put(s, COPY_STREAM, optimized);
    wait_put(s, GATHER_STREAM, optimized);
    gather_put(s, before);
    copy_out_put(s, before, 0);
    for (uint32_t i = 0; i < s->cut.layers; i++) {
        struct unit *u = &s->units[i + 1];
        place_open(s, p->cuts[i]);
        gather_put(s, u);
        copy_out_put(s, u, before->copied);
        before = u;
    }
}

/* The operation that record AT is of, or comes before. */
static size_t op_at(const struct layer_marks *m, size_t at)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->ops[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The record behind the layers of the backward P: layer 0 is as long as layer 1
 * is. */
static size_t layers_end(const struct sharding *s, const struct pipe_pass *p)
{
    const struct layer_marks *m = s->cut.marks;
    size_t first = op_at(m, p->cuts[0]);
    size_t end = first + (first - op_at(m, p->cuts[1]));

    if (end >= m->count)
        return p->until;
    end = layer_marks_behind(m, s->cut.records, end);
    return end < p->until ? end : p->until;
}

/* SCATTERS: not, where a later backward adds to the gradients. */
static void backward_put(struct sharding *s, const struct pipe_pass *p,
                         bool scatters)
{
    size_t end = layers_end(s, p);
    struct unit *u = &s->units[s->cut.layers];

    place_open(s, p->from);
    gather_put(s, u);
    for (uint32_t i = s->cut.layers; i-- > 0; u--) {
        place_open(s, p->cuts[i]);
        if (scatters && i + 1 < s->cut.layers)
            scatter_put(s, u + 1);
        copy_out_put(s, u, 0);
        wait_put(s, COPY_STREAM, u->copied);
        wait_put(s, GATHER_STREAM, u->copied);
        if (i)
            gather_put(s, u - 1);
    }
    if (!scatters)
        return;
    if (end < p->until) {
        place_open(s, end);
        scatter_put(s, &s->units[1]);
    }
    place_close(s, true);
    s->now = insertion_at((struct records *)(uintptr_t)s->cut.records,
                          p->until - 1);
    s->open = true;
    insertion_keep(&s->now);
    if (end >= p->until)
        scatter_put(s, &s->units[1]);
    scatter_put(s, &s->units[0]);
    wait_put(s, s->cut.stream, s->scattered);
    place_close(s, false);
}

static void step_put(struct sharding *s, const struct pipe_step *step,
                     struct shards_report *report)
{
    s->scattered = 0;
    for (size_t i = 0; i < step->count; i++) {
        forward_put(s, &step->all[i].forward);
        backward_put(s, &step->all[i].backward, i + 1 == step->count);
    }
    place_close(s, true);
    report->lists += layer_scale_lists(s->rewrite, s->cut.marks,
                                       step->after_first, step->after_end,
                                       1.0 / s->members.count);
    report->accumulates |= step->count > 1;
    report->steps++;
}

/* --- units ---------------------------------------------------------------- */

/* The unit whose gradients the backward P computes at RECORD. */
static size_t unit_at(const struct sharding *s, const struct pipe_pass *p,
                      size_t record)
{
    size_t layer = s->cut.layers;

    if (record < p->cuts[layer - 1] || record >= layers_end(s, p))
        return 0;
    while (layer > 1 && p->cuts[layer - 2] <= record)
        layer--;
    return layer;
}

/* A parameter is sharded by its first dimension, here by elements. */
static void unit_add(struct unit *u, uint64_t elements, uint32_t ranks)
{
    uint64_t own = (elements + ranks - 1) / ranks;

    xgrow(&u->shards, u->count, &u->capacity, sizeof *u->shards);
    u->shards[u->count++] = own;
    u->elements += own * ranks;
}

/* Of the last step that is cut; false: it marks no gradients. */
static bool units_fill(struct sharding *s, struct shards_report *report)
{
    const struct records *r = s->cut.records;
    const struct pipe_step *step = NULL;
    struct gradient_mark g;

    for (size_t i = 0; i < r->steps.count; i++)
        if (s->cut.steps[i].cut)
            step = &s->cut.steps[i];
    s->units = xcalloc(s->cut.layers + 1, sizeof *s->units);
    const struct pipe_pass *p = &step->all[step->count - 1].backward;
    for (size_t i = p->from; i < p->until; i++)
        if (gradient_mark_read(r, i, &g)) {
            unit_add(&s->units[unit_at(s, p, i)], g.elements, s->members.count);
            s->each = g.each;
        }
    report->rest_bytes = s->units[0].elements * s->each;
    report->layer_bytes = s->units[1].elements * s->each;
    return s->each != 0;
}

/* --- all ------------------------------------------------------------------ */

static int cut_make(struct sharding *s, const struct side *side,
                    struct err *err)
{
    s->modules.count = layer_marks_guess(&side->marks, &side->records);
    if (s->modules.count < 2)
        return err_set(err, "--fsdp: nothing in a step of this profile repeats "
                            "three times or more: no layers were found");
    s->cut = (struct pipe_cut){.records = &side->records,
                               .marks = &side->marks,
                               .modules = &s->modules,
                               .layers = s->modules.count,
                               .refusal = "--fsdp: layers cannot be found"};
    return pipe_profile_cut(&s->cut, err);
}

static int change_all(struct sharding *s, const struct side *side,
                      struct shards_report *report, struct err *err)
{
    if (cut_make(s, side, err))
        return -1;
    if (!units_fill(s, report))
        return err_set(err, "--fsdp: the profile does not say where gradients "
                            "are ready: record it with record_shapes=True");
    report->layers = s->cut.layers;
    for (size_t i = 0; i < side->records.steps.count; i++)
        if (s->cut.steps[i].cut)
            step_put(s, &s->cut.steps[i], report);
    report->steps_kept = (uint32_t)side->records.steps.count - report->steps;
    return 0;
}

int shards_change(uint32_t ranks, const char *from, const char *to,
                  struct shards_report *report, struct err *err)
{
    const struct replicas replicas = {ranks, 0, 1};
    struct side side;

    *report = (struct shards_report){.steps = 0};
    if (side_read(&side, from, err))
        return -1;
    report->collectives = gradient_collectives(&side.records);
    struct rewrite w = rewrite_of(&side.records, &side.marks);
    struct sharding s = {.rewrite = &w,
                         .members =
                             replicas_members(&replicas, &side.records),
                         .names = insertion_names(&side.records)};
    int rc = 0;
    if (!report->collectives)
        rc = change_all(&s, &side, report, err) || rewrite_write(&w, to, err)
                 ? -1
                 : 0;
    for (uint32_t i = 0; s.units && i <= s.cut.layers; i++)
        free(s.units[i].shards);
    free(s.units);
    pipe_cut_fini(&s.cut);
    free(w.edits);
    side_fini(&side);
    return rc;
}
