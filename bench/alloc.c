/* SPDX-License-Identifier: Apache-2.0
 * How fast recorded allocator calls replay: alloc TRACE [REPEATS [CALLS]] plays
 * a trace (of `memsim run -o', or a snapshot) on a modelled card, from memory
 * and from its file, and compares it with itself; it prints events a second.
 * CALLS, a file, gets the blocks taken and given back, for alloc_torch.cpp:
 * four 64-bit numbers each, 1 or 0, address, bytes, stream.
 * bench/alloc_versus runs both. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/units.h"
#include "common/xmalloc.h"
#include "memsim/recording.h"

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

static void write_calls(const struct steps *s, const char *path)
{
    FILE *out = fopen(path, "wb");

    for (size_t i = 0; out && i < s->count; i++) {
        const struct replay_op *op = &s->ops[i];
        uint64_t call[] = {op->kind == REPLAY_ALLOC, op->address, op->bytes,
                           op->stream};

        if (op->kind == REPLAY_ALLOC || op->kind == REPLAY_FREE)
            fwrite(call, sizeof call, 1, out);
    }
    if (!out || fclose(out))
        perror(path);
}

int main(int argc, char **argv)
{
    struct recording_options options = {.addresses = VASPACE_CHUNKS};
    struct recording r;
    struct steps steps = {0};
    struct err err = {""};
    int repeats = argc > 2 ? atoi(argv[2]) : 5;

    if (argc < 2) {
        fputs("usage: alloc TRACE [REPEATS [CALLS]]\n", stderr);
        return 2;
    }
    options.memory_bytes = 512 * GIB;
    check(recording_open(&r, argv[1], &options, &err), &err);
    read_all(&steps, r.whatif.source);
    if (argc > 3)
        write_calls(&steps, argv[3]);
    printf("%zu events, %s\n", steps.count,
           r.plan.exact ? "replayed exactly" : r.plan.difference);
    time_it("engine, steps in memory", &r, &steps.source, steps.count, repeats,
            run);
    time_it("the same from the file", &r, r.whatif.source, steps.count, repeats,
            run);
    time_it("compared with the recording", &r, &steps.source, steps.count,
            repeats, mirror);
    free(steps.ops);
    recording_close(&r);
    return 0;
}
