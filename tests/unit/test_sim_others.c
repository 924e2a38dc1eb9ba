/* SPDX-License-Identifier: Apache-2.0
 * Two simulators whose collectives and messages wait for each other come to the
 * times of one simulator with both devices: random programs. */
#include "runtime/sim/sim.h"

#include "check.h"
#include "common/base/random.h"

#define STEPS 40
#define OPS   (STEPS * 2 + 1)
#define SIDES 2

static void *blocks[100000];
static size_t block_count;

static void *grow(void *context, void *old, size_t old_bytes, size_t bytes)
{
    char *p = calloc(1, bytes ? bytes : 1);

    (void)context;
    if (old_bytes)
        memcpy(p, old, old_bytes < bytes ? old_bytes : bytes);
    blocks[block_count++] = p;
    return p;
}

static const struct sim_memory memory = {.grow = grow};

/* A step of the program of both sides: compute, then a collective or messages
 * to each other, on a stream that may run beside. */
struct step {
    uint64_t called_ns[SIDES], compute_ns[SIDES], lasts_ns[SIDES];
    bool message, follows[SIDES]; /* the exchange waits for the compute */
    uint32_t part;
};

static struct step steps[STEPS];

static uint64_t drawn; /* numbers so far */

static uint64_t draw(uint64_t most)
{
    return random_at(39, drawn++) % most;
}

/* The first is of the one simulator, the others of the two. */
static uint64_t ends_ns[2][SIDES][OPS];

static void one_done(void *context, const struct sim_done *d)
{
    (void)context;
    ends_ns[0][d->device][d->tag] = d->end_ns;
}

static void two_done(void *context, const struct sim_done *d)
{
    ends_ns[1][(uintptr_t)context][d->tag] = d->end_ns;
}

/* --- the two meet --------------------------------------------------------- */

static struct side {
    struct sim *sim;
    uint32_t step_of[STEPS * 4], others_of[STEPS * 4]; /* by meet */
    bool is_open[STEPS][2];                            /* comes, ends */
} sides[SIDES];
static uint64_t told_ns[STEPS][2][SIDES];

static void told(void *context, uint32_t meet, uint64_t ns, int phase)
{
    uintptr_t own = (uintptr_t)context;
    uint32_t step = sides[own].step_of[meet];

    told_ns[step][phase][own] = ns + 1;
    sides[own].is_open[step][phase] = true;
}

static void came(void *context, uint32_t meet, uint64_t ns)
{
    told(context, meet, ns, 0);
}

static void ended(void *context, uint32_t meet, uint64_t ns)
{
    told(context, meet, ns, 1);
}

static uint64_t look(void *context, uint64_t until_ns)
{
    uintptr_t own = (uintptr_t)context;
    struct side *side = &sides[own];
    bool any = false;

    for (int i = 0; i < STEPS; i++)
        for (int phase = 0; phase < 2; phase++) {
            uint64_t ns = told_ns[i][phase][!own];
            if (!side->is_open[i][phase] || !ns)
                continue;
            uint32_t meet = side->others_of[i];
            any = true;
            side->is_open[i][phase] = false;
            CHECK(!(phase ? sim_others_ended : sim_others_came)(side->sim, meet,
                                                                ns - 1));
        }
    uint64_t next_ns = sim_next(sides[!own].sim);
    return any ? 0 : until_ns < next_ns ? until_ns : next_ns;
}

/* --- the program ---------------------------------------------------------- */

static uint32_t meet_of(struct sim *s, int own, int i, uint32_t *made)
{
    const struct step *step = &steps[i];
    uint32_t meet;

    if (made) { /* one simulator */
        if (!step->message && made[0] == SIM_NONE)
            made[0] = made[1] = sim_meet(s, 2);
        else if (made[0] == SIM_NONE) {
            made[0] = sim_meet(s, 1);
            made[1] = sim_meet(s, 1);
            sim_pair(s, made[0], step->part, made[1], step->part);
        }
        return made[own];
    }
    meet = step->message ? sim_meet(s, 1) : sim_meet_others(s);
    sides[own].others_of[i] =
        step->message ? sim_pair_others(s, meet, step->part) : meet;
    sides[own].step_of[meet] = (uint32_t)i;
    return meet;
}

