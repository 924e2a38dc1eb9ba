/* SPDX-License-Identifier: Apache-2.0
 * What a run came to: the verdict and the figures of every rank and GPU, as
 * all reports tell them. Pure: made from the session alone. */
#ifndef MEMSIM_MEMSIM_RESULT_RESULT_H
#define MEMSIM_MEMSIM_RESULT_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rank_set.h"
#include "common/catalogue/gpu.h"
#include "common/trace/session.h"
#include "memsim/attribution/growth.h"
#include "memsim/attribution/peak.h"
#include "memsim/attribution/peak_law.h"
#include "memsim/replay/reserved_range.h"
#include "memsim/run/rank_class.h"
#include "memsim/run/ranks.h"

struct timing;

enum verdict {
    VERDICT_FITS,
    VERDICT_OOM,
    VERDICT_OVER_LIMIT, /* it fits, above --fail-above */
    VERDICT_FAILED,     /* the command failed for another reason */
    VERDICT_UNKNOWN,    /* a recording says too little: it ends too early, or
                           has too few steps */
    VERDICT_NONE,       /* the command used no GPU */
    VERDICT_GROWS, /* what was run fits, but memory grows from step to step */
    VERDICT_HOST,  /* it fits, but the host's memory (--host-memory) does not
                      suffice */
    VERDICT_INPUT, /* it fits, but not with the largest input of the job */
};

/* A request that the GPU could not meet. */
struct result_oom {
    bool caught;        /* the program went on after it */
    bool torch;         /* else it is a plain cudaMalloc */
    const struct attribution_oom *at; /* NULL: not known */
    uint64_t requested_bytes;
    uint64_t free_bytes; /* on the GPU */
    uint64_t allocated_bytes;
    uint64_t unallocated_bytes; /* torch's reserve, less what is allocated */
    uint64_t missing_bytes;     /* so much more would have met this request; 0:
                                   memory was not what it lacked */
};

/* A place where a policy decided for want of values (doc/values.md). */
struct result_guess {
    char operation[SESSION_NAME_BYTES];
    char module[SESSION_NAME_BYTES]; /* "": not known */
    char where[SESSION_NAME_BYTES];  /* file:line of the script; likewise */
    char what[SESSION_TEXT_BYTES];
    uint64_t times;
    uint64_t elements, chosen; /* of all times together */
    bool is_read; /* the script read CHOSEN of these numbers, and got 0 */
};

/* Something that would take less memory; filled by advice.h. */
struct result_advice {
    char *what, *command, *basis;
    const char *how; /* to change in the script, a literal; or NULL */
    struct cJSON *edits; /* that do it, see advice_edit.h; NULL: not known */
    const char *time_unknown; /* why its time is not known; likewise */
    char *again;     /* lists whose forward runs again, as "A+B"; or NULL */
    double costs_ns; /* of a step; 0: nothing, or not known */
    double step_ns;  /* without it, likewise */
    const char *of; /* which peak: "allocated", "reserved", "used"; NULL: it
                       saves nothing, WHAT says it all */
    uint64_t saves_bytes, peak_bytes; /* so much, of so much as it is */
    uint64_t peak_allocated_bytes, peak_reserved_bytes, peak_used_bytes;
    bool fits; /* with it */
};

/* How long memory lasts that grows; the attribution has what grows. */
struct result_growth {
    uint64_t step_bytes;  /* so many more with each step; 0: nothing grows */
    uint64_t least, most; /* whole steps before memory runs out, the recorded
                             ones included; both 0: it ran out */
    bool replayed;        /* a replay of further steps, else an estimate */
};

/* The largest input that the job will have. */
struct result_wanted {
    bool asked;  /* --input-max or --worst-batch */
    bool data;   /* --worst-batch */
    const char *lacks; /* why a larger one may come; a literal; NULL: none */
    uint64_t of[PEAK_LAW_DIMENSIONS]; /* n, by what it is of; 0: not known */
};

