/* SPDX-License-Identifier: Apache-2.0
 * Training steps, and operations made from a trace's records. */
#include "common/trace/op_trace.h"
#include "common/trace/step.h"

#include "check.h"
#include "trace_build.h"

static struct trace_reader reader_of(const struct build *b)
{
    struct trace_reader r;
    struct err err = {""};

    CHECK(!trace_reader_open_memory(&r, b->data, b->bytes, "built", &err));
    return r;
}

static struct step_list steps_of(const struct build *b)
{
    struct trace_reader r = reader_of(b);
    struct step_list list;
    struct err err = {""};

    CHECK(!step_list_read(&list, &r, &err));
    trace_reader_close(&r);
    return list;
}

static void phase(struct build *b, uint64_t phase)
{
    BUILD(b, PHASE, .phase = phase);
}

static void work(struct build *b)
{
    BUILD(b, SET, .address = 1, .bytes = 4);
}

static void train(struct build *b, unsigned backwards)
{
    for (unsigned i = 0; i < backwards; i++) {
        phase(b, TRACE_PHASE_FORWARD);
        BUILD(b, MODULE_ENTER, .module = 1);
        work(b);
        BUILD(b, MODULE_LEAVE, .module = 1);
        phase(b, TRACE_PHASE_BACKWARD);
        work(b);
    }
    phase(b, TRACE_PHASE_OPTIMIZER);
    work(b);
    phase(b, TRACE_PHASE_OTHER);
}

static void batch(struct build *b, uint64_t module, uint64_t samples,
                  uint64_t tokens, uint64_t learns)
{
    BUILD(b, MODULE_ENTER, .module = module);
    BUILD(b, BATCH, .module = module, .samples = samples, .tokens = tokens,
          .learns = learns);
    work(b);
    BUILD(b, MODULE_LEAVE, .module = module);
}

static void learn(struct build *b)
{
    phase(b, TRACE_PHASE_BACKWARD);
    work(b);
    phase(b, TRACE_PHASE_OPTIMIZER);
    work(b);
    phase(b, TRACE_PHASE_OTHER);
}

/* A step works on what all calls with gradients were given. */
TEST(the_batches_of_a_step_are_added)
{
    struct build b = build_start();

    phase(&b, TRACE_PHASE_FORWARD); /* accumulation, and a teacher */
    batch(&b, 1, 8, 80, 1);
    batch(&b, 2, 4, 0, 0);
    phase(&b, TRACE_PHASE_BACKWARD);
    batch(&b, 1, 8, 80, 1); /* calculated again: not counted */
    phase(&b, TRACE_PHASE_FORWARD);
    batch(&b, 1, 6, 60, 1);
    learn(&b);
    phase(&b, TRACE_PHASE_FORWARD); /* two models with the same batch */
    batch(&b, 1, 8, 80, 1);
    batch(&b, 2, 8, 0, 1);
    learn(&b);
    phase(&b, TRACE_PHASE_FORWARD); /* a GAN: not clear */
    batch(&b, 1, 8, 0, 1);
    batch(&b, 2, 8, 0, 1);
    batch(&b, 2, 8, 0, 1);
    learn(&b);
    struct step_list l = steps_of(&b);
    CHECK_UINT(l.count, 3);
    CHECK_UINT(l.steps[0].input.module, 1);
    CHECK_UINT(l.steps[0].input.samples, 14);
    CHECK_UINT(l.steps[0].input.tokens, 140);
    CHECK_UINT(l.steps[0].input.calls, 2);
    CHECK_UINT(l.steps[1].input.samples, 8);
    CHECK_UINT(l.steps[1].input.tokens, 0);
    CHECK_UINT(l.steps[2].input.module, 0);
    CHECK_UINT(l.steps[2].input.samples, 0);
    step_list_fini(&l);
    free(b.data);
}

