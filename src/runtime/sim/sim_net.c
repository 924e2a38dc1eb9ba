/* SPDX-License-Identifier: Apache-2.0
 * Collectives that are under way through a network which they share. When one
 * begins or ends, the caller says what each gets, and the devices whose
 * operations got another speed go on with it from now on. */
#include "runtime/sim/sim_internal.h"

void sim_share(struct sim *s, const struct sim_network *network)
{
    s->network = *network;
}

static uint32_t key_of(const struct sim *s, uint32_t stream)
{
    const struct sim_queue *q = &s->streams[stream];
    uint32_t meet = queue_at(q, q->head)->meet;

    return meet == SIM_NONE ? stream | SIM_FLOW_ALONE : meet;
}

/* Where KEY is; s->flow_count: it is not. */
static uint32_t flow_find(const struct sim *s, uint32_t key)
{
    uint32_t i = 0;

    while (i < s->flow_count && s->flows[i].key != key)
        i++;
    return i;
}

/* STREAM, whose head is of a flow, gets SPEED from NS on. */
static void stream_set(struct sim *s, uint32_t stream, uint32_t speed,
                       uint64_t ns)
{
    struct sim_queue *q = &s->streams[stream];

    if (q->state != SIM_RUNNING || q->net_speed == speed)
        return;
    device_progress(s, &s->devices[q->device], ns);
    q->net_speed = speed;
    device_refresh(s, q->device);
}

static void flow_set(struct sim *s, uint32_t i, uint64_t ns)
{
    uint32_t key = s->flows[i].key, speed = s->flow_speeds[i];

    if (key & SIM_FLOW_ALONE) {
        stream_set(s, key & ~SIM_FLOW_ALONE, speed, ns);
        return;
    }
    for (uint32_t m = s->groups[key].members; m != SIM_NONE;
         m = s->streams[m].next_member)
        stream_set(s, m, speed, ns);
}

/* The flows have changed at NS. */
static void flows_share(struct sim *s, uint64_t ns)
{
    if (!s->flow_count)
        return;
    s->network.share(s->network.context, s->flow_numbers, s->flow_count,
                     s->flow_speeds);
    for (uint32_t i = 0; i < s->flow_count; i++)
        flow_set(s, i, ns);
}

/* Makes room for one more. Returns 0 or -1. */
static int flows_room(struct sim *s)
{
    return sim_room(s, &s->flows, s->flow_count, &s->flow_capacity,
                    sizeof *s->flows) ||
                   sim_room(s, &s->flow_numbers, s->flow_count,
                            &s->number_capacity, sizeof *s->flow_numbers) ||
                   sim_room(s, &s->flow_speeds, s->flow_count,
                            &s->speed_capacity, sizeof *s->flow_speeds)
               ? -1
               : 0;
}

void flow_begin(struct sim *s, uint32_t stream)
{
    struct sim_queue *q = &s->streams[stream];
    uint32_t key = key_of(s, stream), at = flow_find(s, key);

    q->net_speed = at < s->flow_count ? s->flow_speeds[at] : SIM_WHOLE;
    if (at < s->flow_count) {
        s->flows[at].running++;
        return;
    }
    if (!s->network.share || flows_room(s))
        return;
    s->flows[at] = (struct sim_flow){.key = key, .running = 1};
    s->flow_numbers[at] = queue_at(q, q->head)->flow - 1;
    s->flow_speeds[at] = SIM_WHOLE;
    s->flow_count++;
    flows_share(s, s->devices[q->device].now);
}

void flow_end(struct sim *s, uint32_t stream)
{
    uint32_t at = flow_find(s, key_of(s, stream));

    if (at == s->flow_count || --s->flows[at].running)
        return;
    s->flow_count--;
    for (uint32_t i = at; i < s->flow_count; i++) {
        s->flows[i] = s->flows[i + 1];
        s->flow_numbers[i] = s->flow_numbers[i + 1];
        s->flow_speeds[i] = s->flow_speeds[i + 1];
    }
    flows_share(s, s->devices[s->streams[stream].device].now);
}
