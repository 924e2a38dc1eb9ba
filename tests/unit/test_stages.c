/* SPDX-License-Identifier: Apache-2.0
 * A recording of an embedding, two layers and a head, made into a pipeline. */
#include "memsim/change/stages.h"

#include "memsim/change/pipe_join.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "common/trace/trace_read.h"
#include "trace_build.h"

#define ADDRESS    (UINT64_C(1) << 41)
#define OUT_BYTES  4096
#define TEXT_BYTES 4096

#define LAYERS_MAX 4

/* Layer I is module BLOCK_0 + 2 * I, and what it calls the next one. */
enum { ROOT = 1, EMBED, BLOCK_0, HEAD = BLOCK_0 + 2 * LAYERS_MAX, MODULES };
enum { KERNEL = MODULES, ONES, LIST };

static const char *const names[] = {"Net",
                                    "embed",
                                    "blocks.0",
                                    "blocks.0.linear",
                                    "blocks.1",
                                    "blocks.1.linear",
                                    "blocks.2",
                                    "blocks.2.linear",
                                    "blocks.3",
                                    "blocks.3.linear",
                                    "head",
                                    "kernel",
                                    "aten::ones_like",
                                    "list"};

/* What the recording is, and what is wrong with it. */
struct job {
    unsigned microbatches;
    unsigned layers; /* 0: 2 */
    bool silent;     /* layers do not say what they return */
    bool twice;      /* they return two tensors */
    bool between;    /* something is computed between them */
    bool aside;      /* on another stream */
    bool backward;   /* gradients of the layers in the wrong order */
    bool collective, graph, tied, bare, bytes, profile, evaluation;
};

static unsigned layers(const struct job *job)
{
    return job->layers ? job->layers : 2;
}

struct making {
    struct build b;
    const struct job *job;
    uint64_t address;
    bool first, last; /* it has the embedding, the head */
    unsigned offset;  /* layers of the ranks before */
};

static void block(struct making *m, uint64_t module, uint64_t bytes)
{
    m->address += 1 << 20;
    BUILD(&m->b, BLOCK_ALLOC, .address = m->address, .requested_bytes = bytes,
          .block_bytes = bytes, .module = module,
          .allocated_bytes = (m->address - ADDRESS) >> 10);
}

/* Operation NUMBER, which writes into a block of MODULE's. */
static void work(struct making *m, uint64_t number, uint64_t module)
{
    block(m, module, OUT_BYTES);
    BUILD(&m->b, LAUNCH, .name = KERNEL, .grid_x_y = trace_pack(1, 1),
          .grid_z_block_x = trace_pack(1, 128), .block_y_z = trace_pack(1, 1),
          .shared_bytes_rule = trace_pack(0, TRACE_RULE_ELEMENTWISE),
          .a = 1000 + number, .b = 2, .c = 0x0404);
}

static void enter(struct making *m, uint64_t module)
{
    BUILD(&m->b, MODULE_ENTER, .module = module);
}

static void leave(struct making *m, uint64_t module)
{
    BUILD(&m->b, MODULE_LEAVE, .module = module);
}

static void layer_forward(struct making *m, uint64_t number, uint64_t module)
{
    enter(m, module);
    enter(m, module + 1);
    work(m, number, module + 1);
    leave(m, module + 1);
    for (int i = 0; !m->job->silent && i < 1 + m->job->twice; i++)
        BUILD(&m->b, OUTPUT, .address = m->address, .module = module);
    leave(m, module);
}

static void head_forward(struct making *m)
{
    enter(m, HEAD);
    work(m, layers(m->job) + 1 + m->offset, HEAD);
    if (m->job->tied)
        BUILD(&m->b, GEMM, .name = KERNEL, .m = 1, .n = 1, .k = 1);
    leave(m, HEAD);
}

static void forward(struct making *m)
{
    unsigned last = BLOCK_0 + 2 * (layers(m->job) - 1);

    m->b.thread = 0;
    BUILD(&m->b, PHASE, .phase = TRACE_PHASE_FORWARD);
    enter(m, ROOT);
    if (m->first) {
        enter(m, EMBED);
        work(m, 0, EMBED);
        leave(m, EMBED);
    }
    for (unsigned i = 0; i + 1 < layers(m->job); i++)
        layer_forward(m, 1 + i + m->offset, BLOCK_0 + 2 * i);
    if (m->job->between)
        work(m, 9, ROOT);
    if (m->job->aside)
        BUILD(&m->b, STREAM_WAIT, .stream = 7, .event = 1);
    layer_forward(m, layers(m->job) + m->offset, last);
    if (m->last)
        head_forward(m);
    leave(m, ROOT);
}

