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
#include "memsim/change/pipe_profile.h"
#include "memsim/change/replicas.h"
#include "memsim/change/side.h"

/* Handles that no profile has. */
#define COPY_STREAM    (UINT64_C(1) << 40)
#define GATHER_STREAM  (COPY_STREAM + 1)
#define SCATTER_STREAM (COPY_STREAM + 2)
#define COMMUNICATOR   (COPY_STREAM + 3)
#define EVENTS         (UINT64_C(1) << 41)

enum name {
    NAME_COPY_IN, /* a shard into what is gathered */
    NAME_COPY_OUT,
    NAME_JOIN, /* gradients into what is scattered */
    NAME_GATHER,
    NAME_SCATTER,
    NAMES,
};

static const char *const names[NAMES] = {
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
    "at::native::(anonymous namespace)::TensorListMetadata<2>, "
    "at::native::(anonymous namespace)::Copy<float, float> >()",
    "void at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_"
    "kernel()",
    "void at::native::detail::chunk_cat_cuda_kernel<float, float>()",
    "ncclDevKernel_AllGather_RING_LL",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"};

/* What is gathered at once: 0 is the rest, I + 1 layer I. */
struct unit {
    uint64_t elements;
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
        insertion_name(&s->now, s->names + i, names[i]);
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

static void kernel_put(struct sharding *s, enum name name, uint64_t stream,
                       uint64_t elements)
{
    insertion_launch(&s->now, &(struct insertion_kernel){s->names + name,
                                                         stream, elements,
                                                         s->each});
}

static void collective_put(struct sharding *s, enum name name, uint64_t stream,
                           const struct unit *u)
{
    INSERTION_PUT(&s->now, INSERTION_LAUNCH_NS, COLLECTIVE,
                  .name = s->names + name, .stream = stream,
                  .communicator = COMMUNICATOR, .ranks = s->members.count,
                  .count = u->elements / s->members.count,
                  .bytes = u->elements * s->each);
}

/* foreach_all_gather */
static void gather_put(struct sharding *s, struct unit *u)
{
    if (!u->elements)
        return;
    kernel_put(s, NAME_COPY_IN, COPY_STREAM, u->elements / s->members.count);
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
    kernel_put(s, NAME_COPY_OUT, s->cut.stream, u->elements);
    u->copied = event_put(s, s->cut.stream);
}

/* foreach_reduce */
static void scatter_put(struct sharding *s, const struct unit *u)
{
    if (!u->elements)
        return;
    wait_put(s, s->cut.stream, s->scattered);
    kernel_put(s, NAME_JOIN, s->cut.stream, u->elements);
    wait_put(s, SCATTER_STREAM, event_put(s, s->cut.stream));
    collective_put(s, NAME_SCATTER, SCATTER_STREAM, u);
    s->scattered = event_put(s, SCATTER_STREAM);
}

/* --- passes --------------------------------------------------------------- */

static void forward_put(struct sharding *s, const struct pipe_pass *p)
{
    struct unit *before = &s->units[0];

    place_open(s, p->from);
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
            s->units[unit_at(s, p, i)].elements += g.elements;
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
    s->modules.count = pipe_profile_layers(&side->records, &side->marks);
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
    free(s.units);
    pipe_cut_fini(&s.cut);
    free(w.edits);
    side_fini(&side);
    return rc;
}
