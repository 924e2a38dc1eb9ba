/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/network.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_text.h"
#include "common/base/xmalloc.h"

/* More would not be a network, but a mistake. */
#define NODES_MAX    65536
#define ADAPTERS_MAX 128
#define SWITCHES_MAX 65536
#define LINKS_MAX    (1u << 20)
#define K_MAX        64
#define GBPS_MAX     1e6
#define HOP_US_MAX   1e6
#define NAME_BYTES   48

/* A network while it is read. */
struct reading {
    const cJSON *root;
    const char *origin;
    struct net_plan plan;
    bool planned; /* by a pattern */
    const cJSON *switches; /* else: their names */
    struct network *network;
    size_t link_capacity, given_capacity;
    struct err *err;
};

static int network_fail(const struct reading *r, const char *key,
                        const char *wanted)
{
    return err_set(r->err, "%s: network: \"%s\" must be %s", r->origin, key,
                   wanted);
}

/* What a number may be; INSTEAD of one that is not there. */
struct limits {
    double instead, least, most;
};

/* A rate that must be there, and one that need not. */
static const struct limits a_rate = {0, 1e-6, GBPS_MAX};

static struct limits rate_or(double instead)
{
    return (struct limits){instead, 1e-6, GBPS_MAX};
}

/* A number of OBJECT. Returns 0 or -1. */
static int take_number(const struct reading *r, const cJSON *object,
                       const char *key, struct limits limits, double *to)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    char wanted[64];

    *to = item ? NAN : limits.instead;
    if (cJSON_IsNumber(item))
        *to = item->valuedouble;
    if (*to >= limits.least && *to <= limits.most)
        return 0;
    snprintf(wanted, sizeof wanted, "a number from %g to %g", limits.least,
             limits.most);
    return network_fail(r, key, wanted);
}

static int take_count(const struct reading *r, const cJSON *object,
                      const char *key, double instead, uint32_t most,
                      uint32_t *to)
{
    double number;

    if (take_number(r, object, key, (struct limits){instead, 1, most},
                    &number))
        return -1;
    *to = (uint32_t)number;
    return *to == number ? 0 : network_fail(r, key, "a whole number");
}

/* --- patterns ------------------------------------------------------------- */

static int read_fat_tree(struct reading *r)
{
    struct net_plan *p = &r->plan;

    if (take_count(r, r->root, "k", 0, K_MAX, &p->k))
        return -1;
    return p->k % 2 ? network_fail(r, "k", "even") : 0;
}

static int read_leaves(struct reading *r)
{
    struct net_plan *p = &r->plan;

    return take_count(r, r->root, "nodes_per_leaf", 0, NODES_MAX,
                      &p->nodes_per_leaf) ||
                   take_count(r, r->root, "spines", p->nodes_per_leaf,
                              SWITCHES_MAX, &p->spines)
               ? -1
               : 0;
}

static int read_dragonfly(struct reading *r)
{
    struct net_plan *p = &r->plan;

    return take_count(r, r->root, "groups", 0, 4096, &p->groups) ||
                   take_count(r, r->root, "routers_per_group", 0, 256,
                              &p->routers) ||
                   take_count(r, r->root, "adapters_per_router", 0, 256,
                              &p->per_router) ||
                   take_number(r, r->root, "global_gbps",
                               rate_or(p->link_gbps), &p->global_gbps)
               ? -1
               : 0;
}

static int read_torus(struct reading *r)
{
    const cJSON *sizes = cJSON_GetObjectItemCaseSensitive(r->root, "sizes");
    const cJSON *item;
    struct net_plan *p = &r->plan;
    uint64_t nodes = 1;

    cJSON_ArrayForEach(item, sizes) {
        double size = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (!(size >= 1 && size <= NODES_MAX) || size != floor(size) ||
            p->dimensions == NET_DIMENSIONS)
            return network_fail(r, "sizes", "1 to 5 whole numbers");
        p->size[p->dimensions++] = (uint32_t)size;
        nodes *= (uint32_t)size;
        if (nodes > SWITCHES_MAX)
            return network_fail(r, "sizes", "those of at most 65536 nodes");
    }
    return p->dimensions ? 0 : network_fail(r, "sizes", "1 to 5 whole numbers");
}

