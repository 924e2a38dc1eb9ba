/* SPDX-License-Identifier: Apache-2.0
 * How fast recorded allocator calls replay: bench/alloc TRACE [REPEATS] plays
 * a trace (of `memsim run -o', or a snapshot) as it was recorded and on a
 * modelled card, and prints events a second of each, and of the engine alone
 * over steps read before. */
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

    check(replay_run(source, &r->whatif.config, &r->plan, UINT64_MAX, NULL,
                     NULL, &result, &err),
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

int main(int argc, char **argv)
{
    struct recording_options options = {.addresses = VASPACE_CHUNKS};
    struct recording r;
    struct steps steps = {0};
    struct err err = {""};
    int repeats = argc > 2 ? atoi(argv[2]) : 5;

    if (argc < 2) {
        fputs("usage: bench/alloc TRACE [REPEATS]\n", stderr);
        return 2;
    }
    options.memory_bytes = 512 * GIB;
    check(recording_open(&r, argv[1], &options, &err), &err);
    read_all(&steps, r.whatif.source);
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
