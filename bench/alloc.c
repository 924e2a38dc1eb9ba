/* SPDX-License-Identifier: Apache-2.0
 * How fast recorded allocator calls replay: alloc TRACE [REPEATS [CALLS]] plays
 * a trace (of `memsim run -o', or a snapshot) on a modelled card, from memory
 * and from its file, and compares it with itself; it prints events a second.
 * Then it makes the engine's calls alone, as alloc_torch.cpp makes them to
 * PyTorch's allocator: CALLS, a file, gets them for it, four 64-bit numbers
 * each, 1 or 0, number of the block, bytes, stream. bench/alloc_versus runs
 * both. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/map.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/replay/recording.h"
#include "memsim/replay/replay_model.h"

struct steps { /* read into memory, as a source */
    struct replay_op *ops;
    size_t count, capacity, at;
    struct replay_source source;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(int rc, const struct err *err)
{
    if (!rc)
        return;
    fprintf(stderr, "bench/alloc: %s\n", err->text);
    exit(1);
}

static int next(void *context, struct replay_op *op, struct err *err)
{
    struct steps *s = context;

    (void)err;
    if (s->at == s->count)
        return 0;
    *op = s->ops[s->at++];
    return 1;
}

static int back(void *context, struct err *err)
{
    struct steps *s = context;

    (void)err;
    s->at = 0;
    return 0;
}

/* What the allocator is called with or told, of SOURCE's steps; the rest, what
 * it did, is for comparison. */
static void read_all(struct steps *s, const struct replay_source *source)
{
    struct replay_op op;
    struct err err = {""};
    int more;

    check(source->rewind(source->context, &err), &err);
    while ((more = source->next(source->context, &op, &err)) > 0) {
        xgrow(&s->ops, s->count, &s->capacity, sizeof *s->ops);
        s->ops[s->count++] = op;
    }
    check(more, &err);
    s->source = *source;
    s->source.context = s;
    s->source.next = next;
    s->source.rewind = back;
}

static void run(const struct recording *r, const struct replay_source *source)
{
    struct replay_result result;
    struct err err = {""};

    check(replay_run(source, &r->whatif.config, &r->plan, NULL, &result, &err),
          &err);
    replay_result_fini(&result);
}

static void mirror(const struct recording *r,
                   const struct replay_source *source)
{
    struct replay_plan plan;
    struct err err = {""};

    check(replay_mirror(source, &r->whatif.config, &plan, &err), &err);
    replay_plan_fini(&plan);
}

static void
time_it(const char *what, const struct recording *r,
        const struct replay_source *source, size_t steps, int repeats,
        void (*play)(const struct recording *, const struct replay_source *))
{
    double best = 1e9;

    for (int i = 0; i < repeats; i++) {
        double start = now();

        play(r, source);
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%-28s %8.3f s  %7.2f million events/s\n", what, best,
           (double)steps / best / 1e6);
}

struct call {
    uint64_t is_alloc, block, bytes, stream;
};

struct calls {
    struct call *calls;
    size_t count, capacity, blocks;
};

/* The blocks taken and given back, numbered: what is timed is the allocator,
 * not the search for a block by its address. */
static void number_calls(const struct steps *s, struct calls *c)
{
    struct map numbers = {0};

    for (size_t i = 0; i < s->count; i++) {
        const struct replay_op *op = &s->ops[i];

        if (op->kind != REPLAY_ALLOC && op->kind != REPLAY_FREE)
            continue;
        uintptr_t number = (uintptr_t)map_get(&numbers, op->address);
        if (!number) {
            number = ++c->blocks;
            map_put(&numbers, op->address, (void *)number);
        }
        xgrow(&c->calls, c->count, &c->capacity, sizeof *c->calls);
        c->calls[c->count++] = (struct call){op->kind == REPLAY_ALLOC,
                                             number - 1, op->bytes, op->stream};
    }
    map_fini(&numbers);
}

static void write_calls(const struct calls *c, const char *path)
{
    FILE *out = fopen(path, "wb");

    if (out)
        fwrite(c->calls, sizeof *c->calls, c->count, out);
    if (!out || fclose(out))
        perror(path);
}

static double play_calls(const struct calls *c, struct alloc *engine,
                         struct alloc_block **blocks)
{
    double start = now();

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];

        if (call->is_alloc)
            blocks[call->block] = alloc_malloc(engine, call->bytes, 0);
        else
            alloc_free(engine, blocks[call->block]);
    }
    return now() - start;
}

static void time_calls(const struct recording *r, const struct calls *c,
                       int repeats)
{
    struct err err = {""};
    double best = 1e9;

    for (int i = 0; i < repeats; i++) {
        struct alloc_block **blocks = xcalloc(c->blocks, sizeof *blocks);
        struct replay_model model;

        check(replay_model_init(&model, &r->whatif.config, NULL, 0, "-", &err),
              &err);
        struct alloc *engine = alloc_create(&(struct alloc_config){
            .rules = r->whatif.config.rules,
            .conf = r->whatif.config.conf,
            .total_bytes = r->whatif.config.total_bytes,
            .driver = replay_model_driver(&model),
        });
        double took = play_calls(c, engine, blocks);
        best = took < best ? took : best;
        alloc_destroy(engine);
        replay_model_fini(&model);
        free(blocks);
    }
    printf("%-28s %8.3f s  %7.2f million calls/s\n", "engine, calls alone",
           best, (double)c->count / best / 1e6);
}

int main(int argc, char **argv)
{
    struct recording_options options = {.addresses = VASPACE_CHUNKS};
    struct recording r;
    struct steps steps = {0};
    struct calls calls = {0};
    struct err err = {""};
    int repeats = argc > 2 ? atoi(argv[2]) : 5;

    if (argc < 2) {
        fputs("usage: alloc TRACE [REPEATS [CALLS]]\n", stderr);
        return 2;
    }
    options.memory_bytes = 512 * GIB;
    check(recording_open(&r, argv[1], &options, &err), &err);
    read_all(&steps, r.whatif.source);
    number_calls(&steps, &calls);
    if (argc > 3)
        write_calls(&calls, argv[3]);
    printf("%zu events, %s\n", steps.count,
           r.plan.exact ? "replayed exactly" : r.plan.difference);
    time_it("engine, steps in memory", &r, &steps.source, steps.count, repeats,
            run);
    time_it("the same from the file", &r, r.whatif.source, steps.count, repeats,
            run);
    time_it("compared with the recording", &r, &steps.source, steps.count,
            repeats, mirror);
    time_calls(&r, &calls, repeats);
    free(calls.calls);
    free(steps.ops);
    recording_close(&r);
    return 0;
}