static int read_plan(struct reading *r)
{
    static int (*const readers[NET_PATTERNS])(struct reading *) = {
        [NET_FAT_TREE] = read_fat_tree, [NET_RAIL] = read_leaves,
        [NET_LEAF] = read_leaves,       [NET_DRAGONFLY] = read_dragonfly,
        [NET_TORUS] = read_torus,
    };
    struct net_plan *p = &r->plan;
    const char *name = json_text_of(r->root, "pattern");

    p->pattern = net_pattern_find(name);
    if (p->pattern == NET_PATTERNS)
        return network_fail(r, "pattern",
                            "fat-tree, rail-optimized, leaf-spine, "
                            "dragonfly or torus");
    if (take_number(r, r->root, "link_gbps", rate_or(p->adapter_gbps),
                    &p->link_gbps) ||
        take_number(r, r->root, "oversubscription",
                    (struct limits){1, 1, 1000}, &p->oversubscription) ||
        readers[p->pattern](r))
        return -1;
    uint64_t room = net_plan_nodes(p);
    if (room < p->nodes)
        return err_set(r->err,
                       "%s: network: a %s of this size has room for %" PRIu64
                       " nodes of %" PRIu32 " adapters, not for %" PRIu32,
                       r->origin, name, room, p->adapters, p->nodes);
    return 0;
}

/* --- links ---------------------------------------------------------------- */

static void graph_room(struct net_graph *g)
{
    g->adapter_at = xcalloc(g->adapters + 1, sizeof *g->adapter_at);
    g->adapter_gbps = xcalloc(g->adapters + 1, sizeof *g->adapter_gbps);
    g->first = xcalloc((size_t)g->switches + 1, sizeof *g->first);
}

static int build_plan(struct reading *r)
{
    struct net_graph *g = &r->network->graph;

    if (net_plan_links(&r->plan) > LINKS_MAX)
        return err_set(r->err, "%s: network: %" PRIu64 " links are too many",
                       r->origin, net_plan_links(&r->plan) / 2);
    net_plan_size(&r->plan, g);
    if (g->switches > SWITCHES_MAX)
        return err_set(r->err,
                       "%s: network: %" PRIu32 " switches are too many",
                       r->origin, g->switches);
    graph_room(g);
    g->link = xcalloc((size_t)g->links + 1, sizeof *g->link);
    net_plan_fill(&r->plan, g);
    return 0;
}

/* The number of the switch called NAME; NET_NONE: there is none. */
static uint32_t switch_find(const struct reading *r, const char *name)
{
    char own[NAME_BYTES];
    uint32_t number = 0;
    const cJSON *item;

    if (!r->planned) {
        cJSON_ArrayForEach(item, r->switches) {
            if (!strcmp(item->valuestring, name))
                return number;
            number++;
        }
        return NET_NONE;
    }
    for (; number < r->network->graph.switches; number++) {
        net_plan_name(&r->plan, number, own, sizeof own);
        if (!strcmp(own, name))
            return number;
    }
    return NET_NONE;
}

/* The switch that OBJECT has under KEY. Returns 0 or -1. */
static int take_switch(const struct reading *r, const cJSON *object,
                       const char *key, uint32_t *to)
{
    const char *name = json_text_of(object, key);

    *to = switch_find(r, name);
    if (*to != NET_NONE)
        return 0;
    return err_set(r->err, "%s: network: \"%s\": there is no switch '%.40s'",
                   r->origin, key, name);
}

static int read_link(struct reading *r, const cJSON *item)
{
    struct net_graph *g = &r->network->graph;
    uint32_t from, to, count;
    double gbps;

    if (take_switch(r, item, "from", &from) ||
        take_switch(r, item, "to", &to) ||
        take_number(r, item, "gbps", a_rate, &gbps) ||
        take_count(r, item, "count", 1, 65536, &count))
        return -1;
    if (from == to)
        return network_fail(r, "links", "between two switches");
    for (int way = 0; way < 2; way++) {
        xgrow(&g->link, g->links, &r->link_capacity, sizeof *g->link);
        g->link[g->links++] = (struct net_link){way ? to : from,
                                                way ? from : to, gbps * count};
    }
    return 0;
}

/* Reads "A-B" or "A", numbers below END. Returns 0 or -1. */
static int read_range(const char *text, uint32_t end, uint32_t *first,
                      uint32_t *last)
{
    char tail;
    int count = sscanf(text, "%" SCNu32 "-%" SCNu32 "%c", first, last, &tail);

    if (count == 1) {
        char number[16];
        snprintf(number, sizeof number, "%" PRIu32, *first);
        *last = *first;
        count = strcmp(number, text) ? 0 : 2;
    }
    return count == 2 && *first <= *last && *last < end ? 0 : -1;
}

