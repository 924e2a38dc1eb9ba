/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/predict.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static int number_read(const char *text, bool is_size, double *value)
{
    uint64_t bytes;
    char *end;

    if (is_size) {
        if (units_parse_bytes(text, &bytes) || !bytes)
            return -1;
        *value = (double)bytes;
        return 0;
    }
    unsigned long count = strtoul(text, &end, 10);
    if (end == text || *end || *text == '-' || !count || count > 1u << 20)
        return -1;
    *value = (double)count;
    return 0;
}

static int fail_list(const char *what, const char *text, bool is_size,
                     struct err *err)
{
    return err_set(err, "--%s %s: give %s, a list (%s) or a range (%s)", what,
                   text, is_size ? "a size (1G)" : "a number from 1",
                   is_size ? "1M,16M,1G" : "1,2,8",
                   is_size ? "1M..1G" : "1..64");
}

static int range_read(const char *low, const char *high, bool is_size,
                      struct predict_list *list)
{
    double from, to;

    if (number_read(low, is_size, &from) || number_read(high, is_size, &to) ||
        to < from)
        return -1;
    for (double v = from; v <= to * (1 + 1e-9); v *= 2)
        if (list->count < PREDICT_LIST_MAX)
            list->values[list->count++] = v;
    return 0;
}

int predict_list_read(const char *what, const char *text, bool is_size,
                      struct predict_list *list, struct err *err)
{
    char *copy = xstrdup(text), *rest = copy, *item;
    int rc = *text ? 0 : -1;

    list->count = 0;
    while (!rc && (item = strsep(&rest, ","))) {
        char *dots = strstr(item, "..");

        if (list->count == PREDICT_LIST_MAX) {
            rc = -1;
        } else if (dots) {
            *dots = '\0';
            rc = range_read(item, dots + 2, is_size, list);
        } else {
            rc = number_read(item, is_size, &list->values[list->count]);
            list->count += !rc;
        }
    }
    free(copy);
    return rc ? fail_list(what, text, is_size, err) : 0;
}

static void predict_one(const struct fit *fit, const struct predict_request *r,
                        struct prediction *p)
{
    const struct cost_nccl_query query = {
        .coll = p->coll,
        .nodes = p->nodes,
        .gpus_per_node = p->gpus,
        .bytes = p->bytes,
        .in_place = r->in_place,
        .model = r->model,
        .quantile = r->quantile,
        .users = r->users,
        .algo = r->algo,
    };

    p->answered = !cost_nccl(fit, &query, &p->answer);
    if (p->answered && p->answer.us > 0)
        p->busbw_gbps = fit_coll_factor(p->coll, (double)p->nodes * p->gpus) *
                        p->bytes / p->answer.us / 1e3;
}

void predict_all(const struct fit *fit, const struct predict_request *r,
                 struct predictions *out)
{
    size_t count = r->bytes.count * r->nodes.count * r->gpus.count;

    *out = (struct predictions){
        .items = xcalloc(count + 1, sizeof *out->items)};
    for (size_t g = 0; g < r->gpus.count; g++)
        for (size_t n = 0; n < r->nodes.count; n++)
            for (size_t s = 0; s < r->bytes.count; s++) {
                struct prediction *p = &out->items[out->count++];

                p->coll = r->coll;
                p->gpus = (uint32_t)r->gpus.values[g];
                p->nodes = (uint32_t)r->nodes.values[n];
                p->bytes = r->bytes.values[s];
                predict_one(fit, r, p);
            }
}

/* --- for people ----------------------------------------------------------- */

static const char *time_text(double us, char text[16])
{
    if (us < 1e3)
        snprintf(text, 16, "%.4g us", us);
    else if (us < 1e6)
        snprintf(text, 16, "%.4g ms", us / 1e3);
    else
        snprintf(text, 16, "%.4g s", us / 1e6);
    return text;
}

static void print_one(const struct prediction *p, FILE *out)
{
    char size[16], us[16], low[16], high[16];

    fprintf(out, "  %5u x %-3u %10s", p->nodes, p->gpus,
            units_format_bytes((uint64_t)p->bytes, size, sizeof size));
    if (!p->answered) {
        fprintf(out, "  %10s  the fit cannot tell\n", "-");
        return;
    }
    fprintf(out, "  %10s %10s %10s  %8.4g", time_text(p->answer.us, us),
            time_text(p->answer.low_us, low),
            time_text(p->answer.high_us, high), p->busbw_gbps);
    for (unsigned i = 0; i < COST_NCCL_FLAGS; i++)
        if (p->answer.flags & 1u << i)
            fprintf(out, " %s", cost_nccl_flag_name(1u << i));
    fputc('\n', out);
}

void predict_print(const struct predictions *p, const char *cluster, FILE *out)
{
    unsigned flags = 0;

    fprintf(out, "%s on %s\n", fit_coll_name(p->items[0].coll), cluster);
    fprintf(out, "  nodes x GPUs     size        time     80%% from         to"
                 "   bus GB/s\n");
    for (size_t i = 0; i < p->count; i++) {
        print_one(&p->items[i], out);
        flags |= p->items[i].answer.flags;
    }
    for (unsigned i = 0; i < COST_NCCL_FLAGS; i++)
        if (flags & 1u << i)
            fprintf(out, "%s: %s\n", cost_nccl_flag_name(1u << i),
                    cost_nccl_flag_text(1u << i));
}

/* --- as JSON -------------------------------------------------------------- */

struct cJSON *prediction_to_json(const struct prediction *p)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "collective", fit_coll_name(p->coll));
    cJSON_AddNumberToObject(o, "bytes", p->bytes);
    cJSON_AddNumberToObject(o, "nodes", p->nodes);
    cJSON_AddNumberToObject(o, "gpus_per_node", p->gpus);
    if (p->answered) {
        cJSON_AddNumberToObject(o, "us", p->answer.us);
        cJSON_AddNumberToObject(o, "low_us", p->answer.low_us);
        cJSON_AddNumberToObject(o, "high_us", p->answer.high_us);
        cJSON_AddNumberToObject(o, "busbw_gbps", p->busbw_gbps);
    } else {
        cJSON_AddNullToObject(o, "us");
    }
    cJSON *flags = cJSON_AddArrayToObject(o, "flags");
    for (unsigned i = 0; i < COST_NCCL_FLAGS; i++)
        if (p->answer.flags & 1u << i)
            cJSON_AddItemToArray(
                flags, cJSON_CreateString(cost_nccl_flag_name(1u << i)));
    return o;
}

struct cJSON *predict_to_json(const struct predictions *p, const char *cluster)
{
    cJSON *root = cJSON_CreateObject();

    cJSON_AddNumberToObject(root, "schema", FIT_SCHEMA);
    cJSON_AddStringToObject(root, "cluster", cluster);
    cJSON *array = cJSON_AddArrayToObject(root, "predictions");
    for (size_t i = 0; i < p->count; i++)
        cJSON_AddItemToArray(array, prediction_to_json(&p->items[i]));
    return root;
}
