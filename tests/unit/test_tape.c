/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape.h"

#include "check.h"
#include "memsim/advice/change.h"
#include "trace_build.h"

/* The modules of a small model, by number. */
enum { NET = 1, BLOCKS, BLOCK0, LINEAR0, BLOCK1, LINEAR1, HEAD, MLP, MLP0 };

static const char *const paths[] = {
    [NET] = "Net",         [BLOCKS] = "blocks",
    [BLOCK0] = "blocks.0", [LINEAR0] = "blocks.0.a",
    [BLOCK1] = "blocks.1", [LINEAR1] = "blocks.1.a",
    [HEAD] = "head",       [MLP] = "mlp",
    [MLP0] = "mlp.0",
};

static struct changeable model;

static void model_start(void)
{
    uint32_t parent;

    model.tape.modules = calloc(1, sizeof *model.tape.modules);
    model.tape.name = "T";
    for (uint32_t id = NET; id <= MLP0; id++)
        module_table_name(model.tape.modules, id, NET, paths[id], &parent);
    module_table_count(model.tape.modules);
}

static void model_end(void)
{
    changeable_fini(&model);
    memset(&model, 0, sizeof model);
}

static struct tape_item *add(enum tape_kind kind, uint32_t module)
{
    struct tape_item item = {.kind = (uint8_t)kind, .module = module};

    item.op.index = model.tape.count;
    tape_add(&model.tape, &item);
    return &model.tape.items[model.tape.count - 1];
}

static void phase(enum trace_phase_kind phase)
{
    add(TAPE_PHASE, 0)->phase = (uint8_t)phase;
}

/* Blocks are named by letters. */
static struct tape_item *take(char name, uint64_t bytes, uint32_t module,
                              enum trace_phase_kind phase)
{
    struct tape_item *item = add(TAPE_CALL, module);

    item->phase = (uint8_t)phase;
    item->op.kind = REPLAY_ALLOC;
    item->op.address = (uint64_t)name;
    item->op.bytes = bytes;
    return item;
}

static void give(char name)
{
    struct tape_item *item = add(TAPE_CALL, 0);

    item->op.kind = REPLAY_FREE;
    item->op.address = (uint64_t)name;
}

/* The calls of TAPE: "+a10 -a"; blocks that were not recorded are 0, 1, ... */
static const char *calls(struct tape *tape)
{
    static char text[1024];
    const struct replay_source *source = tape_source(tape);
    struct replay_op op;
    struct err err = {""};
    size_t n = 0;

    text[0] = '\0';
    CHECK(!source->rewind(source->context, &err));
    while (source->next(source->context, &op, &err) > 0) {
        uint64_t a = op.address;
        char name = (char)(a >> 61 ? '0' + (char)(a & 0xff) : (char)a);

        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c%c", n ? " " : "",
                              op.kind == REPLAY_ALLOC ? '+' : '-', name);
        if (op.kind == REPLAY_ALLOC)
            n += (size_t)snprintf(text + n, sizeof text - n, "%" PRIu64,
                                  op.bytes);
    }
    return text;
}

/* The calls with the change that TEXT says. */
static const char *changed(const char *text)
{
    struct change change;
    struct err err = {""};
    struct tape to;

    module_lists_fini(&model.lists);
    module_lists_find(&model.lists, model.tape.modules);
    if (change_parse(&change, text, &model, &err)) {
        CHECK_FAIL("%s", err.text);
        exit(1);
    }
    change_make(&to, &model, &change);
    const char *out = calls(&to);
    tape_fini(&to);
    change_fini(&change);
    return out;
}

TEST(finds_lists_of_modules)
{
    model_start();
    module_lists_find(&model.lists, model.tape.modules);
    CHECK_UINT(model.lists.count, 1); /* mlp.0 has no parts */
    CHECK_STR(model.lists.rows[0].name, "blocks");
    CHECK_UINT(model.lists.rows[0].members, 2);
    CHECK_UINT(model.lists.member_of[LINEAR0], BLOCK0);
    CHECK_UINT(model.lists.member_of[BLOCK1], BLOCK1);
    CHECK_UINT(model.lists.member_of[BLOCKS], 0);
    CHECK_UINT(model.lists.member_of[HEAD], 0);
    model_end();
}

