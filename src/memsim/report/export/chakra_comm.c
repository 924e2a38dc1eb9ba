/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/chakra_comm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

static bool is_told(const char id[COMM_ID_BYTES])
{
    static const char zeros[COMM_ID_BYTES];

    return memcmp(id, zeros, sizeof zeros) != 0;
}

static bool is_group(const struct chakra_group *g, const struct comm *c)
{
    if (g->ranks != c->ranks)
        return false;
    if (!c->members)
        return is_told(c->id) && !memcmp(g->id, c->id, sizeof g->id);
    return !memcmp(g->members, c->members, c->ranks * sizeof *c->members);
}

uint32_t chakra_groups_number(const struct chakra_groups *groups,
                              const struct comm *comm)
{
    for (size_t i = 0; i < groups->count; i++)
        if (is_group(&groups->all[i], comm))
            return (uint32_t)i + 1;
    return 0;
}

static void group_add(struct chakra_groups *groups, struct chakra_group group)
{
    xgrow(&groups->all, groups->count, &groups->capacity, sizeof *groups->all);
    groups->all[groups->count++] = group;
}

/* Sets the world's ranks of C's by the logs that have it, too. Returns how many
 * are known. */
static uint32_t members_find(const struct comm *c,
                             const struct comm_log *const *logs, size_t count,
                             uint32_t *members)
{
    uint32_t found = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < logs[i]->comm_count; j++) {
            const struct comm *other = &logs[i]->comms[j];

            if (other->ranks == c->ranks && other->rank < c->ranks &&
                !memcmp(other->id, c->id, sizeof c->id)) {
                members[other->rank] = logs[i]->rank;
                found++;
            }
        }
    return found;
}

static void add_comm(struct chakra_groups *groups, const struct comm *c,
                     const struct comm_log *const *logs, size_t count)
{
    struct chakra_group group = {.ranks = c->ranks};

    if (chakra_groups_number(groups, c) || (!c->members && !is_told(c->id)))
        return;
    group.members = xcalloc((size_t)c->ranks + 1, sizeof *group.members);
    uint32_t found = c->ranks;
    if (c->members) {
        memcpy(group.members, c->members, c->ranks * sizeof *c->members);
    } else {
        memcpy(group.id, c->id, sizeof group.id);
        found = members_find(c, logs, count, group.members);
    }
    if (found == c->ranks)
        group_add(groups, group);
    else
        free(group.members);
}

void chakra_groups_add(struct chakra_groups *groups,
                       const struct comm_log *const *logs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < logs[i]->comm_count; j++)
            add_comm(groups, &logs[i]->comms[j], logs, count);
}

void chakra_groups_fini(struct chakra_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free(groups->all[i].members);
    free(groups->all);
    *groups = (struct chakra_groups){NULL};
}

static void put_groups(const void *report, const struct report_style *style,
                       FILE *out)
{
    const struct chakra_groups *groups = report;

    (void)style;
    for (size_t i = 0; i < groups->count; i++) {
        const struct chakra_group *g = &groups->all[i];

        fprintf(out, "%s\"%zu\": [", i ? ",\n " : "{", i + 1);
        for (uint32_t j = 0; j < g->ranks; j++)
            fprintf(out, "%s%" PRIu32, j ? ", " : "", g->members[j]);
        fprintf(out, "]");
    }
    fprintf(out, "%s}\n", groups->count ? "" : "{");
}

int chakra_groups_write(const struct chakra_groups *groups, const char *path,
                        struct err *err)
{
    static const struct report_ops ops = {.write = put_groups};

    return report_write(&ops, groups, path, err);
}

bool chakra_message_of(const struct chakra_groups *groups,
                       const struct comm *comm, const struct op_part *part,
                       struct map *tags, struct chakra_message *message)
{
    uint32_t group = chakra_groups_number(groups, comm);

    if (!group || part->peer >= comm->ranks || comm->rank >= comm->ranks ||
        part->peer == comm->rank)
        return false;
    const uint32_t *members = groups->all[group - 1].members;
    uint32_t own = members[comm->rank], other = members[part->peer];
    const uint32_t ends[3] = {group, part->receive ? other : own,
                              part->receive ? own : other};
    uint64_t key = hash_bytes(HASH_START, ends, sizeof ends);
    uintptr_t tag = (uintptr_t)map_get(tags, key);

    map_put(tags, key, (void *)(tag + 1));
    *message = (struct chakra_message){.from = ends[1],
                                       .to = ends[2],
                                       .tag = (uint32_t)tag,
                                       .receive = part->receive,
                                       .bytes = part->bytes};
    return true;
}
