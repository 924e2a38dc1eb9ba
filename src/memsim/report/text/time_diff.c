/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/time_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/name_fold.h"
#include "memsim/report/text/text_columns.h"

#define ROWS         5
#define NAME_COLUMNS 44
#define NS_MAX       9007199254740992.0 /* 2^53 */
#define WHOLE        0.995 /* of a module's change that its part has */
#define CHANGE_MIN   0.001              /* of the step: worth a row */

/* --- making --------------------------------------------------------------- */

static void change_put(struct time_change *list, size_t *count,
                       const struct timing_row *row, bool is_after)
{
    size_t at = 0;

    while (at < *count && strcmp(list[at].name, row->name))
        at++;
    if (at == *count)
        list[(*count)++] = (struct time_change){.name = row->name};
    if (is_after) {
        list[at].after += row->ns;
        list[at].after_calls += row->calls;
    } else {
        list[at].before += row->ns;
        list[at].before_calls += row->calls;
    }
}

static double change_distance(const struct time_change *c)
{
    return fabs(c->after - c->before);
}

static int change_compare(const void *a, const void *b)
{
    const struct time_change *x = a, *y = b;

    if (change_distance(x) != change_distance(y))
        return change_distance(x) < change_distance(y) ? 1 : -1;
    return strcmp(x->name, y->name);
}

struct rows {
    const struct timing_row *rows;
    size_t count;
};

static struct time_change *changes_make(struct rows before, struct rows after,
                                        size_t *count)
{
    struct time_change *list =
        xcalloc(before.count + after.count + 1, sizeof *list);

    *count = 0;
    for (size_t i = 0; i < before.count; i++)
        change_put(list, count, &before.rows[i], false);
    for (size_t i = 0; i < after.count; i++)
        change_put(list, count, &after.rows[i], true);
    qsort(list, *count, sizeof *list, change_compare);
    return list;
}

static double percent_more(double before, double after)
{
    return before > 0 ? 100 * (after / before - 1) : 0;
}

/* The one rank whose launches take longer than what they launch; or NULL. */
static const struct timing *launch_bound(const struct result *result)
{
    const struct timing *t = time_slowest(result);

    return result->rank_count == 1 && t->device_ns > 0 &&
                   (double)t->keeps_up_ns > t->device_ns
               ? t
               : NULL;
}

static void gate_make(struct time_diff *d, const struct result *before,
                      const struct result *after)
{
    const struct timing *a = time_slowest(before), *b = time_slowest(after);

    d->gate = "a step";
    d->gate_before_ns = d->before_ns;
    d->gate_after_ns = d->after_ns;
    if (!a->keeps_up_ns || !b->keeps_up_ns)
        return;
    d->gate = "a step whose host keeps up (--host-speed 0)";
    d->gate_before_ns = (double)a->keeps_up_ns;
    d->gate_after_ns = (double)b->keeps_up_ns;
    if (launch_bound(before) && launch_bound(after) &&
        percent_more(a->device_ns, b->device_ns) > time_gate_percent(d)) {
        d->gate = "the GPU's work of a step (device_ns)";
        d->gate_before_ns = a->device_ns;
        d->gate_after_ns = b->device_ns;
    }
}

void time_diff_make(struct time_diff *d, const struct result *before,
                    const struct result *after)
{
    const struct timing *a = time_slowest(before), *b = time_slowest(after);

    *d = (struct time_diff){.known = a && b};
    if (!d->known)
        return;
    d->before_ns = (double)timing_step_ns(a);
    d->after_ns = (double)timing_step_ns(b);
    gate_make(d, before, after);
    d->modules = changes_make((struct rows){a->modules, a->module_count},
                              (struct rows){b->modules, b->module_count},
                              &d->module_count);
    d->operators = changes_make((struct rows){a->operators, a->operator_count},
                                (struct rows){b->operators, b->operator_count},
                                &d->operator_count);
}

void time_diff_fini(struct time_diff *d)
{
    free(d->modules);
    free(d->operators);
}