TEST(each_launch_of_a_graph_works_on_its_batch)
{
    struct build b = build_start();

    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    phase(&b, TRACE_PHASE_FORWARD);
    batch(&b, 1, 8, 80, 1);
    learn(&b);
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    for (int i = 0; i < 2; i++)
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3);
    struct step_list l = steps_of(&b);
    CHECK_UINT(l.count, 2);
    for (int i = 0; i < 2; i++)
        CHECK_UINT(l.steps[i].input.tokens, 80);
    step_list_fini(&l);
    free(b.data);
}

TEST(each_launch_of_a_captured_call_is_a_step)
{
    struct build b = build_start();

    batch(&b, 1, 4, 0, 0); /* a warm-up */
    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    batch(&b, 1, 4, 0, 0);
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    for (int i = 0; i < 5; i++)
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3);
    BUILD(&b, MODULE_ENTER, .module = 2); /* a call that makes the launch */
    BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3);
    BUILD(&b, MODULE_LEAVE, .module = 2);
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_MODULE);
    CHECK_UINT(list.count, 7);
    for (size_t i = 0; i < 6; i++)
        CHECK_UINT(list.steps[i].input.samples, 4);
    step_list_fini(&list);
    free(b.data);
}

TEST(inference_counts_calls_without_gradients)
{
    struct build b = build_start();

    phase(&b, TRACE_PHASE_FORWARD);
    for (int i = 0; i < 3; i++)
        batch(&b, 1, 4, 0, 0);
    struct step_list l = steps_of(&b);
    CHECK_UINT(l.count, 3);
    for (int i = 0; i < 3; i++)
        CHECK_UINT(l.steps[i].input.samples, 4);
    step_list_fini(&l);
    free(b.data);
}

TEST(a_step_ends_where_the_forward_after_its_optimizer_begins)
{
    struct build b = build_start();

    phase(&b, TRACE_PHASE_INIT); /* 0 */
    work(&b);
    train(&b, 1); /* 2 to 9 */
    train(&b, 2); /* 10 to 23, two backwards */
    train(&b, 1);
    work(&b); /* no part of the last step */
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_OPTIMIZER);
    CHECK_UINT(list.count, 3);
    CHECK_UINT(list.steps[0].first, 2);
    CHECK_UINT(list.steps[0].end, 11);
    CHECK_UINT(list.steps[1].first, 11);
    CHECK_UINT(list.steps[1].end, 26);
    CHECK_UINT(list.steps[2].end, 34);
    CHECK(list.steps[0].warm_up);
    CHECK(!list.steps[1].warm_up && !list.steps[2].warm_up);
    step_list_fini(&list);
    free(b.data);
}

TEST(a_captured_optimizer_steps_with_each_launch_of_its_graph)
{
    struct build b = build_start();

    train(&b, 1); /* warm-up: 0 to 8 */
    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3); /* 9 */
    BUILD(&b, CAPTURE_JOIN, .stream = 9, .capture = 3);
    train(&b, 1); /* 11 to 19 */
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    for (int i = 0; i < 3; i++) {
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3); /* 21, 23, 25 */
        work(&b);
    }
    struct step_list l = steps_of(&b);
    CHECK_UINT(l.rule, STEP_OPTIMIZER);
    CHECK_UINT(l.count, 4);
    CHECK_UINT(l.steps[1].first, 21);
    CHECK_UINT(l.steps[1].end, 23);
    CHECK_UINT(l.steps[3].first, 25);
    CHECK(l.steps[3].end >= 26);
    step_list_fini(&l);
    free(b.data);
}

TEST(a_graph_without_the_optimizer_is_a_part_of_a_step)
{
    struct build b = build_start();

    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    phase(&b, TRACE_PHASE_FORWARD);
    work(&b);
    phase(&b, TRACE_PHASE_BACKWARD);
    work(&b);
    phase(&b, TRACE_PHASE_OTHER);
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1); /* 6 */
    for (int i = 0; i < 2; i++) {
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3); /* 7, 11 */
        phase(&b, TRACE_PHASE_OPTIMIZER);
        work(&b);
        phase(&b, TRACE_PHASE_OTHER);
    }
    struct step_list l = steps_of(&b);
    CHECK_UINT(l.count, 2);
    CHECK_UINT(l.steps[0].first, 7);
    CHECK_UINT(l.steps[1].first, 11);
    step_list_fini(&l);
    free(b.data);
}

