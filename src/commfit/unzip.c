/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/unzip.h"
#include "common/base/xmalloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#define CHUNK 65536u

struct unzip {
    FILE *raw;
    z_stream stream;
    bool between; /* members: here the input may end */
    unsigned char in[CHUNK];
};

static bool refill_input(struct unzip *u)
{
    if (u->stream.avail_in)
        return true;
    u->stream.next_in = u->in;
    u->stream.avail_in = (unsigned)fread(u->in, 1, CHUNK, u->raw);
    return u->stream.avail_in > 0;
}

static ssize_t fail_read(void)
{
    errno = EIO;
    return -1;
}

static ssize_t unzip_read(void *cookie, char *to, size_t size)
{
    struct unzip *u = cookie;

    u->stream.next_out = (unsigned char *)to;
    u->stream.avail_out = size < CHUNK ? (unsigned)size : CHUNK;
    unsigned room = u->stream.avail_out;
    while (u->stream.avail_out == room) {
        if (!refill_input(u))
            return ferror(u->raw) || !u->between ? fail_read() : 0;
        if (u->between && inflateReset(&u->stream) != Z_OK)
            return fail_read();
        u->between = false;
        int rc = inflate(&u->stream, Z_NO_FLUSH);
        u->between = rc == Z_STREAM_END;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return fail_read();
    }
    return (ssize_t)(room - u->stream.avail_out);
}

static int unzip_close(void *cookie)
{
    struct unzip *u = cookie;

    inflateEnd(&u->stream);
    free(u);
    return 0;
}

FILE *unzip_open(FILE *raw)
{
    const cookie_io_functions_t functions = {.read = unzip_read,
                                             .close = unzip_close};
    struct unzip *u = xcalloc(1, sizeof *u);

    u->raw = raw;
    if (inflateInit2(&u->stream, 15 + 16) == Z_OK) {
        FILE *file = fopencookie(u, "r", functions);
        if (file)
            return file;
        inflateEnd(&u->stream);
    }
    free(u);
    return NULL;
}