/* A list in a member of a list is none, and one whose members are unlike. */
TEST(finds_the_outermost_lists_only)
{
    static const char *const names[] = {
        "Net",     "a",         "a.0", "a.0.e", "a.0.e.0", "a.0.e.0.w",
        "a.0.e.1", "a.0.e.1.w", "a.1", "a.1.x", "a.1.y",   "a.1.z",
        "a.1.v",   "a.1.u",     "b",   "b.0",   "b.0.x",   "b.1",
        "b.1.x",   "b.1.y",     "b.2", "b.2.x", "b.2.y",   "b.2.z"};
    struct module_table table = {0};
    struct module_lists lists;
    uint32_t parent;

    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        module_table_name(&table, i + 1, 1, names[i], &parent);
    module_table_count(&table);
    module_lists_find(&lists, &table);
    CHECK_UINT(lists.count, 1);
    CHECK_STR(lists.rows[0].name, "a");
    module_lists_fini(&lists);
    module_table_fini(&table);
}

TEST(halves_what_an_optimizer_keeps_in_fp32)
{
    model_start();
    take('a', 1001, 0, TRACE_PHASE_OPTIMIZER)->holds =
        TAPE_OWNED | TAPE_FP32_STATE;
    take('b', 1000, 0, TRACE_PHASE_OPTIMIZER)->holds = TAPE_OWNED;
    give('a');
    CHECK_STR(changed("bf16-optimizer"), "+a501 +b1000 -a");
    model_end();
}

TEST(keeps_states_in_8_bits_or_in_parts)
{
    model_start();
    take('a', 4 * 5000, 0, TRACE_PHASE_OPTIMIZER)->holds =
        TAPE_OWNED | TAPE_FP32_STATE;
    take('b', 4000, 0, TRACE_PHASE_OPTIMIZER)->holds =
        TAPE_OWNED | TAPE_FP32_STATE;
    give('a');
    CHECK_STR(changed("8bit-optimizer"), "+a5000 +080 +b4000 -a -0");
    CHECK_STR(changed("shard-optimizer=8"), "+a2500 +b500 -a");
    CHECK_STR(changed("8bit-optimizer,shard-optimizer=3"),
              "+a1667 +028 +b1336 -a -0");
    model_end();
}

/* What outlives the step is no temporary; Adam's count of steps is added. */
TEST(leaves_out_what_a_fused_step_does_not_need)
{
    model_start();
    phase(TRACE_PHASE_OPTIMIZER);
    take('a', 100, 0, TRACE_PHASE_OPTIMIZER)->holds =
        TAPE_STEP | TAPE_OWNED | TAPE_FP32_STATE | TAPE_EXP_AVG;
    take('t', 50, 0, TRACE_PHASE_OPTIMIZER)->holds = TAPE_STEP;
    take('u', 60, 0, TRACE_PHASE_OPTIMIZER)->holds = TAPE_STEP;
    take('v', 70, 0, TRACE_PHASE_OPTIMIZER);
    give('t');
    give('v');
    phase(TRACE_PHASE_OTHER);
    give('u');
    CHECK_STR(changed("fused-optimizer"), "+04 +a100 +u60 +v70 -v -u");
    CHECK_STR(changed("bf16-optimizer"),
              "+a50 +t50 +u60 +v70 -t -v -u");
    model_end();
}

TEST(makes_what_is_like_the_logits_in_parts)
{
    model_start();
    for (char name = 'a'; name <= 'd'; name++) {
        struct tape_item *item =
            take(name, 4 << 20, 0, TRACE_PHASE_FORWARD);
        item->elements = 1 << 20;
        item->last_dim = name == 'c' ? 512 : 1024;
        item->holds = name == 'b' ? TAPE_LOSS : name == 'd' ? TAPE_OWNED : 0;
    }
    CHECK_STR(changed("chunked-loss=8"),
              "+a524288 +b524288 +c4194304 +d4194304");
    model_end();
}

static void zero(uint64_t elements)
{
    add(TAPE_ZERO, 0)->elements = elements;
}