/* {"nodes": "0-15", "adapters": "0-3", "switch": "leaf0"} */
static int read_attached(struct reading *r, const cJSON *item)
{
    struct net_graph *g = &r->network->graph;
    uint32_t node, last, from, to, at;
    const char *adapters = json_text_of(item, "adapters");

    if (read_range(json_text_of(item, "nodes"), r->plan.nodes, &node, &last))
        return network_fail(r, "nodes", "\"A-B\", numbers of nodes");
    if (read_range(*adapters ? adapters : "0", r->plan.adapters, &from, &to))
        return network_fail(r, "adapters",
                            "\"A-B\", numbers of a node's adapters");
    if (!*adapters)
        to = r->plan.adapters - 1;
    if (take_switch(r, item, "switch", &at))
        return -1;
    for (; node <= last; node++)
        for (uint32_t i = from; i <= to; i++)
            g->adapter_at[node * r->plan.adapters + i] = at;
    return 0;
}

static int check_attached(const struct reading *r)
{
    const struct net_graph *g = &r->network->graph;

    for (uint32_t i = 0; i < g->adapters; i++)
        if (g->adapter_at[i] == NET_NONE)
            return err_set(r->err,
                           "%s: network: \"attach\" has no switch for adapter "
                           "%" PRIu32 " of node %" PRIu32,
                           r->origin, i % r->plan.adapters,
                           i / r->plan.adapters);
    return 0;
}

/* Switches by name. */
static int read_switches(struct reading *r)
{
    const cJSON *item;
    struct net_graph *g = &r->network->graph;

    r->switches = cJSON_GetObjectItemCaseSensitive(r->root, "switches");
    cJSON_ArrayForEach(item, r->switches) {
        if (!cJSON_IsString(item) || g->switches == SWITCHES_MAX)
            return network_fail(r, "switches", "a list of names");
        g->switches++;
    }
    g->adapters = r->plan.nodes * r->plan.adapters;
    graph_room(g);
    for (uint32_t i = 0; i < g->adapters; i++) {
        g->adapter_at[i] = NET_NONE;
        g->adapter_gbps[i] = r->plan.adapter_gbps;
    }
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(r->root, "links")) {
        if (g->links >= LINKS_MAX || read_link(r, item))
            return r->err->text[0] ? -1 : network_fail(r, "links", "fewer");
    }
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(r->root, "attach")) {
        if (read_attached(r, item))
            return -1;
    }
    return check_attached(r);
}

/* --- failures and routes -------------------------------------------------- */

/* {"from": "leaf0", "to": "spine1", "part": 0.25}: so much of it has failed. */
static int read_failure(struct reading *r, const cJSON *item)
{
    struct net_graph *g = &r->network->graph;
    uint32_t from, to, found = 0;
    double part;

    if (take_switch(r, item, "from", &from) ||
        take_switch(r, item, "to", &to) ||
        take_number(r, item, "part", (struct limits){1, 0, 1}, &part))
        return -1;
    for (uint32_t i = 0; i < g->links; i++)
        if ((g->link[i].from == from && g->link[i].to == to) ||
            (g->link[i].from == to && g->link[i].to == from)) {
            g->link[i].gbps *= 1 - part;
            found++;
        }
    return found ? 0
                 : err_set(r->err,
                           "%s: network: \"failed\": no link joins '%.40s' and "
                           "'%.40s'",
                           r->origin, json_text_of(item, "from"),
                           json_text_of(item, "to"));
}

/* {"at": "leaf0", "to": "leaf5", "via": "spine1"} */
static int read_given(struct reading *r, const cJSON *item)
{
    struct net_graph *g = &r->network->graph;
    struct net_given given;

    if (take_switch(r, item, "at", &given.at) ||
        take_switch(r, item, "to", &given.to) ||
        take_switch(r, item, "via", &given.via))
        return -1;
    xgrow(&g->given, g->given_count, &r->given_capacity, sizeof *g->given);
    g->given[g->given_count++] = given;
    return 0;
}

/* A given route must follow links, and come nearer: else it may go round. */
static int check_given(const struct reading *r, const struct net_given *given,
                       const uint16_t *far)
{
    const struct net_graph *g = &r->network->graph;

    for (uint32_t i = g->first[given->at]; i < g->first[given->at + 1]; i++)
        if (g->link[i].to == given->via && g->link[i].gbps > 0 &&
            far[given->via] < far[given->at])
            return 0;
    return network_fail(r, "routes",
                        "over a link that works, and nearer to \"to\"");
}