/* Runs with other seeds of --routing: peaks of the fullest GPU. */
struct result_seeds {
    const char *routing; /* as given; borrowed */
    uint32_t first, count; /* seeds */
    uint32_t short_of;     /* runs that ran out of memory */
    uint64_t capacity_bytes;
    uint64_t median_bytes, high_bytes, most_bytes; /* used; HIGH: the 95th
                                                      percentile */
    bool fits; /* at the 95th percentile */
};

/* A step with --input-max, played after the recording. */
struct result_input {
    bool known, fits;
    unsigned device; /* in the recording */
    uint64_t allocated_bytes, used_bytes; /* peaks on a GPU without a limit */
};

struct result_device {
    unsigned index;   /* of the GPU in its node */
    unsigned card;    /* in the session and in the traces */
    bool own;         /* a rank's, of several: the one of its local rank */
    uint32_t process; /* the number of the one with the highest peak */
    uint64_t capacity_bytes;
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_used_bytes; /* all that the GPU would show as used */
    uint64_t headroom_bytes;
    uint64_t context_bytes; /* of that process */
    uint64_t libraries_bytes;
    uint64_t others_bytes; /* of peak_used, what other processes had */
    struct result_other *others; /* those processes */
    size_t other_count;
    struct result_oom *ooms;
    size_t oom_count;
    struct peak_thing *things; /* largest first; filled by peak.h */
    size_t thing_count;
    struct workspace_range range; /* of peak_allocated; filled by peak.h */
    struct reserved_range reserved_range; /* zeroed: not known */
    uint64_t retries; /* of PyTorch's cudaMallocs, with an emptied cache */
    struct attribution *attribution; /* whose it was; NULL: not known */
    struct result_growth growth;     /* filled by outlook.h */
    struct result_input input;       /* likewise */
    bool advised;                    /* what follows was asked for */
    bool advice_fits;                /* without any of it */
    bool advice_ends;         /* it is only on the request that failed last */
    uint64_t unlimited_bytes; /* used on a GPU that it fits on */
    struct result_advice *advice; /* the one that leaves least used first */
    size_t advice_count;
};

/* A process that used a GPU beside that of a result_device. */
struct result_other {
    uint32_t number, rank;
    char program[sizeof((struct session_process *)0)->program];
    uint64_t peak_bytes; /* of what it used of the GPU */
};

#define RESULT_RANKS_APART 64 /* so many are listed one by one */

/* A rank, or a class of ranks that came to the same figures: then what is here
 * is that of the first of them. */
struct result_rank {
    unsigned rank;
    struct rank_set members; /* all that it stands for; empty: this one only */
    char program[sizeof((struct session_process *)0)->program];
    struct result_device *devices; /* by index; only those it used */
    size_t device_count;
    struct timing *timing; /* of its steps; NULL: not known */
    uint64_t batches; /* of result.batch_groups: those whose batch is that of a
                         rank which it stands for */
    struct time_log *step; /* the typical one, for --html; NULL: not asked */
};

#define RESULT_HOST_STATES 3 /* parameters, gradients, optimizer state */

/* A process's memory on the host; filled by result_host.h. */
struct result_host {
    uint32_t pid, rank;
    bool ranked; /* else it belongs to no rank: a launcher */
    bool below;  /* it used no GPU itself: a data loader's worker */
    char program[sizeof((struct session_host *)0)->program];
    uint64_t peak_bytes; /* resident, as the job has it without memsim */
    uint64_t high_bytes[SESSION_HOST_KINDS];
    uint64_t state_bytes[RESULT_HOST_STATES]; /* that lies on the host */
};

/* A process that used a GPU and ended with another status than 0, or was
 * killed. */
