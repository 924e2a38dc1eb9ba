/* SPDX-License-Identifier: Apache-2.0
 * Names of events and their fields are those of kineto's
 * libkineto/src/output_json.cpp. */
#include "memsim/report/export/kineto_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/trace/gradient.h"
#include "memsim/report/export/kineto_work.h"
#include "memsim/report/export/perfetto.h"
#include "memsim/time/time_log.h"

#define DEPTH_MAX   256
#define THREADS_MAX 256

struct open_module {
    uint32_t module;
    uint64_t start_ns;
};

struct kineto_writer {
    const struct kineto_job *job;
    const struct simulation *simulation;
    FILE *events_file; /* what the simulation gave */
    FILE *out;
    bool comma;
    uint64_t events, dropped;
    uint64_t pid;
    struct trace_names names;
    struct map modules; /* id of the name + 1, by module + 1 */
    struct time_log_streams streams;
    struct kineto_work work;
    struct {
        struct open_module open[DEPTH_MAX];
        uint32_t depth;
    } threads[THREADS_MAX];
};

/* --- events --------------------------------------------------------------- */

static bool event_begin(struct kineto_writer *w, const char *phase,
                        uint64_t pid, uint64_t tid)
{
    if (w->events == KINETO_EVENTS) {
        w->dropped++;
        return false;
    }
    w->events++;
    fprintf(w->out, "%s{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
            w->comma ? ",\n" : "\n", phase, pid, tid);
    w->comma = true;
    return true;
}

static void put_us(struct kineto_writer *w, const char *key, uint64_t ns)
{
    fprintf(w->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000,
            (unsigned)(ns % 1000));
}

static void put_text(struct kineto_writer *w, const char *key, const char *text)
{
    fprintf(w->out, ",\"%s\":", key);
    perfetto_put_text(w->out, text);
}

/* A slice, but for its arguments and its end. */
static bool slice_begin(struct kineto_writer *w, const char *category,
                        uint64_t pid, uint64_t tid, uint64_t start_ns,
                        uint64_t end_ns)
{
    if (!event_begin(w, "X", pid, tid))
        return false;
    put_text(w, "cat", category);
    put_us(w, "ts", start_ns);
    put_us(w, "dur", end_ns > start_ns ? end_ns - start_ns : 0);
    return true;
}

/* One end of the arrow from a call to its operation. */
static void put_flow(struct kineto_writer *w, bool begins, uint64_t pid,
                     uint64_t tid, uint64_t ns, uint64_t id)
{
    if (!event_begin(w, begins ? "s" : "f", pid, tid))
        return;
    fprintf(w->out, ",\"id\":%" PRIu64 ",\"cat\":\"ac2g\",\"name\":\"ac2g\"",
            id);
    put_us(w, "ts", ns);
    fputs(begins ? "}" : ",\"bp\":\"e\"}", w->out);
}

static void put_name(struct kineto_writer *w, uint64_t pid, uint64_t tid,
                     const char *what, const char *name)
{
    if (!event_begin(w, "M", pid, tid))
        return;
    put_text(w, "name", what);
    put_us(w, "ts", 0);
    fputs(",\"args\":{\"name\":", w->out);
    perfetto_put_text(w->out, name);
    fputs("}}", w->out);
}

/* --- the device ----------------------------------------------------------- */

static uint32_t stream_number(struct kineto_writer *w, uint32_t device,
                              uint64_t stream)
{
    bool is_new;
    uint32_t number = time_log_stream(&w->streams, device, stream, &is_new);
    char name[48];

    if (is_new) {
        snprintf(name, sizeof name, "stream %u", number);
        put_name(w, device, number, "thread_name", name);
    }
    return number;
}

static const char *op_category(const struct simulation_op *op)
{
    if (op->kind == OP_COPY)
        return "gpu_memcpy";
    return op->kind == OP_SET ? "gpu_memset" : "kernel";
}

#define CALL_THREADS 1024 /* of the block of a library's call */

/* The grid and block of OP, a kernel. A call of a library has none in memsim's
 * recordings: as many blocks as fill what memsim takes it to fill. */
