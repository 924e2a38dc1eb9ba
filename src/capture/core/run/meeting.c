/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/meeting.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/core/base/raw_call.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/peers.h"
#include "capture/core/run/process.h"
#include "common/base/clamp.h"
#include "common/base/hash.h"

#define SLEEP_NS 100000000 /* between looks at the others */
#define LOCK_NS  20000000  /* after which it is asked who holds the lock */

/* How often one looks in vain for others' values before that is certain: the
 * first look may have begun before they came. */
#define VAIN_LOOKS 2
#define VAIN_NS    2000000 /* between looks at those, at first */

/* When each of the other programs of the run has used less than BUSY_PERCENT of
 * a processor for IDLE_MS, who is missing is not waited for any longer: threads
 * of PyTorch that watch take half a percent. */
#define BUSY_PERCENT 2
#define BUSY_MS      30 /* what a look at them may find */
#define IDLE_MS      2000
#define LOOK_MS      1000 /* who has not looked for so long begins anew */

static _Atomic uint32_t unwanted;
_Atomic uint32_t *meeting_wanted = &unwanted;

static struct meeting_file *file;
static struct meeting_seat *mine;
static uint64_t slept_ns;
static bool forsook;
static _Atomic uint32_t learnt; /* by this process, of messages */

/* --- the lock ------------------------------------------------------------- */

/* As a core_lock, but for one that dies with it. */
static void file_lock(void)
{
    const struct timespec most = {.tv_nsec = LOCK_NS};
    uint32_t wanted = mine->pid, held = 0;

    while (!atomic_compare_exchange_strong(&file->lock, &held, wanted)) {
        uint32_t marked = held | MEETING_CONTENDED;
        wanted = mine->pid | MEETING_CONTENDED;
        if ((held == marked ||
             atomic_compare_exchange_strong(&file->lock, &held, marked)) &&
            raw_futex(&file->lock, FUTEX_WAIT, marked, &most) == -ETIMEDOUT &&
            !memsim_peer_lives(held & ~MEETING_CONTENDED) &&
            atomic_compare_exchange_strong(&file->lock, &marked, wanted))
            return;
        held = 0;
    }
}

static void file_unlock(void)
{
    if (atomic_exchange(&file->lock, 0) & MEETING_CONTENDED)
        raw_futex(&file->lock, FUTEX_WAKE, 1, NULL);
}

/* --- seats ---------------------------------------------------------------- */

static bool is_active(const struct meeting_seat *s)
{
    return s->job == mine->job && s->state != MEETING_FREE &&
           s->state != MEETING_ENDED;
}

/* The least bound of all but the seat EXCEPT. */
static uint64_t bound_least(const struct meeting_seat *except)
{
    uint64_t least_ns = MEETING_NEVER;

    for (int i = 0; i < MEETING_SEATS; i++) {
        const struct meeting_seat *s = &file->seats[i];
        if (s != except && is_active(s) && s->bound_ns < least_ns)
            least_ns = s->bound_ns;
    }
    return least_ns;
}

static void seat_wake(struct meeting_seat *s)
{
    if (s->state != MEETING_WAITS)
        return;
    s->state = MEETING_WOKEN;
    atomic_fetch_add(&s->news, 1);
    raw_futex(&s->news, FUTEX_WAKE, 1, NULL);
}

/* Those that are first of all now may go on. */
static void first_wake(void)
{
    uint64_t least_ns = bound_least(NULL);

    for (int i = 0; i < MEETING_SEATS && least_ns != MEETING_NEVER; i++)
        if (is_active(&file->seats[i]) && file->seats[i].bound_ns == least_ns)
            seat_wake(&file->seats[i]);
}

/* Programs that are not of one job have other ports or sizes. */
static uint32_t job_hash(void)
{
    static const char *const names[] = {"MASTER_PORT", "WORLD_SIZE"};
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        hash = hash_text(hash, text ? text : "");
    }
    return (uint32_t)(hash >> 32);
}

static struct meeting_seat *seat_take(void)
{
    uint32_t pid = (uint32_t)getpid(), job = job_hash();
    struct meeting_seat self = {.pid = pid};

    mine = &self;
    file_lock();
    struct meeting_seat *found = NULL;
    for (int i = 0; i < MEETING_SEATS && !found; i++) {
        struct meeting_seat *s = &file->seats[i];
        if (s->state == MEETING_FREE || s->state == MEETING_ENDED ||
            s->pid == pid || !memsim_peer_lives(s->pid))
            found = s;
    }
    if (found)
        *found = (struct meeting_seat){
            .state = MEETING_RUNS, .pid = pid, .job = job};
    file_unlock();
    return found;
}

