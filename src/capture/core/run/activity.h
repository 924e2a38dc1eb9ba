/* SPDX-License-Identifier: Apache-2.0
 * What a profiler in the program is told: the calls into the driver and the
 * work of the devices, as the simulation (live.h) times them. They are kept
 * here, in the order in which they end, until the profiler's library takes
 * them. Nothing is kept while nobody listens. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_ACTIVITY_H
#define MEMSIM_CAPTURE_CORE_RUN_ACTIVITY_H

#include <stdbool.h>

#include "capture/core/base/core.h"
#include "common/trace/op.h"

/* So many wait to be taken; those that come then are lost, and counted. */
#define ACTIVITIES_MAX (1u << 19)

#define ACTIVITY_WHOLE UINT64_C(65536) /* of a share: all of it */

enum activity_what {
    ACTIVITY_WORK, /* of a device */
    ACTIVITY_CALL, /* of the program's */
    ACTIVITY_TAG,  /* one that the calling thread had set, of the call whose
                      ACTIVITY_CALL comes next of that thread */
};

/* Where a copy's bytes go. */
enum activity_copy {
    ACTIVITY_COPY_DEVICE,
    ACTIVITY_COPY_IN,
    ACTIVITY_COPY_OUT,
    ACTIVITY_COPY_PEER,
};

/* The call by another of its names, where the kind of work does not say it. */
enum activity_api {
    ACTIVITY_API_PLAIN,
    ACTIVITY_API_LAUNCH_EX,     /* cudaLaunchKernelExC */
    ACTIVITY_API_COOPERATIVE,   /* cudaLaunchCooperativeKernel */
    ACTIVITY_API_DRIVER,        /* cuLaunchKernel */
    ACTIVITY_API_DRIVER_EX,     /* cuLaunchKernelEx */
};

struct activity {
    enum activity_what what;
    enum op_kind kind;
    enum activity_copy copy; /* of a copy */
    enum activity_api api;   /* of a call */
    uint32_t device;         /* as the program counts them */
    uint32_t thread;         /* of a call: pthread_self(), its lower half */
    uint64_t start_ns, end_ns; /* on the program's clock since 1970 */
    uint64_t call;             /* its number, or that of the work's call: from
                                  1, in the order of the calls */
    uint64_t stream, event;    /* as the program knows them */
    uint64_t bytes;            /* of a copy, set or collective */
    uint32_t fill;             /* of work: what it holds of the device's compute
                                  units in the simulation, of ACTIVITY_WHOLE */
    uint64_t capture;          /* of a graph's node */
    uint64_t graph;            /* of a call that launches one: its handle */
    uint64_t shape[4];         /* as struct simulation_op has it */
    const char *name;          /* of work: as the trace has it, mangled; or
                                  what kind of work it is. Stays valid */
    uint32_t name_id;          /* the trace's, of which NAME is made; or 0 */
    uint32_t tag_kind;         /* of a tag */
    uint64_t tag;
};

/* Whether calls and work are kept from now on. */
CORE_API void memsim_activity_listen(bool on);

/* From now on HEAR (NULL: nobody) gets each call when it is done, in the thread
 * that made it, with none of the core's locks held, but not its own calls. */
CORE_API void memsim_activity_hear(void (*hear)(const struct activity *call));

/* For record_put.h: gives it the calling thread's calls, unless that holds a
 * lock. */
void activity_tell(void);

/* The number of the last call so far. */
CORE_API uint64_t memsim_activity_calls(void);

/* Moves the first MOST of those that were kept to ACTIVITIES, and returns how
 * many they were. With SETTLE all work is among those kept that has ended by
 * now. */
CORE_API size_t memsim_activity_take(struct activity *activities, size_t most,
                                     bool settle);

/* How many wait to be taken; and how many were lost since this was asked. */
CORE_API size_t memsim_activity_count(void);
CORE_API size_t memsim_activity_lost(void);

/* Tags of the calling thread, a stack for each KIND below
 * ACTIVITY_TAG_KINDS. Push returns false where there is no such kind, pop also
 * where nothing is on the stack. */
#define ACTIVITY_TAG_KINDS 8
CORE_API bool memsim_activity_push(uint32_t kind, uint64_t tag);
CORE_API bool memsim_activity_pop(uint32_t kind, uint64_t *tag);

/* The calling thread's next call has this name. */
CORE_API extern bool memsim_activity_on;
CORE_API void memsim_activity_name(enum activity_api api);
/* ... and launches EXEC, of a graph. */
void activity_graph(uint64_t exec);
#define ACTIVITY_API(api)                                                      \
    do {                                                                       \
        if (__builtin_expect(memsim_activity_on, false))                       \
            memsim_activity_name(ACTIVITY_API_##api);                          \
    } while (0)

#endif
