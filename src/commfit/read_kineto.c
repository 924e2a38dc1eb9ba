/* SPDX-License-Identifier: Apache-2.0
 * PyTorch writes what a collective moved beside its kernel (since 2.2), or on
 * the record_param_comms operator that shares the kernel's "External id"
 * (torch/csrc/distributed/c10d/ParamCommsUtils.hpp; kineto's
 * output_json.cpp). */
#include "commfit/read_kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/profile/kineto_read.h"

/* Names in both spellings: c10d's OpType and the old free text. */
static const struct {
    const char *name;
    enum fit_coll coll;
} names[] = {
    {"allreduce", FIT_ALL_REDUCE},
    {"allreduce_coalesced", FIT_ALL_REDUCE},
    {"_allgather_base", FIT_ALL_GATHER},
    {"allgather", FIT_ALL_GATHER},
    {"all_gather", FIT_ALL_GATHER},
    {"allgather_into_tensor_coalesced", FIT_ALL_GATHER},
    {"_reduce_scatter_base", FIT_REDUCE_SCATTER},
    {"reduce_scatter", FIT_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced", FIT_REDUCE_SCATTER},
    {"broadcast", FIT_BROADCAST},
    {"_broadcast_oop", FIT_BROADCAST},
    {"reduce", FIT_REDUCE},
    {"_reduce_oop", FIT_REDUCE},
    {"all_to_all", FIT_ALLTOALL},
    {"all_to_allv", FIT_ALLTOALL},
    {"alltoall_base", FIT_ALLTOALL},
    {"gather", FIT_GATHER},
    {"scatter", FIT_SCATTER},
};

static const struct {
    const char *name;
    unsigned bytes;
} types[] = {
    {"Float", 4}, {"BFloat16", 2}, {"Half", 2},          {"Double", 8},
    {"Long", 8},  {"Int", 4},      {"Short", 2},         {"Byte", 1},
    {"Char", 1},  {"Bool", 1},     {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
};

/* What an operator says of the collective that it started. */
struct comm {
    int64_t id; /* External id */
    struct bench_row row;
};

/* A kernel of NCCL that says nothing itself. */
struct kernel {
    int64_t id;
    double us;
    char *name;
};

struct reading {
    struct bench *bench;
    const char *source;
    struct err *err;
    struct comm *comms;
    size_t comm_count, comm_capacity;
    struct kernel *kernels;
    size_t kernel_count, kernel_capacity;
    bool failed;
};

static bool find_name(const char *name, enum fit_coll *coll)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i].name)) {
            *coll = names[i].coll;
            return true;
        }
    return false;
}

unsigned kineto_type_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name))
            return types[i].bytes;
    return 0;
}

uint32_t kineto_count_nodes(const char *ranks, uint32_t size,
                            uint32_t node_gpus)
{
    uint32_t nodes = 0, listed = 0;
    long last = -1;
    char *end;

    for (const char *p = ranks + strspn(ranks, "["); *p; p = end) {
        p += strspn(p, ", ");
        long rank = strtol(p, &end, 10);
        if (end == p)
            break;
        nodes += rank / node_gpus != last;
        last = rank / node_gpus;
        listed++;
    }
    return listed == size ? nodes : (size + node_gpus - 1) / node_gpus;
}

/* What E says of a collective. Returns false where it says nothing, or not
 * enough. */
static bool read_collective(const struct profile_event *e, uint32_t node_gpus,
                            struct bench_row *row)
{
    double elements = fmax((double)e->in_elements, (double)e->out_elements);
    double bytes = e->type ? elements * kineto_type_bytes(e->type) : 0;
    double size = (double)e->group_size;