/* The 1 that gradients begin with. */
static void ones(struct making *m)
{
    block(m, 0, 4);
    BUILD(&m->b, BLOCK_ALLOC, .address = m->address, .requested_bytes = 4,
          .operator= ONES);
    BUILD(&m->b, LAUNCH, .name = KERNEL, .a = 1004);
}

static void backward(struct making *m)
{
    m->b.thread = 1;
    BUILD(&m->b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    if (m->last)
        work(m, 5, HEAD);
    for (unsigned i = layers(m->job); i-- > 0;) {
        unsigned layer = m->job->backward ? layers(m->job) - 1 - i : i;
        unsigned of_all = layer + m->offset;
        work(m, 7 - of_all + (of_all > 1 ? 10 : 0), BLOCK_0 + 2 * layer + 1);
    }
    if (m->job->collective)
        BUILD(&m->b, COLLECTIVE, .name = KERNEL, .communicator = 5, .ranks = 2);
    if (m->job->graph)
        BUILD(&m->b, GRAPH_LAUNCH, .exec = 5);
    if (m->first)
        work(m, 8, EMBED);
    m->b.thread = 0;
    BUILD(&m->b, PHASE, .phase = TRACE_PHASE_OTHER);
}

static void parameter(struct making *m, uint64_t module, uint64_t elements)
{
    block(m, 0, 4 * elements);
    BUILD(&m->b, STORAGE, .address = m->address, .module = module,
          .category = TRACE_CATEGORY_PARAMETER,
          .element_bytes = m->job->bytes ? 1 : 4);
}

static void begin(struct making *m)
{
    BUILD_TEXT(&m->b, PROCESS, "python", .pid = 1, .rank = m->offset / 2,
               .world_size = 1 + !(m->first && m->last));
    if (m->job->profile)
        BUILD_TEXT(&m->b, SETTING, TRACE_IMPORTED "kineto", );
    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++)
        BUILD_TEXT(&m->b, NAME, names[i], .name = i + 1);
    for (uint64_t i = ROOT; i < MODULES; i++)
        if (i < BLOCK_0 + 2 * layers(m->job) || i >= HEAD)
            BUILD(&m->b, MODULE, .module = i, .root = ROOT, .name = i);
    if (m->job->bare)
        parameter(m, ROOT, 70);
    if (m->first)
        parameter(m, EMBED, 100);
    for (unsigned i = 0; i < layers(m->job); i++)
        parameter(m, BLOCK_0 + 2 * i + 1, 10);
    if (m->last && !m->job->tied)
        parameter(m, HEAD, 50);
}

static void optimize(struct making *m)
{
    unsigned tensors = layers(m->job) + m->first + m->last;

    BUILD(&m->b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    BUILD(&m->b, LAUNCH, .name = LIST, .grid_x_y = trace_pack(tensors, 1),
          .shared_bytes_rule = trace_pack(0, TRACE_RULE_FOREACH),
          .a = 10 * layers(m->job) + 100 * m->first + 50 * m->last,
          .b = tensors, .c = tensors, .d = 1);
    BUILD(&m->b, PHASE, .phase = TRACE_PHASE_OTHER);
}

static void transfer(struct making *m, bool receive)
{
    BUILD(&m->b, EVENT_RECORD, .event = 1);
    BUILD(&m->b, STREAM_WAIT, .stream = 7, .event = 1);
    BUILD(&m->b, COLLECTIVE, .name = KERNEL, .stream = 7, .ranks = 2,
          .bytes = OUT_BYTES, .send = !receive, .receive = receive, .group = 1);
}

/* A rank of a pipeline with two layers each: all forwards first. */
static struct build make_rank(const struct job *job, unsigned rank)
{
    struct making m = {build_start(), job, ADDRESS, !rank, rank, 2 * rank};

    begin(&m);
    for (int step = 0; step < 2; step++) {
        for (unsigned i = 0; i < job->microbatches; i++) {
            if (rank)
                transfer(&m, true);
            forward(&m);
            if (!rank)
                transfer(&m, false);
        }
        for (unsigned i = 0; i < job->microbatches; i++) {
            if (rank)
                ones(&m);
            else
                transfer(&m, true);
            backward(&m);
            if (rank)
                transfer(&m, false);
        }
        optimize(&m);
    }
    build_seal(&m.b);
    return m.b;
}

static struct build make(const struct job *job)
{
    struct making m = {build_start(), job, ADDRESS, true, true, 0};

    begin(&m);
    for (int step = 0; step < 2; step++) {
        for (unsigned i = 0; i < job->microbatches; i++) {
            forward(&m);
            ones(&m);
            backward(&m);
        }
        if (job->evaluation)
            continue;
        optimize(&m);
    }
    build_seal(&m.b);
    return m.b;
}

static void file_write(const char *path, const struct build *b)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    CHECK(fd >= 0 && write(fd, b->data, b->bytes) == (ssize_t)b->bytes);
    close(fd);
}

