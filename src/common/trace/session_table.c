/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/session_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_limit.h"

#define TABLE_BYTE (1 << 20) /* the table's lock; slot i's is byte i */
#define GROW_SLOTS 64
#define FD_LOWEST  3 /* a program may have closed its standard ones */

_Static_assert(SESSION_SLOTS_MAX <= TABLE_BYTE, "a byte for each slot");

/* --- locks ---------------------------------------------------------------- */

static int lock_call(int fd, bool process, int command, struct flock *lock)
{
    static const int own[] = {
        [F_GETLK] = F_GETLK, [F_SETLK] = F_SETLK, [F_SETLKW] = F_SETLKW};
    static const int description[] = {[F_GETLK] = F_OFD_GETLK,
                                      [F_SETLK] = F_OFD_SETLK,
                                      [F_SETLKW] = F_OFD_SETLKW};
    int rc;

    do
        rc = fcntl(fd, process ? own[command] : description[command], lock);
    while (rc && errno == EINTR);
    return rc;
}

static int lock_byte(int fd, bool process, int command, short type, off_t byte)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return lock_call(fd, process, command, &lock);
}

static bool byte_is_locked(int fd, bool process, off_t byte)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return lock_call(fd, process, F_GETLK, &lock) || lock.l_type != F_UNLCK;
}

bool session_slot_is_held(int fd, uint32_t slot)
{
    return byte_is_locked(fd, false, slot);
}

static bool is_the_session(const struct session_table *t, int fd)
{
    struct stat st;

    return fd >= 0 && !fstat(fd, &st) && st.st_dev == t->device &&
           st.st_ino == t->inode;
}

int session_trace_path(const char *directory, uint32_t number, char *path,
                       size_t size)
{
    int n = snprintf(path, size, "%s/" SESSION_TRACE, directory, number);

    return n >= 0 && (size_t)n < size ? 0 : -1;
}

/* --- opening -------------------------------------------------------------- */

/* A descriptor above the standard ones, close-on-exec. */
static int open_high(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || fd >= FD_LOWEST)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST);
    close(fd);
    return high;
}

/* Opens the session anew: by its path, or through the inherited descriptor. */
static int open_again(const struct session_table *t)
{
    char path[sizeof t->session->directory + sizeof SESSION_FILE + 1];

    snprintf(path, sizeof path, "%s/" SESSION_FILE, t->session->directory);
    int fd = open_high(path);
    if (is_the_session(t, fd))
        return fd;
    if (fd >= 0)
        close(fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", t->given);
    fd = is_the_session(t, t->given) ? open_high(path) : -1;
    if (fd < 0 || is_the_session(t, fd))
        return fd;
    close(fd);
    return -1;
}

/* A descriptor for the table's lock and for questions. */
static int table_descriptor(struct session_table *t)
{
    if (is_the_session(t, t->fd))
        return 0;
    t->inherited = false;
    t->fd = open_again(t);
    if (t->fd >= 0)
        return 0;
    if (!is_the_session(t, t->given))
        return -1;
    t->inherited = true;
    t->fd = t->given;
    return 0;
}

static bool is_whole(const struct session *s)
{
    return !memcmp(s->magic, SESSION_MAGIC, sizeof s->magic) &&
           s->version == SESSION_VERSION && s->bytes == sizeof *s;
}

/* Maps as many slots as the address space allows. What is beyond the file's
 * end is not touched: a slot is there before its number is. */
static int table_map(struct session_table *t, int fd)
{
    struct stat st;
    uint32_t room = SESSION_SLOTS_MAX;
    void *map = MAP_FAILED;

    if (fstat(fd, &st))
        return errno;
    if (st.st_size < (off_t)sizeof(struct session))
        return EINVAL;
    for (; map == MAP_FAILED && room >= GROW_SLOTS; room /= 2)
        map = mmap(NULL, session_bytes(room), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return errno;
    if (!is_whole(map)) {
        munmap(map, session_bytes(room * 2));
        return EINVAL;
    }
    t->session = map;
    t->room = room * 2;
    t->device = st.st_dev;
    t->inode = st.st_ino;
    return 0;
}

int session_table_open(struct session_table *t, const char *path, int given)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), error = errno;

    *t = (struct session_table)SESSION_TABLE_INIT;
    t->given = given;
    if (fd >= 0) {
        error = table_map(t, fd);
        close(fd);
    }
    return error && (given < 0 || table_map(t, given)) ? error : 0;
}

uint32_t session_table_count(const struct session_table *t)
{
    uint32_t count = atomic_load(&t->session->slot_count);

    return count < t->room ? count : t->room;
}

