/* SPDX-License-Identifier: Apache-2.0
 * Stands in for libmemsim.so in the tests of the command line: before main, it
 * does to the session and the trace what FAKE says, a list of words:
 *
 *   use=MIB     the process used so much (allocated; 100 MiB more reserved,
 *               500 more used) of its own card
 *   oom         then a request of 512 MiB was refused, and nothing came after
 *   survived    ... and the program went on
 *   note=TEXT   a note
 *   code=N      PyTorch has code for capability N / 10 and those above
 *   guess=N     the same place of the script guessed in N modules, 10 of 20 each
 *   dies=STATUS a rank that exits with STATUS after what came before; `killed':
 *               it is
 *   trace       a trace of two blocks
 *   nccl=MIB+MIB  a trace of a step with all-reduces of so much among the
 *               ranks of WORLD_SIZE
 *   model=MIB   a trace of a model Net with two layers: a parameter of 10 MiB
 *               each, and MIB of activations of the second one, layers.1
 *   damaged     a trace that is none
 *   train=GIB[+N[xUS]]  a trace of a step of two blocks, each of which leaves
 *               half of it for backward, and of N launches, US microseconds of
 *               the host's apart; where the card is smaller, out of memory
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
static int session_fd;

static uint32_t number_of(const char *name)
{
    const char *value = getenv(name);

    return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

static void ended(int status, void *unused)
{
    (void)unused;
    process->exit_status = (uint32_t)status & 0xff;
    process->state = SESSION_EXITED;
}

static void join(void)
{
    if (process)
        return;
    slot = atomic_fetch_add(&session->process_count, 1);
    atomic_fetch_add(&session->slot_count, 1);
    process = &session->processes[slot];
    process->number = slot;
    struct flock lock = {.l_type = F_WRLCK, .l_start = slot, .l_len = 1};
    if (fcntl(session_fd, F_OFD_SETLK, &lock)) /* while it lives */
        abort();
    process->pid = (uint32_t)getpid();
    process->rank = number_of("RANK");
    process->world_size = number_of("WORLD_SIZE");
    card = session->world_size ? session_card_of(session, process->rank)
                               : number_of("LOCAL_RANK");
    process->state = SESSION_RUNNING;
    strcpy(process->torch_version, "2.11.0");
    on_exit(ended, NULL);
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
    process->went_on_ns = survived ? 11 : 9;
}

static void note(const char *text)
{
    struct session_note *n =
        &session->notes[atomic_fetch_add(&session->note_count, 1)];

    snprintf(n->text, sizeof n->text, "%s", text);
    n->ready = 1;
}

static void code(const char *first)
{
    struct capability_set set = {{0}};

    for (unsigned i = (unsigned)strtoul(first, NULL, 10); i < CAPABILITIES; i++)
        set.bits[i / 64] |= UINT64_C(1) << i % 64;
    session_code_add(session, false, &set);
}

static void guess(const char *modules)
{
    for (uint32_t i = 0; i < strtoul(modules, NULL, 10); i++) {
        struct session_guess *g =
            &session->guesses[atomic_fetch_add(&session->guess_count, 1)];

        strcpy(g->operation, "aten::topk");
        strcpy(g->where, "train.py:31");
        snprintf(g->module, sizeof g->module, "layers.%u", i);
        g->times = 1;
        g->elements = 20;
        g->chosen = 10;
        g->ready = 1;
    }
}

static void die(const char *status)
{
    if (!strcmp(status, "killed"))
        _exit(9);
    process->exit_status = (uint32_t)strtoul(status, NULL, 10);
    process->end_ns = session->start_ns + 1500000000;
    process->state = SESSION_EXITED;
    _exit((int)process->exit_status);
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

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    TRACE_PUT_TEXT(&w, NAME, 0, 1, "my_kernel", .name = 1);
    for (uint64_t i = 1; i <= 2; i++)
        TRACE_PUT(&w, BLOCK_ALLOC, 0, i + 1, .device = card, .address = i << 30,
                  .requested_bytes = 10 * MIB, .block_bytes = 10 * MIB,
                  .allocated_bytes = i * 10 * MIB, .reserved_bytes = 30 * MIB);
    TRACE_PUT(&w, LAUNCH, 0, 4, .name = 1, .device = card);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 5);
}

