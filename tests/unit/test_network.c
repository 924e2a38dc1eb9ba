/* SPDX-License-Identifier: Apache-2.0
 * Networks: what files say, routes, patterns of flows, shares. The shares of
 * random networks are those of tests/tools/test_network.py. */
#include "fits/cluster.h"
#include "runtime/net/net_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define LOADS 4096

static double loads[LOADS];

static int load(const char *network, struct cluster *c, struct err *err)
{
    char text[2048];

    *err = (struct err){""};
    snprintf(text, sizeof text,
             "{\"kind\": \"cluster\", \"name\": \"n\", \"gpu\": "
             "\"h100-sxm-80gb\", \"gpus_per_node\": 2, \"intra\": {\"gbps\": "
             "400, \"latency_us\": 2}, \"inter\": {\"gbps\": 100, "
             "\"latency_us\": 5}, \"network\": {\"adapter_gbps\": 50, %s}}",
             network);
    return cluster_load_text(text, strlen(text), "f", c, err);
}

/* What is on each link of G of COUNT FLOWS. */
static void route(const struct net_graph *g, const struct net_flow *flows,
                  uint32_t count)
{
    uint16_t far[256];
    uint32_t queue[256];
    double amount[256] = {0};

    memset(loads, 0, sizeof loads);
    CHECK(g->switches <= 256 && net_resources(g) <= LOADS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = g->adapter_at[flows[i].to];
        const struct net_ways ways = {
            to, net_distances(g, to, far, queue), far, queue};
        net_route(g, &ways, &flows[i], 1, amount, loads);
    }
}

/* The load between two switches. */
static double between(const struct net_graph *g, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < g->links; i++)
        if (g->link[i].from == from && g->link[i].to == to)
            return loads[i];
    return -1;
}

TEST(what_is_no_network_says_why)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"\"nodes\": 0", "\"nodes\" must be a number from 1 to 65536"},
        {"\"nodes\": 2.5", "\"nodes\" must be a whole number"},
        {"\"nodes\": 2, \"pattern\": \"star\"",
         "\"pattern\" must be fat-tree, rail-optimized, leaf-spine, "
         "dragonfly or torus"},
        {"\"nodes\": 2, \"pattern\": \"fat-tree\", \"k\": 3",
         "\"k\" must be even"},
        {"\"nodes\": 9, \"pattern\": \"fat-tree\", \"k\": 4, "
         "\"adapters_per_node\": 2",
         "a fat-tree of this size has room for 8 nodes of 2 adapters, not for "
         "9"},
        {"\"nodes\": 5, \"pattern\": \"torus\", \"sizes\": [2, 2]",
         "has room for 4 nodes"},
        {"\"nodes\": 2, \"pattern\": \"torus\", \"sizes\": []",
         "\"sizes\" must be 1 to 5 whole numbers"},
        {"\"nodes\": 60000, \"pattern\": \"leaf-spine\", "
         "\"nodes_per_leaf\": 1, \"spines\": 60000",
         "links are too many"},
        {"\"nodes\": 2, \"routing\": \"best\"",
         "\"routing\" must be \"even\" or \"hash\""},
        {"\"nodes\": 2, \"switches\": [\"a\"]",
         "\"attach\" has no switch for adapter 0 of node 0"},
        {"\"nodes\": 2, \"switches\": [\"a\", \"b\"], \"attach\": "
         "[{\"nodes\": \"0\", \"switch\": \"a\"}, {\"nodes\": \"1\", "
         "\"switch\": \"b\"}]",
         "node 1 cannot reach node 0 from adapter 0: no links lead there"},
        {"\"nodes\": 2, \"switches\": [\"a\"], \"attach\": [{\"nodes\": "
         "\"0-2\", \"switch\": \"a\"}]",
         "\"nodes\" must be \"A-B\", numbers of nodes"},
        {"\"nodes\": 2, \"switches\": [\"a\"], \"links\": [{\"from\": \"a\", "
         "\"to\": \"z\", \"gbps\": 1}]",
         "\"to\": there is no switch 'z'"},
        {"\"nodes\": 4, \"pattern\": \"leaf-spine\", \"nodes_per_leaf\": 2, "
         "\"spines\": 1, \"failed\": [{\"from\": \"leaf0\", \"to\": "
         "\"spine0\"}]",
         "node 2 cannot reach node 0"},
        {"\"nodes\": 4, \"pattern\": \"leaf-spine\", \"nodes_per_leaf\": 2, "
         "\"failed\": [{\"from\": \"leaf0\", \"to\": \"leaf1\"}]",
         "no link joins 'leaf0' and 'leaf1'"},
        {"\"nodes\": 4, \"pattern\": \"leaf-spine\", \"nodes_per_leaf\": 2, "
         "\"routes\": [{\"at\": \"leaf0\", \"to\": \"leaf1\", \"via\": "
         "\"leaf1\"}]",
         "\"routes\" must be over a link that works"},
    };
    struct cluster c;
    struct err err;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(load(rows[i].text, &c, &err) == -1);
        CHECK(strstr(err.text, "f: network: ") == err.text);
        if (!strstr(err.text, rows[i].why))
            CHECK_STR(err.text, rows[i].why);
    }
}

