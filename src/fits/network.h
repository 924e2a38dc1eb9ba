/* SPDX-License-Identifier: Apache-2.0
 * The network of a cluster's file, "network": a pattern or switches and links
 * (data/clusters/README.md). */
#ifndef MEMSIM_FITS_NETWORK_H
#define MEMSIM_FITS_NETWORK_H

#include "common/base/err.h"
#include "runtime/net/net_build.h"

struct cJSON;

struct network {
    struct net_graph graph;
    uint32_t nodes, adapters; /* adapters: of a node */
    char about[128];
};

/* Reads ROOT, a cluster's "network". ORIGIN stands for the file. Returns 0, or
 * -1: what it says is no network, or nodes cannot reach each other. End
 * *NETWORK with network_fini. */
int network_read(const struct cJSON *root, const char *origin,
                 struct network *network, struct err *err);
void network_fini(struct network *network);

#endif