static void nccl(const char *sizes)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    const uint64_t ranks = number_of("WORLD_SIZE"), rank = number_of("RANK");

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    TRACE_PUT(&w, PROCESS, 0, 1, .pid = 1, .parent = 1, .rank = rank,
              .local_rank = card, .world_size = ranks,
              .local_world_size = number_of("LOCAL_WORLD_SIZE"));
    TRACE_PUT_TEXT(&w, NAME, 0, 1, "ncclAllReduce", .name = 1);
    TRACE_PUT_TEXT(&w, COMMUNICATOR, 0, 1, "twenty-four bytes of it.",
                   .device = card, .communicator = 16, .rank = rank,
                   .ranks = ranks);
    TRACE_PUT(&w, PHASE, 0, 1, .phase = TRACE_PHASE_FORWARD);
    for (char *end; *sizes; sizes = end + (*end == '+')) {
        uint64_t bytes = strtoul(sizes, &end, 10) * MIB;

        TRACE_PUT(&w, COLLECTIVE, 0, 2, .name = 1, .device = card,
                  .communicator = 16, .rank = rank, .ranks = ranks,
                  .count = bytes / 4, .type = 7, .bytes = bytes,
                  .send = 1 * GIB, .receive = 2 * GIB);
    }
    TRACE_PUT(&w, PHASE, 0, 3, .phase = TRACE_PHASE_OPTIMIZER);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 5);
}

static void module_put(struct trace_writer *w, uint64_t id, uint64_t root,
                       uint64_t name, const char *text)
{
    TRACE_PUT_TEXT(w, NAME, 0, 1, text, .name = name);
    TRACE_PUT(w, MODULE, 0, 1, .module = id, .root = root, .name = name);
}

static void block_put(struct trace_writer *w, uint64_t time_ns, uint64_t module,
                      uint64_t bytes, uint64_t allocated_bytes)
{
    TRACE_PUT(w, BLOCK_ALLOC, 0, time_ns, .device = card,
              .address = time_ns << 30, .requested_bytes = bytes,
              .block_bytes = bytes, .allocated_bytes = allocated_bytes,
              .reserved_bytes = allocated_bytes + 100 * MIB, .module = module,
              .phase = TRACE_PHASE_FORWARD);
}

static void model(const char *mib)
{
    struct trace_writer w = TRACE_WRITER_INIT;
    const uint64_t first = 2, second = 3;
    uint64_t bytes = strtoul(mib, NULL, 10) * MIB;

    if (trace_writer_open(&w, trace_path(), session->trace_limit_bytes, NULL))
        abort();
    TRACE_PUT(&w, DEVICE, 0, 1, .device = card, .capacity_bytes = 80 * GIB,
              .context_bytes = 400 * MIB, .card = card);
    module_put(&w, 1, 1, 1, "Net");
    module_put(&w, first, 1, 2, "layers.0");
    module_put(&w, second, 1, 3, "layers.1");
    TRACE_PUT(&w, PHASE, 0, 2, .phase = TRACE_PHASE_FORWARD);
    for (uint64_t id = first; id <= second; id++) {
        uint64_t time_ns = 1 + id;

        block_put(&w, time_ns, id, 10 * MIB, (id - 1) * 10 * MIB);
        TRACE_PUT(&w, STORAGE, 0, time_ns, .address = time_ns << 30,
                  .module = id, .category = TRACE_CATEGORY_PARAMETER);
    }
    TRACE_PUT(&w, MODULE_ENTER, 0, 4, .module = second);
    block_put(&w, 5, second, bytes, 20 * MIB + bytes);
    TRACE_PUT(&w, MODULE_LEAVE, 0, 6, .module = second);
    TRACE_PUT(&w, PHASE, 0, 7, .phase = TRACE_PHASE_BACKWARD);
    trace_writer_close(&w, TRACE_END_EXIT, 0, 8);
}

static struct trace_writer writer = TRACE_WRITER_INIT;
static uint64_t writer_ns;

/* The next record of the trace, and the same with a text. */
#define PUT(kind, ...) TRACE_PUT(&writer, kind, 0, ++writer_ns, __VA_ARGS__)
#define PUT_TEXT(kind, text, ...)                                              \
    TRACE_PUT_TEXT(&writer, kind, 0, ++writer_ns, text, __VA_ARGS__)

static void train_modules(void)
{
    static const char *const names[] = {"Net",        "blocks",   "blocks.0",
                                        "blocks.0.a", "blocks.1", "blocks.1.a"};

    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++) {
        PUT_TEXT(NAME, names[i], .name = i + 1);
        PUT(MODULE, .module = i + 1, .root = 1, .name = i + 1);
    }
}

