/* SPDX-License-Identifier: Apache-2.0
 * The session: a file that all processes of one run map. It stays after they
 * have ended. It has the GPUs' capacity (several processes may use one GPU)
 * and each process's figures. So the verdict needs no trace, and it is right
 * even if a process was killed.
 *
 * `memsim run` creates and fills the file before the command starts; the
 * preloaded library finds it through MEMSIM_SESSION. Plain data: no pointers,
 * no locks (a process may be killed at any point), atomics where several
 * processes write. */
#ifndef MEMSIM_COMMON_TRACE_SESSION_H
#define MEMSIM_COMMON_TRACE_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/catalogue/capability.h"
#include "common/catalogue/gpu.h"

#define SESSION_MAGIC      "memsim\0S"
#define SESSION_VERSION    9
#define SESSION_FILE       "session"
#define SESSION_COMMAND    "command" /* argv, each ended by a NUL */
#define SESSION_CLOCK      "clock"   /* playback/image.h */
#define SESSION_LOCK       "lock"    /* locked, with its pid, by the owner */
#define SESSION_TRACE      "process-%04u.trace" /* with its number */
#define SESSION_TRACE_END  ".trace"
#define SESSION_DEVICES    32
#define SESSION_SLOTS      256        /* of processes, in a new session */
#define SESSION_SLOTS_MAX  (1u << 16) /* the file grows up to here */
#define SESSION_OOMS       64
#define SESSION_NOTES      64
#define SESSION_GUESSES    256
#define SESSION_FILES      128
#define SESSION_HOSTS      512 /* processes whose host memory is kept */
#define SESSION_ASSUMES    16
#define SESSION_LOADED     1024 /* programs at once that may become ranks */
#define SESSION_RANKS      256  /* that memsim starts itself */
#define SESSION_PATH_BYTES 512
#define SESSION_SCRATCH    "files" /* copies, by absolute path */
#define SESSION_EXCHANGE   "exchange-" /* data that ranks send each other */
#define SESSION_SCAN       "scan" /* of data loaders (report/scan_read.h) */
#define SESSION_AXES       "axes" /* ranks that differ (rank_axes.h) */
#define RANK_AXIS_MESSAGES "messages" /* they send each other messages */
#define RANK_AXIS_SIZES    "sizes"    /* they send each other unequal shares */
#define RANK_AXIS_GPUS     "gpus"     /* they use each other's GPUs */
#define SESSION_TEXT_BYTES 200
#define SESSION_NAME_BYTES 96

typedef _Atomic uint64_t session_u64; /* written by many, never locked */
typedef _Atomic uint32_t session_u32;

/* A GPU, as all processes see it. */
struct session_device {
    uint64_t capacity_bytes; /* what cudaMemGetInfo calls total */
    session_u64 used_bytes;  /* by all processes, contexts included */
    session_u64 peak_used_bytes;
    uint64_t others_bytes; /* --real: taken before the run began */
};

/* One process's part of one GPU. All in bytes but the counts. */
struct session_usage {
    session_u64 context;   /* the context itself; 0 if none was made */
    session_u64 libraries; /* memory of libraries and modules beside it */
    session_u64 device;    /* cudaMalloc and its relatives, current */
    session_u64 used;      /* context + libraries + device, current */
    session_u64 peak_used;
    session_u64 allocated; /* torch's own figures */
    session_u64 peak_allocated;
    session_u64 reserved;
    session_u64 peak_reserved;
    session_u64 launches;
    session_u64 ooms;
};

enum session_state {
    SESSION_FREE,    /* the slot is not in use */
    SESSION_RUNNING,
    SESSION_EXITED,   /* ended by itself */
    SESSION_REPLACED, /* by another program (exec), which has its own slot */
    SESSION_KILLED,   /* ended otherwise; `memsim' writes it into its copy */
};

struct session_process {
    session_u32 state;
    uint32_t number; /* 0, 1, ... in order of first use; names the trace */
    uint32_t pid;
    uint32_t parent;
    uint32_t rank;           /* RANK of the environment, else 0 */
    uint32_t local_rank;     /* LOCAL_RANK of the environment, else 0 */
    uint32_t world_size;     /* WORLD_SIZE of the environment, else 1 */
    session_u32 trace_end;   /* enum trace_end_reason + 1 once it is closed */
    session_u32 died_of_oom; /* an OutOfMemoryError reached the top level */
    session_u32 exit_status; /* once the state is SESSION_EXITED */
    session_u32 stopped_by;  /* a signal that a process of the run sent it */
    uint64_t command;        /* a hash of its command line without digits */
    uint64_t start_ns;       /* CLOCK_MONOTONIC of its first use of a GPU */
    session_u64 end_ns;      /* ... of its end; of one that was killed, of the
                                next process that joined; 0: not known */
    session_u64 last_oom_ns; /* CLOCK_MONOTONIC of the last refusal */
    session_u64 went_on_ns;  /* ... of memory or work after it */
    session_u64 clock_ahead_ns; /* its simulated clock minus the host's;
                                   kept when the slot is used again */
    session_u64 unpriced;       /* calls of stubs */
    session_u64 unknown_reads;  /* copies of unknown bytes to the host */
    char
        unknown_where[SESSION_NAME_BYTES]; /* the last one's file:line, or "" */
    char torch_version[32];
    char program[64];
    struct session_usage usage[SESSION_DEVICES];
};