static void path_of(void *context, uint32_t rank, char *path, size_t size)
{
    snprintf(path, size, "%s/rank%u.trace", (const char *)context, rank);
}

static int change(const struct job *job, const struct stages_change *c,
                  char *folder, struct stages_report *report, struct err *err)
{
    struct build b = make(job);
    char path[256];

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/from.trace", folder);
    file_write(path, &b);
    free(b.data);
    int rc = stages_change(c, path, path_of, folder, report, err);
    unlink(path);
    return rc;
}

static void folder_remove(char *folder, uint32_t ranks)
{
    char path[256];

    for (uint32_t r = 0; r < ranks; r++) {
        path_of(folder, r, path, sizeof path);
        unlink(path);
    }
    CHECK(!rmdir(folder));
}

/* Operations by their numbers, "L180" on a list, "A50" that adds gradients,
 * "s1" and "r1" to and from rank 1, "+" on NCCL's stream and "." on the other
 * where it waits. */
static void item_text(const struct trace_item *item, char *text)
{
    const struct trace_launch *l;
    char *at = text + strlen(text);

    switch (item->head.kind) {
    case TRACE_LAUNCH:
        l = trace_as_launch(item);
        if (l->a < 1000)
            sprintf(at, "%c%u ", l->b == 3 ? 'A' : 'L', (unsigned)l->a);
        else
            sprintf(at, "%u ", (unsigned)l->a - 1000);
        break;
    case TRACE_COLLECTIVE:
        sprintf(at, "%c%u:%u ", trace_as_collective(item)->send ? 's' : 'r',
                (unsigned)trace_as_collective(item)->root,
                (unsigned)trace_as_collective(item)->bytes);
        break;
    case TRACE_STREAM_WAIT:
        strcpy(at, trace_as_stream_wait(item)->stream ? "+" : ". ");
        break;
    default:
        break;
    }
}

/* The operations of RANK's last step, which begins with a forward: the first
 * receive is before it. */
static const char *rank_text(char *folder, uint32_t rank, char *text)
{
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    char path[256];
    bool optimized = true;

    *text = '\0';
    path_of(folder, rank, path, sizeof path);
    CHECK(!trace_reader_open(&reader, path, &err));
    while (trace_reader_next(&reader, &item, &err) > 0) {
        if (item.head.kind == TRACE_PHASE) {
            uint64_t phase = trace_as_phase(&item)->phase;
            if (phase == TRACE_PHASE_FORWARD && optimized)
                *text = '\0';
            optimized = phase == TRACE_PHASE_OPTIMIZER ||
                        (optimized && phase != TRACE_PHASE_FORWARD);
        }
        item_text(&item, text);
    }
    trace_reader_close(&reader);
    return text;
}

TEST(a_recording_is_two_stages)
{
    const struct job job = {.microbatches = 2};
    const struct stages_change c = {.stages = "2"};
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    struct stages_report report;
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!change(&job, &c, folder, &report, &err));
    CHECK_STR(err.text, "");
    CHECK_STR(rank_text(folder, 0, text),
              "0 1 +s1:4096 0 1 . +s1:4096 +r1:4096 . 7 8 +r1:4096 . 7 8 "
              "L110 ");
    CHECK_STR(rank_text(folder, 1, text),
              "2 3 4 5 6 +s0:4096 +r0:4096 . 2 3 4 5 6 +s0:4096 . "
              "L60 ");
    CHECK_UINT(report.microbatches, 2);
    CHECK_UINT(report.rows[0].parameters, 110);
    CHECK_UINT(report.rows[1].parameters, 60);
    CHECK_UINT(report.rows[0].in_flight, 2);
    CHECK_UINT(report.rows[0].sent_bytes, 4096);
    CHECK_UINT(report.steps, 2);
    folder_remove(folder, 2);
}

/* With one microbatch a step, sums of gradients are made for the others. */
TEST(gradients_are_added)
{
    const struct job job = {.microbatches = 1};
    const struct stages_change c = {.stages = "2", .microbatches = 2};
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    struct stages_report report;
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!change(&job, &c, folder, &report, &err));
    CHECK_STR(err.text, "");
    CHECK_STR(rank_text(folder, 1, text),
              "2 3 4 5 6 +s0:4096 +r0:4096 . 2 3 4 5 6 A50 A10 +s0:4096 . "
              "L60 ");
    folder_remove(folder, 2);
}