static struct meeting_file *file_map(void)
{
    struct stat st;
    struct meeting_file *f = MAP_FAILED;
    int fd = process_file(MEETING_FILE);

    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && (size_t)st.st_size >= sizeof *f)
        f = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                 fd, 0);
    close(fd);
    if (f == MAP_FAILED)
        return NULL;
    if (f->magic == MEETING_MAGIC && f->bytes == sizeof *f &&
        (size_t)st.st_size >= sizeof *f + f->world * sizeof *f->stands)
        return f;
    munmap(f, (size_t)st.st_size);
    return NULL;
}

const struct meeting_file *memsim_meeting_open(void)
{
    if (!file)
        file = file_map();
    if (!file)
        return NULL;
    mine = seat_take();
    if (mine)
        meeting_wanted = &mine->wanted;
    return mine ? file : NULL;
}

bool meeting_is_open(void)
{
    return mine;
}

bool memsim_meeting_is_real(uint32_t rank)
{
    return memsim_peer_is_real(rank);
}

uint32_t memsim_meeting_learnt(void)
{
    return atomic_load_explicit(&learnt, memory_order_relaxed);
}

void meeting_stands_learn(const struct rank_axis *axes, uint32_t count,
                          bool messages)
{
    uint32_t run[SESSION_RANKS], running = 0;

    for (uint32_t r = 0; file && r < file->world && running < SESSION_RANKS;
         r++)
        if (memsim_peer_is_real(r))
            run[running++] = r;
    for (uint32_t r = 0; running && r < file->world; r++)
        file->stands[r] = rank_axis_stand(axes, count, run, running, r);
    if (running)
        file->learnt++;
    learnt += messages;
}

/* --- channels ------------------------------------------------------------- */

static struct meeting_seat *member_seat(uint32_t channel, unsigned member)
{
    uint32_t seat_1 = file->channels[channel].seat_1[member];

    return seat_1 && seat_1 <= MEETING_SEATS ? &file->seats[seat_1 - 1] : NULL;
}

/* --- entries -------------------------------------------------------------- */

static uint32_t *bucket_of(uint32_t channel, uint64_t number)
{
    uint64_t words[2] = {channel, number};

    return &file->buckets_1[hash_bytes(HASH_START, words, sizeof words) %
                            MEETING_BUCKETS];
}

static struct meeting_entry *entry_find(const struct meeting_point *p)
{
    uint32_t at_1 = *bucket_of(p->channel, p->number);

    while (at_1) {
        struct meeting_entry *e = &file->entries[at_1 - 1];
        if (e->channel == p->channel && e->number == p->number)
            return e;
        at_1 = e->next_1;
    }
    return NULL;
}

/* Of P's members those that come to it. */
static uint64_t expected_of(const struct meeting_point *p)
{
    const struct meeting_channel *c = &file->channels[p->channel];
    uint64_t expected = p->expected & ~c->absent;

    for (uint64_t left = expected; p->has_end && left; left &= left - 1)
        if (p->number <= c->before[__builtin_ctzll(left)])
            expected &= ~(left & -left);
    return expected;
}

static struct meeting_entry *entry_make(const struct meeting_point *p)
{
    uint32_t *bucket_1 = bucket_of(p->channel, p->number);
    uint32_t at_1 = file->free_1;

    if (at_1)
        file->free_1 = file->entries[at_1 - 1].next_1;
    else if (file->entries_used < MEETING_POINTS)
        at_1 = ++file->entries_used;
    else
        return NULL;
    struct meeting_entry *e = &file->entries[at_1 - 1];
    *e = (struct meeting_entry){.channel = p->channel,
                                .next_1 = *bucket_1,
                                .number = p->number,
                                .expected = expected_of(p)};
    *bucket_1 = at_1;
    return e;
}

static void entry_free(struct meeting_entry *e)
{
    uint32_t own_1 = (uint32_t)(e - file->entries) + 1;
    uint32_t *at_1 = bucket_of(e->channel, e->number);

    while (*at_1 && *at_1 != own_1)
        at_1 = &file->entries[*at_1 - 1].next_1;
    *at_1 = e->next_1;
    e->next_1 = file->free_1;
    file->free_1 = own_1;
}