static struct tape_item *gradient(char name, uint64_t elements, uint32_t module)
{
    struct tape_item *item = take(name, 4 * elements, module,
                                  TRACE_PHASE_BACKWARD);

    item->elements = elements;
    return item;
}

/* The second backward's result for the parameter takes the first one's place;
 * what is no gradient is freed as before. */
TEST(frees_gradients_where_they_are_set_to_zero)
{
    model_start();
    phase(TRACE_PHASE_BACKWARD);
    gradient('g', 5, LINEAR0)->holds = TAPE_GRADIENT | TAPE_OWNED;
    gradient('h', 7, LINEAR1)->holds = TAPE_GRADIENT | TAPE_OWNED;
    phase(TRACE_PHASE_OTHER);
    zero(5);
    phase(TRACE_PHASE_BACKWARD);
    gradient('x', 5, LINEAR1);
    give('x');
    gradient('t', 5, LINEAR0);
    give('t');
    gradient('u', 7, LINEAR1);
    give('u');
    zero(0);
    give('g');
    give('h');
    CHECK_STR(changed("set-to-none"),
              "+g20 +h28 -g +x20 -x +020 +u28 -u -0 -h");
    model_end();
}

TEST(keeps_gradients_that_are_accumulated)
{
    model_start();
    for (char name = 't'; name <= 'v'; name++) {
        phase(TRACE_PHASE_BACKWARD);
        gradient(name, 5, LINEAR0)->holds = name == 't' ? TAPE_GRADIENT : 0;
        if (name != 't')
            give(name);
        phase(TRACE_PHASE_FORWARD);
    }
    CHECK_STR(changed("set-to-none"), "+t20 +u20 -u +v20 -v");
    model_end();
}

static void cast(char name, uint32_t module)
{
    struct tape_item *item = take(name, 10, module, TRACE_PHASE_FORWARD);

    item->elements = item->last_dim = 5;
    item->maker = TAPE_CAST;
}

/* 'a' stays only for the cache, backward needs 'b'; 'o' is no weight's. */
TEST(makes_copies_of_weights_for_each_call)
{
    model_start();
    struct tape_item *weight = take('w', 20, HEAD, TRACE_PHASE_INIT);
    weight->elements = weight->last_dim = 5;
    weight->holds = TAPE_PARAMETER | TAPE_OWNED;
    phase(TRACE_PHASE_FORWARD);
    add(TAPE_ENTER, LINEAR0);
    cast('a', LINEAR0);
    take('o', 10, LINEAR0, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, LINEAR0);
    add(TAPE_ENTER, LINEAR1);
    cast('b', LINEAR1);
    add(TAPE_LEAVE, LINEAR1);
    for (uint32_t module = LINEAR0; module <= LINEAR1; module += 2) {
        add(TAPE_ENTER, module);
        add(TAPE_LEAVE, module);
    }
    give('a');
    give('o');
    phase(TRACE_PHASE_BACKWARD);
    give('b');
    CHECK_STR(changed("no-autocast-cache"),
              "+w20 +a10 +o10 -a +b10 +010 -0 +110 -o -1 -b");
    model_end();
}

/* A model in evaluation is called; gradients are recorded. */
static void evaluate(void)
{
    add(TAPE_ENTER, NET)->idle = true;
    add(TAPE_ENTER, BLOCK0);
    take('a', 10, BLOCK0, TRACE_PHASE_FORWARD);
    take('b', 10, BLOCK0, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, BLOCK0);
    add(TAPE_ENTER, BLOCK1);
    take('c', 10, BLOCK1, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, BLOCK1);
    add(TAPE_ENTER, HEAD);
    take('d', 10, HEAD, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, HEAD);
    add(TAPE_LEAVE, NET);
}

/* 'b' is read by BLOCK1, and may be until the one after it has ended. */
TEST(frees_what_an_evaluation_does_not_need)
{
    model_start();
    evaluate();
    for (char name = 'a'; name <= 'd'; name++)
        give(name);
    CHECK_STR(changed("no-grad"), "+a10 +b10 -a +c10 +d10 -b -c -d");
    model_end();
}

