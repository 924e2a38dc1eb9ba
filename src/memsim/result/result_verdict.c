/* SPDX-License-Identifier: Apache-2.0
 *
 *   a process that used a GPU ended ...      counts as
 *   with status 0                            well
 *   with another, or was killed              failed, unless
 *     a process of the run had stopped it      well, if memory was not refused
 *     the same command was run later, and      made good: noted
 *     ended with status 0
 *
 * A failed process makes the verdict also where the command ends with 0. */
#include "memsim/result/result_verdict.h"
#include "memsim/result/result_cards.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"

/* --- how processes ended -------------------------------------------------- */

/* Whether the last refusal was the end of process P: its error reached the top
 * level, or it got no memory and launched nothing after it. */
static bool process_gave_up(const struct session_process *p)
{
    uint64_t last_oom_ns = atomic_load(&p->last_oom_ns);

    return atomic_load(&p->died_of_oom) ||
           (last_oom_ns && atomic_load(&p->went_on_ns) < last_oom_ns);
}

/* A program that became another one by an exec that memsim did not see. */
static bool has_successor(const struct session *s, uint32_t slot)
{
    for (uint32_t i = slot + 1; i < session_slots(s); i++)
        if (s->processes[i].pid == s->processes[slot].pid)
            return true;
    return false;
}

static bool uses_gpu(const struct session_process *p)
{
    for (int i = 0; i < SESSION_DEVICES; i++)
        if (atomic_load(&p->usage[i].context) ||
            atomic_load(&p->usage[i].peak_used))
            return true;
    return false;
}

/* The command's own status says how its process ended, not its slot. */
static bool ended_badly(const struct session *s, uint32_t slot)
{
    const struct session_process *p = &s->processes[slot];

    if (!uses_gpu(p) || (p->pid == s->command_pid && !s->exit_status))
        return false;
    if (atomic_load(&p->state) == SESSION_EXITED)
        return atomic_load(&p->exit_status) != 0;
    return atomic_load(&p->state) == SESSION_KILLED && !has_successor(s, slot);
}

/* Whether the command of P was run again after its end, and all was well. */
static bool is_made_good(const struct session *s,
                         const struct session_process *p)
{
    uint64_t end_ns = atomic_load(&p->end_ns);

    for (uint32_t i = 0; end_ns && i < session_slots(s); i++) {
        const struct session_process *q = &s->processes[i];
        if (q->command == p->command && q->rank == p->rank &&
            q->start_ns >= end_ns && uses_gpu(q) &&
            atomic_load(&q->state) == SESSION_EXITED &&
            !atomic_load(&q->exit_status))
            return true;
    }
    return false;
}

/* Those of which the time is not known come last. */
static int failure_compare(const void *one, const void *other)
{
    const struct result_failure *a = one, *b = other;

    if (a->seconds != b->seconds)
        return !a->seconds || (b->seconds && b->seconds < a->seconds) ? 1 : -1;
    return a->number < b->number ? -1 : 1;
}

static void failure_add(struct result *r, const struct session *s,
                        const struct session_process *p)
{
    uint64_t end_ns = atomic_load(&p->end_ns);
    bool killed = atomic_load(&p->state) == SESSION_KILLED;

    r->failures = xreallocarray(r->failures, r->failure_count + 1,
                                sizeof *r->failures);
    struct result_failure *f = &r->failures[r->failure_count++];
    *f = (struct result_failure){
        .number = p->number,
        .pid = p->pid,
        .rank = p->rank,
        .ranks = p->world_size > 1,
        .command = p->pid == s->command_pid,
        .killed = killed,
        .stopped = atomic_load(&p->stopped_by),
        .status = atomic_load(&p->exit_status),
        .seconds = killed || end_ns < s->start_ns
                       ? 0
                       : (double)(end_ns - s->start_ns) / 1e9,
        .out_of_memory = process_gave_up(p),
        .made_good = is_made_good(s, p),
    };
    snprintf(f->program, sizeof f->program, "%s", p->program);
}

static void failures_collect(struct result *r, const struct session *s)
{
    for (uint32_t i = 0; r->finished && i < session_slots(s); i++) {
        const struct session_process *p = &s->processes[i];

        if (ended_badly(s, i) &&
            (!atomic_load(&p->stopped_by) || process_gave_up(p)))
            failure_add(r, s, p);
    }
    if (r->failure_count)
        qsort(r->failures, r->failure_count, sizeof *r->failures,
              failure_compare);
}

const struct result_failure *result_failure_decisive(const struct result *r)
{
    const struct result_failure *first = NULL;

    for (size_t i = 0; i < r->failure_count && !r->children_ignored; i++) {
        const struct result_failure *f = &r->failures[i];
        if (f->made_good)
            continue;
        if (f->out_of_memory)
            return f;
        first = first ? first : f;
    }
    return first;
}

/* --- the verdict ---------------------------------------------------------- */

/* A process that ran out of memory may have told the command so, and ended
 * well itself. */
