/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/kineto_work.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/range.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "kernels/work.h"

#define ID_BYTES   24 /* of a communicator's text */
#define TEXT_BYTES 512

struct kineto_group {
    char name[ID_BYTES + 1];
    struct range ranks; /* count 0: not known, or not evenly apart */
};

/* An imported profile's group has its name, any other NCCL's number. */
static void group_name(const char *id, size_t bytes, char name[ID_BYTES + 1])
{
    size_t length = 0;

    while (length < bytes && length < ID_BYTES &&
           isalnum((unsigned char)id[length]))
        length++;
    for (size_t i = length; i < bytes && i < ID_BYTES; i++)
        if (id[i] != ' ')
            length = 0;
    memcpy(name, id, length);
    name[length] = '\0';
    if (!length)
        snprintf(name, ID_BYTES + 1, "%016" PRIx64,
                 hash_bytes(HASH_START, id, bytes));
}

void kineto_work_group(struct kineto_work *k, const struct trace_item *item)
{
    const struct trace_communicator *c = trace_as_communicator(item);
    uint64_t key = c->communicator;
    struct kineto_group *group = map_get(&k->groups, key);
    size_t all = item->head.text_bytes;
    size_t bytes = all < ID_BYTES ? all : ID_BYTES;

    if (!group)
        map_put(&k->groups, key, group = xcalloc(1, sizeof *group));
    *group = (struct kineto_group){.ranks = {0, 0, 0}};
    group_name(item->text, bytes, group->name);
    if (c->ranges == 1 && all >= ID_BYTES + sizeof group->ranks)
        memcpy(&group->ranks, item->text + ID_BYTES, sizeof group->ranks);
}

/* --- collectives ---------------------------------------------------------- */

/* NCCL's types, as PyTorch calls them. */
static const struct {
    const char *name;
    uint64_t bytes;
} types[] = {{"Char", 1},          {"Byte", 1},   {"Int", 4},
             {"Int", 4},           {"Long", 8},   {"Long", 8},
             {"Half", 2},          {"Float", 4},  {"Double", 8},
             {"BFloat16", 2},      {"Float8_e4m3fn", 1},
             {"Float8_e5m2", 1}};

/* "allreduce" of "ncclAllReduce" or of "ncclDevKernel_AllReduce_Sum". */
static void collective_name(const char *from, char name[32])
{
    const char *at = strrchr(from, '_') && text_begins(from, "ncclDev")
                         ? strchr(from, '_') + 1
                     : !text_begins(from, "nccl") ? from
                                                  : from + 4;
    size_t i = 0;

    for (; i < 31 && isalnum((unsigned char)at[i]); i++)
        name[i] = (char)tolower((unsigned char)at[i]);
    name[i] = '\0';
}

/* Sends and receives belong to their peer alone. */
static bool is_between_two(const struct op *op, const char *name)
{
    return op->part_count || strstr(name, "Send") || strstr(name, "Recv");
}

static char *collective_text(const struct kineto_work *k, const struct op *op,
                             const char *name)
{
    const struct trace_collective *c = op_as_collective(op);
    const struct kineto_group *g = map_get(&k->groups, c->communicator);
    char what[32], ranks[64] = "";
    uint64_t type = c->type < sizeof types / sizeof *types ? c->type : 1;

    if (is_between_two(op, name) || !c->bytes || !c->ranks || !g)
        return NULL;
    if (c->bytes % types[type].bytes)
        type = 1;
    uint64_t most = c->bytes / types[type].bytes, least = most / c->ranks;
    collective_name(name, what);
    if (g->ranks.count > 1)
        snprintf(ranks, sizeof ranks,
                 ",\"Process Group Ranks\":\"[%u, %u%s]\"", g->ranks.first,
                 range_at(&g->ranks, 1), g->ranks.count > 2 ? ", ..." : "");
    return xasprintf(
        ",\"Collective name\":\"%s\",\"Process Group Name\":\"%s\""
        ",\"dtype\":\"%s\",\"In msg nelems\":%" PRIu64
        ",\"Out msg nelems\":%" PRIu64 ",\"Group size\":%" PRIu64 "%s",
        what, g->name, types[type].name, strstr(what, "gather") ? least : most,
        strstr(what, "scatter") ? least : most, c->ranks, ranks);
}

/* --- all others ----------------------------------------------------------- */

static char *words_text(unsigned rule, const uint64_t words[])
{
    char text[TEXT_BYTES];
    unsigned count = TRACE_LAUNCH_WORDS;
    int at = snprintf(text, sizeof text, ",\"work\":\"%x", rule);

    while (count && !words[count - 1])
        count--;
    for (unsigned i = 0; i < count; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %" PRIx64,
                       words[i]);
    snprintf(text + at, sizeof text - (size_t)at, "\"");
    return xstrdup(text);
}

static char *work_text(const struct op *op, const char *name)
{
    uint64_t words[TRACE_LAUNCH_WORDS];

    if (op->kind == OP_LAUNCH) {
        const struct trace_launch *l = op_as_launch(op);
        unsigned rule = (unsigned)(l->shared_bytes_rule >> 32);
        return rule == TRACE_RULE_NONE ? NULL : words_text(rule, &l->a);
    }
    return work_words(op, name, words) ? words_text(TRACE_RULE_WORK, words)
                                       : NULL;
}

void kineto_work_keep(struct kineto_work *k, uint64_t tag, const struct op *op,
                      const char *name)
{
    char *text = NULL;

    if (op->kind == OP_COLLECTIVE)
        text = collective_text(k, op, name);
    else if (op->kind != OP_COPY && op->kind != OP_SET &&
             op->kind != OP_HOST_FUNCTION)
        text = work_text(op, name);
    if (text)
        map_put(&k->texts, tag, text);
}

char *kineto_work_take(struct kineto_work *k, uint64_t tag)
{
    return map_take(&k->texts, tag);
}

static void values_free(struct map *map)
{
    size_t cursor = 0;

    for (void *value; (value = map_next(map, &cursor));)
        free(value);
    map_fini(map);
}

void kineto_work_fini(struct kineto_work *k)
{
    values_free(&k->texts);
    values_free(&k->groups);
}
