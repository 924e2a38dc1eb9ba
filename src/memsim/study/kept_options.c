/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/kept_options.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/share.h"
#include "common/base/xmalloc.h"
#include "fits/cluster_gpu.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What follows from another option is kept with it alone. */
enum { NO_FILE, PATH_FILE, ANY_FILE };
enum { OF_ITSELF, OF_CLUSTER, OF_GPU };

static const struct row {
    const char *name;
    size_t offset; /* of a string in struct study_options */
    int of;
    int is_file; /* it may be: where it looks like a path, or any word */
} rows[] = {
    {"cluster", offsetof(struct study_options, cluster), OF_ITSELF, PATH_FILE},
    {"placement", offsetof(struct study_options, placement), OF_CLUSTER,
     ANY_FILE},
    {"beside", offsetof(struct study_options, beside), OF_CLUSTER, ANY_FILE},
    {"link", offsetof(struct study_options, link), OF_CLUSTER, NO_FILE},
    {"quantile", offsetof(struct study_options, quantile), OF_CLUSTER, NO_FILE},
    {"stragglers", offsetof(struct study_options, stragglers), OF_ITSELF,
     NO_FILE},
    {"delay", offsetof(struct study_options, delay), OF_ITSELF, NO_FILE},
    {"delay-lib", offsetof(struct study_options, delay_lib), OF_ITSELF,
     ANY_FILE},
    {"fit", offsetof(struct study_options, fit), OF_GPU, PATH_FILE},
    {"scale", offsetof(struct study_options, scale), OF_ITSELF, NO_FILE},
    {"host-speed", offsetof(struct study_options, host_speed), OF_ITSELF,
     NO_FILE},
};

static const char **value_of(const struct row *row, void *options)
{
    return (const char **)((char *)options + row->offset);
}

/* "NAME=VALUE"; a file's path as it is from the root. */
static char *word_make(const struct row *row, const char *value)
{
    char absolute[PATH_MAX];

    bool may_be =
        row->is_file == ANY_FILE || (row->is_file && share_is_path(value));

    if (may_be && realpath(value, absolute))
        value = absolute;
    return xasprintf("%s=%s", row->name, value);
}

char **kept_options_words(const struct study_options *options)
{
    struct study_options copy = *options;
    char **words = xcalloc(COUNT(rows) + 1, sizeof *words);
    size_t count = 0;

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *value = *value_of(&rows[i], &copy);
        if (value)
            words[count++] = word_make(&rows[i], value);
    }
    return words;
}

void kept_options_words_free(char **words)
{
    for (char **at = words; at && *at; at++)
        free(*at);
    free(words);
}

static const char *value_among(char *const *words, const struct row *row)
{
    size_t length = strlen(row->name);

    for (; words && *words; words++)
        if (!strncmp(*words, row->name, length) && (*words)[length] == '=')
            return *words + length + 1;
    return NULL;
}

/* A file may have gone since the run. */
static int check_there(const struct row *row, const char *value,
                       const char *directory, struct err *err)
{
    char gpu[PATH_MAX];
    uint32_t width;

    if (!value || !row->is_file || !strchr(value, '/') ||
        !access(value, R_OK) ||
        (cluster_gpu_parse(value, gpu, sizeof gpu, &width) &&
         !access(gpu, R_OK)))
        return 0;
    return err_set(err, "%s: %s; the run in %s had it as --%s: give --%s",
                   value, strerror(errno), directory, row->name, row->name);
}

int kept_options_recall(struct kept_options *kept, const char *directory,
                        bool other_gpu, struct study_options *options,
                        struct err *err)
{
    bool other_cluster = options->cluster;

    *kept = (struct kept_options){.words = NULL};
    if (rundir_read_words(directory, RUN_OPTIONS, &kept->words, err))
        return -1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char **option = value_of(&rows[i], options);
        if (*option || (other_cluster && rows[i].of == OF_CLUSTER) ||
            (other_gpu && rows[i].of == OF_GPU))
            continue;
        *option = value_among(kept->words, &rows[i]);
        if (check_there(&rows[i], *option, directory, err)) {
            kept_options_fini(kept);
            return -1;
        }
    }
    return 0;
}

int kept_options_recall_beside(struct kept_options *kept, const char *path,
                               bool other_gpu, struct study_options *options,
                               struct err *err)
{
    struct stat st;

    *kept = (struct kept_options){.words = NULL};
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return kept_options_recall(kept, path, other_gpu, options, err);
    if (!run_is_trace(path))
        return 0;
    char *directory = rundir_of(path);
    int rc = kept_options_recall(kept, directory, other_gpu, options, err);
    free(directory);
    return rc;
}

void kept_options_fini(struct kept_options *kept)
{
    free(kept->words);
    kept->words = NULL;
}
