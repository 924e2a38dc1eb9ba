/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/json/result_read.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_text.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/time_diff.h"

#define BYTES_MAX 9007199254740992.0 /* 2^53: what a double counts to */

struct source {
    const char *origin;
    struct err *err;
};

static int source_error(const struct source *s, const char *key,
                        const char *wanted)
{
    return err_set(s->err,
                   "%s: \"%s\" is missing or not %s; write the file again with "
                   "`memsim run --json'",
                   s->origin, key, wanted);
}

static int take_bytes(const struct source *s, const cJSON *object,
                      const char *key, uint64_t *bytes)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        item->valuedouble > BYTES_MAX)
        return source_error(s, key, "a number of bytes");
    *bytes = (uint64_t)item->valuedouble;
    return 0;
}

static int take_number(const struct source *s, const cJSON *object,
                       const char *key, unsigned *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        item->valuedouble > INT32_MAX)
        return source_error(s, key, "a number");
    *number = (unsigned)item->valuedouble;
    return 0;
}

/* The text of KEY, NULL where there is none. */
static const char *take_text(const struct source *s, const cJSON *object,
                             const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (cJSON_IsString(item))
        return item->valuestring;
    source_error(s, key, "a text");
    return NULL;
}

static int take_array(const struct source *s, const cJSON *object,
                      const char *key, const cJSON **array)
{
    *array = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsArray(*array))
        return source_error(s, key, "an array");
    return 0;
}

static size_t array_size(const cJSON *array)
{
    size_t size = 0;

    for (const cJSON *item = array->child; item; item = item->next)
        size++;
    return size;
}

/* --- attribution ---------------------------------------------------------- */

/* A category that a later version may have added is "other" to us. */
static enum trace_category category_find(const char *name)
{
    for (int c = 0; c < TRACE_CATEGORY_COUNT; c++)
        if (!strcmp(attribution_category_name((enum trace_category)c), name))
            return (enum trace_category)c;
    return TRACE_CATEGORY_OTHER;
}

static int read_categories(const struct source *s, const cJSON *categories,
                           struct attribution_sums *sums)
{
    for (const cJSON *item = categories->child; item; item = item->next) {
        if (!item->string || !cJSON_IsNumber(item) ||
            !(item->valuedouble >= 0) || item->valuedouble > BYTES_MAX)
            return source_error(s, "categories_at_peak", "bytes by category");
        sums->bytes[category_find(item->string)] += (uint64_t)item->valuedouble;
    }
    return 0;
}

static int name_compare(const void *x, const void *y)
{
    const struct attribution_module *const *a = x, *const *b = y;

    return strcmp((*a)->name, (*b)->name);
}

/* Modules by name. */
struct directory {
    const struct attribution_module **sorted;
    size_t count;
};

static void directory_init(struct directory *d, const struct attribution *a)
{
    d->sorted = xcalloc(a->module_count + 1, sizeof *d->sorted);
    d->count = a->module_count;
    for (size_t i = 0; i < d->count; i++)
        d->sorted[i] = &a->modules[i];
    qsort(d->sorted, d->count, sizeof *d->sorted, name_compare);
}

/* The place of NAME among the modules, SIZE_MAX where it is not there. */
static size_t directory_find(const struct directory *d,
                             const struct attribution *a, const char *name)
{
    const struct attribution_module wanted = {.name = (char *)name};
    const struct attribution_module *key = &wanted;
    const struct attribution_module **found =
        bsearch(&key, d->sorted, d->count, sizeof *d->sorted, name_compare);

    return found ? (size_t)(*found - a->modules) : SIZE_MAX;
}

static int read_module(const struct source *s, const cJSON *item,
                       struct attribution *a)
{
    const char *name = take_text(s, item, "name");

    if (!name)
        return -1;
    struct attribution_module *m = &a->modules[a->module_count++];
    *m = (struct attribution_module){.name = xstrdup(name), .parent = SIZE_MAX};
    if (take_bytes(s, item, "bytes_at_peak", &m->bytes_at_peak) ||
        take_bytes(s, item, "own_peak_bytes", &m->own_peak_bytes) ||
        take_bytes(s, item, "calls", &m->calls))
        return -1;
    return 0;
}

/* A parent that is not among the modules was too small to be told. */
static void read_parents(const cJSON *modules, struct attribution *a,
                         const struct directory *d)
{
    size_t i = 0;

    for (const cJSON *item = modules->child; item; item = item->next, i++) {
        const cJSON *parent = cJSON_GetObjectItemCaseSensitive(item, "parent");
        if (cJSON_IsString(parent))
            a->modules[i].parent = directory_find(d, a, parent->valuestring);
    }
}

