/* SPDX-License-Identifier: Apache-2.0
 * A node's network carries so many bytes a second, whoever sends them. Alone, a
 * collective takes what it was measured to take: with one GPU a node it uses
 * one adapter of several. With USERS of its kind at once the network has USERS
 * times its bytes to carry, which takes at least bytes / bandwidth: the time is
 * the greater of the two. */
#include "runtime/nccl/cost_nccl_share.h"

#include <math.h>

/* Bytes that Q sends out of each node. A ring leaves a node once: its bus
 * bytes. Each rank's other parts leave it one by one. */
static double node_bytes(const struct cost_nccl_query *q)
{
    double ranks = (double)q->nodes * q->gpus_per_node;

    switch (q->coll) {
    case FIT_ALLTOALL:
    case FIT_GATHER:
    case FIT_SCATTER:
        return q->gpus_per_node * q->bytes * (ranks - q->gpus_per_node) / ranks;
    default:
        return fit_coll_factor(q->coll, ranks) * q->bytes;
    }
}

static double curve_gbps(const struct fit *fit, const struct fit_family *f,
                         const struct fit_curve *c)
{
    struct cost_nccl_query q = {.coll = f->coll,
                                .nodes = c->nodes,
                                .gpus_per_node = f->gpus_per_node,
                                .bytes = c->bytes_max};
    unsigned flags = 0;
    double us = cost_nccl_curves_us(fit, f, &q, &flags);

    return node_bytes(&q) / (1e3 * us);
}

double cost_nccl_network_gbps(const struct fit *fit)
{
    const struct fit_level *inter = &fit->levels[FIT_CORRECTED][FIT_INTER];
    double most = 0;

    for (uint32_t i = 0; i < fit->family_count; i++)
        for (uint32_t j = 0; j < fit->families[i].curve_count; j++)
            if (fit->families[i].curves[j].nodes > 1)
                most = fmax(most, curve_gbps(fit, &fit->families[i],
                                             &fit->families[i].curves[j]));
    if (!(most > 0) && inter->known)
        for (uint32_t i = 0; i < inter->piece_count; i++)
            most = fmax(most, inter->pieces[i].limit_gbps +
                                  inter->pieces[i].base_gbps);
    return most;
}

void cost_nccl_share(const struct fit *fit, const struct cost_nccl_query *query,
                     struct cost_nccl_answer *answer)
{
    if (query->nodes < 2 || !(query->users > 1))
        return;
    double gbps = cost_nccl_network_gbps(fit);
    double us = query->users * node_bytes(query) / (1e3 * gbps);

    if (gbps > 0 && us > answer->us) {
        answer->us = us;
        answer->flags |= COST_NCCL_SHARED;
    }
}
