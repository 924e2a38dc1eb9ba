/* SPDX-License-Identifier: Apache-2.0
 * The changes of a job on the command line, the laws of their sizes, the rule
 * of DDP's buckets, and recordings made into stages: what is refused must say
 * why, a text must end where its length says, a rank's recording must be one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/trace/trace_read.h"
#include "memsim/change/bucket_rule.h"
#include "memsim/change/size_law.h"
#include "memsim/change/stages.h"
#include "memsim/time/job_change.h"
#include "trace_build.h"
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void parse(const uint8_t *data, size_t size)
{
    struct job_changes changes;
    struct err err = {""};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (job_changes_parse(text, &changes, &err))
        demand(err.text[0] != '\0');
    else
        demand(changes.count <= CHANGES_MAX);
    job_changes_fini(&changes);
    free(text);
}

/* Two halves of a text at three sizes. */
static void change_text(const uint8_t *data, size_t size)
{
    struct size_points p = {.tensors = data[3] % 4};
    struct size_text t = {.first = (const char *)data + 4, .room = 40};
    char *room = malloc(t.room);

    p.first = 1 + data[0];
    p.second = p.first + 1 + data[1];
    p.wanted = p.second + 1 + data[2];
    for (size_t i = 0; i < 3; i++)
        p.chunks[i] = 1 + data[i] % 3;
    t.first_bytes = (size - 4) / 2;
    t.second = t.first + t.first_bytes;
    t.second_bytes = size - 4 - t.first_bytes;
    t.wanted = room;
    size_t length = size_law_text(&p, &t);
    demand(t.law != SIZE_SAME || length <= t.first_bytes);
    free(room);
}

/* --- stages --------------------------------------------------------------- */

#define ADDRESS (UINT64_C(1) << 41)

static uint32_t transfers(const struct pipe_list *list, bool receive)
{
    uint32_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        for (uint32_t k = 0; k < list->all[i].part_count; k++)
            count += list->all[i].parts[k].receive == receive;
    return count;
}

/* What one rank sends, another one receives. */
static void schedule(const struct pipe_split *split, uint32_t microbatches)
{
    const struct pipe_shape shape = {split->chunks > 1 ? PIPE_INTERLEAVED
                                                       : PIPE_1F1B,
                                     split->ranks, split->chunks, microbatches};
    struct pipe_list lists[PIPE_RANKS_MAX];
    struct err err = {""};
    uint32_t sent = 0, received = 0;
    bool made = !pipe_schedule_make(&shape, lists, &err);

    for (uint32_t r = 0; r < split->ranks; r++) {
        sent += transfers(&lists[r], false);
        received += transfers(&lists[r], true);
        pipe_list_fini(&lists[r]);
    }
    demand(made ? sent == received && sent : err.text[0]);
}

static void split(const uint8_t *data, size_t size)
{
    struct pipe_split s;
    struct err err = {""};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (pipe_split_read(&s, text, &err))
        demand(err.text[0] != '\0');
    else if (!pipe_split_layers(&s, s.stages + 1, &err))
        schedule(&s, 1 + data[0] % 16);
    free(text);
}

static const char *const names[] = {
    "Net",      "embed",           "blocks.0", "blocks.0.linear",
    "blocks.1", "blocks.1.linear", "head",     "aten::ones_like",
};

