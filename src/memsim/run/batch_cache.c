/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_cache.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/json_text.h"
#include "common/base/file_write.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"

#define READ_MAX (64 << 20) /* a larger file goes by its time */

static uint64_t hash_file(const char *path)
{
    char buffer[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t h = HASH_START;
    ssize_t n;

    while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0)
        h = hash_bytes(h, buffer, (size_t)n);
    if (fd >= 0)
        close(fd);
    return h;
}

/* PATH and what is in it, where it is a plain file. */
static void key_file(FILE *key, const char *path)
{
    struct stat st;

    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return;
    fprintf(key, "file %s %" PRIu64, path, (uint64_t)st.st_size);
    if (st.st_size <= READ_MAX)
        fprintf(key, " %016" PRIx64 "\n", hash_file(path));
    else
        fprintf(key, " at %" PRIu64 ".%09ld\n", (uint64_t)st.st_mtim.tv_sec,
                st.st_mtim.tv_nsec);
}

static void key_programs(FILE *key, const char *programs)
{
    char *copy = xstrdup(programs), *rest = copy, *path;

    while ((path = strsep(&rest, ":")))
        key_file(key, path);
    free(copy);
}

/* A script imports what lies beside it. */
static void key_script(FILE *key, const char *path)
{
    const char *slash = strrchr(path, '/');
    char pattern[PATH_MAX];
    glob_t found;

    key_file(key, path);
    snprintf(pattern, sizeof pattern, "%.*s*.py",
             slash ? (int)(slash - path + 1) : 0, path);
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        key_file(key, found.gl_pathv[i]);
    globfree(&found);
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), n = strlen(end);

    return length >= n && !strcmp(text + length - n, end);
}

/* "python -m package.module", from the current directory. */
static void key_module(FILE *key, const char *name)
{
    char *path = xasprintf("%s.py", name);

    for (char *p = path; p[3]; p++)
        if (*p == '.')
            *p = '/';
    key_script(key, path);
    free(path);
}

/* An argument, and the file that it names: FILE or --option=FILE. */
static void key_argument(FILE *key, char *const *command, size_t at)
{
    const char *text = command[at], *equals = strchr(text, '=');
    const char *path = equals ? equals + 1 : text;

    fprintf(key, "argument %zu %s\n", strlen(text), text);
    if (at && !strcmp(command[at - 1], "-m"))
        key_module(key, text);
    else if (ends_in(path, ".py"))
        key_script(key, path);
    else
        key_file(key, path);
}

static void key_cards(FILE *key, const struct job *job)
{
    const struct job_options *o = &job->options;

    fprintf(key,
            "gpu %s %" PRIu64 " %016" PRIx64 "\ngpus %u\naddresses %d\n"
            "fail-above %.17g\nselected-fraction %.17g\n"
            "unknown-value %.17g\nassume %s\nignore-children %d\n",
            job->gpu.name, job->gpu.memory_bytes,
            hash_bytes(HASH_START, &job->gpu, sizeof job->gpu), o->gpus,
            o->addresses, o->fail_above_percent, o->selected_fraction,
            o->unknown_value, o->assume ? o->assume : "", o->ignore_children);
}