/* A request that failed: one to torch's allocator or, in a program without
 * torch (torch is 0), one to cudaMalloc. */
struct session_oom {
    session_u32 ready; /* 1 once the rest is written */
    uint32_t process;  /* its slot, which is never used again */
    uint32_t device;
    uint32_t torch;
    uint64_t time_ns;
    uint64_t requested_bytes; /* the program's request */
    uint64_t refused_bytes;   /* the cudaMalloc that failed */
    uint64_t free_bytes;      /* on the GPU, at that moment */
    uint64_t used_bytes;      /* by all processes */
    uint64_t allocated_bytes; /* torch's, in this process */
    uint64_t reserved_bytes;
};

/* A note for the user, reported once. */
struct session_note {
    session_u32 ready;
    uint32_t process;
    char text[SESSION_TEXT_BYTES];
};

/* A place where a policy chose a size or a value, and how often. */
struct session_guess {
    session_u32 ready;
    session_u64 times, elements, chosen; /* sums over all choices there */
    uint32_t is_read; /* the host read CHOSEN numbers that are not known */
    char operation[SESSION_NAME_BYTES], module[SESSION_NAME_BYTES];
    char where[SESSION_NAME_BYTES]; /* file:line of the script; "": not known */
    char what[SESSION_TEXT_BYTES];
};

/* One of --assume: a value, or a fraction of a mask, at a line of Python. */
struct session_assume {
    char where[SESSION_NAME_BYTES]; /* "train.py:12" */
    double value;
    session_u64 times; /* it was used */
};

enum session_file_kind {
    SESSION_FILE_WRITTEN, /* at the program's path */
    SESSION_FILE_KEPT,    /* the user's is unchanged; a copy was written */
    SESSION_FILE_TAKEN,   /* a checkpoint, which is not there any more */
};

/* A file of tensors that a process opened to write. */
struct session_file {
    session_u32 ready;
    session_u32 kind;
    char path[SESSION_PATH_BYTES]; /* absolute; the end of a longer one */
};

/* Memory of the host that is known as such, not only as a part of what a
 * process has resident. */
enum session_host_kind {
    SESSION_HOST_TENSORS,    /* of PyTorch's CPU allocator, as requested, and
                                checkpoints that a real job reads there */
    SESSION_HOST_PINNED,     /* cudaHostAlloc: whole pages */
    SESSION_HOST_MANAGED,    /* cudaMallocManaged */
    SESSION_HOST_REGISTERED, /* cudaHostRegister: memory of another kind, too */
    SESSION_HOST_KINDS,
};

/* A process's memory on the host: of each that has tensors there or uses a GPU.
 * All in bytes. */
struct session_host {
    session_u32 state; /* enum session_state; SESSION_FREE: not written yet */
    uint32_t pid, parent;
    session_u32 forked; /* it began as a copy of its parent: only what is its
                           own alone is counted */
    char program[32];
    session_u64 level[SESSION_HOST_KINDS]; /* current */
    session_u64 high[SESSION_HOST_KINDS];  /* the highest */
    session_u64 peak; /* resident, as the job has it without memsim's savings:
                         each page of a tensor counts as touched */
    session_u64 own;  /* of that, memsim's */
    session_u64 state_bytes[3]; /* parameters, gradients and optimizer state on
                                   the host, the highest */
};

/* The allocations whose Python stack is recorded. */
enum session_stacks {
    SESSION_STACKS_KEPT,  /* like those that outlived their step before */
    SESSION_STACKS_NONE,
    SESSION_STACKS_LARGE, /* of 1 MiB and more */
    SESSION_STACKS_ALL,
};