static int check_routes(const struct reading *r)
{
    const struct net_graph *g = &r->network->graph;
    uint16_t *far = xcalloc((size_t)g->switches + 1, sizeof *far);
    uint32_t *queue = xcalloc((size_t)g->switches + 1, sizeof *queue);
    int rc = 0;

    for (uint32_t i = 0; i < g->given_count && !rc; i++) {
        net_distances(g, g->given[i].to, far, queue);
        rc = check_given(r, &g->given[i], far);
    }
    free(far);
    free(queue);
    return rc;
}

/* The same adapter of all nodes must be joined: rails may be apart. */
static int check_joined(const struct reading *r)
{
    const struct net_graph *g = &r->network->graph;
    uint32_t adapters = r->plan.adapters;
    uint16_t *far = xcalloc((size_t)g->switches + 1, sizeof *far);
    uint32_t *queue = xcalloc((size_t)g->switches + 1, sizeof *queue);
    int rc = 0;

    for (uint32_t rail = 0; rail < adapters && !rc; rail++) {
        if (!rail || g->adapter_at[rail] != g->adapter_at[rail - 1])
            net_distances(g, g->adapter_at[rail], far, queue);
        for (uint32_t n = 1; n < r->plan.nodes && !rc; n++)
            if (far[g->adapter_at[n * adapters + rail]] == NET_FAR)
                rc = err_set(r->err,
                             "%s: network: node %" PRIu32 " cannot reach node "
                             "0 from adapter %" PRIu32
                             ": no links lead there",
                             r->origin, n, rail);
    }
    free(far);
    free(queue);
    return rc;
}

static int read_lists(struct reading *r)
{
    const cJSON *item;

    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(r->root, "failed")) {
        if (read_failure(r, item))
            return -1;
    }
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(r->root, "routes")) {
        if (read_given(r, item))
            return -1;
    }
    return check_routes(r) || check_joined(r) ? -1 : 0;
}

/* --- the whole ------------------------------------------------------------ */

static int read_common(struct reading *r)
{
    struct net_graph *g = &r->network->graph;
    const char *routing = json_text_of(r->root, "routing");
    struct net_plan *p = &r->plan;
    double hop_us;

    if (take_count(r, r->root, "nodes", 0, NODES_MAX, &p->nodes) ||
        take_count(r, r->root, "adapters_per_node", 1, ADAPTERS_MAX,
                   &p->adapters) ||
        take_number(r, r->root, "adapter_gbps", a_rate, &p->adapter_gbps) ||
        take_number(r, r->root, "hop_us",
                    (struct limits){0, 0, HOP_US_MAX}, &hop_us))
        return -1;
    g->hop_ns = (uint32_t)lround(1e3 * hop_us);
    g->hash = !strcmp(routing, "hash");
    if (*routing && !g->hash && strcmp(routing, "even"))
        return network_fail(r, "routing", "\"even\" or \"hash\"");
    return 0;
}

static void network_describe(const struct reading *r)
{
    struct network *n = r->network;

    n->nodes = r->plan.nodes;
    n->adapters = r->plan.adapters;
    snprintf(n->about, sizeof n->about,
             "%s, %" PRIu32 " nodes of %" PRIu32 " adapters of %g GB/s, "
             "%" PRIu32 " switches, %" PRIu32 " links",
             r->planned ? net_pattern_name(r->plan.pattern) : "switches",
             n->nodes, n->adapters, r->plan.adapter_gbps, n->graph.switches,
             n->graph.links / 2);
}

int network_read(const cJSON *root, const char *origin, struct network *network,
                 struct err *err)
{
    struct reading r = {.root = root,
                        .origin = origin,
                        .planned = cJSON_HasObjectItem(root, "pattern"),
                        .network = network,
                        .err = err};

    *network = (struct network){.nodes = 0};
    if (read_common(&r) ||
        (r.planned ? read_plan(&r) || build_plan(&r) : read_switches(&r)))
        goto failed;
    net_sort(&network->graph);
    if (read_lists(&r))
        goto failed;
    network_describe(&r);
    return 0;
failed:
    network_fini(network);
    return -1;
}

void network_fini(struct network *network)
{
    struct net_graph *g = &network->graph;

    free(g->adapter_at);
    free(g->adapter_gbps);
    free(g->first);
    free(g->link);
    free(g->given);
    *network = (struct network){.nodes = 0};
}