TEST(a_forward_without_an_optimizer_is_no_step)
{
    struct build b = build_start();

    train(&b, 1);
    phase(&b, TRACE_PHASE_FORWARD);
    work(&b);
    struct step_list list = steps_of(&b);
    CHECK_UINT(list.count, 1);
    CHECK(!list.steps[0].warm_up);
    step_list_fini(&list);
    free(b.data);
}

/* Steps in all: one whole, then one in whose PHASE memory runs out, after which
 * MORE work follows or none. */
static size_t steps_with_oom(uint64_t in, bool more)
{
    struct build b = build_start();

    train(&b, 1);
    phase(&b, TRACE_PHASE_FORWARD);
    work(&b);
    if (in != TRACE_PHASE_FORWARD)
        phase(&b, in);
    if (in == TRACE_PHASE_OTHER) /* of the next batch */
        train(&b, 1);
    BUILD(&b, OOM, .requested_bytes = 1);
    if (more)
        work(&b);
    struct step_list list = steps_of(&b);
    size_t count = list.count;
    step_list_fini(&list);
    free(b.data);
    return count;
}

TEST(a_step_that_runs_out_of_memory_is_none)
{
    CHECK_UINT(steps_with_oom(TRACE_PHASE_FORWARD, false), 1);
    CHECK_UINT(steps_with_oom(TRACE_PHASE_OPTIMIZER, false), 1);
    CHECK_UINT(steps_with_oom(TRACE_PHASE_OPTIMIZER, true), 2);
    CHECK_UINT(steps_with_oom(TRACE_PHASE_OTHER, false), 2);
}

TEST(a_call_that_runs_out_of_memory_is_no_step)
{
    struct build b = build_start();

    for (int i = 0; i < 2; i++) {
        BUILD(&b, MODULE_ENTER, .module = 1);
        work(&b);
        BUILD(&b, MODULE_LEAVE, .module = 1);
    }
    BUILD(&b, OOM, .requested_bytes = 1);
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_MODULE);
    CHECK_UINT(list.count, 1);
    step_list_fini(&list);
    free(b.data);
}

TEST(without_optimizers_outermost_module_calls_are_steps)
{
    struct build b = build_start();

    phase(&b, TRACE_PHASE_FORWARD);
    for (int i = 0; i < 3; i++) {
        BUILD(&b, MODULE_ENTER, .module = 1);
        BUILD(&b, MODULE_ENTER, .module = 2);
        work(&b);
        BUILD(&b, MODULE_LEAVE, .module = 2);
        BUILD(&b, MODULE_LEAVE, .module = 1);
    }
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_MODULE);
    CHECK_UINT(list.count, 3);
    CHECK_UINT(list.steps[1].first, 6);
    CHECK_UINT(list.steps[1].end, 11);
    step_list_fini(&list);
    free(b.data);
}

/* A call of MODULE with PIECES of work, after COPIES to the card. */
TEST(without_modules_marked_ranges_are_steps)
{
    struct build b = build_start();

    for (int i = 0; i < 2; i++) {
        BUILD_TEXT(&b, RANGE_PUSH, "ProfilerStep#1");
        BUILD_TEXT(&b, RANGE_PUSH, "mine");
        work(&b);
        BUILD(&b, RANGE_POP);
        BUILD(&b, RANGE_POP);
    }
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_RANGE);
    CHECK_UINT(list.count, 2);
    CHECK_UINT(list.steps[1].first, 5);
    CHECK_UINT(list.steps[1].end, 9);
    step_list_fini(&list);
    free(b.data);
}

