/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/run_seeds.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/job_start.h"
#include "memsim/run/spawn.h"
#include "memsim/cli/quiet_job.h"
#include "memsim/result/result_verdict.h"
#include "memsim/run/warm.h"
#include "memsim/study/scratch.h"

#define OUT_OF_MEMORY UINT64_MAX /* no peak is higher */

/* The highest peak of a GPU in DIR's run; OUT_OF_MEMORY. False: the run says
 * nothing, with ERR set. */
static bool run_peak(const struct job *job, const struct rundir *dir,
                     uint32_t seed, uint64_t *peak, struct result_seeds *seeds,
                     struct err *err)
{
    struct result result;
    enum verdict verdict;

    *peak = 0;
    result_init(&result, dir->session, job->command);
    verdict = result.verdict;
    for (struct result_walk w = {NULL}; result_walk_next(&result, &w);)
        if (w.device->peak_used_bytes > *peak) {
            *peak = w.device->peak_used_bytes;
            seeds->capacity_bytes = w.device->capacity_bytes;
        }
    result_fini(&result);
    if (verdict == VERDICT_OOM)
        *peak = OUT_OF_MEMORY;
    if (verdict == VERDICT_FAILED || verdict == VERDICT_NONE || !*peak)
        return err_set(err, "--seeds: with seed %u the verdict is %s: no peak "
                            "is known", seed, result_verdict_name(verdict)),
               false;
    return true;
}

static int seed_run(const struct job *job, uint32_t seed, uint64_t *peak,
                    struct result_seeds *seeds, struct err *err)
{
    struct job again = *job;
    struct rundir dir;
    bool known = false;

    again.seed = seed;
    again.directory = NULL;
    again.view = NULL;
    again.scan_seconds = 0;
    again.output = scratch_file();
    int status = job_start(&again, &dir, err);
    if (!status) {
        known = run_peak(job, &dir, seed, peak, seeds, err);
        if (!known)
            quiet_show(again.output);
        rundir_remove(&dir);
    }
    if (again.output >= 0)
        close(again.output);
    return status || !known ? -1 : 0;
}

static int peak_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The least peak that PERCENT of all do not exceed. */
static uint64_t peak_at(const uint64_t *peaks, uint32_t count, unsigned percent)
{
    return peaks[((uint64_t)count * percent + 99) / 100 - 1];
}

static void seeds_sum(struct result_seeds *seeds, uint64_t *peaks,
                      uint32_t count)
{
    qsort(peaks, count, sizeof *peaks, peak_compare);
    seeds->count = count;
    seeds->median_bytes = peak_at(peaks, count, 50);
    seeds->high_bytes = peak_at(peaks, count, 95);
    seeds->most_bytes = peaks[count - 1];
    for (uint32_t i = 0; i < count; i++)
        seeds->short_of += peaks[i] == OUT_OF_MEMORY;
    seeds->fits = seeds->high_bytes != OUT_OF_MEMORY;
}

int run_seeds(const struct job *job, const struct rundir *first, uint32_t count,
              struct result_seeds *seeds, struct err *err)
{
    uint64_t *peaks = xcalloc(count, sizeof *peaks);
    bool ok = run_peak(job, first, job->seed, &peaks[0], seeds, err);

    seeds->first = job->seed;
    warm_begin();
    for (uint32_t i = 1; ok && i < count; i++) {
        ok = !seed_run(job, job->seed + i, &peaks[i], seeds, err);
        if (spawn_interrupted())
            ok = !err_set(err, "--seeds: interrupted");
    }
    warm_end();
    if (ok)
        seeds_sum(seeds, peaks, count);
    free(peaks);
    return ok ? 0 : -1;
}
