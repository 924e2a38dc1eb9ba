/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/read_inspector.h"
#include "common/base/json_text.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_MAX (1u << 20) /* bytes; with event traces they take 10 KiB */
#define RANKS_MAX  (1u << 20)

bool inspector_is_json(const char *head)
{
    return strstr(head, "\"coll_perf\"") || strstr(head, "\"p2p_perf\"");
}

bool inspector_is_text(const char *head)
{
    return strstr(head, "nccl_bus_bandwidth_gbs{") ||
           strstr(head, "nccl_collective_exec_time_microseconds{") ||
           strstr(head, "nccl_p2p_bus_bandwidth_gbs{");
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Nodes and GPUs of a communicator. Returns false where the ranks do not
 * divide, or are too few or too many. */
static bool row_place(double ranks, double nodes, struct bench_row *row)
{
    if (!(ranks >= 2 && ranks <= RANKS_MAX && nodes >= 1 && nodes <= ranks) ||
        fmod(ranks, nodes) != 0)
        return false;
    row->nodes = (uint32_t)nodes;
    row->gpus = (uint32_t)(ranks / nodes);
    return true;
}

/* The Inspector counts what one rank gives or gets; nccl-tests counts the whole
 * buffer. */
static double whole_bytes(enum fit_coll coll, double bytes, double ranks)
{
    switch (coll) {
    case FIT_ALL_GATHER:
    case FIT_REDUCE_SCATTER:
    case FIT_ALLTOALL:
    case FIT_GATHER:
    case FIT_SCATTER:
        return bytes * ranks;
    default:
        return bytes;
    }
}

/* Where a row stands, for messages. */
struct origin {
    const char *source, *name;
    uint64_t line;
};

static int add_row(struct bench *b, struct bench_row *row, double bytes,
                   const struct origin *at, struct err *err)
{
    row->by_rank = true;
    if (!bench_is_time(row->us)) {
        bench_drop(b, BENCH_NO_TIME, at->source, at->line, at->name);
        return 0;
    }
    if (!(bytes >= 1 && bytes < 0x1p50)) {
        bench_drop(b, BENCH_EMPTY, at->source, at->line, at->name);
        return 0;
    }
    row->bytes = (uint64_t)(bytes + 0.5);
    return bench_add(b, row, err);
}

/* "Send" and "Recv" are the two ends of nccl-tests' sendrecv. */
static bool find_coll(const char *name, enum fit_coll *coll)
{
    if (!strcmp(name, "Send") || !strcmp(name, "Recv")) {
        *coll = FIT_SENDRECV;
        return true;
    }
    return !fit_coll_find(name, coll);
}

static int read_object(struct bench *b, const cJSON *root, const char *source,
                       uint64_t number, struct err *err)
{
    const cJSON *header = cJSON_GetObjectItemCaseSensitive(root, "header");
    const cJSON *perf = cJSON_GetObjectItemCaseSensitive(root, "coll_perf");
    bool p2p = !perf;
    struct bench_row row = {0};

    if (p2p)
        perf = cJSON_GetObjectItemCaseSensitive(root, "p2p_perf");
    if (!perf)
        return 0;
    const char *name = json_text_of(perf, p2p ? "p2p" : "coll");
    double ranks = number_of(header, "n_ranks");
    if (!find_coll(name, &row.coll)) {
        bench_drop(b, BENCH_UNKNOWN, source, number, name);
        return 0;
    }
    if (!row_place(ranks, number_of(header, "nnodes"), &row)) {
        bench_drop(b, ranks == 1 ? BENCH_ONE_RANK : BENCH_WORLD, source, number,
                   name);
        return 0;
    }
    row.us = number_of(perf, p2p ? "p2p_exec_time_us" : "coll_exec_time_us");
    double bytes =
        number_of(perf, p2p ? "p2p_msg_size_bytes" : "coll_msg_size_bytes");
    return add_row(b, &row, whole_bytes(row.coll, bytes, ranks),
                   &(struct origin){source, name, number}, err);
}

/* The next object of FILE into TEXT, of OBJECT_MAX + 1 bytes; what is longer is
 * left out. Returns its length; 0: the end. */
static size_t next_object(FILE *file, char *text)
{
    size_t length = 0, depth = 0;
    bool quoted = false, escaped = false;
    int c;

    while ((c = getc_unlocked(file)) != EOF) {
        if (!depth && c != '{')
            continue;
        if (length < OBJECT_MAX)
            text[length] = (char)c;
        length++;
        if (quoted) {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        quoted = c == '"';
        depth += c == '{';
        depth -= c == '}';
        if (!depth)
            return length;
    }
    return 0;
}

int read_inspector_json(struct bench *b, FILE *file, const char *path,
                        const char *source, struct err *err)
{
    char *text = xcalloc(1, OBJECT_MAX + 1);
    uint64_t number = 0;
    size_t length;
    int rc = 0;

    (void)path;
    while (!rc && (length = next_object(file, text))) {
        number++;
        cJSON *root =
            length <= OBJECT_MAX ? cJSON_ParseWithLength(text, length) : NULL;
        if (root)
            rc = read_object(b, root, source, number, err);
        else
            bench_drop(b, BENCH_UNREADABLE, source, number, "an object");
        cJSON_Delete(root);
    }
    free(text);
    return rc;
}

/* --- Prometheus ----------------------------------------------------------- */

#define WAITING 1024 /* lines whose other metric has not come yet */

/* One line: a metric of a collective in one communicator. */
struct metric {
    bool is_time;
    double value;
    char labels[480];
};

/* NAME="..." of LABELS into TO; false: it is not there, or too long. */
static bool label_of(const char *labels, const char *name, char *to,
                     size_t size)
{
    size_t n = strlen(name);

    for (const char *at = labels; (at = strstr(at, name)); at += n) {
        if ((at != labels && at[-1] != ',') || !text_begins(at + n, "=\""))
            continue;
        const char *end = strchr(at + n + 2, '"');
        size_t length = end ? (size_t)(end - at - n - 2) : size;
        if (length >= size)
            return false;
        memcpy(to, at + n + 2, length);
        to[length] = '\0';
        return true;
    }
    return false;
}

static bool parse_metric(const char *line, struct metric *m)
{
    const char *open = strchr(line, '{');
    const char *close = open ? strrchr(open, '}') : NULL;
    char *end;

    if (!text_begins(line, "nccl_") || !close)
        return false;
    m->is_time = strstr(line, "exec_time_microseconds{") != NULL;
    if (!m->is_time && !strstr(line, "bus_bandwidth_gbs{"))
        return false;
    size_t length = (size_t)(close - open - 1);
    if (length >= sizeof m->labels)
        return false;
    memcpy(m->labels, open + 1, length);
    m->labels[length] = '\0';
    m->value = strtod(close + 1, &end);
    return end != close + 1;
}

/* A size within 2% of a power of two is one; of others three digits are what
 * the metrics are good for. */
static double round_size(double bytes)
{
    double power = exp2(round(log2(bytes)));

    if (fabs(bytes / power - 1) < 0.02)
        return power;
    double unit = pow(10, floor(log10(bytes)) - 2);
    return round(bytes / unit) * unit;
}

static int add_metrics(struct bench *b, const struct metric *time,
                       const struct metric *rate, const struct lines *lines,
                       struct err *err)
{
    char name[32], ranks_text[16], nodes_text[16];
    struct bench_row row = {.us = time->value};

    if (!label_of(time->labels, "collective", name, sizeof name) &&
        !label_of(time->labels, "p2p_operation", name, sizeof name))
        return 0;
    if (!find_coll(name, &row.coll)) {
        bench_drop(b, BENCH_UNKNOWN, lines->source, lines->number, name);
        return 0;
    }
    if (!label_of(time->labels, "nranks", ranks_text, sizeof ranks_text) ||
        !label_of(time->labels, "n_nodes", nodes_text, sizeof nodes_text) ||
        !row_place(strtod(ranks_text, NULL), strtod(nodes_text, NULL), &row)) {
        bench_drop(b, BENCH_WORLD, lines->source, lines->number, name);
        return 0;
    }
    double factor =
        fit_coll_factor(row.coll, (double)row.nodes * row.gpus);
    double bytes = rate->value * 1e3 * time->value / factor;
    if (!(bytes >= 1 && bytes < 0x1p50)) {
        bench_drop(b, BENCH_NO_TIME, lines->source, lines->number, name);
        return 0;
    }
    return add_row(b, &row, round_size(bytes),
                   &(struct origin){lines->source, name, lines->number}, err);
}

/* The line with NEW's labels that waits for it; NULL: none. */
static struct metric *metric_partner(struct metric *waiting, size_t count,
                                     const struct metric *new)
{
    for (size_t i = 0; i < count; i++)
        if (waiting[i].is_time != new->is_time &&
            !strcmp(waiting[i].labels, new->labels))
            return &waiting[i];
    return NULL;
}

int read_inspector_text(struct bench *b, struct lines *lines, struct err *err)
{
    struct metric *waiting = xcalloc(WAITING, sizeof *waiting);
    struct metric new;
    size_t count = 0;
    int rc = 0;

    while (!rc && lines_next(lines)) {
        if (!parse_metric(lines->text, &new))
            continue;
        struct metric *other = metric_partner(waiting, count, &new);
        if (!other) {
            if (count == WAITING) /* the oldest has no partner */
                memmove(waiting, waiting + 1, --count * sizeof *waiting);
            waiting[count++] = new;
            continue;
        }
        rc = add_metrics(b, new.is_time ? &new : other,
                         new.is_time ? other : &new, lines, err);
        *other = waiting[--count];
    }
    free(waiting);
    return rc;
}