static bool a_process_gave_up(const struct session *s)
{
    for (uint32_t i = 0; i < session_slots(s); i++)
        if (process_gave_up(&s->processes[i]) &&
            !is_made_good(s, &s->processes[i]))
            return true;
    return false;
}

static bool is_over_limit(const struct result *r)
{
    if (!r->fail_above_percent)
        return false;
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if ((double)w.device->peak_used_bytes * 100 >
            r->fail_above_percent * (double)w.device->capacity_bytes)
            return true;
    return false;
}

bool result_is_unmeasured(const struct result *r, const struct session *s)
{
    return !r->rank_count && (s->require_gpu || r->fail_above_percent ||
                               s->host_limit_bytes);
}

static void verdict_set(struct result *r, enum verdict verdict, int status)
{
    r->verdict = verdict;
    r->exit_status = status;
}

void result_verdict_unknown(struct result *r, const char *why)
{
    verdict_set(r, VERDICT_UNKNOWN, CMD_RUN_UNKNOWN);
    r->why = why;
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if (w.device->peak_used_bytes > r->needs_bytes)
            r->needs_bytes = w.device->peak_used_bytes;
}

void result_verdict_reach(struct result *r, const struct session *s)
{
    if (!r->finished)
        r->command_status = CMD_RUN_FAILED;
    r->children_ignored = s->ignore_children;
    r->exit_status = r->command_status;
    r->refused = atomic_load(&s->oom_count);
    failures_collect(r, s);
    const struct result_failure *hidden = result_failure_decisive(r);

    if ((r->command_status && a_process_gave_up(s)) ||
        (hidden && hidden->out_of_memory))
        verdict_set(r, VERDICT_OOM, CMD_RUN_OOM);
    else if (r->command_status)
        verdict_set(r, VERDICT_FAILED, r->command_status);
    else if (hidden || result_is_unmeasured(r, s) ||
             atomic_load(&s->lost_count))
        verdict_set(r, VERDICT_FAILED, CMD_RUN_FAILED);
    else if (!r->rank_count)
        verdict_set(r, VERDICT_NONE, CMD_OK);
    else if (is_over_limit(r))
        verdict_set(r, VERDICT_OVER_LIMIT, CMD_RUN_OVER_LIMIT);
    else if (result_strays_hide(r, s))
        result_verdict_unknown(r, "ranks share GPUs, and not all were run");
}

bool result_process_is_fatal(const struct result *r, const struct session *s,
                             const struct session_process *p)
{
    return r->verdict == VERDICT_OOM && process_gave_up(p) &&
           !is_made_good(s, p);
}

bool result_is_whole(const struct result *r)
{
    return r->verdict == VERDICT_FITS || r->verdict == VERDICT_GROWS ||
           r->verdict == VERDICT_HOST || r->verdict == VERDICT_INPUT ||
           r->verdict == VERDICT_OVER_LIMIT || r->no_steps;
}

const char *result_verdict_name(enum verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_FITS] = "fits",
        [VERDICT_OOM] = "oom",
        [VERDICT_OVER_LIMIT] = "over-limit",
        [VERDICT_FAILED] = "failed",
        [VERDICT_UNKNOWN] = "unknown",
        [VERDICT_NONE] = "none",
        [VERDICT_GROWS] = "grows",
        [VERDICT_HOST] = "host-memory",
        [VERDICT_INPUT] = "input",
    };

    return names[verdict];
}

/* --- notes ---------------------------------------------------------------- */

/* "rank 3", or "process 1 (python)", in TEXT. */
static void failure_name(const struct result_failure *f, char *text,
                         size_t size)
{
    if (f->ranks)
        snprintf(text, size, "rank %u", f->rank);
    else
        snprintf(text, size, "process %u (%s)", f->pid, f->program);
}

static void failure_note(struct result *r, const struct result_failure *f)
{
    const char *after = f->made_good ? "; run again, it ended with status 0"
                                     : "";
    char name[sizeof f->program + 32];

    failure_name(f, name, sizeof name);
    if (f->stopped)
        result_note(r, "another process ended %s, whose last request for "
                       "memory had been refused%s", name, after);
    else if (f->killed)
        result_note(r, "%s was killed, or crashed%s", name, after);
    else
        result_note(r, "%s ended with status %u after %.1f s%s", name,
                    f->status, f->seconds, after);
}

void result_failure_notes(struct result *r)
{
    const struct result_failure *f = result_failure_decisive(r);

    if (!f && r->failure_count)
        f = &r->failures[0];
    if (!f || (f->command && !f->ranks)) /* the command's status says it */
        return;
    failure_note(r, f);
    if (r->failure_count > 1 && !f->ranks)
        result_note(r, "%zu more of its processes failed (--json lists them)",
                    r->failure_count - 1);
    if (!r->command_status && r->verdict != VERDICT_FITS)
        result_note(r, "the command itself ended with status 0: what %s used "
                       "is not what a whole job uses; --ignore-children takes "
                       "the command's word",
                    f->ranks ? "the other ranks" : "its processes");
}