static void put_grid(struct kineto_writer *w, const struct simulation_op *op)
{
    const struct gpu *gpu = w->job->gpu;
    uint32_t held = gpu->max_threads_per_sm / CALL_THREADS;
    double blocks = (double)op->price.fill / SIM_WHOLE * gpu->sm_count *
                    (held ? held : 1);
    uint32_t grid[3] = {(uint32_t)(blocks + 0.5), 1, 1};
    uint32_t block[3] = {CALL_THREADS, 1, 1};

    if (op->kind == OP_COPY || op->kind == OP_SET)
        return;
    if (op->kind == OP_LAUNCH) {
        memcpy(grid, op->shape, sizeof grid);
        memcpy(block, (const uint32_t *)op->shape + 3, sizeof block);
    }
    fprintf(w->out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]",
            grid[0] ? grid[0] : 1, grid[1], grid[2], block[0], block[1],
            block[2]);
}

static void on_called(void *context, uint64_t tag, const struct op *op,
                      const char *name)
{
    struct kineto_writer *w = context;

    kineto_work_keep(&w->work, tag, op, name);
}

static void on_op(void *context, const struct simulation_op *op)
{
    struct kineto_writer *w = context;
    const struct sim_done *d = &op->done;
    uint32_t stream = stream_number(w, op->device, op->stream);
    char name[1024];

    char *work = kineto_work_take(&w->work, d->tag);

    time_log_op_name(op, &w->names, name, sizeof name);
    if (!slice_begin(w, op_category(op), op->device, stream, d->start_ns,
                     d->end_ns)) {
        free(work);
        return;
    }
    put_text(w, "name", name);
    fprintf(w->out,
            ",\"args\":{\"External id\":%" PRIu64
            ",\"device\":%u,\"context\":1,"
            "\"stream\":%u,\"correlation\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"basis\":\"%s\",\"family\":\"%s\",\"launched_ns\":%" PRIu64
            ",\"gap_ns\":%u",
            op->call, op->device, stream, op->call, op->bytes,
            cost_basis_name(op->price.answer.basis),
            work_family_name(op->price.family), d->called_ns, op->gap_ns);
    put_grid(w, op);
    fprintf(w->out, "%s}}", work ? work : "");
    free(work);
    put_flow(w, false, op->device, stream, d->start_ns, op->call);
}

/* --- the host ------------------------------------------------------------- */

static void on_call(void *context, const struct simulation_call *call)
{
    struct kineto_writer *w = context;

    if (!slice_begin(w, "cuda_runtime", w->pid, call->thread, call->start_ns,
                     call->end_ns))
        return;
    put_text(w, "name", time_log_call_name(call->kind));
    fprintf(w->out,
            ",\"args\":{\"External id\":%" PRIu64 ",\"correlation\":%" PRIu64
            "}}",
            call->number, call->number);
    if (call->tag)
        put_flow(w, true, w->pid, call->thread, call->start_ns, call->number);
}

static void module_leave(struct kineto_writer *w, uint32_t thread, uint64_t ns)
{
    const struct open_module *open =
        &w->threads[thread].open[--w->threads[thread].depth];
    uintptr_t name = (uintptr_t)map_get(&w->modules, open->module + 1u);
    char text[512];

    snprintf(text, sizeof text, "nn.Module: %s",
             trace_names_get(&w->names, name ? name - 1 : 0));
    if (!slice_begin(w, "python_function", w->pid, thread, open->start_ns, ns))
        return;
    put_text(w, "name", text);
    fputc('}', w->out);
}

/* Calls that an exception left end with the one around them. */
static void on_module(struct kineto_writer *w, const struct trace_item *item,
                      uint64_t ns)
{
    uint32_t thread = item->head.thread;
    uint32_t module = (uint32_t)trace_as_module_enter(item)->module;

    if (thread >= THREADS_MAX || w->threads[thread].depth == DEPTH_MAX)
        return;
    w->threads[thread].open[w->threads[thread].depth++] =
        (struct open_module){module, ns};
}

