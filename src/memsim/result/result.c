/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/collate.h"
#include "memsim/result/result_cards.h"
#include "common/base/text_begins.h"
#include "memsim/result/result_process.h"
#include "memsim/result/result_verdict.h"
#include "memsim/result/result.h"
#include "memsim/run/ended.h"
#include "memsim/time/time_log.h"
#include "memsim/time/timing.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/trace.h"
#include "common/base/clamp.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/status.h"
#include "memsim/collectives/traffic.h"

static uint64_t load_value(const session_u64 *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* Slots handed out, of an array of LIMIT. */
static bool usage_is_empty(const struct session_usage *u)
{
    return !load_value(&u->context) && !load_value(&u->peak_used) &&
           !load_value(&u->peak_reserved) && !load_value(&u->launches) &&
           !load_value(&u->ooms);
}

static struct result_rank *rank_get(struct result *r, const struct session *s,
                                    uint32_t slot)
{
    const struct session_process *p = &s->processes[slot];
    size_t at = 0;

    while (at < r->rank_count && r->ranks[at].rank < p->rank)
        at++;
    if (at < r->rank_count && r->ranks[at].rank == p->rank)
        return &r->ranks[at];
    r->ranks = xreallocarray(r->ranks, r->rank_count + 1, sizeof *r->ranks);
    memmove(r->ranks + at + 1, r->ranks + at,
            (r->rank_count - at) * sizeof *r->ranks);
    r->rank_count++;
    r->ranks[at] = (struct result_rank){.rank = p->rank};
    snprintf(r->ranks[at].program, sizeof r->ranks[at].program, "%s",
             p->program);
    return &r->ranks[at];
}

static struct result_device *device_get(struct result_rank *rank,
                                        const struct session *s, unsigned card)
{
    unsigned index = session_card_index(s, card);
    size_t at = 0;

    while (at < rank->device_count && rank->devices[at].index < index)
        at++;
    if (at < rank->device_count && rank->devices[at].index == index)
        return &rank->devices[at];
    rank->devices = xreallocarray(rank->devices, rank->device_count + 1,
                                  sizeof *rank->devices);
    memmove(rank->devices + at + 1, rank->devices + at,
            (rank->device_count - at) * sizeof *rank->devices);
    rank->device_count++;
    const struct session_device *from = &s->devices[card];
    uint64_t peak = load_value(&from->peak_used_bytes);
    rank->devices[at] = (struct result_device){
        .index = index,
        .card = card,
        .capacity_bytes = from->capacity_bytes,
        .peak_used_bytes = peak,
        .headroom_bytes = minus_or_zero(from->capacity_bytes, peak),
    };
    return &rank->devices[at];
}

/* A rank's processes on one GPU: each has an allocator of its own, so the
 * figures are those of the process with the highest peak, not sums; without
 * PyTorch the highest of what it used. */
static void device_merge(struct result_device *d, const struct session_usage *u,
                         uint32_t number, bool first)
{
    uint64_t peak = load_value(&u->peak_allocated);
    uint64_t others =
        minus_or_zero(d->peak_used_bytes, load_value(&u->peak_used));

    if (first || peak > d->peak_allocated_bytes ||
        (peak == d->peak_allocated_bytes && others < d->others_bytes)) {
        d->process = number;
        d->context_bytes = load_value(&u->context);
        d->libraries_bytes = load_value(&u->libraries);
        d->others_bytes = others;
    }
    d->peak_allocated_bytes = most_u64(d->peak_allocated_bytes, peak);
    d->peak_reserved_bytes =
        most_u64(d->peak_reserved_bytes, load_value(&u->peak_reserved));
}

static void ranks_collect(struct result *r, const struct session *s)
{
    for (uint32_t slot = 0; slot < session_slots(s); slot++)
        for (uint32_t i = 0; i < s->device_count && i < SESSION_DEVICES; i++) {
            const struct session_usage *u = &s->processes[slot].usage[i];
            if (usage_is_empty(u))
                continue;
            struct result_rank *rank = rank_get(r, s, slot);
            size_t before = rank->device_count;
            struct result_device *d = device_get(rank, s, i);
            d->own = result_is_own_card(s, &s->processes[slot], i);
            device_merge(d, u, s->processes[slot].number,
                         rank->device_count > before);
        }
}

struct result_device *result_device_find(const struct result *r, unsigned rank,
                                         unsigned index)
{
    for (struct result_walk w = {NULL}; result_walk_next(r, &w);)
        if (w.rank->rank == rank && w.device->index == index)
            return w.device;
    return NULL;
}

static bool oom_is_last(const struct session *s, uint32_t index)
{
    uint32_t count = session_used(&s->oom_count, SESSION_OOMS);

    for (uint32_t i = 0; i < count; i++)
        if (s->ooms[i].ready && s->ooms[i].process == s->ooms[index].process &&
            s->ooms[i].time_ns > s->ooms[index].time_ns)
            return false;
    return true;
}

/* What the GPU lacked. The refused cudaMalloc, not the request, tells: torch
 * asks the driver for whole segments (CUDACachingAllocator.cpp,
 * get_allocation_size). */
static uint64_t oom_missing(const struct session_oom *o)
{
    uint64_t wanted = most_u64(o->refused_bytes, o->requested_bytes);
    uint64_t granule = 2 * MIB; /* of the driver's physical memory */

    if (wanted <= UINT64_MAX - granule)
        wanted = (wanted + granule - 1) / granule * granule;
    return minus_or_zero(wanted, o->free_bytes);
}

static void oom_add(struct result *r, const struct session *s, uint32_t index)
{
    const struct session_oom *o = &s->ooms[index];
    const struct session_process *p = &s->processes[o->process];
    struct result_device *d =
        result_device_find(r, p->rank, session_card_index(s, o->device));

    if (!d)
        return;
    bool fatal = result_process_is_fatal(r, s, p) && oom_is_last(s, index);
    d->ooms = xreallocarray(d->ooms, d->oom_count + 1, sizeof *d->ooms);
    d->ooms[d->oom_count++] = (struct result_oom){
        .caught = !fatal,
        .torch = o->torch,
        .requested_bytes = o->requested_bytes,
        .free_bytes = o->free_bytes,
        .allocated_bytes = o->allocated_bytes,
        .unallocated_bytes =
            minus_or_zero(o->reserved_bytes, o->allocated_bytes),
        .missing_bytes = oom_missing(o),
    };
}

static void ooms_collect(struct result *r, const struct session *s)
{
    for (uint32_t i = 0; i < session_used(&s->oom_count, SESSION_OOMS); i++)
        if (s->ooms[i].ready && s->ooms[i].process < session_slots(s))
            oom_add(r, s, i);
}

#define KILLED "the command was killed, "

void result_note(struct result *result, const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    result->notes = xreallocarray(result->notes, result->note_count + 1,
                                  sizeof *result->notes);
    result->notes[result->note_count++] = text;
}

static const char trace_is_short[] =
    "the trace is cut short, the peaks are whole, and what was in memory is "
    "told of the time before";

/* What the traces lack, by the session's own account. */
static void traces_note(struct result *r, const struct session *s)
{
    unsigned full = 0, limited = 0;

    for (uint32_t i = 0; i < session_slots(s); i++) {
        uint32_t end = atomic_load(&s->processes[i].trace_end);
        full += end == TRACE_END_FULL + 1;
        limited += end == TRACE_END_LIMIT + 1;
    }
    if (full)
        result_note(r, "the disk was full: use -o on another disk; %s",
                    trace_is_short);
    r->cut_short = full || limited || s->background;
    if (limited)
        result_note(r, "--trace-limit was reached: %s", trace_is_short);
}

static void counts_note(struct result *r, const struct session *s)
{
    uint32_t lost = atomic_load(&s->lost_count);
    uint32_t ooms = atomic_load(&s->oom_count);

    for (uint32_t i = 0; i < session_slots(s); i++)
        r->unpriced += load_value(&s->processes[i].unpriced);
    if (lost)
        result_note(r,
                    "%u process%s of the run could not be measured: these "
                    "figures are too low",
                    lost, lost == 1 ? "" : "es");
    if (ooms > SESSION_OOMS)
        result_note(r, "%u requests were refused; only the first %u are here",
                    ooms, SESSION_OOMS);
    if (s->background)
        result_note(r,
                    "%u process%s still running in the background: what "
                    "comes later is not in this report",
                    s->background, s->background == 1 ? " is" : "es are");
}

void result_note_explained(struct result *result)
{
    size_t kept = 0;

    for (size_t i = 0; i < result->note_count; i++) {
        char *text = result->notes[i];
        if (!text_begins(text, KILLED))
            result->notes[kept++] = text;
        else
            free(text);
    }
    result->note_count = kept;
}

void result_note_unpriced(struct result *r)
{
    if (r->unpriced && r->directory)
        result_note(r,
                    "%" PRIu64 " calls went to functions that memsim does not "
                    "model; `memsim trace --kind unpriced %s' names them",
                    r->unpriced, r->directory);
    else if (r->unpriced)
        result_note(r,
                    "%" PRIu64 " calls went to functions that memsim does not "
                    "model; -o DIR keeps a trace that names them",
                    r->unpriced);
}

static void real_note(struct result *r, const struct session *s)
{
    r->real = s->real;
    if (!s->real || !s->world_size)
        return;
    r->emulated = s->world_size - s->rank_count;
    if (r->emulated)
        result_note(r,
                    "%u of the job's %u ranks did not exist: a collective took "
                    "what the cluster's model says, and brought back what this "
                    "rank sent",
                    r->emulated, s->world_size);
}

static void notes_collect(struct result *r, const struct session *s)
{
    real_note(r, s);
    if (r->verdict == VERDICT_FAILED && r->command_status == ended_by(SIGKILL))
        result_note(r, KILLED "maybe by this machine for lack of its own "
                              "memory: see dmesg");
    if (!r->rank_count)
        result_note(r,
                    "the command never used a GPU: there was nothing to "
                    "measure%s",
                    result_is_unmeasured(r, s)
                        ? ", and a limit was to be kept: is its "
                          "PyTorch one for CPUs only?"
                        : "");
    if (!r->finished)
        result_note(r, "the run is not over, or memsim was killed: these are "
                       "the figures so far");
    for (uint32_t i = 0; i < session_used(&s->note_count, SESSION_NOTES); i++)
        if (atomic_load(&s->notes[i].ready))
            result_note(r, "%.*s", SESSION_TEXT_BYTES, s->notes[i].text);
    result_process_notes(r, s);
    counts_note(r, s);
    traces_note(r, s);
}

static int guess_compare(const void *one, const void *other)
{
    const struct result_guess *a = one, *b = other;

    if (a->times != b->times)
        return a->times < b->times ? 1 : -1;
    int order = strcmp(a->module, b->module);
    return order ? order : strcmp(a->operation, b->operation);
}

static void guesses_collect(struct result *r, const struct session *s)
{
    uint32_t all = atomic_load(&s->guess_count);

    r->guesses_dropped = all > SESSION_GUESSES ? all - SESSION_GUESSES : 0;
    for (uint32_t i = 0; i < session_used(&s->guess_count, SESSION_GUESSES);
         i++) {
        const struct session_guess *from = &s->guesses[i];
        if (!atomic_load(&from->ready))
            continue;
        r->guesses =
            xreallocarray(r->guesses, r->guess_count + 1, sizeof *r->guesses);
        struct result_guess *g = &r->guesses[r->guess_count++];
        *g = (struct result_guess){.times = load_value(&from->times),
                                   .elements = load_value(&from->elements),
                                   .chosen = load_value(&from->chosen),
                                   .is_read = from->is_read};
        snprintf(g->operation, sizeof g->operation, "%.*s",
                 SESSION_NAME_BYTES - 1, from->operation);
        snprintf(g->module, sizeof g->module, "%.*s", SESSION_NAME_BYTES - 1,
                 from->module);
        snprintf(g->where, sizeof g->where, "%.*s", SESSION_NAME_BYTES - 1,
                 from->where);
        snprintf(g->what, sizeof g->what, "%.*s", SESSION_TEXT_BYTES - 1,
                 from->what);
    }
    if (r->guess_count)
        qsort(r->guesses, r->guess_count, sizeof *r->guesses, guess_compare);
}

static struct capability_set code_read(const struct session *s, int origin)
{
    struct capability_set set;

    for (int i = 0; i < CAPABILITY_WORDS; i++)
        set.bits[i] = atomic_load(&s->code[origin][i]);
    return set;
}

/* A GPU needs code of PyTorch's and of the others, where these are used. */
struct capability_set result_code(const struct session *s)
{
    const struct capability_set own = code_read(s, 0), other = code_read(s, 1);
    struct capability_set both = {{0}};

    if (capability_is_empty(&own) || capability_is_empty(&other))
        return capability_is_empty(&own) ? other : own;
    for (int i = 0; i < CAPABILITY_WORDS; i++)
        both.bits[i] = own.bits[i] & other.bits[i];
    return both;
}

void result_init(struct result *result, const struct session *session,
                 char *const *command)
{
    *result = (struct result){
        .command = command,
        .gpu = session->gpu,
        .code = result_code(session),
        .finished = session->end_ns != 0,
        .command_status = (int)session->exit_status,
        .fail_above_percent = session->fail_above_percent,
        .seconds =
            (double)minus_or_zero(session->end_ns, session->start_ns) / 1e9,
    };
    for (uint32_t i = session_slots(session); i-- > 0;)
        if (session->processes[i].torch_version[0])
            snprintf(result->torch_version, sizeof result->torch_version, "%s",
                     session->processes[i].torch_version);
    ranks_collect(result, session);
    result_others_collect(result, session);
    result_strays_collect(result, session);
    result_verdict_reach(result, session);
    ooms_collect(result, session);
    result_ranks_classify(result);
    notes_collect(result, session);
    guesses_collect(result, session);
}

static void advice_free(struct result_device *d)
{
    for (size_t i = 0; i < d->advice_count; i++) {
        free(d->advice[i].what);
        free(d->advice[i].command);
        free(d->advice[i].basis);
        free(d->advice[i].again);
        cJSON_Delete(d->advice[i].edits);
    }
    free(d->advice);
}

void result_fini(struct result *result)
{
    for (size_t i = 0; i < result->rank_count; i++) {
        struct result_rank *rank = &result->ranks[i];
        for (size_t j = 0; j < rank->device_count; j++) {
            free(rank->devices[j].ooms);
            free(rank->devices[j].others);
            free(rank->devices[j].things);
            attribution_destroy(rank->devices[j].attribution);
            advice_free(&rank->devices[j]);
        }
        free(rank->devices);
        rank_set_fini(&rank->members);
        timing_destroy(rank->timing);
        time_log_destroy(rank->step);
    }
    free(result->ranks);
    traffic_destroy(result->traffic);
    collation_destroy(result->collation);
    for (size_t i = 0; i < result->event_count; i++)
        result->events[i].destroy(result->events[i].log);
    free(result->events);
    for (size_t i = 0; i < result->timeline_count; i++)
        time_log_destroy(result->timelines[i].log);
    free(result->timelines);
    free(result->dependencies);
    free(result->scans);
    for (size_t i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    free(result->notes);
    for (size_t i = 0; i < result->file_count; i++)
        free(result->files[i].path);
    free(result->files);
    free(result->guesses);
    free(result->failures);
    free(result->hosts);
    for (size_t i = 0; i < result->stray_count; i++)
        rank_set_fini(&result->strays[i].ranks);
    free(result->strays);
}

void result_timeline_add(struct result *result, unsigned rank,
                         uint32_t process, struct time_log *log)
{
    result->timelines =
        xreallocarray(result->timelines, result->timeline_count + 1,
                      sizeof *result->timelines);
    result->timelines[result->timeline_count++] =
        (struct result_timeline){rank, process, log};
}

const struct time_log *result_timeline_find(const struct result *result,
                                            uint32_t process)
{
    for (size_t i = 0; i < result->timeline_count; i++)
        if (result->timelines[i].process == process)
            return result->timelines[i].log;
    return NULL;
}