struct result_failure {
    uint32_t number, pid, rank;
    bool ranks;   /* it is one of several */
    bool command; /* it is the command's own process */
    char program[sizeof((struct session_process *)0)->program];
    bool killed;     /* or it crashed: without a status */
    bool stopped;    /* by another process of the run */
    uint32_t status;
    double seconds;     /* after the begin of the run; 0: not known */
    bool out_of_memory; /* the last memory that it asked for was refused */
    bool made_good; /* a later process of the same command ended with 0 */
};

/* Ranks that have memory on a GPU of another rank. */
struct result_stray {
    unsigned card, index; /* as in result_device */
    int64_t owner;        /* the rank; -1: one that was not run */
    struct rank_set ranks;
    uint64_t least_bytes, most_bytes; /* of a process's peak on it */
};

/* A file of tensors that the command wrote. */
struct result_file_written {
    char *path;
    enum session_file_kind kind;
};

/* What a process's trace has for --perfetto. */
struct result_events {
    uint32_t process;
    struct perfetto_log *log;
    void (*destroy)(struct perfetto_log *log);
    struct err err; /* why it was not read to its end */
};

/* The predicted timeline of a process, for --perfetto. */
struct result_timeline {
    unsigned rank;
    uint32_t process; /* as in result_events; of a replay, the recording */
    struct time_log *log;
};

struct result {
    enum verdict verdict;
    int exit_status;       /* what memsim run exits with */
    uint64_t needs_bytes;  /* VERDICT_UNKNOWN: a GPU has to have at least */
    const char *why;       /* likewise: not more is known; a literal */
    const char *answer;    /* a line under the verdict; borrowed; or NULL */
    int command_status;    /* what the command exited with */
    bool finished;         /* false: memsim itself was killed before the end */
    char *const *command;  /* borrowed, NULL-terminated */
    char *const *invocation; /* memsim's own command line, likewise; NULL: it
                                is not known */
    uint64_t unpriced; /* calls that memsim does not model */
    const char *directory; /* borrowed; NULL where the traces are not kept */
    struct gpu gpu;
    double seconds;
    double fail_above_percent; /* 0: not given */
    struct result_wanted wanted;
    struct scan *scans; /* of data loaders; --scan-data */
    size_t scan_count, scan_capacity;
    const struct result_seeds *seeds; /* borrowed; NULL: no --seeds */
    uint64_t job_steps;        /* of the job that will be run; 0: not given */
    bool whole_job;            /* --whole-job: the job is what was run */
    const char *step_mark;     /* --step-mark; borrowed; NULL: not given */
    double slower_percent;  /* over --fail-slower's limit: by so much; else 0 */
    struct capability_set code; /* GPUs that its libraries have code for;
                                   empty: not known */
    char torch_version[32]; /* "" where no PyTorch was seen */
    struct result_rank *ranks; /* by rank; only those that used a GPU */
    size_t rank_count;
    struct traffic *traffic;      /* NULL: no cluster was named */
    struct collation *collation;  /* NULL: collectives were not compared */
    struct result_failure *failures; /* the first to end first */
    size_t failure_count;
    struct result_stray *strays; /* one for each GPU */
    size_t stray_count;
    bool children_ignored; /* --ignore-children: they decide nothing */
    uint64_t refused;      /* requests for memory that were refused */
    bool no_steps;         /* the verdict is unknown because PyTorch's memory
                              was used, but in no step */
    bool damaged;          /* a recording is there, and cannot be read */
    struct {
        uint32_t ranks, recorded; /* that average gradients; 0: as recorded */
    } wider; /* of replay --dp: there are so many more ranks, and batches */
    uint64_t batch_groups; /* groups of ranks that work on one batch each; 0:
                              it is not known which */
    bool cut_short; /* the recording of a process, or more, ends before it */
    bool endless;   /* a rank waits for what never comes */
    bool real;      /* on a GPU of this machine (--real, emulate) */
    uint32_t emulated; /* ranks of the job that did not exist */
    bool collectives_fail; /* --check-collectives, and some do not match or
                              never end */
    struct result_events *events; /* of processes; filled where asked for */
    size_t event_count;
    struct result_timeline *timelines; /* likewise */
    size_t timeline_count;
    struct result_host *hosts; /* by rank, workers last */
    size_t host_count;
    uint32_t host_ranks, host_node_ranks; /* of --nnodes; 0: all were run */
    uint64_t host_bytes; /* of a node, at most; 0: not known */
    uint64_t host_shared_bytes; /* of that, in /dev/shm */
    uint64_t host_limit_bytes;  /* --host-memory; 0: not given */
    struct growth_rate host_growth[GROWTH_HOST_KINDS]; /* of a node;
                                                          outlook.h */
    unsigned heap_looks; /* at the C library's heap of the rank with the
                            fewest */
    bool heap_unknown;   /* they are too few to tell whether it grows */
    uint64_t heap_least; /* growth by less a step is not seen; 0: not known */
    uint64_t host_lasts_steps; /* until the limit; 0: not known */
    uint64_t host_lasts_least, host_lasts_most; /* 0 at most: not known */
    char *dependencies; /* of --depends, as text; NULL: not asked for */
    char **notes;
    size_t note_count;
    struct result_guess *guesses; /* by how often, most first */
    size_t guess_count, guesses_dropped;
    struct result_file_written *files;
    size_t file_count;
};