static void on_leave(struct kineto_writer *w, const struct trace_item *item,
                     uint64_t ns)
{
    uint32_t thread = item->head.thread;
    uint32_t module = (uint32_t)trace_as_module_leave(item)->module;

    if (thread >= THREADS_MAX)
        return;
    uint32_t at = w->threads[thread].depth;
    while (at && w->threads[thread].open[at - 1].module != module)
        at--;
    while (at && w->threads[thread].depth >= at)
        module_leave(w, thread, ns);
}

static void put_memory(struct kineto_writer *w, uint64_t device, uint64_t ns,
                       uint64_t allocated, uint64_t reserved)
{
    if (!event_begin(w, "C", device, 0))
        return;
    put_text(w, "name", "PyTorch's memory");
    put_us(w, "ts", ns);
    fprintf(w->out,
            ",\"args\":{\"allocated\":%" PRIu64 ",\"reserved\":%" PRIu64 "}}",
            allocated, reserved);
}

/* A mark of a gradient, from an imported profile: PyTorch's node, as there. */
static void on_mark(struct kineto_writer *w, const struct trace_item *item,
                    uint64_t ns)
{
    char text[64] = "";
    uint64_t elements;
    unsigned bytes;

    if (item->head.text_bytes < sizeof text)
        memcpy(text, item->text, item->head.text_bytes);
    if (sscanf(text, TRACE_GRADIENT "%" SCNu64 " %u", &elements, &bytes) != 2 ||
        !slice_begin(w, "cpu_op", w->pid, item->head.thread, ns, ns))
        return;
    put_text(w, "name", "torch::autograd::AccumulateGrad");
    fprintf(w->out,
            ",\"args\":{\"Input Dims\":[[%" PRIu64
            "]],\"Input type\":[\"%s\"]}}",
            elements, bytes == 2 ? "c10::BFloat16" : bytes == 8 ? "double"
                                                                : "float");
}

static void on_record(void *context, const struct trace_item *item, uint64_t ns)
{
    struct kineto_writer *w = context;

    trace_names_add(&w->names, item);
    switch (item->head.kind) {
    case TRACE_PROCESS:
        w->pid = trace_as_process(item)->pid;
        break;
    case TRACE_MODULE:
        map_put(&w->modules, trace_as_module(item)->module + 1,
                (void *)(uintptr_t)(trace_as_module(item)->name + 1));
        break;
    case TRACE_MARK:
        on_mark(w, item, ns);
        break;
    case TRACE_COMMUNICATOR:
        kineto_work_group(&w->work, item);
        break;
    case TRACE_MODULE_ENTER:
        on_module(w, item, ns);
        break;
    case TRACE_MODULE_LEAVE:
        on_leave(w, item, ns);
        break;
    case TRACE_BLOCK_ALLOC:
        put_memory(w, trace_as_block_alloc(item)->device, ns,
                   trace_as_block_alloc(item)->allocated_bytes,
                   trace_as_block_alloc(item)->reserved_bytes);
        break;
    case TRACE_BLOCK_FREE:
        put_memory(w, trace_as_block_free(item)->device, ns,
                   trace_as_block_free(item)->allocated_bytes,
                   trace_as_block_free(item)->reserved_bytes);
        break;
    default:
        break;
    }
}

/* --- the file ------------------------------------------------------------- */

static void put_head(struct kineto_writer *w)
{
    const struct gpu *gpu = w->job->gpu;
    size_t world = w->job->result->rank_count;

    fprintf(w->out,
            "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\","
            "\"baseTimeNanoseconds\":0,\n\"deviceProperties\":[{\"id\":0,"
            "\"name\":");
    perfetto_put_text(w->out, gpu->device_name);
    fprintf(w->out,
            ",\"totalGlobalMem\":%" PRIu64 ",\"computeMajor\":%u,"
            "\"computeMinor\":%u,\"maxThreadsPerBlock\":%u,"
            "\"maxThreadsPerMultiprocessor\":%u,\"regsPerBlock\":%u,"
            "\"warpSize\":%u,\"sharedMemPerBlock\":%u,\"numSms\":%u}],\n"
            "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u, "
            "\"world_size\": %zu},\n\"traceEvents\":[",
            gpu->memory_bytes, gpu->capability_major, gpu->capability_minor,
            gpu->max_threads_per_block, gpu->max_threads_per_sm,
            gpu->registers_per_block, gpu->warp_size,
            gpu->shared_per_block_bytes, gpu->sm_count, w->job->rank->rank,
            world);
}

