/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/differ.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/meeting.h"
#include "capture/core/run/process.h"
#include "common/trace/rank_axis.h"
#include "common/trace/session.h"

#define AXES  "MEMSIM_AXES"  /* those that are known: "32:4,1:8" */
#define NAMED "MEMSIM_RANKS" /* those that run, where others do not */

const int memsim_ranks_again = RANK_AXIS_AGAIN;
const int memsim_ranks_most = SESSION_DEVICES;

/* Of ranks that the user named: what this process has found out. */
static struct rank_axis learnt[RANK_AXES];
static uint32_t learnt_count;

bool memsim_ranks_are_chosen(void)
{
    return getenv(AXES) && memsim_session();
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    char line[256];
    va_list list;

    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    int fd = n > 0 && n < (int)sizeof line ? process_file(SESSION_AXES) : -1;
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_APPEND);
    if (write(fd, line, (size_t)n) != n)
        memsim_note("%s: cannot be written", SESSION_AXES);
    close(fd);
}

uint32_t memsim_ranks_axes(struct rank_axis axes[RANK_AXES])
{
    const char *at = getenv(AXES);
    uint32_t count = 0;
    char *end;

    while (at && *at && count < RANK_AXES) {
        axes[count].stride = (uint32_t)strtoul(at, &end, 10);
        axes[count].size =
            *end == ':' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;
        count += axes[count].stride && axes[count].size;
        at = *end == ',' ? end + 1 : NULL;
    }
    return count;
}

static bool is_known(uint32_t stride, uint32_t size)
{
    struct rank_axis axes[RANK_AXES];
    uint32_t count = memsim_ranks_axes(axes);

    for (uint32_t i = 0; i < count; i++)
        if (axes[i].stride == stride && axes[i].size == size)
            return true;
    return false;
}

uint32_t memsim_ranks_stand(uint32_t rank, const uint32_t *ranks,
                            uint32_t count)
{
    struct rank_axis axes[RANK_AXES];

    return rank_axis_stand(axes, memsim_ranks_axes(axes), ranks, count, rank);
}

uint32_t memsim_ranks_first(uint32_t rank)
{
    struct rank_axis axes[RANK_AXES];
    uint32_t count = memsim_ranks_axes(axes), first = 0;

    while (!rank_axis_alike(axes, count, first, rank))
        first++;
    return first;
}

static bool are_named(void)
{
    return getenv(NAMED) && !getenv(AXES) && memsim_session();
}

/* Returns whether that is new. */
static bool axis_learn(uint32_t stride, uint32_t size, const char *kind)
{
    for (uint32_t i = 0; i < learnt_count; i++)
        if (learnt[i].stride == stride && learnt[i].size == size)
            return false;
    if (learnt_count == RANK_AXES)
        return false;
    learnt[learnt_count++] = (struct rank_axis){.stride = stride, .size = size};
    meeting_stands_learn(learnt, learnt_count,
                         !strcmp(kind, RANK_AXIS_MESSAGES));
    return true;
}

static bool is_world(uint32_t count)
{
    return count == memsim_session()->world_size;
}

/* The distance between neighbours of RANKS (NULL: of all); 0: it differs. */
static uint32_t stride_of(const uint32_t *ranks, uint32_t count)
{
    if (!ranks)
        return 1;
    uint32_t stride = ranks[1] - ranks[0];
    for (uint32_t i = 1; i < count; i++)
        if (ranks[i] <= ranks[i - 1] || ranks[i] - ranks[i - 1] != stride)
            return 0;
    return stride;
}

bool memsim_ranks_differ(const uint32_t *ranks, uint32_t count,
                         const char *kind, const char *place)
{
    bool chosen = memsim_ranks_are_chosen(), named = are_named();

    if (!(chosen || named) || count < 2 || (!ranks && !is_world(count)))
        return false;
    uint32_t stride = stride_of(ranks, count);
    if (!stride && chosen)
        memsim_note("%s%sranks %u and %u of a group differ, and its ranks have "
                    "no equal distances: name a rank of each kind (--ranks)",
                    place, *place ? ": " : "", ranks[0], ranks[1]);
    if (!stride ||
        (named ? !axis_learn(stride, count, kind) : is_known(stride, count)))
        return false;
    tell("axis %u %u %s %s\n", stride, count, kind, place);
    return chosen;
}

static bool node_is_run(const struct session *s, uint32_t rank)
{
    uint32_t local = s->local_world_size, first = rank - rank % local;

    for (uint32_t i = first; i < first + local && i < s->world_size; i++)
        if (session_card_of(s, i) == UINT32_MAX)
            return false;
    return true;
}

void ranks_use(uint32_t card)
{
    const struct session *s = memsim_session();
    const char *text = getenv("RANK");
    uint32_t rank = text ? (uint32_t)strtoul(text, NULL, 10) : 0;

    if (!memsim_ranks_are_chosen() || !s->world_size ||
        session_card_of(s, rank) == card || node_is_run(s, rank))
        return;
    tell("axis 1 %u " RANK_AXIS_GPUS "\n", s->local_world_size);
}

void memsim_rank_differs(uint32_t rank, const char *place)
{
    if (memsim_ranks_are_chosen())
        tell("rank %u %s\n", rank, place);
}