double time_diff_percent(const struct time_diff *d)
{
    return d->known ? percent_more(d->before_ns, d->after_ns) : 0;
}

double time_gate_percent(const struct time_diff *d)
{
    return d->known ? percent_more(d->gate_before_ns, d->gate_after_ns) : 0;
}

int time_limit_parse(const char *name, const char *text, double *percent,
                     struct err *err)
{
    char *end;

    *percent = strtod(text, &end);
    if (end == text || (*end == '%' ? end[1] : *end) || !(*percent >= 0) ||
        *percent > 1e6)
        return err_set(err, "--%s: '%s' is not per cent: 5%%, 0.5%%", name,
                       text);
    return 0;
}

/* --- reading -------------------------------------------------------------- */

static int number_read(const cJSON *object, const char *key, double *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        item->valuedouble > NS_MAX)
        return -1;
    *number = item->valuedouble;
    return 0;
}

static int row_read(const cJSON *item, const char *what,
                    struct timing_row *row)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, what);

    if (!cJSON_IsString(name) || number_read(item, "ns", &row->ns))
        return -1;
    if (number_read(item, "operations", &row->calls))
        row->calls = 0; /* a file of an older version */
    row->name = xstrdup(name->valuestring);
    return 0;
}

static int rows_read(const cJSON *time, const char *key, const char *what,
                     struct timing_row **rows, size_t *count)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(time, key), *item;
    int size = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;

    if (size < 0 || size > TIMING_ROWS)
        return -1;
    *rows = xcalloc((size_t)size + 1, sizeof **rows);
    cJSON_ArrayForEach(item, list)
    {
        if (row_read(item, what, &(*rows)[*count]))
            return -1;
        (*count)++;
    }
    return 0;
}

/* Tokens a second of the job that TIME is of; ALONE: it has one rank. */
static double job_tokens_read(const cJSON *time, bool alone)
{
    const char *key = "tokens_per_second";
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(time, "throughput");
    const cJSON *job = cJSON_GetObjectItemCaseSensitive(own, "job");
    double tokens;

    if (!number_read(job, key, &tokens) ||
        (alone && !number_read(own, key, &tokens)))
        return tokens;
    return 0;
}

int time_json_read(const cJSON *root, const char *origin,
                   struct timing **timing, struct err *err)
{
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(root, "time");
    const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(root, "ranks");
    double ns, keeps_up_ns;

    *timing = NULL;
    if (!time)
        return 0;
    struct timing *t = xcalloc(1, sizeof *t);
    t->steps = xcalloc(1, sizeof *t->steps);
    if (number_read(time, "step_ns", &ns) ||
        rows_read(time, "by_module", "module", &t->modules,
                  &t->module_count) ||
        rows_read(time, "by_operator", "operator", &t->operators,
                  &t->operator_count)) {
        timing_destroy(t);
        return err_set(err,
                       "%s: \"time\" is damaged; write the file again with "
                       "`memsim run --json'",
                       origin);
    }
    t->step_count = 1;
    t->steps[0].duration_ns = (uint64_t)ns;
    if (!number_read(time, "keeps_up_ns", &keeps_up_ns))
        t->keeps_up_ns = (uint64_t)keeps_up_ns;
    if (number_read(time, "device_ns", &t->device_ns))
        t->device_ns = 0;
    if (number_read(time, "mfu", &t->mfu))
        t->mfu = 0;
    t->job_tokens = job_tokens_read(time, cJSON_GetArraySize(ranks) == 1);
    *timing = t;
    return 0;
}

/* --- reporting ------------------------------------------------------------ */

static void add_changes(cJSON *to, const char *key, const char *what,
                        const struct time_change *list, size_t count)
{
    static const struct json_column columns[] = {
        {"before_ns", offsetof(struct time_change, before)},
        {"after_ns", offsetof(struct time_change, after)},
        {"before_operations", offsetof(struct time_change, before_calls)},
        {"after_operations", offsetof(struct time_change, after_calls)},
        {NULL, 0}};
    const struct json_rows rows = {list, count, sizeof *list};

    json_add_rows(to, key, what, &rows, columns);
}