/* Two ranks' recordings, of two layers each, are joined and cut anew. */
TEST(stages_are_cut_anew)
{
    const struct job job = {.microbatches = 2};
    const struct stages_change uneven = {.stages = "3+1"};
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    char whole[256], first[256], second[256], text[TEXT_BYTES];
    const char *paths[] = {second, first}; /* in any order */
    struct build b[] = {make_rank(&job, 0), make_rank(&job, 1)};
    struct stages_report report;
    struct err err = {""};

    CHECK(mkdtemp(folder));
    snprintf(whole, sizeof whole, "%s/whole.trace", folder);
    snprintf(first, sizeof first, "%s/first.trace", folder);
    snprintf(second, sizeof second, "%s/second.trace", folder);
    file_write(first, &b[0]);
    file_write(second, &b[1]);
    CHECK(!pipe_join(paths, 2, NULL, whole, &err));
    CHECK(!stages_change(&uneven, whole, path_of, folder, &report, &err));
    CHECK_STR(err.text, "");
    CHECK_STR(rank_text(folder, 0, text),
              "0 1 2 3 +s1:4096 0 1 2 3 . +s1:4096 +r1:4096 . 15 6 7 8 "
              "+r1:4096 . 15 6 7 8 L130 ");
    CHECK_STR(rank_text(folder, 1, text),
              "4 5 4 5 14 +s0:4096 +r0:4096 . 4 5 4 5 14 +s0:4096 . L60 ");
    CHECK_UINT(report.rows[0].parameters, 130);
    unlink(whole);
    unlink(first);
    unlink(second);
    free(b[0].data);
    free(b[1].data);
    folder_remove(folder, 2);
}

TEST(ranks_that_are_no_pipeline_are_refused)
{
    const struct job job = {.microbatches = 2, .layers = 4};
    struct build b = make(&job);
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    char path[256], whole[256];
    const char *paths[] = {path, path};
    struct err err = {""};

    CHECK(mkdtemp(folder));
    path_of(folder, 0, path, sizeof path);
    snprintf(whole, sizeof whole, "%s/whole.trace", folder);
    file_write(path, &b);
    CHECK(pipe_join(paths, 2, NULL, whole, &err));
    CHECK(strstr(err.text, "they are not one of each rank of the job"));
    free(b.data);
    folder_remove(folder, 1);
}

TEST(the_last_microbatch_is_repeated)
{
    const struct job job = {.microbatches = 2};
    const struct stages_change c = {
        .stages = "2", .schedule = "gpipe", .microbatches = 3};
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    struct stages_report report;
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!change(&job, &c, folder, &report, &err));
    CHECK_STR(rank_text(folder, 1, text),
              "2 3 +r0:4096 . 2 3 +r0:4096 . 2 3 "
              "4 5 6 +s0:4096 4 5 6 +s0:4096 4 5 6 +s0:4096 . . . L60 ");
    CHECK_UINT(report.rows[1].in_flight, 3);
    folder_remove(folder, 2);
}

static void check_refused(const struct job *job, const struct stages_change *c,
                          const char *why)
{
    char folder[] = "/tmp/memsim-stages.XXXXXX";
    struct stages_report report;
    struct err err = {""};

    CHECK(change(job, c, folder, &report, &err));
    if (!strstr(err.text, why))
        CHECK_STR(err.text, why);
    folder_remove(folder, 2);
}

TEST(what_cannot_be_stages_is_refused)
{
    const struct stages_change two = {.stages = "2", .microbatches = 2};
    const struct {
        struct job job;
        const char *why;
    } rows[] = {
        {{.microbatches = 2, .silent = true}, "does not say what the layer"},
        {{.microbatches = 2, .twice = true}, "more than one tensor goes"},
        {{.microbatches = 2, .between = true}, "something is computed between"},
        {{.microbatches = 2, .aside = true}, "work on several streams"},
        {{.microbatches = 2, .backward = true}, "a backward (records"},
        {{.microbatches = 2, .collective = true}, "layers call collectives"},
        {{.microbatches = 2, .graph = true}, "layers are in CUDA graphs"},
        {{.microbatches = 2, .tied = true}, "'head' has no parameters of its"},
        {{.microbatches = 2, .bare = true}, "a parameter of 'Net' itself"},
        {{.microbatches = 2, .profile = true}, "no layers were found"},
        {{.microbatches = 1, .bytes = true}, "with 1 bytes of an element"},
        {{.microbatches = 2, .evaluation = true}, "steps that an optimizer"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_refused(&rows[i].job, &two, rows[i].why);
}

TEST(what_cannot_be_asked_is_refused)
{
    const struct job two = {.microbatches = 2};

    check_refused(&two, &(struct stages_change){.stages = "3"},
                  "2 layers are too few for 3 stages");
    check_refused(&two, &(struct stages_change){.stages = "2x2"},
                  "2 layers are too few for 4 stages");
    check_refused(&two,
                  &(struct stages_change){.stages = "2", .prefix = "layers"},
                  "the modules layers.0");
    check_refused(
        &two, &(struct stages_change){.stages = "2", .schedule = "interleaved"},
        "several stages");
}