TEST(leaves_alone_an_evaluation_that_backward_follows)
{
    model_start();
    evaluate();
    phase(TRACE_PHASE_BACKWARD);
    for (char name = 'a'; name <= 'd'; name++)
        give(name);
    CHECK_STR(changed("no-grad"), "+a10 +b10 +c10 +d10 -a -b -c -d");
    model_end();
}

/* 'a' is kept, 'x' is gone before the call after the next one, 'w' is no
 * forward's. */
TEST(frees_what_lists_keep)
{
    model_start();
    take('w', 10, 0, TRACE_PHASE_OTHER);
    for (char call = 0; call < 4; call++) {
        add(TAPE_ENTER, NET);
        take((char)('a' + call), 10, NET, TRACE_PHASE_FORWARD);
        if (call == 1)
            give('x');
        if (!call)
            take('x', 10, NET, TRACE_PHASE_FORWARD);
        add(TAPE_LEAVE, NET);
    }
    for (char name = 'a'; name <= 'd'; name++)
        give(name);
    CHECK_STR(changed("kept-on-cpu"),
              "+w10 +a10 +x10 +b10 -x -a +c10 +d10 -b -c -d");
    model_end();
}

static void weight(char name, uint64_t bytes, uint32_t module)
{
    take(name, bytes, module, TRACE_PHASE_INIT)->holds =
        TAPE_PARAMETER | TAPE_OWNED;
}

/* 0 and 1: the head's parameter, gathered and copied out; 2 and 3: the
 * block's. In backward 4 and 5: the block's again; 6 and 7: its gradient,
 * scattered, and the part that is kept; 8 and 9: the head's. */
TEST(gathers_and_scatters_what_ranks_share)
{
    model_start();
    weight('w', 100, LINEAR0);
    weight('v', 60, HEAD);
    phase(TRACE_PHASE_FORWARD);
    add(TAPE_ENTER, BLOCK0);
    take('x', 1, LINEAR0, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, BLOCK0);
    phase(TRACE_PHASE_BACKWARD);
    gradient('h', 15, HEAD)->holds = TAPE_GRADIENT;
    model.tape.items[model.tape.count - 1].owner = HEAD;
    gradient('g', 25, LINEAR0)->holds = TAPE_GRADIENT;
    model.tape.items[model.tape.count - 1].owner = LINEAR0;
    give('x');
    phase(TRACE_PHASE_OPTIMIZER);
    take('s', 100, 0, TRACE_PHASE_OPTIMIZER)->holds = TAPE_STATE;
    take('t', 100, 0, TRACE_PHASE_OPTIMIZER);
    give('t');
    phase(TRACE_PHASE_OTHER);
    give('h');
    give('g');
    CHECK_STR(changed("fsdp=4"),
              "+w25 +v15 +060 +160 +2100 -0 +3100 +x1 -3 +4100 "
              "+h60 -2 +5100 -4 +g100 -x -5 +6100 -g +725 -1 "
              "-6 +860 -h +915 -8 +s25 +t25 -t -9 -7");
    model_end();
}

TEST(shards_nothing_that_is_sharded)
{
    model_start();
    weight('w', 100, LINEAR0);
    take('f', 100, LINEAR0, TRACE_PHASE_FORWARD)->maker = TAPE_SHARDED;
    CHECK_STR(changed("fsdp=4"), "+w100 +f100");
    model_end();
}

static void forward(void)
{
    add(TAPE_ENTER, BLOCK0);
    add(TAPE_ENTER, LINEAR0);
    take('a', 10, LINEAR0, TRACE_PHASE_FORWARD);
    take('t', 5, LINEAR0, TRACE_PHASE_FORWARD);
    give('t');
    take('b', 10, LINEAR0, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, LINEAR0);
    take('w', 9, BLOCK0, TRACE_PHASE_FORWARD); /* a workspace: it stays */
    take('o', 8, BLOCK0, TRACE_PHASE_FORWARD)->output_of = BLOCK0;
    add(TAPE_LEAVE, BLOCK0);
}

