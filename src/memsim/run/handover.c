/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/handover.h"

#include <fcntl.h>
#include <stdbool.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
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

static int mail_open(const char *token)
{
    struct sockaddr_un address;
    socklen_t length = session_mail_address(token, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || !bind(fd, (const struct sockaddr *)&address, length))
        return fd;
    close(fd);
    return -1;
}

/* The name is a secret of this run's processes: anybody may send to it. */
void handover_open(struct handover *h, const struct rundir *dir)
{
    char path[sizeof dir->path + sizeof SESSION_FILE + 1], token[20] = "";
    uint64_t secret;

    snprintf(path, sizeof path, "%s/" SESSION_FILE, dir->path);
    *h = (struct handover){.mail = -1};
    h->session = open_inherited(path, O_RDWR);
    h->directory = open_inherited(dir->path, O_RDONLY | O_DIRECTORY);
    if (getrandom(&secret, sizeof secret, 0) == sizeof secret) {
        snprintf(token, sizeof token, "%" PRIx64, secret);
        h->mail = mail_open(token);
    }
    snprintf(h->value, sizeof h->value, "%d,%d,%s", h->session, h->directory,
             token);
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

void handover_collect(const struct handover *h, struct rundir *dir)
{
    char text[SESSION_TEXT_BYTES];
    ssize_t n;

    while (h->mail >= 0 && (n = recv(h->mail, text, sizeof text, 0)) > 0)
        note_add(dir->session, text, (size_t)n);
}

void handover_close(struct handover *h)
{
    handover_given(h);
    if (h->mail >= 0)
        close(h->mail);
    h->mail = -1;
}
