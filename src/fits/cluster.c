/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/cluster.h"
#include "common/base/json_text.h"
#include "common/base/share.h"
#include "common/base/suggest.h"
#include "common/base/xmalloc.h"
#include "fits/cluster_gpu.h"
#include "fits/fit_read.h"
#include "fits/machine.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where their files lie: fits beside the other data where installed, beside
 * data/ in the source tree. */
static const char *const places[] = {"fits", "../fits", "clusters"};

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

/* "intra": {"link": ..., "gbps": what it reaches, "latency_us": a step's}. */
static int read_link(const cJSON *root, const char *key, const char *origin,
                     struct fit_level *level, struct err *err)
{
    const cJSON *link = cJSON_GetObjectItemCaseSensitive(root, key);

    if (!link)
        return 0;
    *level = (struct fit_level){
        .known = true,
        .latency_us = number_of(link, "latency_us"),
        .piece_count = 1,
        .pieces[0] = {.base_gbps = number_of(link, "gbps"), .steepness = 1},
    };
    snprintf(level->name, sizeof level->name, "%s-node", key);
    if (level->latency_us < 0 || level->pieces[0].base_gbps <= 0)
        return err_set(err,
                       "%s: \"%s\" must have a \"gbps\" above 0 and a "
                       "\"latency_us\"",
                       origin, key);
    return 0;
}

static int load_name(const char *name, struct cluster *cluster,
                     struct err *err);

/* "fit": the measured cluster whose collectives this one has. */
static int read_fit(const cJSON *root, const char *origin, struct cluster *c,
                    struct err *err)
{
    const char *name = json_text_of(root, "fit");
    struct cluster measured;

    if (!*name)
        return 0;
    if (load_name(name, &measured, err))
        return -1;
    if (!measured.measured) {
        cluster_fini(&measured);
        return err_set(err, "%s: \"fit\": '%.40s' was not measured", origin,
                       name);
    }
    c->fit = measured.fit;
    c->measured = true;
    return 0;
}

static int read_network(const cJSON *root, const char *origin,
                        struct cluster *c, struct err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, "network");
    struct network network;

    if (!item)
        return 0;
    if (network_read(item, origin, &network, err))
        return -1;
    c->network = xmalloc(sizeof *c->network);
    *c->network = network;
    return 0;
}

/* The links of a data sheet, unless collectives were measured. */
static int read_links(const cJSON *root, const char *origin, struct cluster *c,
                      struct err *err)
{
    struct fit_level *levels = c->fit.levels[FIT_CORRECTED];

    if (c->measured)
        return 0;
    snprintf(c->fit.name, sizeof c->fit.name, "%s", c->name);
    machine_find(c->gpu, &c->fit.machine);
    if (read_link(root, "intra", origin, &levels[FIT_INTRA], err) ||
        read_link(root, "inter", origin, &levels[FIT_INTER], err))
        return -1;
    memcpy(c->fit.levels[FIT_PUBLISHED], levels,
           sizeof c->fit.levels[FIT_PUBLISHED]);
    return fit_check(&c->fit, origin, err);
}

static int read_datasheet(const cJSON *root, const char *origin,
                          struct cluster *c, struct err *err)
{
    double gpus = number_of(root, "gpus_per_node");

    snprintf(c->name, sizeof c->name, "%s", json_text_of(root, "name"));
    snprintf(c->gpu, sizeof c->gpu, "%s", json_text_of(root, "gpu"));
    snprintf(c->about, sizeof c->about, "%s", json_text_of(root, "about"));
    if (!(gpus >= 1 && gpus <= 1024))
        return err_set(err, "%s: \"gpus_per_node\" must be 1 to 1024", origin);
    c->gpus_per_node = (uint32_t)gpus;
    double host = cJSON_HasObjectItem(root, "gpus_per_host")
                      ? number_of(root, "gpus_per_host")
                      : gpus;
    if (!(host >= 1 && host <= gpus))
        return err_set(err,
                       "%s: \"gpus_per_host\" must be 1 to \"gpus_per_node\"",
                       origin);
    c->gpus_per_host = (uint32_t)host;
    return read_fit(root, origin, c, err) || read_links(root, origin, c, err) ||
                   read_network(root, origin, c, err)
               ? -1
               : 0;
}

static void describe_fit(struct cluster *c)
{
    const struct fit *f = &c->fit;

    c->measured = true;
    memcpy(c->name, f->name, sizeof c->name);
    memcpy(c->gpu, f->gpu, sizeof c->gpu);
    snprintf(c->about, sizeof c->about, "fitted by commfit");
    for (uint32_t i = 0; i < f->family_count; i++) {
        if (i && f->families[i].gpus_per_node != c->gpus_per_node) {
            c->gpus_per_node = 0;
            return;
        }
        c->gpus_per_node = f->families[i].gpus_per_node;
    }
}