TEST(a_measured_cluster_may_have_a_network)
{
    static const char text[] =
        "{\"kind\": \"cluster\", \"name\": \"mine\", \"gpu\": \"a100\", "
        "\"gpus_per_node\": 8, \"fit\": \"sophia\", \"network\": {\"nodes\": "
        "4, \"adapters_per_node\": 8, \"adapter_gbps\": 25, \"pattern\": "
        "\"rail-optimized\", \"nodes_per_leaf\": 2, \"spines\": 2}}";
    struct cluster c;
    struct err err = {""};

    CHECK(!cluster_load_text(text, strlen(text), "f", &c, &err));
    CHECK(c.measured && c.fit.family_count > 0 && c.network->nodes == 4);
    CHECK_UINT(c.network->graph.switches, 2 * 8 + 2);
    CHECK_STR(c.network->about, "rail-optimized, 4 nodes of 8 adapters of 25 "
                                "GB/s, 18 switches, 32 links");
    cluster_fini(&c);
}

TEST(flows_take_all_shortest_ways_or_one)
{
    static const char even[] = "\"nodes\": 4, \"pattern\": \"leaf-spine\", "
                               "\"nodes_per_leaf\": 2, \"spines\": 4",
                      hash[] = "\"nodes\": 4, \"pattern\": \"leaf-spine\", "
                               "\"nodes_per_leaf\": 2, \"spines\": 4, "
                               "\"routing\": \"hash\"",
                      given[] = "\"nodes\": 4, \"pattern\": \"leaf-spine\", "
                                "\"nodes_per_leaf\": 2, \"spines\": 4, "
                                "\"routes\": [{\"at\": \"leaf0\", \"to\": "
                                "\"leaf1\", \"via\": \"spine2\"}]";
    const struct net_flow flow = {0, 3, 1}, near = {0, 1, 1};
    struct cluster c;
    struct err err;
    double most = 0;

    CHECK(!load(even, &c, &err));
    const struct net_graph *g = &c.network->graph;
    route(g, &flow, 1);
    for (uint32_t spine = 2; spine < 6; spine++) {
        CHECK_NEAR(between(g, 0, spine), 0.25, 1e-12);
        CHECK_NEAR(between(g, spine, 1), 0.25, 1e-12);
        CHECK(between(g, 1, spine) == 0);
    }
    CHECK(loads[g->links] == 1 && loads[g->links + 2 * 3 + 1] == 1);
    route(g, &near, 1);
    CHECK(between(g, 0, 2) == 0 && loads[g->links] == 1);
    cluster_fini(&c);
    CHECK(!load(hash, &c, &err));
    g = &c.network->graph;
    route(g, &flow, 1);
    for (uint32_t spine = 2; spine < 6; spine++)
        most += between(g, 0, spine) == 1;
    CHECK(most == 1);
    cluster_fini(&c);
    CHECK(!load(given, &c, &err));
    g = &c.network->graph;
    route(g, &flow, 1);
    CHECK(between(g, 0, 2 + 2) == 1);
    cluster_fini(&c);
}

/* Of a torus of 4 x 3, each node's links lead to 4 others; the way round is
 * short in both directions. */