static bool is_complete(const struct meeting_entry *e, bool ended)
{
    return !(e->expected & ~e->phase[ended].told);
}

/* A phase of E is complete: its members may act from then on. */
static void members_wake(const struct meeting_entry *e, uint64_t ns)
{
    for (uint64_t left = e->expected; left; left &= left - 1) {
        struct meeting_seat *s =
            member_seat(e->channel, (unsigned)__builtin_ctzll(left));
        if (!s || s == mine || !is_active(s))
            continue;
        s->bound_ns = ns < s->bound_ns ? ns : s->bound_ns;
        seat_wake(s);
    }
}

static void phase_tell(struct meeting_entry *e, bool ended, uint64_t members,
                       uint64_t ns)
{
    struct meeting_phase *phase = &e->phase[ended];

    phase->told |= members;
    phase->ns = ns > phase->ns ? ns : phase->ns;
    if (is_complete(e, ended))
        members_wake(e, phase->ns);
}

int memsim_meeting_put(const struct meeting_point *p, uint64_t ns)
{
    file_lock();
    struct meeting_entry *e = entry_find(p);
    if (!e)
        e = entry_make(p);
    if (e)
        phase_tell(e, p->ended, UINT64_C(1) << p->member, ns);
    atomic_store_explicit(&mine->wanted, 0, memory_order_relaxed);
    file_unlock();
    return e ? 0 : -1;
}

bool memsim_meeting_get(const struct meeting_point *p, uint64_t *ns)
{
    file_lock();
    struct meeting_entry *e = entry_find(p);
    bool complete = !e || is_complete(e, p->ended);
    if (e && complete) {
        struct meeting_phase *phase = &e->phase[p->ended];
        *ns = phase->ns > *ns ? phase->ns : *ns;
        phase->read |= UINT64_C(1) << p->member;
        if (p->ended == p->has_end && !(e->expected & ~phase->read & ~e->gone))
            entry_free(e);
    }
    file_unlock();
    return complete;
}

/* Nobody waits for the MEMBER of CHANNEL in what it did before it joined. */
static void before_tell(uint32_t channel, uint32_t member)
{
    struct meeting_point p = {.channel = channel, .member = member};

    while (p.number < file->channels[channel].before[member]) {
        p.number++;
        struct meeting_entry *e = entry_find(&p);
        if (!e)
            continue;
        e->gone |= UINT64_C(1) << member;
        phase_tell(e, false, UINT64_C(1) << member, 0);
        phase_tell(e, true, UINT64_C(1) << member, 0);
    }
}

uint32_t memsim_meeting_channel(uint64_t key, uint32_t member, uint64_t before)
{
    uint32_t found = MEETING_NONE;

    key = hash_bytes(key, &mine->job, sizeof mine->job) | 1;
    file_lock();
    for (uint32_t i = 0; i < MEETING_CHANNELS && found == MEETING_NONE; i++) {
        uint32_t at = (uint32_t)(key / 2 + i) % MEETING_CHANNELS;
        struct meeting_channel *c = &file->channels[at];
        if (c->key && c->key != key)
            continue;
        c->key = key;
        c->absent &= ~(UINT64_C(1) << member);
        c->seat_1[member] = (uint32_t)(mine - file->seats) + 1;
        c->before[member] = before;
        before_tell(at, member);
        found = at;
    }
    file_unlock();
    return found;
}

/* --- waiting -------------------------------------------------------------- */

static uint64_t missing_of(const struct meeting_point *p)
{
    const struct meeting_entry *e = entry_find(p);

    return e ? e->expected & ~e->phase[p->ended].told : 0;
}

static bool any_complete(const struct meeting_point *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!missing_of(&points[i]))
            return true;
    return false;
}

