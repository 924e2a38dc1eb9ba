/* SPDX-License-Identifier: Apache-2.0
 * JSON: what nccl-tests 2.17 and later write with -J (src/util.cu there), and
 * dumps of PyTorch's flight recorder; profiles are for read_kineto.c. */
#include "commfit/log_run.h"
#include "commfit/read.h"
#include "commfit/read_flight.h"
#include "commfit/read_kineto.h"
#include "common/base/json_text.h"
#include "common/base/simulated.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OWN_DIGITS 1e-6 /* as printed, relative */

static struct printed printed_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return (struct printed){0, 0, false};
    return (struct printed){item->valuedouble,
                            OWN_DIGITS * fabs(item->valuedouble), true};
}

static uint64_t whole_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNumber(item) && item->valuedouble >= 0 &&
                   item->valuedouble < 0x1p50
               ? (uint64_t)item->valuedouble
               : 0;
}

static void read_devices(struct log_run *run, const cJSON *config)
{
    const cJSON *device;

    cJSON_ArrayForEach(device,
                       cJSON_GetObjectItemCaseSensitive(config, "devices"))
    {
        run_add_device(run, (uint32_t)whole_of(device, "rank"),
                       (uint32_t)whole_of(device, "device"),
                       json_text_of(device, "hostname"));
        if (!run->bench->gpu[0])
            snprintf(run->bench->gpu, sizeof run->bench->gpu, "%s",
                     json_text_of(device, "device_info"));
    }
    run->gpus_each =
        (uint32_t)(whole_of(config, "nthreads") * whole_of(config, "ngpus"));
}

static void read_name(struct log_run *run, const cJSON *root)
{
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(root, "args");
    const cJSON *first = cJSON_GetArrayItem(args, 0);
    const char *name = cJSON_IsString(first) ? first->valuestring : "";
    const char *slash = strrchr(name, '/');

    run->named = !fit_coll_find(slash ? slash + 1 : name, &run->coll);
}

static const char *const placements[2] = {"out_of_place", "in_place"};

static void read_placement(struct log_row *row, const cJSON *result, unsigned i)
{
    const cJSON *place =
        cJSON_GetObjectItemCaseSensitive(result, placements[i]);
    struct printed wrong = printed_of(place, "nwrong");

    row->place[i] = (struct printed_row){
        .bytes = row->bytes,
        .us = printed_of(place, "time"),
        .algbw = printed_of(place, "alg_bw"),
        .busbw = printed_of(place, "bus_bw"),
    };
    row->unchecked[i] = !wrong.present;
    row->wrong[i] = wrong.value >= 0.5;
}

static int read_result(struct log_run *run, const cJSON *result, uint64_t index,
                       struct err *err)
{
    struct log_row row = {
        .bytes = whole_of(result, "size"),
        .count = whole_of(result, "count"),
        .placements = 2,
    };
    char text[80];

    snprintf(row.type, sizeof row.type, "%s", json_text_of(result, "type"));
    snprintf(row.redop, sizeof row.redop, "%s", json_text_of(result, "redop"));
    row.root = strtol(json_text_of(result, "root"), NULL, 10);
    row.has_root = json_text_of(result, "root")[0];
    for (unsigned i = 0; i < 2; i++)
        read_placement(&row, result, i);
    snprintf(text, sizeof text, "results[%llu], size %llu",
             (unsigned long long)index, (unsigned long long)row.bytes);
    return run_add_row(run, &row, index, text, err);
}

/* With -I: the times of single iterations, for the straggler ratios. */
static int read_iterations(struct log_run *run, const cJSON *result,
                           unsigned place, struct err *err)
{
    char key[32];
    const cJSON *item;
    struct bench_row row = {
        .coll = run->coll,
        .nodes = run->nodes,
        .gpus = run->gpus,
        .bytes = whole_of(result, "size"),
        .in_place = place,
        .by_rank = true,
    };

    snprintf(key, sizeof key, "%s_per_iter", placements[place]);
    const cJSON *times = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(result, key), "times_us");
    cJSON_ArrayForEach(item, times)
    {
        row.us = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (row.bytes && bench_is_time(row.us) &&
            bench_add(run->bench, &row, err))
            return -1;
    }
    return 0;
}

static int read_results(struct log_run *run, const cJSON *results,
                        struct err *err)
{
    const cJSON *result;
    uint64_t index = 0;

    cJSON_ArrayForEach(
        result, results) if (read_result(run, result, index++, err)) return -1;
    if (run_flush(run, err))
        return -1;
    cJSON_ArrayForEach(
        result,
        results) for (unsigned i = 0; i < 2 && run->usable;
                      i++) if (read_iterations(run, result, i, err)) return -1;
    return 0;
}

static int read_root(struct bench *b, const cJSON *root, const char *path,
                     const char *source, struct err *err)
{
    const cJSON *results = cJSON_GetObjectItemCaseSensitive(root, "results");
    struct log_run run;

    if (cJSON_GetObjectItemCaseSensitive(root, SIMULATED_KEY) &&
        bench_simulated(b, source, err))
        return -1;
    if (flight_is(root))
        return read_flight(b, root, source, err);
    if (!cJSON_IsArray(results))
        return err_set(err,
                       "%s: JSON without \"results\" (nccl-tests -J), "
                       "\"traceEvents\" (PyTorch profiler), \"entries\" (its "
                       "flight recorder) or \"coll_perf\" (NCCL Inspector)",
                       path);
    run_init(&run, b, source);
    read_name(&run, root);
    read_devices(&run, cJSON_GetObjectItemCaseSensitive(root, "config"));
    int rc = read_results(&run, results, err);
    run_fini(&run);
    return rc;
}

/* A profile whose beginning does not show that it is one. */
static int read_profile(struct bench *b, char *text, size_t length,
                        const char *path, const char *source, struct err *err)
{
    FILE *file = fmemopen(text, length, "r");

    if (!file)
        return err_set(err, "%s: %s", path, strerror(errno));
    int rc = read_kineto(b, file, path, source, err);
    fclose(file);
    return rc;
}

int read_json(struct bench *b, FILE *file, const char *path, const char *source,
              struct err *err)
{
    size_t length;
    char *text = json_text_read_stream(file, path, &length, err);

    if (!text)
        return -1;
    cJSON *root = json_text_parse(text, length, path, err);
    int rc = -1;
    if (root && cJSON_GetObjectItemCaseSensitive(root, "traceEvents"))
        rc = read_profile(b, text, length, path, source, err);
    else if (root)
        rc = read_root(b, root, path, source, err);
    cJSON_Delete(root);
    free(text);
    return rc;
}
