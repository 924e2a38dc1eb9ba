/* SPDX-License-Identifier: Apache-2.0
 * Stands in for libmemsim.so in the tests of the command line: before main, it
 * does to the session and the trace what FAKE says, a list of words:
 *
 *   use=MIB     the process used so much (allocated; 100 MiB more reserved,
 *               500 more used) of the card of its LOCAL_RANK
 *   oom         then a request of 512 MiB was refused, and nothing came after
 *   survived    ... and the program went on
 *   note=TEXT   a note
 *   trace       a trace of two blocks
 *   nccl=MIB+MIB  a trace of a step with all-reduces of so much among the
 *               ranks of WORLD_SIZE
 *   model=MIB   a trace of a model Net with two layers: a parameter of 10 MiB
 *               each, and MIB of activations of the second one, layers.1
 *   damaged     a trace that is none
 *   train=GIB   a trace of a step of two blocks, each of which leaves half of
 *               it for backward; where the card is smaller, out of memory
 *   ends=HOW    a trace of two blocks of 2 GiB, which ends by `oom' of a
 *               request for 8 GiB, or was `caught', `killed', `failed',
 *               `limited', or is `whole'
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/trace/session.h"
#include "common/trace/trace_write.h"
#include "common/base/units.h"

static struct session *session;
static struct session_process *process;
static uint32_t card, slot;

static uint32_t number_of(const char *name)
{
    const char *value = getenv(name);

    return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

static void join(void)
{
    if (process)
        return;
    slot = atomic_fetch_add(&session->process_count, 1);
    process = &session->processes[slot];
    process->pid = (uint32_t)getpid();
    process->rank = number_of("RANK");
    card = number_of("LOCAL_RANK");
    process->state = SESSION_RUNNING;
    strcpy(process->torch_version, "2.11.0");
}

static void use(const char *mib)
{
    uint64_t bytes = strtoul(mib, NULL, 10) * MIB;
    struct session_usage *usage = &process->usage[card];

    usage->context = 400 * MIB;
    usage->peak_allocated = bytes;
    usage->peak_reserved = bytes + 100 * MIB;
    usage->peak_used = bytes + 500 * MIB;
    session_raise(&session->devices[card].peak_used_bytes, bytes + 500 * MIB);
}

static void refuse(const char *survived)
{
    struct session_oom *oom =
        &session->ooms[atomic_fetch_add(&session->oom_count, 1)];

    use("79000");
    *oom = (struct session_oom){.process = slot,
                                .device = card,
                                .torch = 1,
                                .time_ns = 10,
                                .requested_bytes = 512 * MIB,
                                .refused_bytes = 512 * MIB,
                                .free_bytes = 100 * MIB};
    oom->ready = 1;
    process->last_oom_ns = 10;
    process->last_launch_ns = survived ? 11 : 9;
}

static void note(const char *text)
{
    struct session_note *n =
        &session->notes[atomic_fetch_add(&session->note_count, 1)];

    snprintf(n->text, sizeof n->text, "%s", text);
    n->ready = 1;
}

static const char *trace_path(void)
{
    static char path[sizeof session->directory + 32];
    int n = snprintf(path, sizeof path, "%s/", session->directory);

    snprintf(path + n, sizeof path - (size_t)n, SESSION_TRACE, slot);
    return path;
}

static void trace(void)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    const uint64_t name = 1, launch[11] = {1, card};

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    trace_writer_put(&w, TRACE_NAME, 0, 1, &name, 1, "my_kernel", 9);
    for (uint64_t i = 1; i <= 2; i++) {
        uint64_t block[9] = {card, i << 30,      10 * MIB, 10 * MIB,
                             0,    i * 10 * MIB, 30 * MIB};
        trace_writer_put(&w, TRACE_BLOCK_ALLOC, 0, i + 1, block, 9, NULL, 0);
    }
    trace_writer_put(&w, TRACE_LAUNCH, 0, 4, launch, 11, NULL, 0);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 5);
}

static void nccl(const char *sizes)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    const uint64_t name = 1, forward = TRACE_PHASE_FORWARD;
    const uint64_t optimizer = TRACE_PHASE_OPTIMIZER;
    const uint64_t ranks = number_of("WORLD_SIZE"), rank = number_of("RANK");
    const uint64_t who[] = {1, 1, rank, card, ranks};
    const uint64_t comm[] = {card, 16, rank, ranks};

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    trace_writer_put(&w, TRACE_PROCESS, 0, 1, who, 5, NULL, 0);
    trace_writer_put(&w, TRACE_NAME, 0, 1, &name, 1, "ncclAllReduce", 13);
    trace_writer_put(&w, TRACE_COMMUNICATOR, 0, 1, comm, 4,
                     "twenty-four bytes of it.", 24);
    trace_writer_put(&w, TRACE_PHASE, 0, 1, &forward, 1, NULL, 0);
    for (char *end; *sizes; sizes = end + (*end == '+')) {
        uint64_t bytes = strtoul(sizes, &end, 10) * MIB;
        const uint64_t call[] = {name,  card,      0,       16, rank,
                                 ranks, bytes / 4, 7,       0,  0,
                                 bytes, 1 * GIB,   2 * GIB, 0};
        trace_writer_put(&w, TRACE_COLLECTIVE, 0, 2, call, 14, NULL, 0);
    }
    trace_writer_put(&w, TRACE_PHASE, 0, 3, &optimizer, 1, NULL, 0);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 5);
}

static void module_put(struct trace_writer *w, uint64_t id, uint64_t root,
                       uint64_t name, const char *text)
{
    const uint64_t module[3] = {id, root, name};

    trace_writer_put(w, TRACE_NAME, 0, 1, &name, 1, text,
                     (uint32_t)strlen(text));
    trace_writer_put(w, TRACE_MODULE, 0, 1, module, 3, NULL, 0);
}

static void block_put(struct trace_writer *w, uint64_t time_ns, uint64_t module,
                      uint64_t bytes, uint64_t allocated_bytes)
{
    uint64_t block[13] = {card,
                          time_ns << 30,
                          bytes,
                          bytes,
                          0,
                          allocated_bytes,
                          allocated_bytes + 100 * MIB};

    block[9] = module;
    block[10] = TRACE_PHASE_FORWARD;
    trace_writer_put(w, TRACE_BLOCK_ALLOC, 0, time_ns, block, 13, NULL, 0);
}

static void model(const char *mib)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    const uint64_t first = 2, second = 3;
    uint64_t bytes = strtoul(mib, NULL, 10) * MIB;
    uint64_t phase = TRACE_PHASE_FORWARD;
    const uint64_t device[] = {card, 80 * GIB, 400 * MIB, card};

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    trace_writer_put(&w, TRACE_DEVICE, 0, 1, device, 4, NULL, 0);
    module_put(&w, 1, 1, 1, "Net");
    module_put(&w, first, 1, 2, "layers.0");
    module_put(&w, second, 1, 3, "layers.1");
    trace_writer_put(&w, TRACE_PHASE, 0, 2, &phase, 1, NULL, 0);
    for (uint64_t id = first; id <= second; id++) {
        uint64_t time_ns = 1 + id,
                 storage[3] = {time_ns << 30, id, TRACE_CATEGORY_PARAMETER};
        block_put(&w, time_ns, id, 10 * MIB, (id - 1) * 10 * MIB);
        trace_writer_put(&w, TRACE_STORAGE, 0, time_ns, storage, 3, NULL, 0);
    }
    trace_writer_put(&w, TRACE_MODULE_ENTER, 0, 4, &second, 1, NULL, 0);
    block_put(&w, 5, second, bytes, 20 * MIB + bytes);
    trace_writer_put(&w, TRACE_MODULE_LEAVE, 0, 6, &second, 1, NULL, 0);
    phase = TRACE_PHASE_BACKWARD;
    trace_writer_put(&w, TRACE_PHASE, 0, 7, &phase, 1, NULL, 0);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 8);
}

static struct trace_writer writer = TRACE_WRITER_INIT;
static uint64_t writer_ns;

static void put(enum trace_kind kind, const uint64_t *fields, size_t count,
                const char *text)
{
    trace_writer_put(&writer, kind, 0, ++writer_ns, fields, count, text,
                     text ? strlen(text) : 0);
}

#define PUT(kind, text, ...)                                                   \
    put(kind, (const uint64_t[]){__VA_ARGS__},                                 \
        sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), text)

static void train_modules(void)
{
    static const char *const names[] = {"Net",        "blocks",   "blocks.0",
                                        "blocks.0.a", "blocks.1", "blocks.1.a"};

    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++) {
        PUT(TRACE_NAME, names[i], i + 1);
        PUT(TRACE_MODULE, NULL, i + 1, 1, i + 1);
    }
}

/* The forward of the block that is module ID, which keeps BYTES at ADDRESS. */
static void train_forward(uint64_t id, uint64_t address, uint64_t bytes,
                          uint64_t before_bytes)
{
    uint64_t sum = before_bytes + bytes;

    PUT(TRACE_MODULE_ENTER, NULL, id);
    PUT(TRACE_DEVICE_MALLOC, NULL, card, address, bytes, TRACE_HOW_MALLOC, sum);
    PUT(TRACE_SEGMENT_ALLOC, NULL, card, address, bytes, 0, 0, 0);
    PUT(TRACE_BLOCK_ALLOC, NULL, card, address, bytes, bytes, 0, sum, sum, 0, 0,
        id + 1, TRACE_PHASE_FORWARD);
    PUT(TRACE_MODULE_LEAVE, NULL, id);
}

