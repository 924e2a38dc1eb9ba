/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sim/sim_cost.h"

#include <stddef.h>

#define COPY_NS         5000
#define SET_NS          4000
#define GRAPH_LAUNCH_NS 10000
#define EVENT_NS        1000
#define SYNC_NS         3000
#define MALLOC_NS       200000
#define FREE_NS         300000
#define STREAM_NS       5000

#define CHANNELS_DEFAULT 24

/* Kineto traces in facebookresearch/HolisticTraceAnalysis, tests/data; their
 * medians hold what the profiler adds. */
#define HTA "Kineto traces of HolisticTraceAnalysis' tests/data, medians: "

static const struct sim_constant constants[] = {
    {"kernel launch", SIM_LAUNCH_NS, "ns",
     HTA "A100 4.0 us (negative_queue_length), 6.0 (trace_diff), V100 5.2 "
         "(ns_resolution); 4 to 5 us without a profiler, Stack Overflow "
         "53970187"},
    {"asynchronous copy", COPY_NS, "ns",
     HTA "V100 4.6 us (ns_resolution), A100 6.0 (negative_queue_length)"},
    {"asynchronous set", SET_NS, "ns", HTA "A100 6 to 7 us; as a launch"},
    {"event record, stream wait", EVENT_NS, "ns",
     HTA "V100 1.0 and 1.4 us (ns_resolution), A100 2.4 and 1.5 "
         "(nccl_data)"},
    {"return from a synchronisation", SYNC_NS, "ns",
     HTA "cudaStreamSynchronize that waits for nothing 3.0 us (trace_diff)"},
    {"graph launch", GRAPH_LAUNCH_NS, "ns",
     HTA "A100, first decile 15 us (negative_queue_length); the profiler slows "
         "graphs down"},
    {"cudaMalloc", MALLOC_NS, "ns", HTA "A100 0.2 ms (event_sync_multi)"},
    {"cudaFree", FREE_NS, "ns", HTA "A100 0.3 ms (cupti_profiler)"},
    {"stream creation", STREAM_NS, "ns", "a guess"},
    {"gap between operations of a stream", SIM_GAP_NS, "ns",
     HTA "V100 0.82 us (ns_resolution), A100 1.18 (nccl_data)"},
    {"operations queued before a launch blocks", SIM_QUEUE_DEPTH, "of a stream",
     "about 1000 of each stream: Stack Overflow 53970187"},
    {"host function on a stream", SIM_HOST_FUNCTION_NS, "ns", "a guess"},
    {"thread blocks of a collective", CHANNELS_DEFAULT, "SMs",
     "24 of an H100's 132: NVIDIA developer forum 337991; where the catalogue "
     "knows nccl_channels, those"},
};

const struct sim_constant *sim_constant(unsigned index)
{
    return index < sizeof constants / sizeof *constants ? &constants[index]
                                                        : NULL;
}

uint64_t sim_call_ns(enum op_kind kind)
{
    static const uint64_t calls[OP_KINDS] = {
        [OP_LAUNCH] = SIM_LAUNCH_NS,
        [OP_GEMM] = SIM_LAUNCH_NS,
        [OP_CONVOLUTION] = SIM_LAUNCH_NS,
        [OP_ATTENTION] = SIM_LAUNCH_NS,
        [OP_LIBRARY_CALL] = SIM_LAUNCH_NS,
        [OP_COPY] = COPY_NS,
        [OP_SET] = SET_NS,
        [OP_HOST_FUNCTION] = SIM_LAUNCH_NS,
        [OP_COLLECTIVE] = SIM_LAUNCH_NS,
        [OP_GRAPH_LAUNCH] = GRAPH_LAUNCH_NS,
        [OP_EVENT_RECORD] = EVENT_NS,
        [OP_STREAM_WAIT] = EVENT_NS,
        [OP_SYNC_STREAM] = SYNC_NS,
        [OP_SYNC_DEVICE] = SYNC_NS,
        [OP_SYNC_EVENT] = SYNC_NS,
        [OP_DEVICE_MALLOC] = MALLOC_NS,
        [OP_DEVICE_FREE] = FREE_NS,
        [OP_STREAM_CREATE] = STREAM_NS,
        [OP_STREAM_DESTROY] = STREAM_NS,
        [OP_EVENT_CREATE] = EVENT_NS,
        [OP_EVENT_DESTROY] = EVENT_NS,
    };

    return kind < OP_KINDS ? calls[kind] : 0;
}

static uint32_t part_of(double of, double whole)
{
    double part = whole > 0 ? of / whole : 0;

    return (uint32_t)(SIM_WHOLE * (part < 0.5 ? part : 0.5));
}

void sim_gpu_set(struct sim_gpu *gpu, uint32_t sm_count, uint32_t channels,
                 double copy_gbps, double memory_gbps)
{
    *gpu = (struct sim_gpu){
        .queue_depth = SIM_QUEUE_DEPTH,
        .comm_takes = part_of(channels ? channels : CHANNELS_DEFAULT, sm_count),
        .copy_takes = part_of(copy_gbps, memory_gbps),
        .comm_loses = 0,
    };
}