TEST(a_torus_goes_round)
{
    struct cluster c;
    struct err err;
    const struct net_flow flow = {0, 3, 1}, twice = {0, 2, 1};

    CHECK(!load("\"nodes\": 12, \"pattern\": \"torus\", \"sizes\": [4, 3]", &c,
                &err));
    const struct net_graph *g = &c.network->graph;
    CHECK_UINT(g->links, 12 * 4);
    route(g, &flow, 1);
    CHECK(between(g, 0, 3) == 1);
    route(g, &twice, 1);
    CHECK(between(g, 0, 1) == 0.5 && between(g, 0, 3) == 0.5);
    cluster_fini(&c);
}

/* --- patterns ------------------------------------------------------------- */

static struct net_flow flows[4096];

/* NODES nodes of EACH ranks, with an adapter for each. */
static uint32_t pattern(uint32_t nodes, uint32_t each, enum net_algo algo,
                        double *part, uint32_t *steps)
{
    static struct net_place places[64];
    const struct net_group group = {places, nodes * each, algo};

    for (uint32_t i = 0; i < group.count; i++)
        places[i] = (struct net_place){i / each, i};
    CHECK(net_flows_most(&group) <= sizeof flows / sizeof *flows);
    *steps = net_steps(&group, 2);
    return net_flows(&group, flows, part);
}

static double flow_sum(uint32_t count, uint32_t adapter)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += flows[i].from == adapter ? flows[i].weight : 0;
    return sum;
}

TEST(rings_trees_and_all_to_alls_send_what_they_must)
{
    uint32_t steps;
    double part, sum = 0;
    uint32_t count = pattern(4, 2, NET_RING, &part, &steps);

    CHECK_UINT(count, 8); /* two rings */
    CHECK_UINT(steps, 6);
    CHECK(part == 0.5 && flow_sum(count, 7) == 1);
    count = pattern(4, 2, NET_ALL, &part, &steps);
    CHECK_UINT(count, 8 * 6);
    CHECK(part == 0.125 && flow_sum(count, 7) == 6);
    /* Each of two trees has 7 edges, used both ways, in two lanes. No node has
     * more than three edges of a tree. */
    count = pattern(8, 2, NET_TREE, &part, &steps);
    CHECK_UINT(count, 2 * 7 * 2 * 2);
    CHECK_UINT(steps, 6);
    for (uint32_t i = 0; i < 16; i++) {
        CHECK(flow_sum(count, i) >= 1 && flow_sum(count, i) <= 6);
        sum += flow_sum(count, i);
    }
    CHECK(sum == count);
}

/* Two lanes where one node has three ranks and another two. */
TEST(uneven_nodes_have_as_many_rings_as_the_smallest)
{
    const struct net_place places[] = {{0, 0}, {0, 1}, {0, 2}, {1, 3}, {1, 4}};
    const struct net_group group = {places, 5, NET_RING};
    double part;

    CHECK_UINT(net_flows(&group, flows, &part), 4);
    CHECK(part == 0.5 && flow_sum(4, 2) == 0);
}

/* --- shares --------------------------------------------------------------- */

/* Pattern 0 has two flows on a link of 30, pattern 1 one; pattern 1 has a link
 * of 50 with pattern 2. */
TEST(shares_are_fair_by_flow)
{
    const struct net_row rows[] = {{0, 2, 30, false}, {2, 2, 50, true}};
    const struct net_load all[] = {{0, 2}, {1, 1}, {1, 1}, {2, 1}};
    const struct net_shares s = {rows, all, 2, 3};
    double left[2], sum[2], active[3];
    const struct net_scratch scratch = {left, sum, active};
    struct net_user users[] = {{0, 100, 0}, {1, 100, 0}, {2, 100, 0}};

    net_share(&s, false, users, 3, &scratch);
    CHECK_NEAR(users[0].gbps, 10, 1e-9);
    CHECK_NEAR(users[1].gbps, 10, 1e-9);
    CHECK_NEAR(users[2].gbps, 40, 1e-9);
    net_share(&s, true, users, 3, &scratch); /* the adapter's link alone */
    CHECK_NEAR(users[0].gbps, 100, 1e-9);
    CHECK_NEAR(users[1].gbps, 25, 1e-9);
    users[0].most_gbps = 4; /* leaves 22 to the other */
    users[2].most_gbps = 5;
    net_share(&s, false, users, 3, &scratch);
    CHECK_NEAR(users[0].gbps, 4, 1e-9);
    CHECK_NEAR(users[1].gbps, 22, 1e-9);
    CHECK_NEAR(users[2].gbps, 5, 1e-9);
}
