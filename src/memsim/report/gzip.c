/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib.h, deflateInit2: 16 asks for gzip */
#define CHUNK       (64u << 10)

struct gzip {
    z_stream z;
    FILE *to;
    unsigned char chunk[CHUNK];
};

/* Takes all input and writes what is ready. Returns 0 or -1. */
static int gzip_drain(struct gzip *g, int flush)
{
    do {
        g->z.next_out = g->chunk;
        g->z.avail_out = CHUNK;
        if (deflate(&g->z, flush) == Z_STREAM_ERROR)
            return -1;
        size_t ready = CHUNK - g->z.avail_out;
        if (fwrite(g->chunk, 1, ready, g->to) != ready)
            return -1;
    } while (!g->z.avail_out);
    return 0;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t size)
{
    struct gzip *g = cookie;

    g->z.next_in = (z_const Bytef *)bytes;
    g->z.avail_in = (uInt)size;
    return gzip_drain(g, Z_NO_FLUSH) ? 0 : (ssize_t)size;
}

static int gzip_close(void *cookie)
{
    struct gzip *g = cookie;

    g->z.avail_in = 0;
    int rc = gzip_drain(g, Z_FINISH);
    deflateEnd(&g->z);
    free(g);
    return rc;
}

FILE *gzip_open(FILE *to)
{
    struct gzip *g = calloc(1, sizeof *g);
    const cookie_io_functions_t functions = {.write = gzip_write,
                                             .close = gzip_close};

    if (!g)
        return NULL;
    g->to = to;
    if (deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(g);
        return NULL;
    }
    FILE *stream = fopencookie(g, "w", functions);
    if (!stream) {
        deflateEnd(&g->z);
        free(g);
    }
    return stream;
}
