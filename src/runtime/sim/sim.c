/* SPDX-License-Identifier: Apache-2.0
 * What a simulator has: devices, streams, events, threads. */
#include "runtime/sim/sim_internal.h"

#define FIRST_ROOM 8

int sim_room(struct sim *s, void *array, uint32_t count, uint32_t *capacity,
             size_t bytes)
{
    void **at = array;
    uint32_t wanted = *capacity ? *capacity * 2 : FIRST_ROOM;

    if (count < *capacity)
        return 0;
    if (wanted < *capacity)
        return -1;
    void *grown = s->memory.grow(s->memory.context, *at, *capacity * bytes,
                                 wanted * bytes);
    if (!grown)
        return -1;
    *at = grown;
    *capacity = wanted;
    return 0;
}

struct sim *sim_create(const struct sim_memory *memory,
                       const struct sim_sink *sink)
{
    struct sim *s = memory->grow(memory->context, NULL, 0, sizeof *s);

    if (!s)
        return NULL;
    s->memory = *memory;
    s->sink = sink ? *sink : (struct sim_sink){0};
    s->free_group = SIM_NONE;
    s->free_pair = SIM_NONE;
    return s;
}

uint32_t sim_device(struct sim *s, const struct sim_gpu *gpu)
{
    uint32_t number = s->device_count;

    if (sim_room(s, &s->devices, number, &s->device_capacity,
                 sizeof *s->devices) ||
        sim_room(s, &s->heap, number, &s->heap_capacity, sizeof *s->heap))
        return SIM_NONE;
    s->devices[number] = (struct sim_device){
        .gpu = *gpu,
        .next_ns = SIM_NEVER,
        .heap_at = number,
        .legacy = SIM_NONE,
        .blocked = SIM_NONE,
    };
    if (!s->devices[number].gpu.queue_depth)
        s->devices[number].gpu.queue_depth = 1;
    s->heap[number] = number;
    s->device_count++;
    return number;
}

uint32_t sim_stream(struct sim *s, uint32_t device, enum sim_stream_flags flags,
                    int32_t priority)
{
    struct sim_device *d = &s->devices[device];
    uint32_t number = s->stream_count;

    if (sim_room(s, &s->streams, number, &s->stream_capacity,
                 sizeof *s->streams) ||
        sim_room(s, &d->streams, d->stream_count, &d->stream_capacity,
                 sizeof *d->streams))
        return SIM_NONE;
    s->streams[number] = (struct sim_queue){
        .device = device,
        .flags = (uint8_t)flags,
        .priority = priority,
        .waiters = SIM_NONE,
        .next_waiter = SIM_NONE,
        .next_member = SIM_NONE,
    };
    d->streams[d->stream_count++] = number;
    if (flags == SIM_LEGACY)
        d->legacy = number;
    s->stream_count++;
    return number;
}

uint32_t sim_event(struct sim *s)
{
    if (sim_room(s, &s->events, s->event_count, &s->event_capacity,
                 sizeof *s->events))
        return SIM_NONE;
    s->events[s->event_count] =
        (struct sim_event_state){.stream = SIM_NONE, .ns = SIM_NEVER};
    return s->event_count++;
}

uint32_t sim_thread(struct sim *s)
{
    if (sim_room(s, &s->threads, s->thread_count, &s->thread_capacity,
                 sizeof *s->threads))
        return SIM_NONE;
    s->threads[s->thread_count] = (struct sim_host){.next_blocked = SIM_NONE};
    return s->thread_count++;
}

uint32_t sim_meet(struct sim *s, uint32_t expected)
{
    uint32_t number = s->free_group;

    if (number != SIM_NONE) {
        s->free_group = s->groups[number].next_free;
    } else {
        if (sim_room(s, &s->groups, s->group_count, &s->group_capacity,
                     sizeof *s->groups))
            return SIM_NONE;
        number = s->group_count++;
    }
    s->groups[number] = (struct sim_group){
        .expected = expected, .members = SIM_NONE, .pairs = SIM_NONE};
    return number;
}

/* Adds to A's pairs, of which there is room for one more. */
static void pair_add(struct sim *s, uint32_t a, uint32_t part, uint32_t b,
                     uint32_t other_part)
{
    uint32_t number = s->free_pair;

    if (number != SIM_NONE)
        s->free_pair = s->pairs[number].next;
    else
        number = s->pair_count++;
    s->pairs[number] = (struct sim_pair){
        .other = b,
        .part = part,
        .other_part = other_part,
        .next = s->groups[a].pairs,
    };
    s->groups[a].pairs = number;
    s->groups[a].held += part;
}

int sim_pair(struct sim *s, uint32_t a, uint32_t a_part, uint32_t b,
             uint32_t b_part)
{
    if (sim_room(s, &s->pairs, s->pair_count + 1, &s->pair_capacity,
                 sizeof *s->pairs))
        return -1;
    pair_add(s, a, a_part, b, b_part);
    pair_add(s, b, b_part, a, a_part);
    return 0;
}

bool sim_step(struct sim *s, uint64_t limit_ns)
{
    uint32_t first;

    if (!s->device_count)
        return false;
    if (s->open && !others_let(s, limit_ns))
        return false;
    first = s->heap[0];
    uint64_t next_ns = s->devices[first].next_ns;
    if (s->told_count && others_next(s) <= next_ns) {
        if (others_next(s) > limit_ns)
            return false;
        others_happen(s);
        return true;
    }
    if (next_ns == SIM_NEVER || next_ns > limit_ns)
        return false;
    device_run(s, first);
    return true;
}

bool sim_drain(struct sim *s)
{
    while (sim_step(s, SIM_NEVER))
        continue;
    for (uint32_t i = 0; i < s->stream_count; i++)
        if (s->streams[i].head != s->streams[i].tail)
            return false;
    return true;
}

uint64_t sim_event_ns(const struct sim *s, uint32_t event)
{
    return s->events[event].ns;
}

bool sim_event_done(struct sim *s, uint32_t event, uint64_t ns)
{
    while (sim_step(s, ns))
        continue;
    return s->events[event].stream == SIM_NONE || s->events[event].ns <= ns;
}