/* Those that keep this process waiting are to do what they can. */
static void others_want(const struct meeting_point *points, uint32_t count)
{
    for (int i = 0; i < MEETING_SEATS; i++) {
        struct meeting_seat *s = &file->seats[i];
        if (s != mine && is_active(s) && s->bound_ns < mine->bound_ns)
            atomic_store_explicit(&s->wanted, 1, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t left = missing_of(&points[i]); left; left &= left - 1) {
            struct meeting_seat *s = member_seat(
                points[i].channel, (unsigned)__builtin_ctzll(left));
            if (s)
                atomic_store_explicit(&s->wanted, 1, memory_order_relaxed);
        }
}

/* Of P those that will not come: there are no programs that they could be; or,
 * where all are ASKED, they have ended. */
static uint64_t gone_of(const struct meeting_point *p, bool asked)
{
    uint64_t gone = 0, unseated = 0, seated = 0;

    for (uint64_t left = p->expected; left; left &= left - 1) {
        const struct meeting_seat *s =
            member_seat(p->channel, (unsigned)__builtin_ctzll(left));
        seated += s != NULL;
        if (!s)
            unseated |= left & -left;
        else if (s->state == MEETING_ENDED ||
                 (asked && !memsim_peer_lives(s->pid)))
            gone |= left & -left;
    }
    if (unseated & missing_of(p) && seated > memsim_peers_count())
        gone |= unseated;
    return gone & missing_of(p);
}

/* Goes on without MEMBERS of P. */
static void members_forsake(const struct meeting_point *p, uint64_t members,
                            bool for_good)
{
    struct meeting_entry *e = entry_find(p);

    if (!e || !members)
        return;
    if (for_good) {
        e->gone |= members;
        file->channels[p->channel].absent |= members;
    }
    phase_tell(e, p->ended, members, 0);
}

static bool gone_forsake(const struct meeting_point *points, uint32_t count,
                         bool asked)
{
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t gone = gone_of(&points[i], asked);
        any |= gone != 0;
        members_forsake(&points[i], gone, true);
    }
    return any;
}

/* Does everybody of the job wait for ever? */
static bool all_wait(void)
{
    for (int i = 0; i < MEETING_SEATS; i++) {
        const struct meeting_seat *s = &file->seats[i];
        if (is_active(s) &&
            (s->state != MEETING_WAITS || s->bound_ns != MEETING_NEVER))
            return false;
    }
    return true;
}

/* How this process waits. */
struct patience {
    uint64_t doubts_ms; /* when it first asked whether others do anything; 0 */
    bool stands; /* all others sleep or lack values, since these numbers: */
    uint32_t news[MEETING_SEATS], vain[MEETING_SEATS];
};

/* Whether S does nothing before another acts: before MINE. */
static bool is_after(const struct meeting_seat *s)
{
    if (s->vain)
        return true;
    return s->state == MEETING_WAITS &&
           (s->bound_ns > mine->bound_ns ||
            (s->bound_ns == mine->bound_ns && s > mine));
}

static void stand_note(struct patience *p)
{
    for (int i = 0; i < MEETING_SEATS; i++) {
        p->news[i] = file->seats[i].news;
        p->vain[i] = file->seats[i].vain;
    }
}

/* Whether S has done nothing but look for values since P noted that. */
static bool is_certain(const struct meeting_seat *s, const struct patience *p)
{
    int at = (int)(s - file->seats);

    return s->news == p->news[at] &&
           (!s->vain || s->vain >= p->vain[at] + VAIN_LOOKS);
}

/* Nobody can act before this process does: all others sleep until later than
 * it, or lack values. */
static bool is_first(struct patience *p)
{
    bool certain = p->stands, noted = p->stands;

    p->stands = true;
    for (int i = 0; i < MEETING_SEATS && p->stands; i++) {
        const struct meeting_seat *s = &file->seats[i];
        if (s == mine || !is_active(s))
            continue;
        p->stands = is_after(s);
        certain &= is_certain(s, p);
        noted &= s->news == p->news[i];
    }
    if (p->stands && !noted)
        stand_note(p);
    return p->stands && certain;
}

static bool any_lacks(void)
{
    for (int i = 0; i < MEETING_SEATS; i++)
        if (is_active(&file->seats[i]) && file->seats[i].vain)
            return true;
    return false;
}

static uint64_t now_ms(void)
{
    return clock_host(CLOCK_MONOTONIC) / 1000000;
}

/* Whether the other programs have done nothing for IDLE_MS, in which P waited:
 * before that they may have waited for this one. */
static bool is_idle(struct patience *p)
{
    static struct peers_note note;
    static uint64_t since_ms, looked_ms;
    uint64_t now = now_ms();

    if (now > looked_ms + LOOK_MS ||
        memsim_peers_busiest_ms(&note) >
            BUSY_MS + (now - since_ms) * BUSY_PERCENT / 100) {
        memsim_peers_note(&note);
        since_ms = now;
    }
    looked_ms = now;
    if (!p->doubts_ms)
        p->doubts_ms = now;
    return now - most_u64(since_ms, p->doubts_ms) >= IDLE_MS;
}

