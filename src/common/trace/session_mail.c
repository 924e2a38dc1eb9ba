/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/session_mail.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void session_handover_read(struct session_handover *h, const char *text)
{
    *h = (struct session_handover){.session = -1, .directory = -1};
    if (text && sscanf(text, "%d,%d,%19[0-9a-f],%32[0-9a-f]", &h->session,
                       &h->directory, h->token, h->secret) < 2)
        h->session = h->directory = -1;
}

socklen_t session_mail_address(const char *token, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                     "memsim-%s", token);

    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

void session_mail_send(const struct session_handover *h, const char *text,
                       size_t bytes)
{
    struct sockaddr_un to;
    struct iovec parts[] = {{(void *)h->secret, SESSION_SECRET_BYTES},
                            {(void *)text, bytes}};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    const struct msghdr message = {
        .msg_name = &to,
        .msg_namelen = session_mail_address(h->token, &to),
        .msg_iov = parts,
        .msg_iovlen = 2,
    };
    sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}
