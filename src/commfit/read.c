/* SPDX-License-Identifier: Apache-2.0
 * Finding out what a file is. */
#include "commfit/read.h"
#include "commfit/read_astra.h"
#include "commfit/read_flight.h"
#include "commfit/read_inspector.h"
#include "commfit/read_kineto.h"
#include "commfit/unzip.h"
#include "common/base/json_text.h"
#include "common/trace/trace.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum format {
    FORMAT_CSV,
    FORMAT_LOG,
    FORMAT_PROMETHEUS,
    FORMAT_ASTRA,
    FORMAT_JSON,
    FORMAT_BINARY,
};

#define SNIFF_BYTES 4096

bool lines_next(struct lines *l)
{
    int c;

    if (l->again) {
        l->again = false;
        return true;
    }
    l->length = 0;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n')
        if (l->length + 1 < LINE_BYTES)
            l->text[l->length++] = c ? (char)c : ' ';
    if (c == EOF && !l->length)
        return false;
    l->text[l->length] = '\0';
    l->number++;
    return true;
}

size_t split_blanks(char *text, char **tokens, size_t max)
{
    size_t count = 0;
    char *rest = text, *token;

    while (count < max && (token = strtok_r(NULL, " \t\r", &rest)))
        tokens[count++] = token;
    return count;
}

/* A CSV's first line that is no comment names at least a size and a time. */
static bool looks_like_csv(const char *text)
{
    while (*text == '#' || *text == '\n' || *text == '\r') {
        text = strchr(text, '\n');
        if (!text)
            return false;
        text++;
    }
    char *line = strndup(text, strcspn(text, "\n"));
    bool csv = line && strchr(line, ',') && strcasestr(line, "size") &&
               strcasestr(line, "time");
    free(line);
    return csv;
}

static enum format format_of(const char *text, size_t length)
{
    if (length >= 2 && !memcmp(text, "\x1f\x8b", 2))
        return FORMAT_BINARY;
    if (memchr(text, 0, length))
        return FORMAT_BINARY;
    if (text[strspn(text, " \t\r\n")] == '{')
        return FORMAT_JSON;
    if (inspector_is_text(text))
        return FORMAT_PROMETHEUS;
    if (astra_is_text(text))
        return FORMAT_ASTRA;
    return looks_like_csv(text) ? FORMAT_CSV : FORMAT_LOG;
}

