/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/simulator.h"

#include "runtime/sim/sim_cost.h"

/* Handles of CUDA's default streams. */
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

uint32_t simulator_device(struct simulator *r, uint32_t device)
{
    const struct gpu *gpu = r->options.price.gpu;
    struct cost_gpu limits;
    struct sim_gpu sim_gpu;

    device = device < SESSION_DEVICES ? device : SESSION_DEVICES - 1;
    if (r->devices[device] != SIM_NONE)
        return r->devices[device];
    cost_gpu_set(gpu, &limits);
    sim_gpu_set(&sim_gpu, gpu->sm_count, gpu->nccl_channels, limits.pcie_gbps,
                gpu->memory_gbps);
    if (r->imported && !r->options.models) /* measured times have it all */
        sim_gpu = (struct sim_gpu){
            .queue_depth = UINT32_MAX,
            .comm_takes = r->options.contends ? sim_gpu.comm_takes : 0};
    r->devices[device] =
        world_device(r->world, &sim_gpu, r, r->t->device_count);
    r->t->devices[r->t->device_count] = device;
    r->numbers[r->t->device_count++] = r->devices[device];
    return r->devices[device];
}

uint32_t simulator_number(const struct map *map, uint64_t key)
{
    return (uint32_t)(uintptr_t)map_get(map, key) - 1; /* SIM_NONE: none */
}

void simulator_number_put(struct map *map, uint64_t key, uint32_t number)
{
    map_put(map, key, (void *)((uintptr_t)number + 1));
}

uint64_t simulator_stream_key(const struct op *op)
{
    uint64_t key = op->stream;

    if (key == STREAM_LEGACY)
        key = 0;
    if (key == STREAM_PER_THREAD)
        key |= (uint64_t)(op->thread + 1) << 8;
    return key ^ (uint64_t)op->device << 56;
}

/* A stream whose creation the trace does not have is PyTorch's or a graph's:
 * they do not wait for the legacy stream. */
uint32_t simulator_stream(struct simulator *r, const struct op *op)
{
    uint64_t key = simulator_stream_key(op);
    enum sim_stream_flags flags = SIM_NON_BLOCKING;

    if (key == r->stream_key && r->stream_number != SIM_NONE)
        return r->stream_number;
    uint32_t stream = simulator_number(&r->streams, key);
    r->stream_key = key;
    r->stream_number = stream;
    if (stream != SIM_NONE)
        return stream;
    if (op->stream <= STREAM_LEGACY)
        flags = SIM_LEGACY;
    else if (op->stream == STREAM_PER_THREAD)
        flags = SIM_BLOCKING;
    stream = sim_stream(r->sim, simulator_device(r, op->device), flags, 0);
    simulator_number_put(&r->streams, key, stream);
    return stream;
}

void simulator_stream_create(struct simulator *r, const struct op *op)
{
    const struct trace_stream_create *c =
        (const struct trace_stream_create *)op->fields;
    uint32_t stream = sim_stream(r->sim, simulator_device(r, op->device),
                                 c->flags & 1 ? SIM_NON_BLOCKING : SIM_BLOCKING,
                                 (int32_t)c->priority);

    simulator_number_put(&r->streams, simulator_stream_key(op), stream);
    r->stream_number = SIM_NONE;
}

void simulator_stream_destroy(struct simulator *r, const struct op *op)
{
    map_take(&r->streams, simulator_stream_key(op));
    r->stream_number = SIM_NONE;
}

uint32_t simulator_event(struct simulator *r, uint64_t event)
{
    uint32_t number = simulator_number(&r->events, event);

    if (number != SIM_NONE)
        return number;
    number = sim_event(r->sim);
    simulator_number_put(&r->events, event, number);
    return number;
}

uint32_t simulator_thread(struct simulator *r, uint32_t thread)
{
    if (thread == r->thread_named && r->thread_number != SIM_NONE)
        return r->thread_number;
    uint32_t number = simulator_number(&r->threads, thread);
    if (number == SIM_NONE) {
        number = sim_thread(r->sim);
        simulator_number_put(&r->threads, thread, number);
    }
    r->thread_named = thread;
    r->thread_number = number;
    return number;
}
