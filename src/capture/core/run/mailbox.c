/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/mailbox.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/core/base/raw_call.h"
#include "capture/core/run/process.h"

#define LETTERS   512
#define ROOM      (UINT64_C(4) << 20) /* of a seat, for what letters hold */
#define MIXED     255u                /* each byte has its own mark */
#define FILE_NAME sizeof(SESSION_EXCHANGE) + 2 * MAILBOX_ID_BYTES

/* Valid while KEY is not 0, and what it holds while the seat's head has not
 * come ROOM further than OFFSET. */
struct letter {
    _Atomic uint64_t key;
    uint64_t bytes, offset;
    uint32_t mark; /* of all bytes, or MIXED */
    uint32_t held; /* 1: its bytes are there; else they are 0 */
};

struct seat {
    _Atomic uint32_t rank_1; /* its rank, from 1; 0: free */
    _Atomic uint32_t pid;
    _Atomic uint64_t posted, head;
    struct letter letters[LETTERS];
    char room[ROOM];
};

struct mailbox_file {
    _Atomic uint32_t news; /* counts what happened: a futex */
    uint32_t unused[15];
    struct seat seats[];
};

static uint64_t key_of(const struct mailbox_letter *letter)
{
    return letter->number << 24 | ((letter->to + 1) & 0xffffff);
}

static size_t file_bytes(uint32_t seats)
{
    return sizeof(struct mailbox_file) + seats * sizeof(struct seat);
}

static void file_name(const char id[MAILBOX_ID_BYTES], char name[FILE_NAME])
{
    char *to = name + sprintf(name, SESSION_EXCHANGE);

    for (int i = 0; i < MAILBOX_ID_BYTES; i++)
        to += sprintf(to, "%02x", (unsigned char)id[i]);
}