TEST(recomputes_what_backward_needs)
{
    model_start();
    phase(TRACE_PHASE_FORWARD);
    forward();
    take('l', 1, HEAD, TRACE_PHASE_FORWARD);
    phase(TRACE_PHASE_BACKWARD);
    take('g', 3, HEAD, TRACE_PHASE_BACKWARD);
    give('l');
    take('h', 8, BLOCK0, TRACE_PHASE_BACKWARD);
    give('b');
    take('i', 8, LINEAR0, TRACE_PHASE_BACKWARD);
    give('a');
    give('o');
    CHECK_STR(changed("checkpoint=blocks"),
              "+a10 +t5 -t +b10 +w9 +o8 -a -b +l1 +g3 -l "
              "+010 +15 -1 +210 +h8 -2 +i8 -0 -o");
    model_end();
}

/* Backward that takes nothing before it frees. */
TEST(recomputes_before_the_first_free)
{
    model_start();
    phase(TRACE_PHASE_FORWARD);
    forward();
    phase(TRACE_PHASE_BACKWARD);
    give('b');
    give('a');
    CHECK_STR(changed("checkpoint=blocks"),
              "+a10 +t5 -t +b10 +w9 +o8 -a -b +010 +15 -1 +210 -2 -0");
    model_end();
}

/* Two forwards, then backward through both, the last one first. */
TEST(recomputes_each_forward)
{
    model_start();
    phase(TRACE_PHASE_FORWARD);
    for (int i = 0; i < 2; i++) {
        add(TAPE_ENTER, BLOCK0);
        take(i ? 'b' : 'a', 10, LINEAR0, TRACE_PHASE_FORWARD);
        add(TAPE_LEAVE, BLOCK0);
    }
    phase(TRACE_PHASE_BACKWARD);
    take('g', 1, BLOCK0, TRACE_PHASE_BACKWARD);
    take('h', 1, BLOCK0, TRACE_PHASE_BACKWARD);
    give('b');
    take('i', 1, BLOCK0, TRACE_PHASE_BACKWARD);
    give('a');
    CHECK_STR(changed("checkpoint=blocks"),
              "+a10 -a +b10 -b +010 +g1 +h1 -0 +110 +i1 -1");
    model_end();
}

/* A block that goes from one member to the next is held for the second one's
 * recomputation, even where forward lets go of it and its place is taken. */
TEST(holds_arguments_until_backward_is_done)
{
    model_start();
    phase(TRACE_PHASE_FORWARD);
    struct tape_item *o = take('o', 8, HEAD, TRACE_PHASE_FORWARD);
    o->input_of = BLOCK1;
    add(TAPE_ENTER, BLOCK1);
    take('a', 10, LINEAR1, TRACE_PHASE_FORWARD);
    give('o');
    take('o', 4, LINEAR1, TRACE_PHASE_FORWARD);
    give('o');
    add(TAPE_LEAVE, BLOCK1);
    phase(TRACE_PHASE_BACKWARD);
    take('g', 1, BLOCK1, TRACE_PHASE_BACKWARD);
    give('a');
    CHECK_STR(changed("checkpoint=blocks"),
              "+08 +a10 +o4 -o -a +110 +g1 -1 -0");
    model_end();
}

/* Autocast's copies of weights live until it ends, which that of the bias
 * tells, which backward does not need. */
TEST(keeps_what_autocast_caches)
{
    model_start();
    take('p', 40, LINEAR0, TRACE_PHASE_INIT)->holds =
        TAPE_OWNED | TAPE_PARAMETER;
    take('q', 8, LINEAR0, TRACE_PHASE_INIT)->holds =
        TAPE_OWNED | TAPE_PARAMETER;
    phase(TRACE_PHASE_FORWARD);
    add(TAPE_ENTER, BLOCK0);
    take('d', 4, LINEAR0, TRACE_PHASE_FORWARD);
    take('c', 20, LINEAR0, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, BLOCK0);
    take('l', 1, HEAD, TRACE_PHASE_FORWARD);
    give('d');
    phase(TRACE_PHASE_BACKWARD);
    take('g', 3, BLOCK0, TRACE_PHASE_BACKWARD);
    give('c');
    CHECK_STR(changed("checkpoint=blocks"),
              "+p40 +q8 +d4 +c20 +l1 -c -d +04 +120 -0 +g3 -1");
    model_end();
}