int cluster_load_text(const char *json, size_t length, const char *origin,
                      struct cluster *cluster, struct err *err)
{
    struct cluster c = {.name = ""};
    cJSON *root = json_text_parse(json, length, origin, err);
    int rc;

    if (!root)
        return -1;
    if (!strcmp(json_text_of(root, "kind"), "cluster")) {
        rc = read_datasheet(root, origin, &c, err);
        if (rc)
            cluster_fini(&c);
    } else {
        rc = fit_load_text(json, length, origin, &c.fit, err);
        if (!rc)
            describe_fit(&c);
    }
    cJSON_Delete(root);
    if (!rc)
        *cluster = c;
    return rc;
}

void cluster_fini(struct cluster *cluster)
{
    fit_fini(&cluster->fit);
    if (cluster->network)
        network_fini(cluster->network);
    free(cluster->network);
    cluster->network = NULL;
}

static int load_path(const char *path, struct cluster *cluster, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = cluster_load_text(text, length, path, cluster, err);
    free(text);
    return rc;
}

/* Calls NEXT with each file of PLACE; a place that is not there has none. */
typedef int next_file(const char *path, const char *name, void *arg,
                      struct err *err);

static int scan_place(const char *place, next_file *next, void *arg,
                      struct err *err)
{
    char directory[PATH_MAX], path[PATH_MAX + 256];
    struct dirent **files;
    int rc = 0;

    if (share_path(place, directory, sizeof directory, err))
        return -1;
    int count = scandir(directory, &files, share_select, alphasort);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]->d_name);
        files[i]->d_name[strlen(files[i]->d_name) - 5] = '\0';
        if (!rc)
            rc = next(path, files[i]->d_name, arg, err);
        free(files[i]);
    }
    free(files);
    return rc;
}

struct listing {
    struct cluster *items;
    size_t count, capacity;
};

static int add_to_list(const char *path, const char *name, void *arg,
                       struct err *err)
{
    struct listing *list = arg;

    (void)name;
    xgrow(&list->items, list->count, &list->capacity, sizeof *list->items);
    return load_path(path, &list->items[list->count], err) ? -1
                                                           : (list->count++, 0);
}

int cluster_list(struct cluster **list, size_t *count, struct err *err)
{
    struct listing found = {0};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (scan_place(places[i], add_to_list, &found, err)) {
            while (found.count)
                cluster_fini(&found.items[--found.count]);
            free(found.items);
            return -1;
        }
    *list = found.items;
    *count = found.count;
    return 0;
}

/* Looks for a name, and keeps those near it. */
struct search {
    const char *wanted;
    char path[PATH_MAX + 256];
    struct suggest suggest;
    char *kept[256]; /* names must outlive the scan */
    size_t kept_count;
};

static int search_file(const char *path, const char *name, void *arg,
                       struct err *err)
{
    struct search *s = arg;

    (void)err;
    if (!strcmp(name, s->wanted))
        snprintf(s->path, sizeof s->path, "%s", path);
    if (s->kept_count < sizeof s->kept / sizeof *s->kept) {
        s->kept[s->kept_count] = xstrdup(name);
        suggest_offer(&s->suggest, s->kept[s->kept_count++]);
    }
    return 0;
}

static int fail_unknown(const char *name, const struct suggest *near,
                        struct err *err)
{
    char list[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < near->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i ? ", " : "; near it: ", near->names[i]);
    return err_set(err,
                   "%s: no cluster of that name%s; `memsim clusters` "
                   "lists all",
                   name, list);
}

static int load_name(const char *name, struct cluster *cluster, struct err *err)
{
    struct search s = {.wanted = name};
    int rc = 0;

    suggest_start(&s.suggest, name, 3);
    for (size_t i = 0; i < sizeof places / sizeof *places && !rc; i++)
        rc = scan_place(places[i], search_file, &s, err);
    if (!rc && s.path[0])
        rc = load_path(s.path, cluster, err);
    else if (!rc)
        rc = fail_unknown(name, &s.suggest, err);
    while (s.kept_count)
        free(s.kept[--s.kept_count]);
    return rc;
}

int cluster_load(const char *name_or_path, struct cluster *cluster,
                 struct err *err)
{
    char gpu[PATH_MAX];
    uint32_t width;

    if (cluster_gpu_parse(name_or_path, gpu, sizeof gpu, &width) &&
        access(name_or_path, F_OK))
        return cluster_gpu_make(name_or_path, cluster, err);
    return share_is_path(name_or_path) ? load_path(name_or_path, cluster, err)
                                       : load_name(name_or_path, cluster, err);
}