/* The file, or where there is none memory of this process alone. */
static struct mailbox_file *file_map(const char id[MAILBOX_ID_BYTES],
                                     uint32_t seats)
{
    char name[FILE_NAME];
    size_t bytes = file_bytes(seats);

    file_name(id, name);
    int fd = process_file(name);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        fd = -1;
    }
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
                          : MAP_SHARED | MAP_NORESERVE,
                   fd, 0);
    if (fd >= 0)
        close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static void read_news(struct mailbox_file *file)
{
    atomic_fetch_add(&file->news, 1);
    syscall(SYS_futex, &file->news, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void memsim_mailbox_open(struct mailbox *box, const char id[MAILBOX_ID_BYTES],
                         uint32_t rank, uint32_t ranks)
{
    *box = (struct mailbox){
        .seats = ranks < MAILBOX_SEATS ? ranks : MAILBOX_SEATS,
        .seat = MAILBOX_SEATS};
    box->file = file_map(id, box->seats);
    for (uint32_t i = 0; box->file && i < box->seats; i++) {
        uint32_t none = 0;

        if (atomic_compare_exchange_strong(&box->file->seats[i].rank_1, &none,
                                           rank + 1)) {
            atomic_store(&box->file->seats[i].pid, (uint32_t)getpid());
            box->seat = i;
            read_news(box->file);
            return;
        }
    }
}

void memsim_mailbox_close(struct mailbox *box)
{
    if (box->file)
        munmap(box->file, file_bytes(box->seats));
    box->file = NULL;
}

static const struct seat *seat_of(const struct mailbox *box, uint32_t rank)
{
    for (uint32_t i = 0; box->file && i < box->seats; i++)
        if (box->file->seats[i].rank_1 == rank + 1)
            return &box->file->seats[i];
    return NULL;
}

bool memsim_mailbox_seated(const struct mailbox *box, uint32_t rank,
                           uint32_t *pid)
{
    const struct seat *seat = seat_of(box, rank);

    if (seat)
        *pid = seat->pid;
    return seat;
}

uint32_t memsim_mailbox_ranks(const struct mailbox *box,
                              uint32_t ranks[MAILBOX_SEATS])
{
    uint32_t count = 0, at;

    for (uint32_t i = 0; box->file && i < box->seats; i++) {
        uint32_t rank_1 = box->file->seats[i].rank_1;

        if (!rank_1)
            continue;
        for (at = count++; at && ranks[at - 1] > rank_1 - 1; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank_1 - 1;
    }
    return count;
}

void memsim_mailbox_sleep(const struct mailbox *box, unsigned ms)
{
    struct timespec time = {.tv_nsec = (long)ms * 1000000};

    static _Atomic uint32_t nothing;
    _Atomic uint32_t *news = box->file ? &box->file->news : &nothing;

    raw_futex(news, FUTEX_WAIT, atomic_load(news), &time);
}

/* --- letters -------------------------------------------------------------- */

static bool is_uniform(const unsigned char *marks, uint64_t bytes)
{
    return !bytes || !memcmp(marks, marks + 1, bytes - 1);
}

/* Takes BYTES of the seat's room, in one piece. Returns where. */
static uint64_t room_take(struct seat *seat, uint64_t bytes)
{
    uint64_t head = seat->head;

    if (head % ROOM + bytes > ROOM)
        head += ROOM - head % ROOM;
    atomic_store(&seat->head, head + bytes);
    return head;
}

void memsim_mailbox_post(struct mailbox *box,
                         const struct mailbox_letter *letter, const void *data,
                         const unsigned char *marks)
{
    if (!box->file || box->seat >= box->seats ||
        letter->bytes > MAILBOX_BYTES)
        return;
    struct seat *seat = &box->file->seats[box->seat];
    struct letter *l = &seat->letters[seat->posted % LETTERS];
    bool uniform = !data || is_uniform(marks, letter->bytes);
    atomic_store(&l->key, 0);
    l->bytes = letter->bytes;
    l->mark = !data || !letter->bytes ? 0 : uniform ? marks[0] : MIXED;
    l->held = data && letter->bytes;
    if (l->held) {
        l->offset = room_take(seat, letter->bytes * (uniform ? 1 : 2));
        memcpy(seat->room + l->offset % ROOM, data, letter->bytes);
        if (!uniform)
            memcpy(seat->room + l->offset % ROOM + letter->bytes, marks,
                   letter->bytes);
    }
    atomic_store(&l->key, key_of(letter));
    atomic_fetch_add(&seat->posted, 1);
    read_news(box->file);
}

/* Of SEAT the letter with KEY, or NULL with *LATER set where a later one to the
 * same is there. */
static const struct letter *letter_find(const struct seat *seat, uint64_t key,
                                        bool *later)
{
    uint64_t posted = seat->posted;
    uint64_t first = posted > LETTERS ? posted - LETTERS : 0;

    *later = false;
    for (uint64_t i = posted; i-- > first;) {
        uint64_t found = seat->letters[i % LETTERS].key;

        if (found == key)
            return &seat->letters[i % LETTERS];
        if (found > key && ((found ^ key) & 0xffffff) == 0)
            *later = true;
    }
    return NULL;
}

static void letter_copy(const struct seat *seat, const struct letter *l,
                        uint64_t at, uint64_t count, void *data,
                        unsigned char *marks)
{
    const char *from = seat->room + l->offset % ROOM;

    if (l->held)
        memcpy(data, from + at, count);
    else
        memset(data, 0, count);
    if (l->mark == MIXED)
        memcpy(marks, from + l->bytes + at, count);
    else
        memset(marks, (int)l->mark, count);
}

enum mail memsim_mailbox_read(const struct mailbox *box,
                              const struct mailbox_letter *letter, uint64_t at,
                              uint64_t count, void *data, unsigned char *marks)
{
    const struct seat *seat = seat_of(box, letter->from);
    uint64_t key = key_of(letter);
    bool later;

    if (!seat)
        return MAIL_NOBODY;
    const struct letter *l = letter_find(seat, key, &later);
    if (!l)
        return later ? MAIL_LOST : MAIL_NOT_YET;
    if (l->bytes != letter->bytes || at + count > l->bytes ||
        l->bytes > MAILBOX_BYTES)
        return MAIL_LOST;
    if (!data)
        return MAIL_HERE;
    letter_copy(seat, l, at, count, data, marks);
    atomic_thread_fence(memory_order_seq_cst);
    if (l->key != key || (l->held && seat->head - l->offset > ROOM))
        return MAIL_LOST;
    return MAIL_HERE;
}