static void train(const char *gib)
{
    uint64_t half = strtoul(gib, NULL, 10) * GIB / 2, place = UINT64_C(1) << 44;

    if (2 * half > session->devices[card].capacity_bytes) {
        refuse(NULL);
        process->state = SESSION_EXITED;
        _exit(1);
    }
    use("0");
    if (trace_writer_open(&writer, trace_path(), session->trace_limit_bytes,
                          NULL))
        abort();
    PUT(TRACE_SETTING, "torch=2.11.0", 0);
    PUT(TRACE_DEVICE, "fake", card, session->devices[card].capacity_bytes,
        400 * MIB, card);
    train_modules();
    PUT(TRACE_PHASE, NULL, TRACE_PHASE_FORWARD);
    train_forward(3, place, half, 0);
    train_forward(5, place - half, half, half);
    PUT(TRACE_PHASE, NULL, TRACE_PHASE_BACKWARD);
    PUT(TRACE_BLOCK_FREE, NULL, card, place - half, half, half, 2 * half, 0, 0);
    PUT(TRACE_BLOCK_FREE, NULL, card, place, half, 0, 2 * half, 0, 0);
    trace_writer_close(&writer, TRACE_END_EXIT, 0, ++writer_ns);
}

static void block_of_2_gib(uint64_t number)
{
    uint64_t bytes = 2 * GIB, at = (UINT64_C(1) << 44) - number * bytes;
    uint64_t sum = number * bytes;

    PUT(TRACE_DEVICE_MALLOC, NULL, card, at, bytes, TRACE_HOW_MALLOC, sum);
    PUT(TRACE_SEGMENT_ALLOC, NULL, card, at, bytes, 0, 0, 0);
    PUT(TRACE_BLOCK_ALLOC, NULL, card, at, bytes, bytes, 0, sum, sum);
}

