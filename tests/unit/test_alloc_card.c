/* SPDX-License-Identifier: Apache-2.0
 * The sizes that PyTorch's allocator was asked for on an H200, played at the
 * addresses that vaspace gives: how many jobs come to the card's peaks. */
#include <cjson/cJSON.h>
#include <dirent.h>

#include "common/base/units.h"
#include "common/base/map.h"
#include "common/catalogue/vaspace.h"
#include "memsim/alloc/alloc.h"
#include "check.h"

#define BASE         (UINT64_C(1) << 46)
#define WINDOW_BYTES (UINT64_C(1) << 40)
#define CUBLAS_BYTES (66 * MIB)
/* PyTorch's workspace of a cuBLAS handle on Hopper, allocated when it is made */
#define CUBLAS_WORKSPACE (32 * MIB)

/* After three steps, as many as the events are of. */
struct peaks {
    int64_t allocated, reserved;
};

struct card {
    struct vaspace va;
    struct alloc *alloc;
    struct map blocks; /* by recorded address */
    unsigned handles;
    bool code;
};

static uint64_t card_malloc(void *context, uint64_t bytes)
{
    struct card *card = context;

    return vaspace_alloc(&card->va, bytes);
}

static void card_free(void *context, uint64_t address, uint64_t bytes)
{
    struct card *card = context;

    (void)bytes;
    vaspace_free(&card->va, address);
}

static uint64_t card_free_bytes(void *context)
{
    (void)context;
    return 140 * GIB;
}

static void on_alloc(struct card *card, uint64_t bytes, uint64_t stream,
                     uint64_t address)
{
    if (bytes == CUBLAS_WORKSPACE && card->code && card->handles < 2) {
        card->handles++;
        CHECK(vaspace_library(&card->va, "cublas", CUBLAS_BYTES) == 0);
    }
    map_put(&card->blocks, address, alloc_malloc(card->alloc, bytes, stream));
    if (card->code && alloc_stats(card->alloc)->num_device_alloc == 1)
        CHECK(vaspace_library(&card->va, "kernels", 92 * MIB) == 0);
}

static void on_event(struct card *card, const char *action, uint64_t bytes,
                     uint64_t stream, uint64_t address)
{
    struct alloc_block *block;

    if (!strcmp(action, "alloc"))
        on_alloc(card, bytes, stream, address);
    else if (!strcmp(action, "free_completed") &&
             (block = map_take(&card->blocks, address)))
        alloc_free(card->alloc, block);
}

/* [["alloc", bytes, stream, address], ...] */
static void events_play(struct card *card, FILE *file)
{
    char action[32];
    unsigned long long bytes, stream, address;

    CHECK(fscanf(file, " [") == 0);
    while (fscanf(file, " [ \"%31[^\"]\" , %llu , %llu , %llu ] %*[,]", action,
                  &bytes, &stream, &address) >= 4)
        on_event(card, action, bytes, stream, address);
}

static bool card_open(struct card *card, bool code)
{
    struct err err = {""};
    bool known = false;
    struct alloc_config config = {.total_bytes = 140 * GIB};

    *card = (struct card){.code = code};
    config.rules = alloc_rules_find("2.11.0", &known, &err);
    alloc_conf_init(&config.conf);
    config.driver = (struct alloc_driver){.context = card,
                                          .malloc = card_malloc,
                                          .free = card_free,
                                          .free_bytes = card_free_bytes};
    card->alloc = alloc_create(&config);
    return config.rules &&
           !vaspace_init(&card->va, BASE, WINDOW_BYTES,
                         code ? VASPACE_CODE : VASPACE_CHUNKS, NULL);
}

/* What LINE of jobs.jsonl says of JOB; false: it is another's. */
static bool peaks_of(const char *line, const char *job, struct peaks *peaks)
{
    cJSON *root = cJSON_Parse(line);
    const cJSON *name = cJSON_GetObjectItem(root, "job");
    const cJSON *third = cJSON_GetArrayItem(
        cJSON_GetObjectItem(root, "peaks_first_steps"), 2);
    bool found = third && !strcmp(name->valuestring, job);

    if (found)
        *peaks = (struct peaks){
            (int64_t)cJSON_GetArrayItem(third, 0)->valuedouble,
            (int64_t)cJSON_GetArrayItem(third, 1)->valuedouble};
    cJSON_Delete(root);
    return found;
}

static struct peaks peaks_read(const char *jobs, const char *job)
{
    struct peaks peaks = {0};
    FILE *file = fopen(jobs, "r");
    char *line = NULL;
    size_t size = 0;

    CHECK(file != NULL);
    while (getline(&line, &size, file) > 0 && !peaks_of(line, job, &peaks))
        continue;
    fclose(file);
    free(line);
    return peaks;
}

/* Whether the peaks of JOB, played from FOLDER, are REAL ones. */
static bool job_play(const char *folder, const char *job, bool code,
                     const struct peaks *real)
{
    struct card card;
    char *command = NULL;

    CHECK(card_open(&card, code));
    CHECK(asprintf(&command, "xz -dc '%s/alloc-%s.json.xz'", folder, job) > 0);
    FILE *file = popen(command, "r");
    free(command);
    events_play(&card, file);
    CHECK(!pclose(file));
    const struct alloc_stats *s = alloc_stats(card.alloc);
    int64_t allocated = s->allocated_bytes[ALLOC_ALL].peak - real->allocated;
    int64_t reserved = s->reserved_bytes[ALLOC_ALL].peak - real->reserved;
    if (allocated || reserved)
        fprintf(stderr, "%s%s: allocated %+lld, reserved %+lld\n", job,
                code ? "" : " without code", (long long)allocated,
                (long long)reserved);
    map_fini(&card.blocks);
    alloc_destroy(card.alloc);
    vaspace_fini(&card.va);
    return !allocated && !reserved;
}

/* mlp-graph has private pools, which the events do not name. */
static int jobs_play(const char *folder, bool code, int *jobs)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char job[256], path[8192];
    int equal = 0;

    snprintf(path, sizeof path, "%s/../jobs.jsonl", folder);
    *jobs = 0;
    CHECK(dir != NULL);
    while (dir && (entry = readdir(dir))) {
        if (sscanf(entry->d_name, "alloc-%255[^.]", job) != 1 ||
            !strcmp(job, "mlp-graph"))
            continue;
        struct peaks real = peaks_read(path, job);
        if (!real.allocated)
            continue; /* the card's line was lost */
        equal += job_play(folder, job, code, &real);
        ++*jobs;
    }
    closedir(dir);
    return equal;
}

TEST(real_sizes_come_to_the_cards_peaks)
{
    char folder[4096];
    int jobs, plain, loaded;

    snprintf(folder, sizeof folder, "%s", check_shared("gpu/h200/jobs"));
    if (system("xz --version >/dev/null 2>&1"))
        SKIP("no xz");
    loaded = jobs_play(folder, true, &jobs);
    plain = jobs_play(folder, false, &jobs);
    fprintf(stderr, "%d of %d jobs equal; %d without code and libraries\n",
            loaded, jobs, plain);
    CHECK(jobs == 21);
    CHECK(loaded >= 20);
    CHECK(loaded > plain);
}
