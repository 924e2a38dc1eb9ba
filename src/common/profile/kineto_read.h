/* SPDX-License-Identifier: Apache-2.0
 * Reads a PyTorch profiler (Kineto) trace: Chrome's trace event format, as an
 * object or as an array, plain or gzipped. The file is streamed: one event is
 * in memory at a time. Nothing in the file is trusted. Field names are those
 * of kineto's libkineto/src/output_json.cpp. */
#ifndef MEMSIM_COMMON_PROFILE_KINETO_READ_H
#define MEMSIM_COMMON_PROFILE_KINETO_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum kineto_category {
    KINETO_OTHER,
    KINETO_KERNEL,
    KINETO_COPY,
    KINETO_SET,
    KINETO_RUNTIME,    /* a call of the CUDA runtime or driver */
    KINETO_SYNC,       /* CUPTI's synchronisation records */
    KINETO_OPERATOR,   /* a PyTorch operator on the host */
    KINETO_ANNOTATION, /* record_function, ProfilerStep, on the host */
};

#define KINETO_NONE INT64_MIN /* a number that the event does not have */

struct profile_event {
    enum kineto_category category;
    char phase;       /* 'X', 's', 'f', 'i', 'M', ...; 0: none */
    const char *name; /* these texts are the reader's: valid in the call */
    /* Lists in brackets, texts without quotes, an empty one as "-":
     * "[[8,4],[]]", "[float,Scalar]", "[-,[1, 1]]"; NULL: none. */
    const char *input_dims, *input_types, *input_strides, *concrete_inputs;
    const char *collective, *group, *type;
    const char *group_ranks; /* "[0, 2, 4]", long ones as "[0, 2, ...]" */
    int64_t start_ns, duration_ns; /* on the trace's clock */
    int64_t process, thread; /* as the file numbers them; of a GPU event too */
    int64_t device, stream, correlation, external_id, bytes;
    int64_t in_elements, out_elements, group_size, rank;
    int64_t wait_stream, wait_correlation; /* of KINETO_SYNC */
    int64_t event_id;
    /* What memsim's own export has beside: when the launch arrived at the GPU,
     * and the pause after the operation before; its family; a launch's rule and
     * words; a step's times on the host. */
    const char *family, *work;
    int64_t launched_ns, gap_ns, host_start_ns, host_end_ns;
    uint32_t grid[3], block[3];
    uint32_t registers, shared_bytes;
};

/* What the file says beside its events. */
struct kineto_info {
    char gpu[64];           /* the first of deviceProperties; "" unknown */
    uint64_t memory_bytes;  /* likewise; 0: unknown */
    int64_t rank, world;    /* of distributedInfo; KINETO_NONE */
    int64_t base_ns;        /* baseTimeNanoseconds; 0: none */
    uint64_t events;        /* read, of any kind */
    uint64_t file_bytes, read_bytes; /* compressed where the file is */
    bool truncated;         /* the JSON ended in the middle */
    bool simulated;         /* it has the mark of common/base/simulated.h */
};

/* Called for every event with a category or a name. A return value that is not
 * 0 stops the reading. */
typedef int kineto_take(void *context, const struct profile_event *event);

/* Called now and then, where it is not NULL. */
typedef void kineto_progress(void *context, const struct kineto_info *info);

/* Reads the file PATH. A file that ends in the middle is not an error:
 * INFO->truncated says so. Returns 0; or -1 with ERR set: not a regular file,
 * not JSON, JSON without events. */
int kineto_read(const char *path, kineto_take *take, void *context,
                kineto_progress *progress, struct kineto_info *info,
                struct err *err);

/* The same of what FILE, at its beginning, has left, not compressed; NAME is
 * for messages. */
int kineto_read_stream(FILE *file, const char *name, kineto_take *take,
                       void *context, struct kineto_info *info,
                       struct err *err);

#endif