/* Whether no module is above itself. Each is passed once: what an earlier way
 * up has seen led to the top. */
static int check_parents(const struct source *s, const struct attribution *a)
{
    size_t *seen = xcalloc(a->module_count + 1, sizeof *seen);
    int rc = 0;

    for (size_t i = 0; i < a->module_count && !rc; i++) {
        size_t at = i;
        for (; at != SIZE_MAX && !seen[at]; at = a->modules[at].parent)
            seen[at] = i + 1;
        if (at != SIZE_MAX && seen[at] == i + 1)
            rc = err_set(s->err, "%s: module \"%.80s\" lies within itself",
                         s->origin, a->modules[at].name);
    }
    free(seen);
    return rc;
}

/* What each module holds itself is told apart from the tree. */
static int read_owners(const struct source *s, const cJSON *device,
                       struct attribution *a, const struct directory *d)
{
    const cJSON *owners;

    if (take_array(s, device, "modules_at_peak", &owners))
        return -1;
    for (const cJSON *item = owners->child; item; item = item->next) {
        const char *name = take_text(s, item, "name");
        uint64_t bytes;
        if (!name || take_bytes(s, item, "bytes", &bytes))
            return -1;
        size_t at = directory_find(d, a, name);
        if (at != SIZE_MAX)
            a->modules[at].self_bytes = bytes;
    }
    return 0;
}

static int read_modules(const struct source *s, const cJSON *device,
                        struct attribution *a)
{
    const cJSON *modules;
    struct directory d;

    if (take_array(s, device, "modules", &modules))
        return -1;
    a->modules = xcalloc(array_size(modules) + 1, sizeof *a->modules);
    for (const cJSON *item = modules->child; item; item = item->next)
        if (read_module(s, item, a))
            return -1;
    directory_init(&d, a);
    read_parents(modules, a, &d);
    int rc = check_parents(s, a) || read_owners(s, device, a, &d) ? -1 : 0;
    free(d.sorted);
    return rc;
}

static int read_attribution(const struct source *s, const cJSON *json,
                            struct result_device *device)
{
    const cJSON *categories =
        cJSON_GetObjectItemCaseSensitive(json, "categories_at_peak");

    if (!cJSON_IsObject(categories))
        return 0;
    device->attribution = xcalloc(1, sizeof *device->attribution);
    if (read_categories(s, categories, &device->attribution->at_peak))
        return -1;
    return read_modules(s, json, device->attribution);
}

/* --- ranks and GPUs ------------------------------------------------------ */

static int read_device(const struct source *s, const cJSON *json,
                       struct result_device *d)
{
    if (take_number(s, json, "index", &d->index) ||
        take_bytes(s, json, "capacity_bytes", &d->capacity_bytes) ||
        take_bytes(s, json, "peak_allocated_bytes", &d->peak_allocated_bytes) ||
        take_bytes(s, json, "peak_reserved_bytes", &d->peak_reserved_bytes) ||
        take_bytes(s, json, "peak_used_bytes", &d->peak_used_bytes) ||
        take_bytes(s, json, "headroom_bytes", &d->headroom_bytes))
        return -1;
    return read_attribution(s, json, d);
}

/* Those that RANK stands for; a file of an older version has none. */
static int read_members(const struct source *s, const cJSON *json,
                        struct result_rank *rank)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "members");

    if (!cJSON_IsString(item))
        return 0;
    return rank_set_parse(&rank->members, item->valuestring, UINT32_MAX,
                          s->origin, s->err);
}

static int read_rank(const struct source *s, const cJSON *json,
                     struct result_rank *rank)
{
    const cJSON *devices;

    if (take_number(s, json, "rank", &rank->rank) ||
        take_array(s, json, "devices", &devices))
        return -1;
    if (read_members(s, json, rank))
        return -1;
    rank->devices = xcalloc(array_size(devices) + 1, sizeof *rank->devices);
    for (const cJSON *item = devices->child; item; item = item->next)
        if (read_device(s, item, &rank->devices[rank->device_count++]))
            return -1;
    return 0;
}

static int read_ranks(const struct source *s, const cJSON *root,
                      struct result *r)
{
    const cJSON *ranks;

    if (take_array(s, root, "ranks", &ranks))
        return -1;
    r->ranks = xcalloc(array_size(ranks) + 1, sizeof *r->ranks);
    for (const cJSON *item = ranks->child; item; item = item->next)
        if (read_rank(s, item, &r->ranks[r->rank_count++]))
            return -1;
    return 0;
}