/* Works out *RESULT from SESSION; COMMAND is borrowed. */
void result_init(struct result *result, const struct session *session,
                 char *const *command);
void result_fini(struct result *result);

/* What all libraries of SESSION's run have code for; empty: not known. */
struct capability_set result_code(const struct session *session);

/* Classes of the ranks of RESULT that run the same program, have the same peaks
 * on their GPUs and were refused no memory. To be given to rank_classes_fini.
 */
void result_ranks_group(const struct result *result,
                        struct rank_classes *classes);

/* The same for peaks that differ by at most 2% of the used memory. */
void result_ranks_group_near(const struct result *result,
                             struct rank_classes *classes);

/* Where there are more than RESULT_RANKS_APART ranks, keeps one of each class,
 * with its members. */
void result_ranks_classify(struct result *result);

/* Gives each rank of RESULT that ran the members that it stood for in the run,
 * by CLASSES. */
void result_ranks_expand(struct result *result,
                         const struct run_ranks *classes);

/* The ranks that RANK stands for, as "0-127,130"; the caller frees it. */
char *result_rank_members(const struct result_rank *rank);

/* How many these are. */
uint64_t result_rank_count(const struct result_rank *rank);

/* Goes through the GPUs of all ranks. Zeroed, it is before the first:
 *     for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
 * DEVICE, and RANK, may be changed but not moved. */
struct result_walk {
    struct result_rank *rank;
    struct result_device *device;
};

bool result_walk_next(const struct result *result, struct result_walk *walk);

/* Adds the timeline LOG, which is the result's from now on. */
void result_timeline_add(struct result *result, unsigned rank,
                         uint32_t process, struct time_log *log);
/* That of PROCESS; NULL: it is not known. */
const struct time_log *result_timeline_find(const struct result *result,
                                            uint32_t process);

/* Adds a note; printf-like. */
void result_note(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* It is known why the command was killed: no note guesses. */
void result_note_explained(struct result *result);

/* Notes calls that memsim does not model, with where their trace is, where
 * RESULT has its directory. */
void result_note_unpriced(struct result *result);

/* The GPU with the number INDEX that RANK used, or NULL. */
struct result_device *result_device_find(const struct result *r, unsigned rank,
                                         unsigned index);

/* Makes what CARD held at its peak, the context and the libraries that *DEVICE
 * has already, *DEVICE's things, and moves CARD's attribution to *DEVICE. */
void result_device_take(struct result_device *device, struct peak_card *card);

/* "fits", "oom", ...: as the JSON has it. */
const char *result_verdict_name(enum verdict verdict);

#endif
