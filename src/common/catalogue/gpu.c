/* SPDX-License-Identifier: Apache-2.0
 * The catalogue: which file holds the GPU that a user names. */
#include "common/catalogue/gpu.h"
#include "common/base/err.h"
#include "common/base/json_text.h"
#include "common/base/share.h"
#include "common/base/suggest.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The names of the catalogue's files, sorted; DIRECTORY is theirs. */
static int catalogue_scan(char directory[PATH_MAX], struct dirent ***files,
                          struct err *err)
{
    if (share_path("gpus", directory, PATH_MAX, err))
        return -1;
    int count = scandir(directory, files, share_select, alphasort);
    if (count < 0)
        return err_set(err, "%s: %m", directory);
    return count;
}

static void catalogue_free(struct dirent **files, int count)
{
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
}

static bool text_matches(const cJSON *item, const char *name)
{
    return cJSON_IsString(item) && !strcasecmp(item->valuestring, name);
}

static bool card_is_called(const cJSON *card, const char *name)
{
    const cJSON *alias;

    if (text_matches(cJSON_GetObjectItem(card, "name"), name) ||
        text_matches(cJSON_GetObjectItem(card, "device_name"), name))
        return true;
    cJSON_ArrayForEach(alias, cJSON_GetObjectItem(card, "aliases"))
    {
        if (text_matches(alias, name))
            return true;
    }
    return false;
}

/* Whether the file at PATH goes by NAME; -1 where it cannot be read. */
static int file_is_called(const char *path, const char *name, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    cJSON *card = json_text_parse(text, length, path, err);
    int called = card ? card_is_called(card, name) : -1;
    cJSON_Delete(card);
    free(text);
    return called;
}

/* AMD's, as people call them: mi300x, MI250, rx7900xtx. */
static bool is_amd(const char *name)
{
    return (!strncasecmp(name, "mi", 2) && name[2] >= '1' && name[2] <= '9') ||
           !strncasecmp(name, "rx", 2) || !strncasecmp(name, "radeon", 6);
}

/* The names near NAME or, where none is, near its beginning. */
static void near_find(struct suggest *near, struct dirent **files, int count,
                      char *name)
{
    for (size_t length = strlen(name); length > 1; length--) {
        name[length] = '\0';
        suggest_start(near, name, 3);
        for (int i = 0; i < count; i++)
            suggest_offer(near, files[i]->d_name);
        if (near->count)
            return;
    }
}

static int fail_unknown(struct dirent **files, int count, const char *name,
                        struct err *err)
{
    struct suggest near = {.count = 0};
    char list[256] = "", start[64];
    size_t used = 0;

    if (is_amd(name))
        return err_set(err, "%s: AMD GPUs are not simulated; `memsim gpus` "
                            "lists NVIDIA's",
                       name);
    for (int i = 0; i < count; i++)
        files[i]->d_name[strlen(files[i]->d_name) - 5] = '\0'; /* .json */
    snprintf(start, sizeof start, "%s", name);
    near_find(&near, files, count, start);
    for (size_t i = 0; i < near.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i ? ", " : "; near it: ", near.names[i]);
    return err_set(err, "%s: no GPU of that name%s; `memsim gpus` lists all",
                   name, list);
}

/* The file NAME.json, where there is one, comes first: the others need not be
 * read. */
static void move_first(struct dirent **files, int count, const char *name)
{
    size_t length = strlen(name);

    for (int i = 1; i < count; i++)
        if (!strncasecmp(files[i]->d_name, name, length) &&
            !strcmp(files[i]->d_name + length, ".json")) {
            struct dirent *first = files[0];
            files[0] = files[i];
            files[i] = first;
        }
}

/* Writes the path of the file that goes by NAME to PATH. */
static int catalogue_find(const char *name, char *path, size_t size,
                          struct err *err)
{
    char directory[PATH_MAX];
    struct dirent **files;
    int count = catalogue_scan(directory, &files, err);
    int called = 0;

    if (count < 0)
        return -1;
    move_first(files, count, name);
    for (int i = 0; i < count && !called; i++) {
        int length = snprintf(path, size, "%s/%s", directory, files[i]->d_name);
        if (length < 0 || (size_t)length >= size)
            called = err_set(err, "%s: the path is too long", directory);
        else
            called = file_is_called(path, name, err);
    }
    if (!called)
        called = fail_unknown(files, count, name, err);
    catalogue_free(files, count);
    return called > 0 ? 0 : -1;
}

int gpu_path(const char *name_or_path, char *path, size_t size, struct err *err)
{
    if (!share_is_path(name_or_path))
        return catalogue_find(name_or_path, path, size, err);
    int length = snprintf(path, size, "%s", name_or_path);
    if (length < 0 || (size_t)length >= size)
        return err_set(err, "%s: the path is too long", name_or_path);
    return 0;
}

static int load_file(const char *path, gpu_find *find, struct gpu *gpu,
                     struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = gpu_load_text(text, length, path, find, gpu, err);
    free(text);
    return rc;
}

/* A base is of the catalogue, and stands on its own: no chains, no loops. */
static int load_base(const char *name, struct gpu *gpu, struct err *err)
{
    char path[PATH_MAX];

    if (catalogue_find(name, path, sizeof path, err))
        return -1;
    return load_file(path, NULL, gpu, err);
}

int gpu_load(const char *name_or_path, struct gpu *gpu, struct err *err)
{
    char path[PATH_MAX];

    if (gpu_path(name_or_path, path, sizeof path, err))
        return -1;
    return load_file(path, load_base, gpu, err);
}

static int compare_names(const void *a, const void *b)
{
    const struct gpu *one = a, *other = b;

    return strcmp(one->name, other->name);
}

int gpu_list(struct gpu **list, size_t *count, struct err *err)
{
    char directory[PATH_MAX], path[2 * PATH_MAX];
    struct dirent **files;
    int found = catalogue_scan(directory, &files, err);
    int rc = 0;

    if (found < 0)
        return -1;
    struct gpu *gpus = xcalloc((size_t)found, sizeof *gpus);
    for (int i = 0; i < found && !rc; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]->d_name);
        rc = load_file(path, load_base, &gpus[i], err);
    }
    catalogue_free(files, found);
    if (rc) {
        free(gpus);
        return -1;
    }
    qsort(gpus, (size_t)found, sizeof *gpus, compare_names);
    *list = gpus;
    *count = (size_t)found;
    return 0;
}