bool session_table_is_held(struct session_table *t, uint32_t slot)
{
    return slot == t->mine || table_descriptor(t) ||
           byte_is_locked(t->fd, t->inherited, slot);
}

/* --- memory of the dead --------------------------------------------------- */

static void give_back(struct session *s, struct session_process *p,
                      uint32_t card)
{
    uint64_t bytes = atomic_exchange(&p->usage[card].used, 0);

    atomic_fetch_sub(&s->devices[card].used_bytes, bytes);
}

static bool others_use(const struct session_table *t, uint32_t card)
{
    uint64_t used = atomic_load(&t->session->devices[card].used_bytes);

    if (t->mine == UINT32_MAX)
        return used;
    return used !=
           atomic_load(&t->session->processes[t->mine].usage[card].used);
}

void session_table_reclaim(struct session_table *t, uint32_t card)
{
    if (!others_use(t, card) || table_descriptor(t) ||
        lock_byte(t->fd, t->inherited, F_SETLKW, F_WRLCK, TABLE_BYTE))
        return;
    for (uint32_t i = 0; i < session_table_count(t); i++) {
        struct session_process *p = &t->session->processes[i];

        if (i != t->mine && atomic_load(&p->usage[card].used) &&
            !byte_is_locked(t->fd, t->inherited, i))
            give_back(t->session, p, card);
    }
    lock_byte(t->fd, t->inherited, F_SETLK, F_UNLCK, TABLE_BYTE);
}

/* --- slots ---------------------------------------------------------------- */

/* Whether P and Q, which are over, ended in the same way. */
static bool ends_alike(const struct session_process *p,
                       const struct session_process *q)
{
    return atomic_load(&p->state) == atomic_load(&q->state) &&
           atomic_load(&p->exit_status) == atomic_load(&q->exit_status) &&
           !atomic_load(&p->stopped_by) == !atomic_load(&q->stopped_by);
}

/* Whether P's peaks are not above Q's, and nothing else of P is told apart. */
static bool is_within(const struct session_process *p,
                      const struct session_process *q)
{
    if (p->command != q->command || !ends_alike(p, q) ||
        atomic_load(&p->died_of_oom) || atomic_load(&p->last_oom_ns) ||
        (atomic_load(&p->trace_end) > 1 &&
         atomic_load(&p->trace_end) != atomic_load(&q->trace_end)))
        return false;
    for (int i = 0; i < SESSION_DEVICES; i++) {
        const struct session_usage *a = &p->usage[i], *b = &q->usage[i];

        if (atomic_load(&a->ooms) ||
            atomic_load(&a->peak_used) > atomic_load(&b->peak_used) ||
            atomic_load(&a->peak_allocated) > atomic_load(&b->peak_allocated) ||
            atomic_load(&a->peak_reserved) > atomic_load(&b->peak_reserved))
            return false;
    }
    return true;
}

/* Adds P, which is over and within Q, to Q: the later of both counts as the
 * one that began and ended. */
static void fold_process(struct session *s, struct session_process *p,
                         struct session_process *q)
{
    if (q->start_ns < p->start_ns)
        q->start_ns = p->start_ns;
    session_raise(&q->end_ns, atomic_load(&p->end_ns));
    atomic_fetch_add(&q->unpriced, atomic_load(&p->unpriced));
    atomic_fetch_add(&q->unknown_reads, atomic_load(&p->unknown_reads));
    for (uint32_t i = 0; i < SESSION_DEVICES; i++) {
        atomic_fetch_add(&q->usage[i].launches,
                         atomic_load(&p->usage[i].launches));
        give_back(s, p, i);
    }
    if (!q->torch_version[0])
        memcpy(q->torch_version, p->torch_version, sizeof q->torch_version);
}

/* Whether slot I was a process of JOINER's rank and program, and is over. */
static bool is_over(const struct session_table *t, uint32_t i,
                    const struct session_joiner *joiner)
{
    const struct session_process *p = &t->session->processes[i];

    if (atomic_load(&p->state) != SESSION_FREE &&
        (p->rank != joiner->rank ||
         strncmp(p->program, joiner->program, sizeof p->program - 1)))
        return false;
    return !byte_is_locked(t->fd, t->inherited, i);
}

/* A slot whose process is over and has been added to another's. */
static uint32_t slot_reuse(const struct session_table *t,
                           const struct session_joiner *joiner)
{
    struct session_process *at = t->session->processes;
    uint32_t kept = UINT32_MAX, count = session_table_count(t);

    for (uint32_t i = 0; i < count; i++) {
        if (!is_over(t, i, joiner))
            continue;
        if (atomic_load(&at[i].state) == SESSION_FREE)
            return i;
        if (kept == UINT32_MAX) {
            kept = i;
        } else if (is_within(&at[i], &at[kept])) {
            fold_process(t->session, &at[i], &at[kept]);
            return i;
        } else if (is_within(&at[kept], &at[i])) {
            fold_process(t->session, &at[kept], &at[i]);
            return kept;
        }
    }
    return UINT32_MAX;
}