/* --- the run -------------------------------------------------------------- */

static int read_verdict(const struct source *s, const cJSON *root,
                        struct result *r)
{
    const char *name = take_text(s, root, "verdict");
    unsigned status, refused = 0;

    if (!name || take_number(s, root, "exit_status", &status) ||
        (cJSON_HasObjectItem(root, "failed_allocations") &&
         take_number(s, root, "failed_allocations", &refused)))
        return -1;
    r->exit_status = (int)status;
    r->refused = refused;
    r->no_steps = cJSON_IsTrue(cJSON_GetObjectItem(root, "no_steps"));
    for (int v = VERDICT_FITS; v <= VERDICT_INPUT; v++)
        if (!strcmp(result_verdict_name((enum verdict)v), name)) {
            r->verdict = (enum verdict)v;
            return 0;
        }
    return source_error(s, "verdict", "one that this version knows");
}

static int read_command(const struct source *s, const cJSON *root,
                        struct result_file *file)
{
    const cJSON *words;
    size_t count = 0;

    if (take_array(s, root, "command", &words))
        return -1;
    file->command = xcalloc(array_size(words) + 1, sizeof *file->command);
    file->result.command = file->command;
    for (const cJSON *item = words->child; item; item = item->next) {
        if (!cJSON_IsString(item))
            return source_error(s, "command", "an array of texts");
        file->command[count++] = xstrdup(item->valuestring);
    }
    return 0;
}

static int read_gpu(const struct source *s, const cJSON *root, struct gpu *gpu)
{
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(root, "gpu");
    const char *name = take_text(s, json, "name");
    const char *device_name = take_text(s, json, "device_name");

    if (!name || !device_name ||
        take_bytes(s, json, "memory_bytes", &gpu->memory_bytes))
        return -1;
    snprintf(gpu->name, sizeof gpu->name, "%s", name);
    snprintf(gpu->device_name, sizeof gpu->device_name, "%s", device_name);
    text_make_printable(gpu->name);
    text_make_printable(gpu->device_name);
    return 0;
}

static void read_torch(const cJSON *root, struct result *r)
{
    const cJSON *torch = cJSON_GetObjectItemCaseSensitive(root, "torch");

    if (cJSON_IsString(torch)) {
        snprintf(r->torch_version, sizeof r->torch_version, "%s",
                 torch->valuestring);
        text_make_printable(r->torch_version);
    }
}

static void read_capabilities(const cJSON *root, struct result *r)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(root, "capabilities");

    if (cJSON_IsString(text))
        capability_parse(text->valuestring, &r->code);
}

static int check_schema(const struct source *s, const cJSON *root)
{
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");

    if (!cJSON_IsNumber(schema) ||
        !cJSON_GetObjectItemCaseSensitive(root, "ranks"))
        return err_set(s->err,
                       "%s: is no report of a run; `memsim run --json' writes "
                       "one",
                       s->origin);
    if (schema->valuedouble != SCHEMA_VERSION)
        return err_set(s->err,
                       "%s: its schema is %g, and this memsim reads %d; write "
                       "the file again with the same version",
                       s->origin, schema->valuedouble, SCHEMA_VERSION);
    return 0;
}

int result_read(const char *json, size_t length, const char *origin,
                struct result_file *file, struct err *err)
{
    const struct source s = {origin, err};
    struct err why = {""};
    cJSON *root = json_text_parse(json, length, origin, &why);

    *file = (struct result_file){.result = {.finished = true}};
    if (!root)
        return err_set(err,
                       "%s; it is no whole report of `memsim run --json': "
                       "write it again",
                       why.text);
    int rc = check_schema(&s, root) || read_verdict(&s, root, &file->result) ||
                     read_command(&s, root, file) ||
                     read_gpu(&s, root, &file->result.gpu) ||
                     read_ranks(&s, root, &file->result)
                 ? -1
                 : 0;
    if (!rc && file->result.rank_count)
        rc = time_json_read(root, origin, &file->result.ranks[0].timing, err);
    read_torch(root, &file->result);
    read_capabilities(root, &file->result);
    cJSON_Delete(root);
    if (rc)
        result_file_fini(file);
    return rc;
}

void result_file_fini(struct result_file *file)
{
    for (char **word = file->command; word && *word; word++)
        free(*word);
    free(file->command);
    result_fini(&file->result);
}