static void all_forsake(const struct meeting_point *points, uint32_t count)
{
    forsook = true;
    for (uint32_t i = 0; i < count; i++)
        members_forsake(&points[i], missing_of(&points[i]), false);
}

/* Sleeps until this seat is woken, for at most NS. Without the lock. */
static bool seat_sleep(uint32_t news, long ns)
{
    const struct timespec most = {.tv_nsec = ns};
    uint64_t from_ns = clock_host(CLOCK_MONOTONIC);

    clock_freeze();
    raw_futex(&mine->news, FUTEX_WAIT, news, &most);
    uint64_t took_ns = clock_host(CLOCK_MONOTONIC) - from_ns;
    slept_ns += took_ns;
    return took_ns >= (uint64_t)ns;
}

/* One that has waited in vain for a while looks whether that has a point. The
 * lock is held, and given back meanwhile. */
static void doubt_points(const struct meeting_point *points, uint32_t count,
                         struct patience *p)
{
    if (gone_forsake(points, count, true))
        return;
    bool hopeless = all_wait();
    if (!hopeless) {
        file_unlock();
        hopeless = is_idle(p);
        file_lock();
    }
    if (hopeless && !any_complete(points, count))
        all_forsake(points, count);
}

/* Sleeps until there is news, if none of POINTS is complete. The lock is given
 * back meanwhile. Returns for how long it has slept in vain, with WAITED_NS. */
static long seat_wait(const struct meeting_point *points, uint32_t count,
                      long waited_ns)
{
    long soon_ns = VAIN_NS + waited_ns / 8;
    long ns = any_lacks() && soon_ns < SLEEP_NS ? soon_ns : SLEEP_NS;
    uint32_t news = atomic_load(&mine->news);
    bool sleeps = mine->state == MEETING_WAITS && !any_complete(points, count);

    file_unlock();
    bool in_vain = sleeps && seat_sleep(news, ns);
    file_lock();
    mine->state = MEETING_RUNS;
    return in_vain ? waited_ns + ns : 0;
}

uint64_t memsim_meeting_look(const struct meeting_point *points,
                             uint32_t count, uint64_t until_ns, bool patient)
{
    struct patience p = {.stands = false};
    uint64_t least_ns = 0;
    long waited_ns = 0;

    file_lock();
    while (!any_complete(points, count)) {
        mine->bound_ns = until_ns;
        least_ns = bound_least(mine);
        if (until_ns <= least_ns && until_ns != MEETING_NEVER) {
            /* where nobody will come it has to be asked again, and forsaken */
            least_ns = least_ns == MEETING_NEVER ? until_ns : least_ns;
            break;
        }
        if (!patient)
            break;
        mine->state = MEETING_WAITS;
        others_want(points, count);
        first_wake();
        if (waited_ns >= SLEEP_NS)
            doubt_points(points, count, &p);
        else
            gone_forsake(points, count, false);
        if (until_ns != MEETING_NEVER && is_first(&p)) {
            least_ns = until_ns;
            break;
        }
        waited_ns = seat_wait(points, count, waited_ns);
        least_ns = 0;
    }
    mine->state = MEETING_RUNS;
    file_unlock();
    return least_ns;
}

void meeting_lacks(void)
{
    if (mine)
        atomic_fetch_add(&mine->vain, 1);
}

void meeting_has(void)
{
    if (mine && atomic_exchange(&mine->vain, 0))
        atomic_fetch_add(&mine->news, 1);
}

bool memsim_meeting_is_wanted(void)
{
    return atomic_load_explicit(meeting_wanted, memory_order_relaxed);
}

void memsim_meeting_bound(uint64_t ns)
{
    if (!mine)
        return;
    file_lock();
    mine->bound_ns = ns;
    first_wake();
    file_unlock();
}

void meeting_leave(void)
{
    if (!mine)
        return;
    file_lock();
    mine->state = MEETING_ENDED;
    for (int i = 0; i < MEETING_SEATS; i++)
        if (is_active(&file->seats[i]))
            seat_wake(&file->seats[i]);
    file_unlock();
    mine = NULL;
    meeting_wanted = &unwanted;
}

bool meeting_forsook(void)
{
    return forsook;
}

uint64_t meeting_slept(void)
{
    uint64_t ns = slept_ns;

    slept_ns = 0;
    return ns;
}

void meeting_after_fork(void)
{
    mine = NULL;
    meeting_wanted = &unwanted;
    slept_ns = 0;
}