void time_diff_json(cJSON *root, const struct time_diff *d)
{
    if (!d->known)
        return;
    cJSON *time = cJSON_AddObjectToObject(root, "time");
    cJSON_AddNumberToObject(time, "before_ns", d->before_ns);
    cJSON_AddNumberToObject(time, "after_ns", d->after_ns);
    cJSON_AddNumberToObject(time, "slower_percent", time_diff_percent(d));
    add_changes(time, "modules", "module", d->modules, d->module_count);
    add_changes(time, "operators", "operator", d->operators,
                d->operator_count);
}

static void write_changes(const struct time_diff *d, const char *title,
                          const struct time_change *list, size_t count,
                          FILE *out)
{
    for (size_t i = 0; i < count && i < ROWS; i++) {
        if (change_distance(&list[i]) < CHANGE_MIN * d->before_ns)
            return;
        if (!i)
            fprintf(out, "  %s\n", title);
        fprintf(out, "  %+10.2f ms %8.2f %8.2f  ",
                (list[i].after - list[i].before) / 1e6, list[i].before / 1e6,
                list[i].after / 1e6);
        text_write_end(out, list[i].name, NAME_COLUMNS);
        fputc('\n', out);
    }
}

/* Is a part of the module *C in LIST that changed as much? */
static bool is_told_by_part(const struct time_change *c,
                            const struct time_change *list, size_t count)
{
    size_t length = strlen(c->name);

    for (size_t i = 0; i < count; i++)
        if (!strncmp(list[i].name, c->name, length) &&
            list[i].name[length] == '.' &&
            change_distance(&list[i]) >= WHOLE * change_distance(c))
            return true;
    return false;
}

static size_t wholes_drop(struct time_change *list, size_t count)
{
    size_t kept = 0;
    bool *drop = xcalloc(count + 1, sizeof *drop);

    for (size_t i = 0; i < count; i++)
        drop[i] = is_told_by_part(&list[i], list, count);
    for (size_t i = 0; i < count; i++)
        if (drop[i])
            free((char *)list[i].name);
        else
            list[kept++] = list[i];
    free(drop);
    return kept;
}

/* The same of modules of one name but for numbers, together. */
static void write_modules(const struct time_diff *d, FILE *out)
{
    struct time_change *folds = xcalloc(d->module_count + 1, sizeof *folds);
    size_t count = 0;

    for (size_t i = 0; i < d->module_count; i++) {
        char *name = name_fold(d->modules[i].name);
        size_t at = 0;

        while (at < count && strcmp(folds[at].name, name))
            at++;
        if (at == count)
            folds[count++] = (struct time_change){
                .name = name, .first = d->modules[i].name};
        else
            free(name);
        folds[at].before += d->modules[i].before;
        folds[at].after += d->modules[i].after;
        folds[at].members++;
    }
    count = wholes_drop(folds, count);
    for (size_t i = 0; i < count; i++) {
        char *text = name_fold_text(folds[i].name, folds[i].first,
                                    folds[i].members);

        free((char *)folds[i].name);
        folds[i].name = text;
    }
    qsort(folds, count, sizeof *folds, change_compare);
    write_changes(d, "modules", folds, count, out);
    for (size_t i = 0; i < count; i++)
        free((char *)folds[i].name);
    free(folds);
}

void time_diff_text(const struct time_diff *d, const char *dim,
                    const char *plain, FILE *out)
{
    if (!d->known)
        return;
    fprintf(out, "  %sthe step's time, ms: change, before, after%s\n", dim,
            plain);
    fprintf(out, "  %+10.2f ms %8.2f %8.2f  step (%+.1f%%)\n",
            (d->after_ns - d->before_ns) / 1e6, d->before_ns / 1e6,
            d->after_ns / 1e6, time_diff_percent(d));
    write_modules(d, out);
    write_changes(d, "operators", d->operators, d->operator_count, out);
}