/* What an exception ended, and what nobody frees, stays as it was. */
TEST(leaves_alone_what_it_does_not_understand)
{
    model_start();
    phase(TRACE_PHASE_FORWARD);
    add(TAPE_ENTER, BLOCK0);
    take('a', 10, LINEAR0, TRACE_PHASE_FORWARD);
    add(TAPE_ENTER, BLOCK1);
    take('b', 10, LINEAR1, TRACE_PHASE_FORWARD);
    add(TAPE_LEAVE, BLOCK1);
    phase(TRACE_PHASE_BACKWARD);
    give('a');
    give('z');
    CHECK_STR(changed("checkpoint=blocks"), "+a10 +b10 -a -z");
    model_end();
}

TEST(says_what_is_wrong_with_a_change)
{
    struct change change;
    struct err err = {""};

    model_start();
    module_lists_find(&model.lists, model.tape.modules);
    CHECK(change_parse(&change, "checkpoint=block", &model, &err));
    CHECK(strstr(err.text, "block: no such list of modules; did you mean"));
    err_clear(&err);
    CHECK(change_parse(&change, "magic", &model, &err));
    CHECK(strstr(err.text, "'magic' is none of checkpoint=LIST, bf16-opt"));
    err_clear(&err);
    CHECK(change_parse(&change, "chunked-loss=0", &model, &err));
    CHECK(strstr(err.text, "chunked-loss=0: a number from 2 to"));
    CHECK(!change_parse(&change,
                        "shard-optimizer=4,chunked-loss=8,fused-optimizer",
                        &model, &err));
    char *numbers = change_text(&change, &model);
    CHECK_STR(numbers, "fused-optimizer,shard-optimizer=4,chunked-loss=8");
    free(numbers);
    change_fini(&change);
    CHECK(!change_parse(&change, "bf16-optimizer,checkpoint=blocks", &model,
                        &err));
    char *text = change_text(&change, &model);
    CHECK_STR(text, "checkpoint=blocks,bf16-optimizer");
    free(text);
    change_fini(&change);
    model_end();
}

/* --- reading -------------------------------------------------------------- */

static int next(void *context, struct replay_op *op, struct err *err)
{
    (void)context;
    (void)op;
    (void)err;
    return 0;
}

static int back(void *context, struct err *err)
{
    (void)context;
    (void)err;
    return 0;
}

TEST(refuses_a_file_that_is_no_trace)
{
    const struct replay_source source = {.next = next, .rewind = back};
    struct err err = {""};
    struct tape tape;

    CHECK(tape_read(&tape, "/nowhere", &source, 10, &err) == -1);
    CHECK(err.text[0]);
}

static char path[] = "/tmp/memsim-test-tape-XXXXXX";

static void write_trace(struct build *b)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0 && write(fd, b->data, b->bytes) == (ssize_t)b->bytes);
    close(fd);
    free(b->data);
}

