/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/cli/live_status.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"

#define TICK_MS     250
#define CHUNK_BYTES 16384
#define TAIL_BYTES  64 /* in which an escape sequence may have begun */

struct live {
    struct spawn_view view;
    int terminal, master, slave, wake[2];
    const struct rundir *dir;
    pthread_t thread;
    bool runs;
    bool drawn; /* the lines are on the terminal */
    bool torn;  /* the command's last bytes want the next ones */
    int columns, rows;
    struct live_steps steps;
    char lines[LIVE_LINES][LIVE_LINE_BYTES];
};

/* --- the terminal --------------------------------------------------------- */

/* What is written at once. */
struct buffer {
    char bytes[CHUNK_BYTES + 1024];
    size_t count;
};

static void bytes_put(struct buffer *b, const char *bytes, size_t count)
{
    if (count > sizeof b->bytes - b->count)
        count = sizeof b->bytes - b->count;
    memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

static void put_text(struct buffer *b, const char *text)
{
    bytes_put(b, text, strlen(text));
}

static void flush_buffer(const struct live *l, const struct buffer *b)
{
    size_t at = 0;

    while (at < b->count) {
        ssize_t n = write(l->terminal, b->bytes + at, b->count - at);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return;
        at += n > 0 ? (size_t)n : 0;
    }
}

/* The cursor is where the command left it, and stays there: ESC 7 and 8 save
 * and restore its place. */
static void erase_view(struct live *l, struct buffer *b)
{
    if (l->drawn)
        put_text(b, "\0337\033[B\r\033[J\0338");
    l->drawn = false;
}

/* ESC D moves down in the same column, and scrolls at the end of the screen:
 * then there are lines below the cursor. */
static void draw_view(struct live *l, struct buffer *b)
{
    char up[16];

    if (l->torn || l->rows <= LIVE_LINES + 1)
        return;
    for (int i = 0; i < LIVE_LINES; i++)
        put_text(b, "\033D");
    snprintf(up, sizeof up, "\033[%dA", LIVE_LINES);
    put_text(b, up);
    put_text(b, "\0337");
    for (int i = 0; i < LIVE_LINES; i++) {
        size_t length = strlen(l->lines[i]);
        put_text(b, "\r\n\033[7m");
        bytes_put(b, l->lines[i],
                  length < (size_t)l->columns ? length
                                              : (size_t)l->columns - 1);
        put_text(b, "\033[0m\033[K");
    }
    put_text(b, "\0338");
    l->drawn = true;
}

/* The command's terminal is as large as the real one. */
static void size_take(struct live *l)
{
    struct winsize size;

    if (ioctl(l->terminal, TIOCGWINSZ, &size) || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    if (size.ws_col == l->columns && size.ws_row == l->rows)
        return;
    l->columns = size.ws_col;
    l->rows = size.ws_row;
    ioctl(l->master, TIOCSWINSZ, &size);
}

/* --- what the command writes ---------------------------------------------- */

/* Is the escape sequence at TEXT, of COUNT bytes, without its end? */
static bool sequence_is_open(const char *text, size_t count)
{
    if (count < 2)
        return true;
    if (text[1] != '[' && text[1] != ']')
        return false;
    for (size_t i = 2; i < count; i++)
        if (text[1] == ']' ? text[i] == '\a' || text[i] == '\\'
                           : text[i] >= 0x40 && text[i] <= 0x7e)
            return false;
    return true;
}

/* Is the character at the end of TEXT without its last bytes? */
static bool character_is_open(const unsigned char *text, size_t count)
{
    size_t back = 0;

    while (back < 3 && back < count && (text[count - 1 - back] & 0xc0) == 0x80)
        back++;
    if (back >= count)
        return false;
    unsigned char lead = text[count - 1 - back];
    size_t follow = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    return follow > back;
}

/* Nothing may come between these bytes and the next. */
static bool is_open(const char *bytes, size_t count)
{
    size_t from = count > TAIL_BYTES ? count - TAIL_BYTES : 0;

    for (size_t i = count; i-- > from;)
        if (bytes[i] == '\033')
            return sequence_is_open(bytes + i, count - i);
    return character_is_open((const unsigned char *)bytes, count);
}

/* Passes on what is there. Returns false at the end of it. */
static bool pass_output(struct live *l)
{
    struct buffer b = {.count = 0};
    char bytes[CHUNK_BYTES];
    ssize_t n = read(l->master, bytes, sizeof bytes);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0)
        return false;
    erase_view(l, &b);
    bytes_put(&b, bytes, (size_t)n);
    l->torn = is_open(bytes, (size_t)n);
    draw_view(l, &b);
    flush_buffer(l, &b);
    return true;
}

/* --- the thread ----------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The steps are those of the process that used a GPU first. */
static void status_take(struct live *l)
{
    const struct session *s = l->dir->session;
    char path[sizeof l->dir->path + 32];

    run_trace_path(l->dir->path, 0, path, sizeof path);
    live_steps_read(&l->steps, path,
                    atomic_load(&s->processes[0].clock_ahead_ns));
    live_status_write(s, &l->steps, now_ns(), l->lines);
}

static void tick_view(struct live *l)
{
    struct buffer b = {.count = 0};

    size_take(l);
    status_take(l);
    if (l->torn)
        return;
    erase_view(l, &b);
    draw_view(l, &b);
    flush_buffer(l, &b);
}

static void *watch_run(void *context)
{
    struct live *l = context;
    struct pollfd from[] = {{.fd = l->master, .events = POLLIN},
                            {.fd = l->wake[0], .events = POLLIN}};
    struct buffer b = {.count = 0};
    uint64_t next_ms = 0;
    bool open = true;

    while (open) {
        uint64_t now_ms = now_ns() / 1000000;
        if (now_ms >= next_ms) {
            tick_view(l);
            next_ms = now_ms + TICK_MS;
        }
        poll(from, 2, (int)(next_ms - now_ms));
        if (from[0].revents)
            open = pass_output(l);
        else if (from[1].revents)
            open = false; /* the command has ended, and all is passed on */
    }
    erase_view(l, &b);
    flush_buffer(l, &b);
    return NULL;
}

/* --- the view ------------------------------------------------------------- */

/* A terminal as the real one, which does what it does to the bytes alone. */
static int pair_open(struct live *l)
{
    struct termios like;
    char *name;

    l->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (l->master < 0 || grantpt(l->master) || unlockpt(l->master) ||
        !(name = ptsname(l->master)))
        return -1;
    l->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (l->slave < 0)
        return -1;
    if (!tcgetattr(l->terminal, &like)) {
        like.c_oflag &= (tcflag_t)~OPOST;
        like.c_lflag &= (tcflag_t)~ECHO;
        tcsetattr(l->slave, TCSANOW, &like);
    }
    return pipe2(l->wake, O_CLOEXEC);
}

static void pair_close(struct live *l)
{
    int *const all[] = {&l->master, &l->slave, &l->wake[0], &l->wake[1]};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

static void view_begin(void *context, const struct rundir *dir)
{
    struct live *l = context;

    l->dir = dir;
    l->view.out = l->view.err = -1;
    if (pair_open(l)) {
        pair_close(l);
        return;
    }
    size_take(l);
    l->view.err = l->slave;
    l->view.out = isatty(STDOUT_FILENO) ? l->slave : -1;
}

/* All signals are blocked, as the thread then has them: they are memsim's. */
static void view_started(void *context)
{
    struct live *l = context;

    if (l->master < 0)
        return;
    close(l->slave); /* the command's alone: its end is the end of the data */
    l->slave = -1;
    l->runs = !pthread_create(&l->thread, NULL, watch_run, l);
}

static void view_ended(void *context)
{
    struct live *l = context;

    if (l->runs && write(l->wake[1], "", 1) >= 0)
        pthread_join(l->thread, NULL);
    l->runs = false;
    live_steps_fini(&l->steps);
    pair_close(l);
    l->columns = l->rows = 0;
}

struct live *live_create(void)
{
    const char *kind = getenv("TERM");

    if (!isatty(STDERR_FILENO) || !kind || !strcmp(kind, "dumb"))
        return NULL;
    struct live *l = xcalloc(1, sizeof *l);
    *l = (struct live){.terminal = STDERR_FILENO,
                       .master = -1,
                       .slave = -1,
                       .wake = {-1, -1},
                       .view = {.out = -1,
                                .err = -1,
                                .begin = view_begin,
                                .started = view_started,
                                .ended = view_ended}};
    l->view.context = l;
    return l;
}

void live_destroy(struct live *l)
{
    free(l);
}

const struct spawn_view *live_view(const struct live *l)
{
    return l ? &l->view : NULL;
}