static void ends(const char *how)
{
    bool caught = !strcmp(how, "caught");

    use("4096");
    if (trace_writer_open(&writer, trace_path(), session->trace_limit_bytes,
                          NULL))
        abort();
    PUT(TRACE_SETTING, "torch=2.11.0", 0);
    PUT(TRACE_DEVICE, "fake", card, session->devices[card].capacity_bytes,
        400 * MIB, card);
    block_of_2_gib(1);
    if (!caught)
        block_of_2_gib(2);
    if (caught || !strcmp(how, "oom")) {
        PUT(TRACE_DEVICE_REFUSE, NULL, card, 8 * GIB, TRACE_HOW_MALLOC);
        PUT(TRACE_OOM, NULL, card, 8 * GIB, 5 * GIB, 4 * GIB, 4 * GIB, 0);
    }
    if (caught)
        block_of_2_gib(2);
    if (!strcmp(how, "killed"))
        return;
    if (!strcmp(how, "limited"))
        trace_writer_close(&writer, TRACE_END_LIMIT, 0, ++writer_ns);
    trace_writer_exit(&writer, !strcmp(how, "failed") ? 3 : 0, 0, ++writer_ns);
}

static void damaged(void)
{
    int fd = open(trace_path(), O_CREAT | O_WRONLY, 0600);

    if (write(fd, "junk", 4) != 4)
        abort();
    close(fd);
}

static void act(const char *word)
{
    const char *value = strchr(word, '=');

    join();
    value = value ? value + 1 : "";
    if (!strncmp(word, "use", 3))
        use(value);
    else if (!strcmp(word, "oom") || !strcmp(word, "survived"))
        refuse(!strcmp(word, "survived") ? word : NULL);
    else if (!strncmp(word, "note", 4))
        note(value);
    else if (!strncmp(word, "model", 5))
        model(value);
    else if (!strncmp(word, "train", 5))
        train(value);
    else if (!strncmp(word, "ends", 4))
        ends(value);
    else if (!strcmp(word, "trace"))
        trace();
    else if (!strncmp(word, "nccl", 4))
        nccl(value);
    else if (!strcmp(word, "damaged"))
        damaged();
    else
        abort();
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("MEMSIM_SESSION"), *words = getenv("FAKE");
    char copy[512], *rest = copy, *word;
    int fd = path && words ? open(path, O_RDWR) : -1;

    if (fd < 0 || !*words)
        return;
    session =
        mmap(NULL, sizeof *session, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    snprintf(copy, sizeof copy, "%s", words);
    unsetenv("FAKE"); /* its children are not to do it again */
    while ((word = strsep(&rest, ",")))
        act(word);
}

__attribute__((destructor)) static void end(void)
{
    if (process)
        process->state = SESSION_EXITED;
}
