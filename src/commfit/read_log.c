/* SPDX-License-Identifier: Apache-2.0
 * nccl-tests' text output: any version, with anything in between. */
#include "commfit/log_run.h"
#include "commfit/read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 64

/* mpirun --tag-output marks each write, so that "[1,0]<stdout>:" may stand
 * anywhere in a line, glued to a number; NULL where TEXT does not begin so. */
static char *tag_end(char *text)
{
    char *p = text + 1;

    if (*text != '[' || !isdigit((unsigned char)*p))
        return NULL;
    p += strspn(p, "0123456789,");
    if (p[0] != ']' || p[1] != '<')
        return NULL;
    p += 2;
    p += strspn(p, "abcdefghijklmnopqrstuvwxyz");
    return p[0] == '>' && p[1] == ':' ? p + 2 : NULL;
}

static void blank_tags(char *text)
{
    for (char *p = strchr(text, '['); p; p = strchr(p, '[')) {
        char *end = tag_end(p);

        if (end) {
            memset(p, ' ', (size_t)(end - p));
            p = end;
        } else {
            p++;
        }
    }
}

/* Colours of a terminal's ("\033[1;32m"), and tabs. */
static void blank_colours(char *text)
{
    for (char *p = text; (p = strpbrk(p, "\033\t")); p++) {
        size_t length = *p == '\033' ? 1 + (p[1] == '[') : 1;

        if (length > 1)
            length += strspn(p + 2, "0123456789;") + 1;
        memset(p, ' ', strnlen(p, length));
    }
}

static bool number_after(const char *text, const char *key, uint32_t *value)
{
    const char *at = strstr(text, key);
    char *end;

    if (!at)
        return false;
    at += strlen(key);
    unsigned long n = strtoul(at, &end, 10);
    if (end == at || n > 1u << 24)
        return false;
    *value = (uint32_t)n;
    return true;
}

/* "... on HOST device ...": what stands between; with no "on", nothing. */
static void copy_host(const char *text, char *host, size_t size)
{
    const char *on = strstr(text, " on ");
    const char *device = strstr(text, " device ");

    host[0] = '\0';
    if (!on || !device || on > device)
        return;
    on += 4;
    on += strspn(on, " ");
    snprintf(host, size, "%.*s", (int)strcspn(on, " \t"), on);
}

/* "#  Rank  0 Group  0 Pid 123 on  host device  0 [0x1b] NVIDIA H100" */
static bool read_device(struct log_run *run, const char *text)
{
    uint32_t rank, device;
    char host[256];
    const char *hash = strchr(text, '#');

    if (!hash || !number_after(hash, "Rank ", &rank) ||
        !number_after(hash, " device ", &device))
        return false;
    copy_host(hash, host, sizeof host);
    run_add_device(run, rank, device, host);
    const char *model = strchr(hash, ']');
    if (model && !run->bench->gpu[0])
        snprintf(run->bench->gpu, sizeof run->bench->gpu, "%.*s",
                 (int)strcspn(model + 1 + strspn(model + 1, " "), "(\r"),
                 model + 1 + strspn(model + 1, " "));
    return true;
}

/* "all_reduce_perf" anywhere: a command line, or the program's own word. */
static bool find_program(const char *text, enum fit_coll *coll)
{
    for (const char *at = strstr(text, "_perf"); at;
         at = strstr(at + 5, "_perf")) {
        const char *start = at;
        char name[32];

        while (start > text &&
               (isalpha((unsigned char)start[-1]) || start[-1] == '_') &&
               at - start < 24)
            start--;
        snprintf(name, sizeof name, "%.*s", (int)(at - start), start);
        if (!fit_coll_find(name, coll))
            return true;
    }
    return false;
}

/* A run's own header begins a new one, once rows have been seen: two jobs that
 * share a file print both headers first. */
static int begin_run(struct log_run *run, struct err *err)
{
    if (!run->row_count && !run->resolved)
        return 0;
    if (run_flush(run, err))
        return -1;
    run_reset(run);
    return 0;
}

static int read_comment(struct log_run *run, const char *text, struct err *err)
{
    uint32_t threads, gpus;
    enum fit_coll coll;
    bool named = find_program(text, &coll);
    bool starts = strstr(text, "Collective test starting:") != NULL;
    bool begins = number_after(text, "nThread ", &threads) &&
                  number_after(text, "nGpus ", &gpus);

    if (strstr(text, "Avg bus bandwidth"))
        run->over = true;
    if (strstr(text, "Collective test concluded"))
        return 0;
    if ((begins || named) && begin_run(run, err))
        return -1;
    if (named && starts) {
        run->named = true;
        run->coll = coll;
    } else if (named) {
        run->hinted = true;
        run->hint = coll;
    }
    if (begins)
        run->gpus_each = threads * gpus;
    if (!read_device(run, text) && strstr(text, "...") && run->listed)
        run->elided = true;
    return 0;
}

/* "HOST: Test NCCL failure common.cu:999 'unhandled cuda error ...'"
 * (nccl-tests, src/common.h, NCCLCHECK and CUDACHECK): the first of them, since
 * each rank says so, and each caller. */
static bool find_failure(const struct lines *lines, struct bench *b)
{
    const char *at = strstr(lines->text, "Test NCCL failure");

    if (!at)
        at = strstr(lines->text, "Test CUDA failure");
    if (at && !b->failure[0])
        bench_fail(b, lines->source, lines->number, at);
    return at;
}

/* A row behind the run's last line is another log's, whose header is missing:
 * what the header said of the run does not hold for it. Where two jobs share
 * the file, it may be the slower one's. */
static int add_row(struct log_run *run, const struct log_row *row,
                   const struct lines *lines, const char *shown,
                   struct err *err)
{
    if (run->over && run->firsts <= 1 && begin_run(run, err))
        return -1;
    return run_add_row(run, row, lines->number, shown, err);
}

static int read_line(struct log_run *run, struct lines *lines, struct err *err)
{
    char *tokens[TOKENS_MAX], shown[80];
    struct log_row row;

    blank_tags(lines->text);
    blank_colours(lines->text);
    if (strchr(lines->text, '#') || strstr(lines->text, "_perf"))
        return read_comment(run, lines->text, err);
    if (find_failure(lines, run->bench))
        return 0;
    snprintf(shown, sizeof shown, "%.79s", lines->text);
    size_t count = split_blanks(lines->text, tokens, TOKENS_MAX);
    int at = log_row_find(tokens, count);
    if (at < 0)
        return 0;
    if (!log_row_parse(tokens + at, count - (size_t)at, &row))
        return add_row(run, &row, lines, shown, err);
    bench_drop(run->bench, BENCH_UNREADABLE, lines->source, lines->number,
               shown);
    return 0;
}

int read_log(struct bench *b, struct lines *lines, struct err *err)
{
    struct log_run run;
    int rc = 0;

    run_init(&run, b, lines->source);
    while (!rc && lines_next(lines))
        rc = read_line(&run, lines, err);
    if (!rc)
        rc = run_flush(&run, err);
    run_fini(&run);
    return rc;
}
