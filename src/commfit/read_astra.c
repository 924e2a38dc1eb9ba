/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/read_astra.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MARK "# astra-sim:"

/* A run: what its line says, and what its ranks printed. */
struct run {
    struct bench_row row; /* without its time */
    char text[80];        /* of the line; empty: there was none yet */
    uint64_t line;
    bool known; /* the line could be read */
    uint64_t finished, cycles;
};

bool astra_is_text(const char *head)
{
    return strstr(head, MARK) != NULL;
}

static void start_run(struct run *run, const struct lines *lines)
{
    char coll[32];
    uint32_t nodes, gpus;
    uint64_t bytes;
    const char *text = strstr(lines->text, MARK);

    *run = (struct run){.line = lines->number};
    snprintf(run->text, sizeof run->text, "%.79s", text);
    run->known = sscanf(text + sizeof MARK - 1,
                        " %31s nodes=%" SCNu32 " gpus_per_node=%" SCNu32
                        " size_bytes=%" SCNu64,
                        coll, &nodes, &gpus, &bytes) == 4 &&
                 nodes && nodes <= 1u << 20 && gpus && gpus <= 1u << 10 &&
                 bytes <= UINT64_C(1) << 50 &&
                 !fit_coll_find(coll, &run->row.coll);
    if (!run->known)
        return;
    run->row.nodes = nodes;
    run->row.gpus = gpus;
    run->row.bytes = bytes;
}

/* What is wrong with RUN; BENCH_REASONS: nothing. */
static enum bench_reason fault_of(const struct run *run)
{
    uint64_t ranks = (uint64_t)run->row.nodes * run->row.gpus;

    if (!run->known)
        return BENCH_UNREADABLE;
    if (ranks < 2)
        return BENCH_ONE_RANK;
    if (!run->row.bytes)
        return BENCH_EMPTY;
    if (run->finished != ranks)
        return run->finished ? BENCH_WORLD : BENCH_NO_TIME;
    return bench_is_time(run->row.us) ? BENCH_REASONS : BENCH_NO_TIME;
}

static int end_run(struct bench *b, struct run *run, const char *source,
                   struct err *err)
{
    if (!run->text[0])
        return 0;
    run->row.us = 1e-3 * (double)run->cycles;
    enum bench_reason fault = fault_of(run);
    if (fault == BENCH_REASONS)
        return bench_add(b, &run->row, err);
    bench_drop(b, fault, source, run->line, run->text);
    return 0;
}

/* "sys[3] finished, 123456 cycles, ..." */
static void take_rank(struct run *run, const char *text)
{
    const char *at = strstr(text, "] finished, ");
    uint64_t cycles;

    if (!at || sscanf(at, "] finished, %" SCNu64 " cycles", &cycles) != 1)
        return;
    run->finished++;
    run->cycles = cycles > run->cycles ? cycles : run->cycles;
}

int read_astra(struct bench *b, struct lines *lines, struct err *err)
{
    struct run run = {.text = ""};

    bench_note(b, "%s: a simulator's times, not those of GPUs", lines->source);
    while (lines_next(lines)) {
        if (!strstr(lines->text, MARK)) {
            take_rank(&run, lines->text);
            continue;
        }
        if (end_run(b, &run, lines->source, err))
            return -1;
        start_run(&run, lines);
    }
    return end_run(b, &run, lines->source, err);
}