static int file_grow(int fd, off_t from, off_t to)
{
    struct file_limit limit;

    file_limit_enter(&limit);
    int error = posix_fallocate(fd, from, to - from);
    file_limit_leave(&limit);
    return error;
}

/* A new slot. The file has room for it before its number is known. */
static uint32_t slot_add(const struct session_table *t)
{
    uint32_t slot = atomic_load(&t->session->slot_count);
    off_t end = (off_t)session_bytes(slot + 1);
    struct stat st;

    if (slot >= t->room) {
        errno = ENOSPC;
        return UINT32_MAX;
    }
    if (fstat(t->fd, &st))
        return UINT32_MAX;
    errno = st.st_size >= end ? 0 : file_grow(t->fd, st.st_size, end);
    if (errno)
        return UINT32_MAX;
    atomic_store(&t->session->slot_count, slot + 1);
    return slot;
}

/* Locks SLOT for as long as this process holds memory. */
static int slot_hold(struct session_table *t, uint32_t slot)
{
    t->hold = t->inherited ? t->given : open_again(t);
    return t->hold < 0
               ? -1
               : lock_byte(t->hold, t->inherited, F_SETLK, F_WRLCK, slot);
}

/* Gives those that were killed an end: now at the latest. */
static void ends_note(const struct session_table *t, uint64_t now_ns)
{
    for (uint32_t i = 0; i < session_table_count(t); i++) {
        struct session_process *p = &t->session->processes[i];

        if (atomic_load(&p->state) == SESSION_RUNNING &&
            !atomic_load(&p->end_ns) &&
            !byte_is_locked(t->fd, t->inherited, i) &&
            atomic_load(&p->state) == SESSION_RUNNING)
            atomic_store(&p->end_ns, now_ns);
    }
}

static void slot_clear(struct session_table *t, uint32_t slot,
                       const struct session_joiner *joiner)
{
    struct session_process *p = &t->session->processes[slot];
    uint64_t ahead_ns = atomic_load(&p->clock_ahead_ns);

    atomic_store(&p->state, SESSION_FREE);
    memset(p, 0, sizeof *p);
    atomic_store(&p->clock_ahead_ns, ahead_ns);
    p->number = atomic_fetch_add(&t->session->process_count, 1);
    p->rank = joiner->rank;
    p->command = joiner->command;
    p->start_ns = joiner->now_ns;
    snprintf(p->program, sizeof p->program, "%s", joiner->program);
}

uint32_t session_table_join(struct session_table *t,
                            const struct session_joiner *joiner)
{
    if (table_descriptor(t) ||
        lock_byte(t->fd, t->inherited, F_SETLKW, F_WRLCK, TABLE_BYTE))
        return UINT32_MAX;
    ends_note(t, joiner->now_ns);
    uint32_t slot = slot_reuse(t, joiner);
    if (slot == UINT32_MAX)
        slot = slot_add(t);
    if (slot != UINT32_MAX && slot_hold(t, slot))
        slot = UINT32_MAX;
    if (slot != UINT32_MAX)
        slot_clear(t, slot, joiner);
    int saved = errno;
    lock_byte(t->fd, t->inherited, F_SETLK, F_UNLCK, TABLE_BYTE);
    errno = saved;
    t->mine = slot;
    return slot;
}

static void reopen_at(int fd, int opened)
{
    if (opened < 0)
        return;
    dup2(opened, fd);
    close(opened);
}

static bool is_closed(int fd)
{
    return fd >= 0 && fcntl(fd, F_GETFD) < 0;
}

void session_table_hand_on(const struct session_table *t, int directory)
{
    int saved = errno;

    if (t->session && is_closed(t->given))
        reopen_at(t->given, open_again(t));
    if (t->session && is_closed(directory))
        reopen_at(directory, open(t->session->directory,
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    errno = saved;
}

bool session_table_is_at(const struct session_table *t, int directory,
                         const char *name)
{
    struct stat st;

    return !fstatat(directory, name, &st, 0) && st.st_dev == t->device &&
           st.st_ino == t->inode;
}

void session_table_forked(struct session_table *t)
{
    if (!t->inherited && is_the_session(t, t->fd))
        close(t->fd);
    t->fd = -1;
    t->mine = UINT32_MAX;
}
