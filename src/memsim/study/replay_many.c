/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_many.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "memsim/result/gpu_need.h"
#include "memsim/result/prices.h"

#define ALL "all"

/* A table in the making. */
struct making {
    const struct replay_many *q;
    struct gpu *gpus; /* those to replay on */
    double *prices;   /* of each; 0: not known */
    size_t gpu_count;
    bool steady; /* nothing grows on one, so on none */
    struct gpu_table *table;
};

bool replay_many_asked(const char *gpu)
{
    return gpu && (!strcmp(gpu, ALL) || strchr(gpu, ','));
}

/* --- which GPUs ----------------------------------------------------------- */

static int list_named(struct making *m, const char *names, struct err *err)
{
    char *copy = xstrdup(names), *rest = copy, *name;
    int rc = 0;

    m->gpus = xcalloc(strlen(names) + 1, sizeof *m->gpus);
    while (!rc && (name = strsep(&rest, ",")))
        if (*name)
            rc = gpu_load(name, &m->gpus[m->gpu_count++], err);
    free(copy);
    return rc;
}

/* The catalogue, but for GPUs that the job has no code for. */
static int list_all(struct making *m, struct err *err)
{
    const struct capability_set code =
        replay_memory_code(m->q->run->traces[0].path);
    size_t all;

    if (gpu_list_by_memory(&m->gpus, &all, err))
        return -1;
    for (size_t i = 0; i < all; i++)
        if (gpu_has_code(&m->gpus[i], &code))
            m->gpus[m->gpu_count++] = m->gpus[i];
    m->table->without_code = all - m->gpu_count;
    return 0;
}

/* --- prices --------------------------------------------------------------- */

static int read_prices(struct making *m, struct err *err)
{
    struct prices prices;
    int rc = prices_read(&prices, m->q->price, err);

    for (size_t i = 0; !rc && i < m->gpu_count; i++)
        m->prices[i] = prices_of(&prices, m->gpus[i].name);
    prices_fini(&prices);
    return rc;
}

/* Is GPU I, whose price must be within --budget, to be left out? */
static bool is_left_out(struct making *m, size_t i)
{
    double budget = m->q->budget;

    if (!(budget > 0))
        return false;
    if (!(m->prices[i] > 0))
        return ++m->table->without_price;
    return m->prices[i] > budget && ++m->table->over_budget;
}

/* --- the rows ------------------------------------------------------------- */

static bool memory_differs(const struct replay_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        if (memory->recordings[i].kernels_differ)
            return true;
    return false;
}

static int add_gpu(struct making *m, size_t i, struct err *err)
{
    struct replay_memory memory;

    if (replay_memory_open(&memory, &m->q->ask->memory, m->q->run,
                           &m->gpus[i], m->q->ask->command, err))
        return -1;
    if (!m->steady)
        m->steady = replay_memory_outlook(&memory);
    int rc = replay_memory_time(&memory, err);
    if (!rc)
        gpu_table_add(m->table, &memory.report.result, &m->gpus[i],
                      m->prices[i], memory_differs(&memory));
    replay_memory_close(&memory);
    return rc;
}

static int add_all(struct making *m, struct err *err)
{
    const struct replay_many *q = m->q;
    int rc = 0;

    for (size_t i = 0; !rc && i < m->gpu_count; i++) {
        if (is_left_out(m, i))
            continue;
        if (q->begins)
            q->begins(i, m->gpu_count, m->gpus[i].name);
        rc = add_gpu(m, i, err);
    }
    return rc;
}

/* Of a recording without steps it is 0, unless that was to be judged. */
static int unknown_status(const struct gpu_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].verdict == VERDICT_UNKNOWN && !t->rows[i].exit_status)
            return CMD_OK;
    return CMD_RUN_UNKNOWN;
}

/* The best of all rows. */
static int status_of(const struct gpu_table *t, uint64_t job_steps)
{
    const int grows = job_steps ? CMD_RUN_GROWS : CMD_OK;
    const struct {
        enum verdict verdict;
        int status;
    } order[] = {{VERDICT_FITS, CMD_OK},
                 {VERDICT_GROWS, grows},
                 {VERDICT_UNKNOWN, unknown_status(t)},
                 {VERDICT_INPUT, CMD_RUN_GROWS},
                 {VERDICT_OVER_LIMIT, CMD_RUN_OVER_LIMIT}};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t k = 0; k < t->count; k++)
            if (t->rows[k].verdict == order[i].verdict)
                return order[i].status;
    return CMD_RUN_OOM;
}

int replay_many(const struct replay_many *q, struct gpu_table *table,
                struct err *err)
{
    struct making m = {.q = q, .table = table};
    const char *gpus = q->ask->gpu;
    int rc = -1;

    *table = (struct gpu_table){.has_prices = q->price,
                                .command = q->ask->command};
    if (!(strcmp(gpus, ALL) ? list_named(&m, gpus, err) : list_all(&m, err))) {
        m.prices = xcalloc(m.gpu_count + 1, sizeof *m.prices);
        rc = (q->price && read_prices(&m, err)) || add_all(&m, err) ? -1 : 0;
    }
    gpu_table_sort(table);
    table->exit_status = status_of(table, q->steps);
    free(m.prices);
    free(m.gpus);
    return rc;
}