TEST(reads_what_a_trace_says_of_its_blocks)
{
    struct build b = build_start();
    struct replay_trace_info info;
    struct err err = {""};
    struct tape tape;

    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    BUILD(&b, MODULE_ENTER, .module = 3);
    BUILD(&b, BLOCK_ALLOC, .address = 'a', .requested_bytes = 10,
          .block_bytes = 512, .allocated_bytes = 512, .module = 4,
          .phase = TRACE_PHASE_FORWARD);
    BUILD(&b, OUTPUT, .address = 'a', .module = 3);
    BUILD(&b, MODULE_LEAVE, .module = 3);
    BUILD(&b, BLOCK_ALLOC, .address = 'b', .requested_bytes = 10,
          .block_bytes = 512, .allocated_bytes = 512, .phase = 4);
    BUILD(&b, STORAGE, .address = 'b', .module = 4,
          .category = TRACE_CATEGORY_OPTIMIZER, .element_bytes = 4);
    BUILD(&b, STORAGE, .address = 'a', .module = 4,
          .category = TRACE_CATEGORY_INPUT, .element_bytes = 4);
    BUILD(&b, BLOCK_ALLOC, .address = 'c', .requested_bytes = 10,
          .block_bytes = 512, .allocated_bytes = 512, .phase = 4);
    BUILD(&b, STORAGE, .address = 'c', .module = 4,
          .category = TRACE_CATEGORY_OPTIMIZER, .element_bytes = 2);
    write_trace(&b);
    struct replay_trace *t = replay_trace_open(path, &info, &err);
    CHECK(t);
    CHECK(!tape_read(&tape, path, replay_trace_source(t), 100, &err));
    CHECK_UINT(tape.count, 6);
    CHECK_UINT(tape.items[1].kind, TAPE_ENTER);
    CHECK_UINT(tape.items[2].module, 4);
    CHECK_UINT(tape.items[2].phase, TRACE_PHASE_FORWARD);
    CHECK_UINT(tape.items[2].output_of, 3);
    CHECK_UINT(tape.items[2].holds, 0);
    CHECK_UINT(tape.items[3].kind, TAPE_LEAVE);
    CHECK_UINT(tape.items[4].holds,
               TAPE_OWNED | TAPE_STATE | TAPE_FP32_STATE);
    CHECK_UINT(tape.items[5].holds, TAPE_OWNED | TAPE_STATE);
    CHECK(!tape.cut);
    tape_fini(&tape);
    CHECK(!tape_read(&tape, path, replay_trace_source(t), 3, &err));
    CHECK(tape.cut);
    CHECK_UINT(tape.count, 3);
    tape_fini(&tape);
    replay_trace_close(t);
    unlink(path);
}

/* The steps of T, played twice, as "kind index address bytes" in TEXT. */
static void steps_print(const struct replay_trace *t, char *text, size_t size)
{
    const struct replay_source *source = replay_trace_source(t);
    struct replay_op op;
    struct err err = {""};
    size_t n = 0;

    for (int round = 0; round < 2; round++) {
        CHECK(!source->rewind(source->context, &err));
        while (source->next(source->context, &op, &err) > 0)
            n += (size_t)snprintf(text + n, size - n, "%d %d %d %d,",
                                  (int)op.kind, (int)op.index,
                                  (int)op.address, (int)op.bytes);
    }
    CHECK_STR(err.text, "");
}

/* With room for so many steps in memory; how often it was read is its own. */
static void steps_of(size_t limit, char *text, size_t size, bool in_memory)
{
    struct replay_trace_info info;
    struct replay_trace *t = replay_trace_create(path, limit, &info);
    const struct trace_listener listener = replay_trace_listener(t);
    struct trace_reader reader;
    struct err err = {""};
    size_t count;

    CHECK(!trace_reader_open(&reader, path, &err));
    CHECK(!trace_play(&reader, &listener, 1, &err));
    trace_reader_close(&reader);
    CHECK(!replay_trace_steps(t, &count) == !in_memory);
    steps_print(t, text, size);
    replay_trace_close(t);
}

TEST(a_trace_with_too_many_steps_for_memory_is_read_again)
{
    struct build b = build_start();
    char kept[512], again[512];

    BUILD(&b, DEVICE, .capacity_bytes = 100, .context_bytes = 7);
    BUILD(&b, DEVICE_MALLOC, .address = 's', .bytes = 512,
          .how = TRACE_HOW_MALLOC);
    BUILD(&b, SEGMENT_ALLOC, .address = 's', .bytes = 512);
    BUILD(&b, BLOCK_ALLOC, .address = 's', .requested_bytes = 10);
    BUILD(&b, DEVICE_MALLOC, .address = 'o', .bytes = 9,
          .how = TRACE_HOW_MALLOC);
    BUILD(&b, BLOCK_FREE, .address = 's', .block_bytes = 512);
    BUILD(&b, DEVICE_FREE, .address = 'o', .bytes = 9);
    strcpy(path, "/tmp/memsim-test-tape-XXXXXX");
    write_trace(&b);
    steps_of(100, kept, sizeof kept, true);
    steps_of(2, again, sizeof again, false);
    CHECK_STR(again, kept);
    CHECK(strstr(kept, "0 3 115 10,") != NULL);
    unlink(path);
}