struct session {
    char magic[8];
    uint32_t version;
    uint32_t bytes; /* sizeof(struct session) */
    uint64_t trace_limit_bytes;
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t start_unix_ns;
    uint32_t write_through; /* --write-through: checkpoints are not kept */
    uint32_t require_gpu;   /* --require-gpu */
    uint32_t simulated_clock;   /* no --real-clock: SESSION_CLOCK is there */
    uint32_t stacks;        /* --stacks: enum session_stacks */
    double unknown_value;   /* --unknown-value */
    uint32_t real;          /* --real: the GPUs are this machine's */
    uint64_t cap_bytes;     /* --cap; 0: not given */
    uint64_t end_ns; /* when the command ended; 0: memsim was killed first */
    uint32_t exit_status;      /* the command's, 128 + N for signal N */
    uint32_t background;       /* processes it left running */
    uint32_t command_pid;      /* 0: not known */
    uint32_t ignore_children;  /* --ignore-children */
    double fail_above_percent; /* --fail-above; 0: not given */
    uint64_t host_limit_bytes; /* --host-memory, of a node; 0: not given */
    uint64_t shm_start;        /* used of /dev/shm when the run began */
    session_u64 shm_peak;      /* ... at most, since then */
    double selected_fraction;  /* --selected-fraction: of an unknown mask */
    uint32_t assume_count;
    uint32_t device_count;
    uint32_t address_model; /* enum vaspace_model */
    uint32_t late_frees;    /* --late-frees */
    struct gpu gpu;
    char directory[512]; /* where traces go; absolute */
    char start_directory[512]; /* in which memsim was started; or "" */
    struct session_device devices[SESSION_DEVICES];
    uint32_t world_size;       /* of `memsim run --nnodes'; 0: not given */
    uint32_t local_world_size; /* ranks of a node, likewise */
    uint32_t rank_count;       /* of RANKS: those that are processes */
    uint32_t ranks[SESSION_RANKS]; /* ascending */
    /* The GPUs that there is code for: of PyTorch's kernels, and of others. */
    session_u64 code[2][CAPABILITY_WORDS];
    session_u32 loaded[SESSION_LOADED]; /* pids that may become ranks; 0 */
    session_u32 process_count; /* processes that used a GPU */
    session_u32 lost_count;    /* those that could not be measured */
    session_u32 slot_count;    /* of PROCESSES that the file has */
    session_u32 oom_count;     /* may exceed the array */
    session_u32 note_count;    /* likewise */
    session_u32 guess_count;   /* likewise */
    session_u32 file_count;    /* likewise */
    session_u32 root_count;    /* of the tree of copies (session_files.h) */
    struct session_oom ooms[SESSION_OOMS];
    struct session_note notes[SESSION_NOTES];
    struct session_guess guesses[SESSION_GUESSES];
    struct session_file files[SESSION_FILES];
    struct session_assume assumes[SESSION_ASSUMES];
    session_u32 host_count; /* may exceed the array */
    struct session_host hosts[SESSION_HOSTS];
    struct session_process processes[]; /* session_table.h */
};

/* With WORLD_SIZE, the first RANK_COUNT of the devices are the GPUs of the
 * ranks that are processes, in order; the others stand for the GPUs of the
 * other ranks of a node, number N modulo their count. */
static inline uint32_t session_other_cards(const struct session *s)
{
    return s->device_count > s->rank_count ? s->device_count - s->rank_count
                                           : 0;
}

/* Of RANK of WORLD_SIZE; UINT32_MAX: it is no process. */
static inline uint32_t session_card_of(const struct session *s, uint32_t rank)
{
    for (uint32_t i = 0; i < s->rank_count; i++)
        if (s->ranks[i] == rank)
            return i;
    return UINT32_MAX;
}

/* The number that the GPU CARD has on its node. */
static inline uint32_t session_card_index(const struct session *s,
                                          uint32_t card)
{
    if (!s->world_size)
        return card;
    return card < s->rank_count ? s->ranks[card] % s->local_world_size
                                : card - s->rank_count;
}

/* Ranks of an emulated job that have the same GPU, which is that with their
 * number on their node, run one after another: in which turn RANK does, of
 * COUNT RANKS with LOCAL on a node. */
static inline uint32_t session_turn(const uint32_t *ranks, uint32_t count,
                                    uint32_t local, uint32_t rank)
{
    uint32_t turn = 0;

    for (uint32_t i = 0; i < count && local; i++)
        turn += ranks[i] < rank && ranks[i] % local == rank % local;
    return turn;
}

/* How many of PROCESSES the file has. */
static inline uint32_t session_slots(const struct session *s)
{
    return atomic_load(&s->slot_count);
}

/* How many entries of an array of LIMIT are used, whose COUNT may be more. */
static inline uint32_t session_used(const session_u32 *count, uint32_t limit)
{
    uint32_t value = atomic_load(count);

    return value < limit ? value : limit;
}

/* A session's size with SLOTS processes. */
static inline size_t session_bytes(uint32_t slots)
{
    return sizeof(struct session) + slots * sizeof(struct session_process);
}

/* Adds what a kernel that is used was compiled for; OTHER: it is not one of
 * PyTorch's. */
static inline void session_code_add(struct session *s, bool other,
                                    const struct capability_set *code)
{
    for (int i = 0; i < CAPABILITY_WORDS; i++)
        atomic_fetch_or(&s->code[other][i], code->bits[i]);
}

/* Raises *PEAK to VALUE where that is higher. */
static inline void session_raise(session_u64 *peak, uint64_t value)
{
    uint64_t old = atomic_load_explicit(peak, memory_order_relaxed);

    while (old < value &&
           !atomic_compare_exchange_weak_explicit(
               peak, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

#endif