static const char *base_name(const char *path)
{
    if (!strcmp(path, "-"))
        return "standard input";
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int (*const readers[])(struct bench *, struct lines *, struct err *) = {
    [FORMAT_CSV] = read_csv,
    [FORMAT_LOG] = read_log,
    [FORMAT_PROMETHEUS] = read_inspector_text,
    [FORMAT_ASTRA] = read_astra,
};

static int read_lines(struct bench *b, FILE *file, const char *path,
                      enum format format, struct err *err)
{
    struct lines *lines = xcalloc(1, sizeof *lines);
    int rc;

    lines->file = file;
    lines->path = path;
    lines->source = base_name(path);
    rc = readers[format](b, lines, err);
    if (!rc && ferror(file))
        rc = err_set(err, "%s: %s", path, strerror(errno));
    free(lines);
    return rc;
}

/* A stream whose beginning was looked at, and is read again: a pipe cannot be
 * rewound, and may be longer than any disk. */
struct peeked {
    FILE *file;
    size_t length, at; /* of what was read of HEAD, and given out again */
    char head[SNIFF_BYTES + 1];
};

static ssize_t peeked_read(void *cookie, char *to, size_t size)
{
    struct peeked *p = cookie;
    size_t left = p->length - p->at;

    if (!left) {
        size_t got = fread(to, 1, size, p->file);
        return !got && ferror(p->file) ? -1 : (ssize_t)got;
    }
    if (size > left)
        size = left;
    memcpy(to, p->head + p->at, size);
    p->at += size;
    return (ssize_t)size;
}

/* Fills *P with the beginning of FILE; returns the stream to read, NULL on
 * failure. The caller closes both. */
static FILE *peek_line(struct peeked *p, FILE *file)
{
    const cookie_io_functions_t functions = {.read = peeked_read};

    p->at = 0;
    p->file = file;
    p->length = fread(p->head, 1, SNIFF_BYTES, file);
    p->head[p->length] = '\0';
    return ferror(file) ? NULL : fopencookie(p, "r", functions);
}

static bool is_zipped(const struct peeked *p)
{
    return p->length >= 2 && !memcmp(p->head, "\x1f\x8b", 2);
}

/* A pickle of protocol 2 or later; PyTorch's dumps have 2. */
static bool is_pickle(const struct peeked *p)
{
    return p->length >= 2 && p->head[0] == '\x80' && p->head[1] >= 2 &&
           p->head[1] <= 5;
}

static int read_pickle(struct bench *b, FILE *file, const char *path,
                       struct err *err)
{
    size_t length;
    char *data = json_text_read_stream(file, path, &length, err);

    if (!data)
        return -1;
    int rc = read_flight_pickle(b, data, length, path, base_name(path), err);
    free(data);
    return rc;
}

/* Reads what the beginning of the file says it is. */
static int read_file(struct bench *b, const struct peeked *p, FILE *file,
                     const char *path, struct err *err)
{
    const char *head = p->head;
    size_t length = p->length;

    if (!length)
        return err_set(err, "%s: empty; give nccl-tests' output or a CSV",
                       path);
    enum format format = format_of(head, length);
    if (length >= 8 && !memcmp(head, TRACE_MAGIC, 8))
        return err_set(err,
                       "%s: a trace of memsim's, which has no measured times; "
                       "give nccl-tests' output or a PyTorch profiler's trace "
                       "of real GPUs",
                       path);
    if (is_pickle(p))
        return read_pickle(b, file, path, err);
    if (format == FORMAT_BINARY)
        return err_set(err,
                       "%s: binary; give nccl-tests' text output, its JSON or "
                       "a CSV (also compressed by gzip)",
                       path);
    if (format == FORMAT_JSON && inspector_is_json(head))
        return read_inspector_json(b, file, path, base_name(path), err);
    if (format == FORMAT_JSON && kineto_is_text(head))
        return read_kineto(b, file, path, base_name(path), err);
    if (format == FORMAT_JSON)
        return read_json(b, file, path, base_name(path), err);
    return read_lines(b, file, path, format, err);
}

static int check_rows(const struct bench *b, uint64_t rows, uint64_t drops,
                      const char *path, struct err *err)
{
    int worst = 0;

    if (b->rows > rows)
        return 0;
    if (b->drop_count == drops && b->failure[0])
        return err_set(err,
                       "%s: no table row in it: the run failed: %s; run it "
                       "again with NCCL_DEBUG=WARN",
                       path, b->failure);
    if (b->drop_count == drops)
        return err_set(err,
                       "%s: no table row in it; what is missing is lines of "
                       "size, count, type and times, as nccl-tests prints "
                       "them, or a CSV's header and rows",
                       path);
    for (int i = 1; i < BENCH_REASONS; i++)
        if (b->dropped[i] > b->dropped[worst])
            worst = i;
    return err_set(err, "%s: none of its %llu rows is usable: mostly \"%s\"",
                   path, (unsigned long long)(b->drop_count - drops),
                   bench_reason_text((enum bench_reason)worst));
}

static void add_source(struct bench *b, const char *path)
{
    if (b->source_count < sizeof b->sources / sizeof *b->sources) {
        snprintf(b->sources[b->source_count], sizeof b->sources[0], "%s",
                 base_name(path));
        text_make_printable(b->sources[b->source_count]);
    }
    b->source_count++;
}

/* Reads RAW, or what is compressed in it. */
static int read_stream(struct bench *b, FILE *raw, const char *path,
                       struct err *err)
{
    struct peeked outer, inner;
    FILE *file = peek_line(&outer, raw), *unzipped = NULL;
    struct peeked *at = &outer;

    if (!file)
        return err_set(err, "%s: %s", path, strerror(errno));
    if (is_zipped(&outer)) {
        FILE *zipped = file;

        unzipped = unzip_open(zipped);
        file = unzipped ? peek_line(&inner, unzipped) : NULL;
        at = &inner;
        if (!file) {
            if (unzipped)
                fclose(unzipped);
            fclose(zipped);
            return err_set(err, "%s: damaged gzip data", path);
        }
        int rc = read_file(b, at, file, path, err);
        if (!rc && ferror(unzipped))
            rc = err_set(err, "%s: damaged gzip data", path);
        fclose(file);
        fclose(unzipped);
        fclose(zipped);
        return rc;
    }
    int rc = read_file(b, at, file, path, err);
    fclose(file);
    return rc;
}

static int read_one(struct bench *b, const char *path, struct err *err)
{
    uint64_t rows = b->rows, drops = b->drop_count;
    FILE *raw =
        strcmp(path, "-") ? fopen(path, "re") : fdopen(dup(STDIN_FILENO), "r");

    if (!raw)
        return err_set(err, "%s: %s", path, strerror(errno));
    int rc = read_stream(b, raw, path, err);
    fclose(raw);
    text_make_printable(b->gpu);
    if (rc)
        return rc;
    if (check_rows(b, rows, drops, path, err))
        return -1;
    add_source(b, path);
    return 0;
}

static int select_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Every file of the directory PATH and of those in it, DEPTH of them; files
 * without rows are listed, as logs lie beside scripts. */
#define DEPTH_MAX 8

static int read_directory(struct bench *b, const char *path, int depth,
                          struct err *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, select_visible, alphasort);

    if (count < 0)
        return err_set(err, "%s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        char *inside = xasprintf("%s/%s", path, entries[i]->d_name);
        struct err skipped = {""};
        struct stat status;

        if (stat(inside, &status))
            bench_note(b, "%s: %s", entries[i]->d_name, strerror(errno));
        else if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX)
            read_directory(b, inside, depth + 1, &skipped);
        else if (S_ISREG(status.st_mode) && read_one(b, inside, &skipped))
            bench_note(b, "%s: no rows, left out", entries[i]->d_name);
        free(inside);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int bench_read(struct bench *b, const char *path, struct err *err)
{
    uint64_t rows = b->rows;
    struct stat status;

    if (!strcmp(path, "-") || stat(path, &status) || !S_ISDIR(status.st_mode))
        return read_one(b, path, err);
    if (read_directory(b, path, 0, err))
        return -1;
    return b->rows > rows
               ? 0
               : err_set(err,
                         "%s: no file in this directory has usable rows of "
                         "nccl-tests, the Inspector or a profiler",
                         path);
}