static void put_steps(struct kineto_writer *w, const struct simulation *s)
{
    for (size_t i = 0; i < s->steps.count; i++) {
        char name[48];
        snprintf(name, sizeof name, "ProfilerStep#%zu", i);
        if (!slice_begin(w, "user_annotation", w->pid, 0, s->begins[i].ns,
                         s->ends[i].ns))
            return;
        put_text(w, "name", name);
        fprintf(w->out,
                ",\"args\":{\"host_start_ns\":%" PRIu64
                ",\"host_end_ns\":%" PRIu64 "}}",
                s->begins[i].host_ns, s->ends[i].host_ns);
    }
}

static void put_processes(struct kineto_writer *w, const struct simulation *s)
{
    char name[48];

    put_name(w, w->pid, 0, "process_name",
             *w->job->rank->program ? w->job->rank->program : "program");
    for (uint32_t i = 0; i < s->device_count; i++) {
        snprintf(name, sizeof name, "GPU %u", i);
        put_name(w, i, 0, "process_name", name);
    }
}

/* What the simulation gave, as it is. */
static void put_events(struct kineto_writer *w)
{
    char buffer[1 << 14];
    size_t n;

    rewind(w->events_file);
    while ((n = fread(buffer, 1, sizeof buffer, w->events_file)) > 0)
        fwrite(buffer, 1, n, w->out);
}

static void put_all(const void *context, const struct report_style *style,
                    FILE *out)
{
    struct kineto_writer *w = *(struct kineto_writer *const *)context;
    const struct simulation *s = w->simulation;

    (void)style;
    w->out = out;
    put_head(w);
    put_events(w);
    for (uint32_t i = 0; i < THREADS_MAX; i++)
        while (w->threads[i].depth)
            module_leave(w, i, s->end_ns);
    put_steps(w, s);
    put_processes(w, s);
    fprintf(
        out,
        "\n],\"memsim\":{\"clock\":\"predicted\",\"events_dropped\":%" PRIu64
        "}}\n",
        w->dropped);
}

static void writer_destroy(struct kineto_writer *w)
{
    fclose(w->events_file);
    trace_names_fini(&w->names);
    map_fini(&w->modules);
    time_log_streams_fini(&w->streams);
    kineto_work_fini(&w->work);
    free(w);
}

struct kineto_writer *kineto_begin(const struct kineto_job *job, FILE *events,
                                   struct simulation_sink *sink)
{
    struct kineto_writer *w = xcalloc(1, sizeof *w);

    w->job = job;
    w->pid = 1000;
    w->events_file = w->out = events;
    *sink = (struct simulation_sink){.called = on_called,
                                     .op = on_op,
                                     .call = on_call,
                                     .record = on_record,
                                     .context = w,
                                     .all_records = true};
    return w;
}

int kineto_end(struct kineto_writer *w, const struct simulation *s,
               const char *path, struct err *err)
{
    static const struct report_ops ops = {.write = put_all,
                                          .gzip_by_name = true};
    int rc = 0;

    w->simulation = s;
    if (s && (fflush(w->events_file) || ferror(w->events_file)))
        rc = err_set(err,
                     "--kineto: cannot write to a temporary file: %s; "
                     "set TMPDIR",
                     strerror(errno));
    if (s && !rc)
        rc = report_write(&ops, &w, path, err);
    writer_destroy(w);
    return rc;
}

char *kineto_path(const struct result *result, const struct result_rank *rank,
                  const char *path)
{
    const char *base = strrchr(path, '/'), *dot;

    base = base ? base + 1 : path;
    dot = strchr(base, '.');
    if (result->rank_count < 2 || !strcmp(path, "-"))
        return xstrdup(path);
    if (!dot || dot == base)
        dot = path + strlen(path);
    return xasprintf("%.*s-rank%u%s", (int)(dot - path), path, rank->rank, dot);
}
