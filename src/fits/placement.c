/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/placement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define NODES_MAX (1u << 20)
#define NO_GPU    UINT32_MAX /* the next one of the node that is free */

/* Each node gets every COUNT-th rank. */
static void deal_ranks(struct placement *p, uint32_t world)
{
    uint32_t nodes = (world + p->width - 1) / p->width;

    p->node = xcalloc(world, sizeof *p->node);
    p->gpu = xcalloc(world, sizeof *p->gpu);
    p->ranks = world;
    for (uint32_t r = 0; r < world; r++) {
        p->node[r] = r % nodes;
        p->gpu[r] = r / nodes;
    }
}

/* "NODE" or "NODE GPU". Returns whether it is. */
static bool line_read(const char *line, uint32_t *node, uint32_t *gpu)
{
    char tail;
    int count = sscanf(line, "%" SCNu32 " %" SCNu32 " %c", node, gpu, &tail);

    if (count == 1)
        *gpu = NO_GPU;
    return (count == 1 || count == 2) && !strchr(line, '-') &&
           *node < NODES_MAX;
}

static bool is_blank(const char *line)
{
    line += strspn(line, " \t\r\n");
    return !*line || *line == '#';
}

static void line_add(struct placement *p, uint32_t node, uint32_t gpu,
                     size_t *capacity)
{
    size_t nodes = *capacity;

    xgrow(&p->node, p->ranks, &nodes, sizeof *p->node);
    xgrow(&p->gpu, p->ranks, capacity, sizeof *p->gpu);
    p->node[p->ranks] = node;
    p->gpu[p->ranks++] = gpu;
}

/* The lines of FILE, of which WORLD are wanted, or several times as many. */
static int lines_read(struct placement *p, FILE *file, const char *path,
                      uint32_t world, struct err *err)
{
    char line[256];
    uint32_t number = 0;
    size_t capacity = 0;

    while (fgets(line, sizeof line, file)) {
        uint32_t node, gpu;

        number++;
        if (is_blank(line))
            continue;
        if (!line_read(line, &node, &gpu) ||
            (gpu != NO_GPU && gpu >= p->width))
            return err_set(err,
                           "%s:%" PRIu32 ": wanted is NODE or NODE GPU, a GPU "
                           "below %" PRIu32,
                           path, number, p->width);
        line_add(p, node, gpu, &capacity);
    }
    if (p->ranks && p->ranks % world == 0)
        return 0;
    return err_set(err,
                   "%s: it places %" PRIu32 " ranks, and the job has %" PRIu32
                   ": wanted is a line for each (as often as such jobs run)",
                   path, p->ranks, world);
}

static int pair_compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Gives ranks without a GPU the next free one of their node; no GPU has two. */
static int gpus_give(struct placement *p, const char *path, struct err *err)
{
    uint32_t world = p->ranks; /* of all jobs */
    uint32_t(*by_node)[2] = xcalloc(world + 1, sizeof *by_node); /* and rank */
    bool *taken = xcalloc(p->width, sizeof *taken);
    int rc = 0;

    for (uint32_t r = 0; r < world; r++) {
        by_node[r][0] = p->node[r];
        by_node[r][1] = r;
    }
    qsort(by_node, world, sizeof *by_node, pair_compare);
    for (uint32_t i = 0, end; i < world && !rc; i = end) {
        memset(taken, 0, p->width * sizeof *taken);
        for (end = i; end < world && by_node[end][0] == by_node[i][0]; end++) {
            uint32_t gpu = p->gpu[by_node[end][1]];
            if (gpu != NO_GPU && taken[gpu])
                rc = err_set(err,
                             "%s: two ranks have GPU %" PRIu32
                             " of node %" PRIu32,
                             path, gpu, by_node[i][0]);
            if (gpu != NO_GPU)
                taken[gpu] = true;
        }
        if (!rc && end - i > p->width)
            rc = err_set(err,
                         "%s: node %" PRIu32 " has %" PRIu32
                         " ranks, and %" PRIu32 " GPUs",
                         path, by_node[i][0], end - i, p->width);
        for (uint32_t k = i, free = 0; k < end && !rc; k++) {
            if (p->gpu[by_node[k][1]] != NO_GPU)
                continue;
            while (taken[free])
                free++;
            taken[free] = true;
            p->gpu[by_node[k][1]] = free;
        }
    }
    free(taken);
    free(by_node);
    return rc;
}

static int file_read(struct placement *p, const char *path, uint32_t world,
                     struct err *err)
{
    FILE *file = fopen(path, "r");

    if (!file)
        return err_set(err, "--placement: %s: %s; wanted is block, "
                            "round-robin or a file",
                       path, strerror(errno));
    int rc = lines_read(p, file, path, world, err);
    fclose(file);
    return rc || gpus_give(p, path, err) ? -1 : 0;
}

int placement_make(struct placement *p, const char *text, uint32_t world,
                   uint32_t width, struct err *err)
{
    *p = (struct placement){.width = width ? width : 1};
    if (!text || !strcmp(text, "block") || !world)
        return 0;
    if (!strcmp(text, "round-robin")) {
        deal_ranks(p, world);
        return 0;
    }
    if (!file_read(p, text, world, err))
        return 0;
    placement_fini(p);
    return -1;
}

void placement_fini(struct placement *p)
{
    free(p->node);
    free(p->gpu);
    *p = (struct placement){.width = p->width};
}

uint32_t placement_nodes(const struct placement *p, uint32_t world)
{
    uint32_t nodes = 0;

    if (!p->ranks)
        return (world + p->width - 1) / p->width;
    for (uint32_t r = 0; r < p->ranks; r++)
        if (p->node[r] >= nodes)
            nodes = p->node[r] + 1;
    return nodes;
}

uint32_t placement_jobs(const struct placement *p, uint32_t world)
{
    return world && p->ranks > world ? p->ranks / world : 1;
}
