/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/handover.h"

#include <fcntl.h>
#include <stdbool.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/xmalloc.h"

#define FD_FROM 200 /* above what programs count on */

/* Opens PATH as a descriptor that the command inherits. */
static int open_inherited(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD, FD_FROM);

    if (fd >= 0 && high < 0) /* a low limit on descriptors */
        high = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    if (fd >= 0)
        close(fd);
    return high;
}

#define WORDS (SESSION_SECRET_BYTES / 4)

/* Has the kernel drop datagrams that do not begin with SECRET: they would fill
 * the queue. */
static int filter_attach(int fd, const char *secret)
{
    struct sock_filter code[2 * WORDS + 2];
    struct sock_fprog program = {.len = 2 * WORDS + 2, .filter = code};

    for (unsigned i = 0; i < WORDS; i++) {
        const unsigned char *s = (const unsigned char *)secret + 4 * i;
        uint32_t word = (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 |
                        (uint32_t)s[2] << 8 | s[3];

        code[2 * i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                   4 * i);
        code[2 * i + 1] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, word, 0,
            (uint8_t)(2 * (WORDS - 1 - i) + 1));
    }
    code[2 * WORDS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
    code[2 * WORDS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                      sizeof program);
}

static int mail_open(const char *token, const char *secret)
{
    struct sockaddr_un address;
    socklen_t length = session_mail_address(token, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return fd;
    if (!filter_attach(fd, secret) &&
        !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) &&
        !bind(fd, (const struct sockaddr *)&address, length))
        return fd;
    close(fd);
    return -1;
}

/* Anybody on the machine may send to the name. What counts comes from this user
 * or root, and has the secret. */
void handover_open(struct handover *h, const struct rundir *dir)
{
    char path[sizeof dir->path + sizeof SESSION_FILE + 1], token[20] = "";
    uint64_t random[3];

    snprintf(path, sizeof path, "%s/" SESSION_FILE, dir->path);
    *h = (struct handover){.mail = -1};
    h->session = open_inherited(path, O_RDWR);
    if (h->session >= 0)
        flock(h->session, LOCK_SH); /* as long as one has it: leftovers.c */
    h->directory = open_inherited(dir->path, O_RDONLY | O_DIRECTORY);
    if (getrandom(random, sizeof random, 0) == sizeof random) {
        snprintf(token, sizeof token, "%" PRIx64, random[0]);
        snprintf(h->secret, sizeof h->secret, "%016" PRIx64 "%016" PRIx64,
                 random[1], random[2]);
        h->mail = mail_open(token, h->secret);
    }
    snprintf(h->value, sizeof h->value, "%d,%d,%s,%s", h->session,
             h->directory, token, h->secret);
}

void handover_given(struct handover *h)
{
    if (h->session >= 0)
        close(h->session);
    if (h->directory >= 0)
        close(h->directory);
    h->session = h->directory = -1;
}

static void note_add(struct session *s, const char *text, size_t length)
{
    uint32_t i = atomic_fetch_add(&s->note_count, 1);

    atomic_fetch_add(&s->lost_count, 1);
    if (i >= SESSION_NOTES)
        return;
    length = length < SESSION_TEXT_BYTES ? length : SESSION_TEXT_BYTES - 1;
    memcpy(s->notes[i].text, text, length);
    s->notes[i].text[length] = '\0';
    s->notes[i].process = UINT32_MAX;
    atomic_store(&s->notes[i].ready, 1);
}

/* Is the sender of MESSAGE this user or root? Root's commands may be any
 * user's, after su. */
static bool is_trusted(struct msghdr *message)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    struct ucred sender;

    if (!head || head->cmsg_level != SOL_SOCKET ||
        head->cmsg_type != SCM_CREDENTIALS ||
        head->cmsg_len < CMSG_LEN(sizeof sender))
        return false;
    memcpy(&sender, CMSG_DATA(head), sizeof sender);
    return !geteuid() || !sender.uid || sender.uid == geteuid();
}

/* The length of the next message, 0 where it does not count; -1: no more. */
static ssize_t receive_text(const struct handover *h, char *text, size_t size)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {text, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(h->mail, &message, MSG_CMSG_CLOEXEC);

    return n >= 0 && !is_trusted(&message) ? 0 : n;
}

void handover_collect(const struct handover *h, struct rundir *dir)
{
    char text[SESSION_SECRET_BYTES + SESSION_TEXT_BYTES];
    ssize_t n;

    while (h->mail >= 0 && (n = receive_text(h, text, sizeof text)) >= 0)
        if (n > SESSION_SECRET_BYTES &&
            !memcmp(text, h->secret, SESSION_SECRET_BYTES))
            note_add(dir->session, text + SESSION_SECRET_BYTES,
                     (size_t)n - SESSION_SECRET_BYTES);
}

void handover_close(struct handover *h)
{
    handover_given(h);
    if (h->mail >= 0)
        close(h->mail);
    h->mail = -1;
}