static void record_put(struct build *b, uint8_t what, uint8_t of)
{
    uint64_t module = of % 8, address = ADDRESS + ((uint64_t)of << 20);

    switch (what % 13) {
    case 0:
        BUILD(b, PHASE, .phase = of % 6);
        break;
    case 1:
        BUILD(b, MODULE_ENTER, .module = module);
        break;
    case 2:
        BUILD(b, MODULE_LEAVE, .module = module);
        break;
    case 3:
        BUILD(b, BLOCK_ALLOC, .address = address,
              .requested_bytes = 1 + of / 16, .module = module,
              .allocated_bytes = of, .operator= of % 9);
        break;
    case 4:
        BUILD(b, LAUNCH, .name = module, .a = of, .b = of % 4,
              .grid_x_y = trace_pack(of % 8, 1));
        break;
    case 5:
        BUILD(b, OUTPUT, .address = address, .module = module);
        break;
    case 6:
        BUILD(b, INPUT, .address = address, .module = module);
        break;
    case 7:
        BUILD(b, STORAGE, .address = address, .module = module,
              .category = TRACE_CATEGORY_PARAMETER, .element_bytes = 1);
        break;
    case 8:
        BUILD(b, LAUNCH, .name = module, .a = of / 8,
              .shared_bytes_rule = trace_pack(0, TRACE_RULE_FOREACH),
              .b = of % 8, .c = of % 8, .d = 1 + of % 3);
        break;
    case 9:
        BUILD(b, BLOCK_FREE, .address = address, .allocated_bytes = of);
        break;
    case 10:
        b->thread = of % 3;
        break;
    case 11:
        BUILD(b, GEMM, .name = module, .m = of, .n = 1, .k = 1);
        break;
    default:
        BUILD(b, STREAM_WAIT, .stream = of, .event = of);
    }
}

/* A recording with what DATA says, two bytes for each record. */
static struct build recording_make(const uint8_t *data, size_t size)
{
    struct build b = build_start();

    BUILD_TEXT(&b, PROCESS, "python", .pid = 1, .world_size = 1);
    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++) {
        BUILD_TEXT(&b, NAME, names[i], .name = i + 1);
        BUILD(&b, MODULE, .module = i + 1, .root = 1, .name = i + 1);
    }
    for (size_t i = 0; i + 1 < size; i += 2)
        record_put(&b, data[i], data[i + 1]);
    build_seal(&b);
    return b;
}

static void rank_path(void *context, uint32_t rank, char *path, size_t size)
{
    (void)context;
    snprintf(path, size, "%s/memsim-fuzz-%d-%u.trace", fuzz_scratch(),
             (int)getpid(), rank);
}

static void rank_read(uint32_t rank)
{
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    char path[128];
    int rc;

    rank_path(NULL, rank, path, sizeof path);
    demand(!trace_reader_open(&reader, path, &err));
    while ((rc = trace_reader_next(&reader, &item, &err)) > 0)
        continue;
    demand(!rc);
    trace_reader_close(&reader);
}

/* DATA[1] says what is asked for. */
static void stages(const uint8_t *data, size_t size)
{
    struct build b = recording_make(data + 2, size - 2);
    const struct stages_change change = {.stages = "2",
                                         .schedule =
                                             data[1] & 1 ? "gpipe" : NULL,
                                         .microbatches = data[1] >> 1 & 7};
    struct stages_report report;
    struct err err = {""};
    char path[128];
    int fd = memfd_create("trace", 0);

    demand(write(fd, b.data, b.bytes) == (ssize_t)b.bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = stages_change(&change, path, rank_path, NULL, &report, &err);
    demand(!rc || err.text[0]);
    for (uint32_t r = 0; r < 2; r++) {
        if (!rc)
            rank_read(r);
        rank_path(NULL, r, path, sizeof path);
        unlink(path);
    }
    close(fd);
    free(b.data);
}

/* Gradients of some bytes each, cut by a rule: the rule that is found for the
 * cut makes it, too. */
static void cut_buckets(const uint8_t *data, size_t size)
{
    uint64_t sizes[64];
    size_t ends[64], again[64];
    struct bucket_gradients g = {.sizes = sizes, .each = 1 + data[0] % 8};
    struct bucket_rule rule = {(uint64_t)data[1] << 20,
                               (uint64_t)data[2] << 20};

    for (; g.count < 64 && 3 + g.count < size; g.count++)
        sizes[g.count] = (uint64_t)data[3 + g.count] << (data[3] % 24);
    size_t count = bucket_cut(&rule, &g, ends);
    demand(count <= g.count && (!g.count || ends[count - 1] == g.count));
    if (!count || !bucket_rule_find(&rule, &g, ends, count))
        return;
    demand(bucket_cut(&rule, &g, again) == count);
    demand(!memcmp(ends, again, count * sizeof *ends));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 && data[0] == 'S') {
        stages(data, size);
        return 0;
    }
    parse(data, size);
    if (size)
        split(data, size);
    if (size >= 4) {
        change_text(data, size);
        cut_buckets(data, size);
    }
    return 0;
}