/* Side OWN makes its calls; MADE: the meets of all steps in one simulator. */
static void play(struct sim *s, uint32_t device, int own, uint32_t (*made)[2])
{
    uint32_t thread = sim_thread(s), event = sim_event(s);
    uint32_t stream = sim_stream(s, device, SIM_NON_BLOCKING, 0);
    uint32_t beside = sim_stream(s, device, SIM_NON_BLOCKING, 0);

    for (int i = 0; i < STEPS; i++) {
        const struct step *step = &steps[i];
        struct sim_work work = {.engine = SIM_COMPUTE,
                                .duration_ns = step->compute_ns[own],
                                .meet = SIM_NONE,
                                .tag = (uint64_t)i * 2 + 1};
        sim_until(s, thread, step->called_ns[own]);
        sim_submit(s, thread, stream, &work);
        if (step->follows[own]) {
            sim_record(s, thread, stream, event);
            sim_wait_event(s, thread, beside, event);
        }
        work.engine = SIM_COMM;
        work.duration_ns = step->lasts_ns[own];
        work.meet = meet_of(s, own, i, made ? made[i] : NULL);
        work.tag++;
        sim_submit(s, thread, beside, &work);
    }
}

static const struct sim_gpu gpu = {.queue_depth = 4096,
                                   .comm_takes = SIM_WHOLE / 8,
                                   .comm_loses = SIM_WHOLE / 16};

static void one_run(void)
{
    const struct sim_sink sink = {.done = one_done};
    uint32_t made[STEPS][2];
    struct sim *s = sim_create(&memory, &sink);

    memset(made, 0xff, sizeof made);
    sim_together(s);
    for (int own = 0; own < SIDES; own++)
        play(s, sim_device(s, &gpu), own, made);
    CHECK(sim_drain(s));
}

static void two_run(void)
{
    memset(sides, 0, sizeof sides);
    memset(told_ns, 0, sizeof told_ns);
    for (uintptr_t own = 0; own < SIDES; own++) {
        void *context = (void *)own;
        const struct sim_sink sink = {.done = two_done, .context = context};
        const struct sim_others others = {
            .came = came, .ended = ended, .look = look, .context = context};
        struct sim *s = sides[own].sim = sim_create(&memory, &sink);
        sim_others(s, &others);
        play(s, sim_device(s, &gpu), (int)own, NULL);
    }
    for (bool goes = true; goes;) {
        goes = sim_step(sides[0].sim, UINT64_MAX - 1);
        goes |= sim_step(sides[1].sim, UINT64_MAX - 1);
    }
}

static void program_draw(void)
{
    uint64_t ns[SIDES] = {0, 0};

    for (int i = 0; i < STEPS; i++) {
        struct step *step = &steps[i];
        step->message = draw(3) == 0;
        step->part = SIM_WHOLE / 2 + (uint32_t)draw(1000);
        uint64_t lasts_ns = 1000 + draw(50000);
        for (int own = 0; own < SIDES; own++) {
            ns[own] += draw(60000);
            step->called_ns[own] = ns[own];
            step->compute_ns[own] = 1000 + draw(80000);
            step->lasts_ns[own] = lasts_ns;
            step->follows[own] = draw(2);
        }
    }
}

TEST(two_simulators_come_to_the_times_of_one)
{
    for (int n = 0; n < 300; n++) {
        memset(ends_ns, 0, sizeof ends_ns);
        block_count = 0;
        program_draw();
        one_run();
        two_run();
        for (int own = 0; own < SIDES; own++)
            for (int i = 1; i < OPS; i++)
                CHECK_UINT(ends_ns[1][own][i], ends_ns[0][own][i]);
        while (block_count)
            free(blocks[--block_count]);
    }
}