/* Is the first of two steps named TEXT a warm-up? */
static bool warms_up(const char *text)
{
    struct build b = build_start();

    for (int i = 0; i < 2; i++) {
        BUILD_TEXT(&b, RANGE_PUSH, text);
        work(&b);
        BUILD(&b, RANGE_POP);
    }
    struct step_list list = steps_of(&b);
    CHECK_UINT(list.count, 2);
    CHECK(!list.steps[1].warm_up);
    bool first = list.steps[0].warm_up;
    step_list_fini(&list);
    free(b.data);
    return first;
}

TEST(a_profile_that_begins_later_has_no_warm_up)
{
    CHECK(warms_up("ProfilerStep#0"));
    CHECK(!warms_up("ProfilerStep#1"));
    CHECK(!warms_up("ProfilerStep#100"));
    CHECK(warms_up("ProfilerStep#"));
    CHECK(warms_up("iteration 1"));
    CHECK(!warms_up("iteration 12"));
    CHECK(warms_up("step"));
}

TEST(calls_of_the_marked_function_are_steps_before_all_others)
{
    struct build b = build_start();

    for (int i = 0; i < 3; i++) {
        BUILD_TEXT(&b, RANGE_PUSH, STEP_MARK_TEXT "train", .domain = 7);
        BUILD(&b, MODULE_ENTER, .module = 1);
        BUILD_TEXT(&b, RANGE_PUSH, "step of the program's");
        work(&b);
        BUILD(&b, RANGE_POP);
        BUILD(&b, MODULE_LEAVE, .module = 1);
        BUILD(&b, RANGE_POP, .domain = 7);
        work(&b); /* belongs to the step before it, but for the last */
    }
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_MARK);
    CHECK_UINT(list.count, 3);
    CHECK_UINT(list.steps[1].first, list.steps[0].end);
    CHECK_UINT(list.steps[2].end, list.steps[2].first + 7);
    step_list_fini(&list);
    free(b.data);
}

TEST(a_marked_call_that_did_not_end_is_no_step)
{
    struct build b = build_start();

    for (int i = 0; i < 2; i++) {
        BUILD_TEXT(&b, RANGE_PUSH, STEP_MARK_TEXT "train", .domain = 7);
        work(&b);
        if (!i)
            BUILD(&b, RANGE_POP, .domain = 7);
    }
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_MARK);
    CHECK_UINT(list.count, 1);
    step_list_fini(&list);
    free(b.data);
}

/* --- operations ----------------------------------------------------------- */

struct seen {
    struct op ops[16];
    uint64_t bytes[16];
    size_t count;
};

static void see(void *context, const struct op *op)
{
    struct seen *s = context;

    s->bytes[s->count] = op->record == TRACE_COLLECTIVE && op->field_count > 10
                             ? op->fields[10]
                             : 0;
    s->ops[s->count++] = *op;
}

static struct seen ops_of(const struct build *b)
{
    struct seen seen = {.count = 0};
    struct trace_reader r = reader_of(b);
    struct op_trace *t = op_trace_create(see, &seen);
    struct trace_item item;
    struct err err = {""};

    while (trace_reader_next(&r, &item, &err) > 0)
        op_trace_add(t, &item);
    op_trace_end(t);
    op_trace_destroy(t);
    trace_reader_close(&r);
    return seen;
}

TEST(an_operation_has_its_streams_and_its_module)
{
    struct build b = build_start();

    BUILD(&b, MODULE_ENTER, .module = 7);
    BUILD(&b, LAUNCH, .name = 3, .device = 1, .stream = 0x50, .grid_x_y = 1);
    BUILD(&b, EVENT_RECORD, .device = 1, .stream = 0x50, .event = 0x90);
    BUILD(&b, MODULE_LEAVE, .module = 7);
    BUILD(&b, COPY, .device = 1, .stream = 0x60, .direction = 1,
          .destination = 2, .source = 3, .bytes = 4096, .blocking = 1);
    struct seen s = ops_of(&b);
    CHECK_UINT(s.count, 3);
    CHECK(s.ops[0].kind == OP_LAUNCH);
    CHECK_UINT(s.ops[0].name, 3);
    CHECK_UINT(s.ops[0].device, 1);
    CHECK_UINT(s.ops[0].stream, 0x50);
    CHECK_UINT(s.ops[0].module, 7);
    CHECK_UINT(s.ops[1].event, 0x90);
    CHECK(s.ops[2].blocking && s.ops[2].stream == 0x60 && !s.ops[2].module);
    free(b.data);
}

