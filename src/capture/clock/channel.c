/* SPDX-License-Identifier: Apache-2.0
 * A communicator's members are those of its ranks that are processes. Where a
 * rank is none, the one that runs for it may come from a communicator of its
 * own: those that lie alike and have ranks of the same classes are one, as in
 * reports (comm_join_classes.c). */
#include "capture/clock/channel.h"

#include <string.h>

#include "common/base/hash.h"
#include "common/base/range.h"
#include "common/base/xmalloc.h"

#define ID_BYTES  CHANNEL_ID_BYTES
#define RANKS_MAX (1u << 20)

static const struct meeting_file *meeting;
static uint32_t world;        /* ranks of the job */
static struct map by_handle;  /* struct channel */
static struct map by_classes; /* so many communicators of such classes */
static struct channel **classed; /* in their order; not freed */
static size_t classed_count, classed_capacity;
static uint32_t stands_of, learnt_of; /* the meeting's numbers, for which
                                         by_classes and the channels hold */

void channels_open(const struct meeting_file *file)
{
    meeting = file;
    world = 0;
    by_handle = by_classes = (struct map){0};
    classed = NULL;
    classed_count = classed_capacity = 0;
    stands_of = file ? file->learnt : 0;
    learnt_of = memsim_meeting_learnt();
}

void channels_process(const struct trace_process *process)
{
    world = (uint32_t)process->world_size;
}

void channels_members(uint32_t rank, struct rank_set *members)
{
    for (uint32_t r = 0; meeting && r < meeting->world; r++)
        if (meeting->stands[r] == rank)
            rank_set_add(members, r);
}

struct channel *channel_known(uint64_t handle)
{
    return map_get(&by_handle, handle);
}

/* --- its ranks in the world ----------------------------------------------- */

static uint32_t *ranks_all(uint32_t count)
{
    uint32_t *ranks = xmalloc(count * sizeof *ranks);

    for (uint32_t i = 0; i < count; i++)
        ranks[i] = i;
    return ranks;
}

/* RANKS are of the communicator ROOT. Returns whether they are known. */
static bool ranks_of_root(uint64_t root, uint32_t *ranks, uint32_t count)
{
    const struct channel *c = map_get(&by_handle, root);

    for (uint32_t i = 0; c && c->world && i < count; i++) {
        if (ranks[i] >= c->ranks)
            return false;
        ranks[i] = c->world[ranks[i]];
    }
    return c && c->world;
}

static uint32_t *ranks_read(const struct trace_item *item, uint32_t count)
{
    const struct trace_communicator *made = trace_as_communicator(item);

    if (item->head.text_bytes < ID_BYTES + made->ranges * sizeof(struct range))
        return NULL;
    if (!made->ranges)
        return count == world ? ranks_all(count) : NULL;
    uint32_t *ranks = xmalloc(count * sizeof *ranks);
    if (range_expand(ranks, count, item->text + ID_BYTES, made->ranges) &&
        (!made->root || ranks_of_root(made->root, ranks, count)))
        return ranks;
    xfree(ranks);
    return NULL;
}

/* --- its members ---------------------------------------------------------- */

static bool is_real(uint32_t rank)
{
    return memsim_meeting_is_real(rank);
}

/* The rank that runs for RANK; MEETING_NONE: not known. */
static uint32_t rank_stand(uint32_t rank)
{
    if (is_real(rank))
        return rank;
    return rank < meeting->world ? meeting->stands[rank] : MEETING_NONE;
}

/* Whether all ranks of C are processes. */
static bool is_whole(const struct channel *c)
{
    for (uint32_t i = 0; c->world && i < c->ranks; i++)
        if (!is_real(c->world[i]))
            return false;
    return true;
}

/* Whether the communicator whose ranks are those of C and SHIFT has the same
 * classes. */
static bool lies_alike(const struct channel *c, int64_t shift)
{
    for (uint32_t i = 0; i < c->ranks; i++) {
        int64_t rank = c->world[i] + shift;
        if (rank < 0 || rank >= (int64_t)meeting->world ||
            rank_stand((uint32_t)rank) != rank_stand(c->world[i]))
            return false;
    }
    return true;
}

/* The place in which RUNS, a process, comes to C: its own, or that of a rank
 * that it runs for in a communicator that lies alike. MEETING_NONE: in none. */
static uint32_t place_of(const struct channel *c, uint32_t runs)
{
    for (uint32_t i = 0; i < c->ranks; i++)
        if (c->world[i] == runs)
            return i;
    for (uint32_t i = 0; i < c->ranks; i++)
        if (rank_stand(c->world[i]) == runs &&
            lies_alike(c, (int64_t)runs - (int64_t)c->world[i]))
            return i;
    return MEETING_NONE;
}

/* The member that is C's RANK; MEETING_NONE: none is. */
static uint32_t member_of(const struct channel *c, uint32_t rank)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rank_of[i] == rank)
            return i;
    return MEETING_NONE;
}

/* By rank, so that all of them number them alike. */
static void member_add(struct channel *c, uint32_t rank)
{
    uint32_t at = c->count;

    if (rank == MEETING_NONE || at == MEETING_MEMBERS ||
        member_of(c, rank) != MEETING_NONE)
        return;
    for (; at && c->rank_of[at - 1] > rank; at--)
        c->rank_of[at] = c->rank_of[at - 1];
    c->rank_of[at] = rank;
    c->count++;
}

