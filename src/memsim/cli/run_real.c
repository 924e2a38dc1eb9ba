/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/run_real.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/trace/device_log.h"
#include "memsim/cli/cmd.h"
#include "memsim/real/join.h"
#include "memsim/run/run.h"

/* A card without work has less. */
#define CARD_USED_BYTES (UINT64_C(256) << 20)

int run_real_check(bool real, uint64_t cap_bytes, const struct job *job,
                   struct err *err)
{
    if (!real)
        return cap_bytes ? err_set(err, "--cap is for --real; a simulated "
                                           "GPU's memory is --memory")
                            : 0;
    if (job->options.memory_bytes)
        return err_set(err, "--memory is a simulated GPU's; with --real give "
                            "--cap");
    if (job->launch.world && !job->emulates)
        return err_set(err, "--real runs COMMAND as it is: --nnodes and "
                            "--nproc-per-node are for simulated GPUs; start "
                            "the ranks with torchrun, or give the job ranks "
                            "that do not exist with memsim emulate");
    if (job->late_frees)
        return err_set(err, "--late-frees is for simulated GPUs: with --real "
                            "blocks are freed when they are");
    return 0;
}

/* Says what a reader of the figures has to know of the cards. */
static void note_cards(const struct real_cards *cards, const struct gpu *gpu)
{
    char text[16];

    fprintf(stderr, "memsim: recording on %u x %s, driver %s (CUDA %d.%d)\n",
            cards->count, cards->cards[0].name,
            *cards->driver_version ? cards->driver_version : "?",
            cards->cuda_version / 1000, cards->cuda_version % 1000 / 10);
    if (strcasecmp(gpu->device_name, cards->cards[0].name))
        cmd_note("the catalogue has no %s: prices are those of %s",
                 cards->cards[0].name, gpu->name);
    if (cards->has_mps)
        cmd_note("an MPS server runs here: other processes may share the GPU, "
                 "and times contain theirs");
    for (uint32_t i = 0; i < cards->count; i++) {
        const struct real_card *card = &cards->cards[i];

        if (card->used_bytes >= CARD_USED_BYTES)
            cmd_note("GPU %u is in use by others, who have %s of it: times "
                     "contain their work, and if they take more memory it "
                     "counts as libraries'",
                     i,
                     units_format_bytes(card->used_bytes, text, sizeof text));
        if (card->is_mig)
            cmd_note("GPU %u is a MIG instance: its times are not those of "
                     "the whole card",
                     i);
        if (card->is_slowed)
            cmd_note("GPU %u runs slower than it could, for heat or power (%u "
                     "MHz)",
                     i, card->clock_mhz);
    }
}

int run_real_start(struct job *job, struct real_cards *cards, bool quiet,
                   struct err *err)
{
    if (real_cards_find(cards, err) ||
        job_gpu_real(&job->options, cards, &job->gpu, err))
        return -1;
    job->real = cards;
    if (!quiet)
        note_cards(cards, &job->gpu);
    return 0;
}

void run_real_end(const struct rundir *dir, bool quiet)
{
    struct joined joined = {0};
    struct err err = {""};
    struct run traces;

    if (run_open(&traces, dir->path, &err))
        return;
    for (const struct run_trace *t = NULL;
         (t = run_next_process(&traces, t));) {
        char *log = xasprintf("%s" DEVICE_LOG_END, t->path);
        if (real_join(t->path, log, &joined, &err)) {
            cmd_note("%s; the GPU's times stay in %s", err.text, log);
            err_clear(&err);
        }
        free(log);
    }
    run_close(&traces);
    if (joined.lost && !quiet)
        cmd_note("CUPTI lost %" PRIu64 " of its records: their times are the "
                 "cost models'",
                 joined.lost);
}