    if (!e->collective || !find_name(e->collective, &row->coll) ||
        !(bytes >= 1 && bytes < 0x1p50) || !(size >= 2 && size < 0x1p20))
        return false;
    row->nodes = kineto_count_nodes(e->group_ranks ? e->group_ranks : "",
                                    (uint32_t)size, node_gpus);
    if ((uint32_t)size % row->nodes)
        return false;
    row->gpus = (uint32_t)size / row->nodes;
    row->bytes = (uint64_t)bytes;
    row->by_rank = true;
    row->in_place = row->coll == FIT_ALL_REDUCE; /* as c10d calls it */
    return true;
}

static void take_operator(struct reading *r, const struct profile_event *e)
{
    struct comm comm = {.id = e->external_id};

    if (e->external_id == KINETO_NONE || !e->external_id ||
        !read_collective(e, r->bench->node_gpus, &comm.row))
        return;
    xgrow(&r->comms, r->comm_count, &r->comm_capacity, sizeof comm);
    r->comms[r->comm_count++] = comm;
}

static int row_add(struct reading *r, const struct bench_row *row, double us)
{
    struct bench_row timed = *row;

    timed.us = us;
    bench_note(r->bench, "%s: nodes are taken to hold %u GPUs", r->source,
               r->bench->node_gpus);
    r->failed |= bench_add(r->bench, &timed, r->err) != 0;
    return r->failed;
}

static int take_kernel(struct reading *r, const struct profile_event *e)
{
    double us = (double)e->duration_ns / 1e3;
    struct bench_row row = {0};

    if (!text_begins(e->name, "nccl"))
        return 0;
    if (!bench_is_time(us)) {
        bench_drop(r->bench, BENCH_NO_TIME, r->source, 0, e->name);
        return 0;
    }
    if (read_collective(e, r->bench->node_gpus, &row))
        return row_add(r, &row, us);
    xgrow(&r->kernels, r->kernel_count, &r->kernel_capacity,
          sizeof *r->kernels);
    r->kernels[r->kernel_count++] =
        (struct kernel){e->external_id, us, xstrdup(e->name)};
    return 0;
}

static int take_event(void *context, const struct profile_event *e)
{
    struct reading *r = context;

    if (e->category == KINETO_OPERATOR)
        take_operator(r, e);
    return e->category == KINETO_KERNEL ? take_kernel(r, e) : 0;
}

static int compare_comms(const void *a, const void *b)
{
    int64_t x = ((const struct comm *)a)->id, y = ((const struct comm *)b)->id;

    return (x > y) - (x < y);
}

/* The kernels that say nothing are those of the operators with their ids. */
static void join_operators(struct reading *r)
{
    if (r->comm_count)
        qsort(r->comms, r->comm_count, sizeof *r->comms, compare_comms);
    for (size_t i = 0; i < r->kernel_count && !r->failed; i++) {
        const struct kernel *k = &r->kernels[i];
        const struct comm key = {.id = k->id};
        const struct comm *found =
            r->comm_count ? bsearch(&key, r->comms, r->comm_count,
                                    sizeof *r->comms, compare_comms)
                          : NULL;
        if (found)
            row_add(r, &found->row, k->us);
        else
            bench_drop(r->bench, BENCH_UNKNOWN, r->source, 0, k->name);
    }
}

static void reading_fini(struct reading *r)
{
    for (size_t i = 0; i < r->kernel_count; i++)
        free(r->kernels[i].name);
    free(r->kernels);
    free(r->comms);
}

bool kineto_is_text(const char *text)
{
    return strstr(text, "\"traceEvents\"") || strstr(text, "\"schemaVersion\"");
}

int read_kineto(struct bench *b, FILE *file, const char *path,
                const char *source, struct err *err)
{
    struct reading r = {.bench = b, .source = source, .err = err};
    struct kineto_info info;
    int rc = kineto_read_stream(file, path, take_event, &r, &info, err);

    if (!rc)
        join_operators(&r);
    reading_fini(&r);
    if (rc || r.failed || (info.simulated && bench_simulated(b, source, err)))
        return -1;
    if (info.truncated)
        bench_note(b, "%s: it ends in the middle", source);
    return 0;
}