static void key_ranks(FILE *key, const struct launch *l)
{
    char *ranks = l->world ? rank_set_text(&l->ranks) : NULL;

    if (ranks)
        fprintf(key, "ranks %s of %u, %u on a node, %d %d\n", ranks, l->world,
                l->local, l->chooses, l->environment);
    free(ranks);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of the variables, in whatever order they come, those that may matter. */
static void key_environment(FILE *key, char *const *environment)
{
    static const char *const prefixes[] = {
        "PYTORCH",
        "TORCH",
        "CUDA",
        "CUBLAS",
        "CUDNN",
        "NCCL",
        "PYTHONPATH=",
        "PYTHONHOME=",
        "VIRTUAL_ENV=",
        "CONDA_PREFIX=",
        "LD_LIBRARY_PATH=",
        "LD_PRELOAD=",
    };
    size_t count = 0;

    while (environment[count])
        count++;
    const char **sorted = xcalloc(count + 1, sizeof *sorted);
    memcpy(sorted, environment, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
            if (text_begins(sorted[i], prefixes[k]))
                fprintf(key, "environment %s\n", sorted[i]);
    free(sorted);
}

char *batch_key(const struct job *job, const char *programs,
                char *const *environment)
{
    char directory[PATH_MAX], *text = NULL;
    size_t length;
    FILE *key = open_memstream(&text, &length);

    if (!key)
        abort(); /* only for lack of memory */
    key_programs(key, programs);
    key_cards(key, job);
    key_ranks(key, &job->launch);
    if (getcwd(directory, sizeof directory))
        fprintf(key, "directory %s\n", directory);
    for (size_t i = 0; job->command[i]; i++)
        key_argument(key, job->command, i);
    key_environment(key, environment);
    fclose(key);
    return text;
}

uint64_t batch_capacity(const struct job *job)
{
    double percent = job->options.fail_above_percent;
    double bytes = (double)job->gpu.memory_bytes;

    return (uint64_t)(percent > 0 ? bytes * percent / 100 : bytes);
}

char *batch_cache_directory(const char *xdg, const char *home)
{
    if (xdg && *xdg == '/')
        return xasprintf("%s/memsim/fit-batch", xdg);
    if (home && *home)
        return xasprintf("%s/.cache/memsim/fit-batch", home);
    return NULL;
}

static char *entry_path(const char *dir, const char *key)
{
    return xasprintf("%s/%016" PRIx64 ".json", dir,
                     hash_text(HASH_START, key));
}

static double number_read(const cJSON *entry, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry, name);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* An entry that is damaged, or another key's, is none. */
static bool entry_read(const cJSON *entry, const char *key,
                       struct batch_outcome *o)
{
    const char *own =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "key"));
    const char *name = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(entry, "verdict"));
    int verdict = name ? batch_verdict_find(name) : -1;

    if (!own || strcmp(own, key) || verdict < 0)
        return false;
    *o = (struct batch_outcome){
        .batch = (uint64_t)number_read(entry, "batch"),
        .verdict = (enum batch_verdict)verdict,
        .status = (int)number_read(entry, "status"),
        .peak_used_bytes = (uint64_t)number_read(entry, "peak_used_bytes"),
        .peak_reserved_bytes =
            (uint64_t)number_read(entry, "peak_reserved_bytes"),
        .peak_allocated_bytes =
            (uint64_t)number_read(entry, "peak_allocated_bytes"),
        .step_ns = (uint64_t)number_read(entry, "step_ns"),
        .low_ns = (uint64_t)number_read(entry, "low_ns"),
        .high_ns = (uint64_t)number_read(entry, "high_ns"),
        .rate = number_read(entry, "rate"),
        .rate_is_tokens = number_read(entry, "rate_is_tokens") > 0,
        .waits_for_cpu = number_read(entry, "waits_for_cpu") > 0,
        .lasts_steps = (uint64_t)number_read(entry, "lasts_steps"),
        .seconds = number_read(entry, "seconds"),
        .cached = true,
    };
    return true;
}

bool batch_cache_load(const char *dir, const char *key,
                      struct batch_outcome *outcome)
{
    struct err err = {""};
    size_t length;
    char *path = entry_path(dir, key);
    char *text = json_text_read(path, &length, &err);
    cJSON *entry = text ? json_text_parse(text, length, path, &err) : NULL;
    bool found = entry && entry_read(entry, key, outcome);

    cJSON_Delete(entry);
    free(text);
    free(path);
    return found;
}

static int make_directories(const char *path)
{
    char *copy = xstrdup(path);
    int rc = 0;

    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(copy, 0700); /* the last one tells */
            *p = '/';
        }
    if (mkdir(copy, 0700) && errno != EEXIST)
        rc = -1;
    free(copy);
    return rc;
}

static char *entry_text(const char *key, const struct batch_outcome *o)
{
    cJSON *entry = cJSON_CreateObject();

    json_add_uint(entry, "batch", o->batch);
    cJSON_AddStringToObject(entry, "verdict", batch_verdict_name(o->verdict));
    cJSON_AddNumberToObject(entry, "status", o->status);
    json_add_bytes(entry, "peak_used_bytes", o->peak_used_bytes);
    json_add_bytes(entry, "peak_reserved_bytes", o->peak_reserved_bytes);
    json_add_bytes(entry, "peak_allocated_bytes", o->peak_allocated_bytes);
    json_add_uint(entry, "step_ns", o->step_ns);
    json_add_uint(entry, "low_ns", o->low_ns);
    json_add_uint(entry, "high_ns", o->high_ns);
    cJSON_AddNumberToObject(entry, "rate", o->rate);
    cJSON_AddNumberToObject(entry, "rate_is_tokens", o->rate_is_tokens);
    cJSON_AddNumberToObject(entry, "waits_for_cpu", o->waits_for_cpu);
    json_add_uint(entry, "lasts_steps", o->lasts_steps);
    cJSON_AddNumberToObject(entry, "seconds", o->seconds);
    cJSON_AddStringToObject(entry, "key", key);
    char *text = cJSON_Print(entry);
    cJSON_Delete(entry);
    return text;
}

int batch_cache_store(const char *dir, const char *key,
                      const struct batch_outcome *outcome, struct err *err)
{
    char *path = entry_path(dir, key), *text = entry_text(key, outcome);
    struct err cause = {""};
    int rc = make_directories(dir)
                 ? err_set(&cause, "%s: %s", path, strerror(errno))
                 : file_write_text(text, strlen(text), path, &cause);

    if (rc)
        err_set(err,
                "%s; what was found is not kept: see --cache and "
                "--no-cache",
                cause.text);
    free(text);
    free(path);
    return rc;
}