/* The forward of the block that is module ID, which keeps BYTES at ADDRESS. */
static void train_forward(uint64_t id, uint64_t address, uint64_t bytes,
                          uint64_t before_bytes)
{
    uint64_t sum = before_bytes + bytes;

    PUT(MODULE_ENTER, .module = id);
    PUT(DEVICE_MALLOC, .device = card, .address = address, .bytes = bytes,
        .how = TRACE_HOW_MALLOC, .used_bytes = sum);
    PUT(SEGMENT_ALLOC, .device = card, .address = address, .bytes = bytes);
    PUT(BLOCK_ALLOC, .device = card, .address = address,
        .requested_bytes = bytes, .block_bytes = bytes, .allocated_bytes = sum,
        .reserved_bytes = sum, .module = id + 1, .phase = TRACE_PHASE_FORWARD);
    PUT(MODULE_LEAVE, .module = id);
}

/* COUNT of them, GAP_NS of the host's apart. */
static void launches(uint64_t count, uint64_t gap_ns)
{
    PUT_TEXT(NAME, "my_kernel", .name = 100);
    for (uint64_t i = 0; i < count; i++) {
        writer_ns += gap_ns;
        PUT(LAUNCH, .name = 100, .device = card, .grid_x_y = i * 977 + 1);
    }
}

static void train(const char *gib)
{
    const char *more = strchr(gib, '+');
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
    PUT_TEXT(SETTING, "torch=2.11.0");
    PUT_TEXT(DEVICE, session->gpu.name, .device = card,
             .capacity_bytes = session->devices[card].capacity_bytes,
             .context_bytes = 400 * MIB, .card = card);
    train_modules();
    PUT(PHASE, .phase = TRACE_PHASE_FORWARD);
    train_forward(3, place, half, 0);
    train_forward(5, place - half, half, half);
    if (more) {
        const char *gap = strchr(more, 'x');
        launches(strtoul(more + 1, NULL, 10),
                 gap ? 1000 * strtoul(gap + 1, NULL, 10) : 0);
    }
    PUT(PHASE, .phase = TRACE_PHASE_BACKWARD);
    PUT(BLOCK_FREE, .device = card, .address = place - half,
        .block_bytes = half, .allocated_bytes = half,
        .reserved_bytes = 2 * half);
    PUT(BLOCK_FREE, .device = card, .address = place, .block_bytes = half,
        .reserved_bytes = 2 * half);
    trace_writer_close(&writer, TRACE_END_EXIT, 0, ++writer_ns);
}

static void block_of_2_gib(uint64_t number)
{
    uint64_t bytes = 2 * GIB, at = (UINT64_C(1) << 44) - number * bytes;
    uint64_t sum = number * bytes;

    PUT(DEVICE_MALLOC, .device = card, .address = at, .bytes = bytes,
        .how = TRACE_HOW_MALLOC, .used_bytes = sum);
    PUT(SEGMENT_ALLOC, .device = card, .address = at, .bytes = bytes);
    PUT(BLOCK_ALLOC, .device = card, .address = at, .requested_bytes = bytes,
        .block_bytes = bytes, .allocated_bytes = sum, .reserved_bytes = sum);
}

static void ends(const char *how)
{
    bool caught = !strcmp(how, "caught");

    use("4096");
    if (trace_writer_open(&writer, trace_path(), session->trace_limit_bytes,
                          NULL))
        abort();
    PUT_TEXT(SETTING, "torch=2.11.0");
    PUT_TEXT(DEVICE, "fake", .device = card,
             .capacity_bytes = session->devices[card].capacity_bytes,
             .context_bytes = 400 * MIB, .card = card);
    block_of_2_gib(1);
    if (!caught)
        block_of_2_gib(2);
    if (caught || !strcmp(how, "oom")) {
        PUT(DEVICE_REFUSE, .device = card, .bytes = 8 * GIB,
            .how = TRACE_HOW_MALLOC);
        PUT(OOM, .device = card, .requested_bytes = 8 * GIB,
            .free_bytes = 5 * GIB, .allocated_bytes = 4 * GIB,
            .reserved_bytes = 4 * GIB);
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
    else if (!strncmp(word, "code", 4))
        code(value);
    else if (!strncmp(word, "guess", 5))
        guess(value);
    else if (!strncmp(word, "dies", 4))
        die(value);
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
    session_fd = path && words ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (session_fd < 0 || !*words)
        return;
    session =
        mmap(NULL, session_bytes(SESSION_SLOTS), PROT_READ | PROT_WRITE,
             MAP_SHARED, session_fd, 0);
    snprintf(copy, sizeof copy, "%s", words);
    unsetenv("FAKE"); /* its children are not to do it again */
    while ((word = strsep(&rest, ",")))
        act(word);
}