TEST(a_graph_launch_does_the_work_of_its_capture)
{
    struct build b = build_start();

    BUILD(&b, CAPTURE_JOIN, .stream = 0x50, .capture = 4);
    BUILD(&b, LAUNCH, .name = 1, .stream = 0x50, .grid_x_y = 1);
    BUILD(&b, EVENT_RECORD, .stream = 0x50, .event = 0x90);
    BUILD(&b, CAPTURE_JOIN, .stream = 0x58, .capture = 4);
    BUILD(&b, LAUNCH, .name = 2, .stream = 0x58, .grid_x_y = 1);
    BUILD(&b, CAPTURE_END, .capture = 4, .whole = 1);
    BUILD(&b, LAUNCH, .name = 3, .stream = 0x50, .grid_x_y = 1);
    BUILD(&b, GRAPH_LAUNCH, .stream = 0x60, .exec = 0x1000, .capture = 4,
          .kernels = 2);
    struct seen s = ops_of(&b);
    CHECK_UINT(s.count, 5);
    CHECK_UINT(s.ops[0].name, 3); /* carried out before the graph's */
    CHECK(s.ops[1].kind == OP_GRAPH_LAUNCH);
    CHECK_UINT(s.ops[2].name, 1);
    CHECK_UINT(s.ops[2].stream, 0x60);
    CHECK_UINT(s.ops[2].capture, 4);
    CHECK(s.ops[3].event & OP_GRAPH_HANDLE);
    CHECK(s.ops[4].stream & OP_GRAPH_HANDLE);
    free(b.data);
}

TEST(collectives_have_numbers_on_their_communicator)
{
    struct build b = build_start();

    BUILD_TEXT(&b, NAME, "ncclAllReduce", .name = 1);
    BUILD(&b, COLLECTIVE, .name = 1, .communicator = 0xa0, .ranks = 2);
    BUILD(&b, COLLECTIVE, .name = 1, .communicator = 0xb0, .ranks = 2);
    BUILD(&b, COLLECTIVE, .name = 1, .communicator = 0xa0, .ranks = 2);
    struct seen s = ops_of(&b);
    CHECK_UINT(s.count, 3);
    CHECK_UINT(s.ops[0].sequence, 0);
    CHECK_UINT(s.ops[1].sequence, 0);
    CHECK_UINT(s.ops[2].sequence, 1);
    free(b.data);
}

TEST(a_group_of_sends_and_receives_is_one_operation)
{
    struct build b = build_start();
    enum { SEND = 1, RECEIVE };

    BUILD_TEXT(&b, NAME, "ncclSend", .name = SEND);
    BUILD_TEXT(&b, NAME, "ncclRecv", .name = RECEIVE);
    BUILD(&b, COLLECTIVE, .name = SEND, .communicator = 0xa0, .ranks = 4,
          .count = 1, .root = 1, .bytes = 100, .send = 5, .group = 9);
    BUILD(&b, COLLECTIVE, .name = RECEIVE, .communicator = 0xa0, .ranks = 4,
          .count = 1, .root = 1, .bytes = 300, .receive = 6, .group = 9);
    BUILD(&b, COLLECTIVE, .name = SEND, .communicator = 0xa0, .ranks = 4,
          .count = 1, .root = 2, .bytes = 100, .send = 5, .group = 9);
    BUILD(&b, COLLECTIVE, .name = SEND, .communicator = 0xa0, .ranks = 4,
          .count = 1, .root = 2, .bytes = 50, .send = 5, .group = 10);
    struct seen s = ops_of(&b);
    CHECK_UINT(s.count, 2);
    CHECK_UINT(s.bytes[0], 300);
    CHECK_UINT(s.bytes[1], 50);
    CHECK_UINT(s.ops[1].sequence, 1);
    free(b.data);
}