/* Those that run for the ranks of C. */
static uint32_t runners_find(const struct channel *c,
                             uint32_t runners[MEETING_MEMBERS])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->ranks && count < MEETING_MEMBERS; i++) {
        uint32_t runs = rank_stand(c->world[i]), k = 0;
        while (k < count && runners[k] != runs)
            k++;
        if (k == count && runs != MEETING_NONE)
            runners[count++] = runs;
    }
    return count;
}

static void members_find(struct channel *c)
{
    uint32_t runners[MEETING_MEMBERS];

    if (is_whole(c)) {
        for (uint32_t i = 0; c->ranks <= MEETING_MEMBERS && i < c->ranks; i++)
            member_add(c, i);
    } else {
        uint32_t count = runners_find(c, runners);
        for (uint32_t i = 0; i < count; i++)
            member_add(c, place_of(c, runners[i]));
    }
    c->member = member_of(c, c->rank);
}

/* Of the classes of C's ranks, in their order. */
static uint64_t classes_key(const struct channel *c)
{
    uint64_t hash = hash_bytes(HASH_START, &c->ranks, sizeof c->ranks);

    for (uint32_t i = 0; i < c->ranks; i++) {
        uint32_t runs = rank_stand(c->world[i]);
        hash = hash_bytes(hash, &runs, sizeof runs);
    }
    uintptr_t before = (uintptr_t)map_get(&by_classes, hash | 1);
    map_put(&by_classes, hash | 1, (void *)(before + 1));
    return hash_bytes(hash, &before, sizeof before);
}

/* KEY: of its classes. */
static void channel_join(struct channel *c, uint64_t key)
{
    c->count = 0;
    c->number = MEETING_NONE;
    members_find(c);
    if (is_whole(c))
        key = hash_bytes(HASH_START, c->id, ID_BYTES);
    if (c->count > 1 && c->member != MEETING_NONE)
        c->number = memsim_meeting_channel(key, c->member, c->collectives);
}

/* Ranks stand for others than before: communicators of equal classes are
 * counted anew, as if that had been known. What this process has learnt itself
 * holds for the channels that it has, too. */
static void stands_renew(void)
{
    uint32_t learnt = memsim_meeting_learnt();
    bool join = learnt != learnt_of;

    if (!join && stands_of == meeting->learnt)
        return;
    stands_of = meeting->learnt;
    learnt_of = learnt;
    map_fini(&by_classes);
    by_classes = (struct map){0};
    for (size_t i = 0; i < classed_count; i++) {
        uint64_t key = classes_key(classed[i]);
        if (join && !is_whole(classed[i]))
            channel_join(classed[i], key);
    }
}

struct channel *channel_find(uint64_t handle)
{
    if (meeting && memsim_meeting_learnt() != learnt_of)
        stands_renew();
    return channel_known(handle);
}

void channel_record(const struct trace_item *item)
{
    const struct trace_communicator *made = trace_as_communicator(item);

    if (!made->ranks || made->ranks > RANKS_MAX ||
        made->rank >= made->ranks || item->head.text_bytes < ID_BYTES)
        return;
    struct channel *c = xcalloc(1, sizeof *c);
    *c = (struct channel){.handle = made->communicator,
                          .rank = (uint32_t)made->rank,
                          .ranks = (uint32_t)made->ranks,
                          .number = MEETING_NONE};
    c->world = ranks_read(item, c->ranks);
    map_take(&by_handle, c->handle);
    map_put(&by_handle, c->handle, c);
    if (!meeting || (!c->world && meeting->world))
        return; /* it is alone, or it is not known who is in it */
    memcpy(c->id, item->text, ID_BYTES);
    stands_renew();
    bool has_classes = c->world && meeting->world;
    channel_join(c, has_classes ? classes_key(c) : 0);
    if (has_classes) {
        xgrow(&classed, classed_count, &classed_capacity, sizeof *classed);
        classed[classed_count++] = c;
    }
}

/* --- messages ------------------------------------------------------------- */

bool channel_is_message(const char *name)
{
    return strstr(name, "Send") || strstr(name, "Recv");
}

const struct op_part *channel_parts(const struct op *op, struct op_part *own,
                                    uint32_t *count)
{
    const struct trace_collective *c = op_as_collective(op);

    *count = op->part_count ? op->part_count : 1;
    *own = (struct op_part){.peer = (uint32_t)c->root,
                            .receive = c->receive != 0,
                            .bytes = c->bytes};
    return op->part_count ? op->parts : own;
}

bool channel_has(const struct channel *c, uint32_t peer)
{
    return peer != c->rank && member_of(c, peer) != MEETING_NONE;
}

uint64_t channel_count(struct channel *c, uint32_t peer, bool receives)
{
    uint64_t key = 1 + receives + ((uint64_t)peer << 1);
    uintptr_t n = (uintptr_t)map_get(&c->messages, key);

    map_put(&c->messages, key, (void *)(n + 1));
    return n;
}

bool channel_message(const struct channel *c, const struct op_part *part,
                     uint64_t n, struct meeting_point *point)
{
    uint64_t source = part->receive ? part->peer : c->rank;
    uint64_t target = part->receive ? c->rank : part->peer;

    if (c->number == MEETING_NONE || !channel_has(c, part->peer))
        return false;
    *point = (struct meeting_point){
        .channel = c->number,
        .member = c->member,
        .number = UINT64_C(1) << 63 | source << 43 | target << 23 |
                  (n & 0x7fffff),
        .expected = UINT64_C(1) << c->member |
                    UINT64_C(1) << member_of(c, part->peer),
    };
    return true;
}
