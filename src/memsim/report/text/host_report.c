/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/host_report.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/units.h"
#include "memsim/attribution/growth_heap.h"
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/result/result_host.h"

#define SIZE_LENGTH 16
#define TOLD_MIN    MIB /* what the summary names of it */

static const char *const state_names[RESULT_HOST_STATES] = {
    "parameters", "gradients", "optimizer state"};

static const char *const kind_names[SESSION_HOST_KINDS] = {
    [SESSION_HOST_TENSORS] = "tensors",
    [SESSION_HOST_PINNED] = "pinned",
    [SESSION_HOST_MANAGED] = "managed",
    [SESSION_HOST_REGISTERED] = "registered",
};

/* Appends ", 1.00 GiB of WHAT" to TEXT where that is worth a word. */
static void part_add(char *text, size_t size, uint64_t bytes, const char *what)
{
    char figure[SIZE_LENGTH];
    size_t used = strlen(text);

    if (bytes >= TOLD_MIN)
        snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", what,
                 units_format_bytes(bytes, figure, sizeof figure));
}

static uint64_t state_high(const struct result *r, int state)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->host_count; i++)
        bytes += r->hosts[i].state_bytes[state];
    return bytes;
}

static void line_write(const struct result *r, FILE *out)
{
    char size[SIZE_LENGTH], limit[SIZE_LENGTH];

    fprintf(out, "  %-16s %11s", "host memory",
            units_format_bytes(r->host_bytes, size, sizeof size));
    if (r->host_limit_bytes)
        fprintf(out, " %5.1f%%  of %s",
                100.0 * (double)r->host_bytes / (double)r->host_limit_bytes,
                units_format_bytes(r->host_limit_bytes, limit, sizeof limit));
    if (r->host_node_ranks > 1)
        fprintf(out, "  of a node with %u ranks", r->host_node_ranks);
    else if (r->host_count > 1)
        fprintf(out, "  of %zu processes", r->host_count);
    fputc('\n', out);
}

/* " (7.00 MiB to 9.00 MiB)" where the steps differ. */
static void range_add(const struct growth_rate *rate, char *text, size_t size)
{
    char least[SIZE_LENGTH], most[SIZE_LENGTH];
    size_t used = strlen(text);

    units_format_bytes(rate->least, least, sizeof least);
    units_format_bytes(rate->most, most, sizeof most);
    if (strcmp(least, most))
        snprintf(text + used, size - used, " (%s to %s)", least, most);
}

/* "2000 steps", "1900 to 2100 steps", "1900 steps at least". */
static void lasts_add(const struct result *r, char *text, size_t size)
{
    uint64_t least = r->host_lasts_least, most = r->host_lasts_most;
    size_t used = strlen(text);

    text += used;
    size -= used;
    if (!most)
        snprintf(text, size, "%" PRIu64 " steps at least", least);
    else if (least == most)
        snprintf(text, size, "%" PRIu64 " steps", least);
    else
        snprintf(text, size, "%" PRIu64 " to %" PRIu64 " steps", least, most);
}

/* "grows by 8.00 MiB of pinned memory with each step" */
static void growth_write(const struct result *r, FILE *out)
{
    static const char *const names[GROWTH_HOST_KINDS] = {
        [GROWTH_HOST_TENSORS] = "tensors",
        [GROWTH_HOST_PINNED] = "pinned memory",
        [GROWTH_HOST_HEAP] = "objects (nodes of graphs that are kept, or "
                             "a cache that fills?)",
    };
    const struct growth_rate sum = growth_host_sum(r->host_growth);
    char text[320] = "", size[SIZE_LENGTH];

    for (int i = 0; i < GROWTH_HOST_KINDS; i++)
        if (r->host_growth[i].bytes)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "%s%s of %s", *text ? " and " : "grows by ",
                     units_format_bytes(r->host_growth[i].bytes, size,
                                        sizeof size),
                     names[i]);
    if (!*text)
        return;
    snprintf(text + strlen(text), sizeof text - strlen(text),
             " with each step");
    range_add(&sum, text, sizeof text);
    if (r->host_lasts_steps) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "; the limit is reached after ");
        lasts_add(r, text, sizeof text);
    }
    text_write_wrapped(out, "   ", text);
}

/* What is said instead of nothing where growth could not have been seen. The
 * first step has no look that counts. */
static void heap_text(const struct result *r, char *text, size_t size)
{
    if (r->heap_unknown && r->heap_looks)
        snprintf(text, size,
                 "too few looks at the heap to tell whether objects grow: %u "
                 "of %d; record %d steps or more",
                 r->heap_looks, GROWTH_HEAP_LOOKS, GROWTH_HEAP_LOOKS + 1);
    else if (r->heap_unknown)
        snprintf(text, size,
                 "whether objects grow is not known: the C library does not "
                 "say what its heap has in use");
}

void host_text_write(const struct result *r, FILE *out)
{
    char text[256] = "", state[160] = "", heap[160] = "";

    if (!result_has_hosts(r))
        return;
    line_write(r, out);
    for (int i = 0; i < SESSION_HOST_KINDS; i++)
        part_add(text, sizeof text,
                 result_hosts_high(r, (enum session_host_kind)i),
                 kind_names[i]);
    part_add(text, sizeof text, r->host_shared_bytes, "/dev/shm");
    for (int i = 0; i < RESULT_HOST_STATES; i++)
        part_add(state, sizeof state, state_high(r, i), state_names[i]);
    if (*text)
        text_write_wrapped(out, "   ", text);
    if (*state)
        text_write_wrapped(out, "    offloaded:", state);
    growth_write(r, out);
    heap_text(r, heap, sizeof heap);
    if (*heap)
        text_write_wrapped(out, "   ", heap);
}

void host_verdict(const struct result *r, char *out, size_t size)
{
    char needs[SIZE_LENGTH], limit[SIZE_LENGTH];

    units_format_bytes(r->host_limit_bytes, limit, sizeof limit);
    if (r->host_bytes > r->host_limit_bytes) {
        snprintf(out, size, ": a node needs %s of %s",
                 units_format_bytes(r->host_bytes, needs, sizeof needs),
                 limit);
    } else {
        snprintf(out, size, ": a node needs %s after ", limit);
        lasts_add(r, out, size);
    }
}

static void add_process(cJSON *list, const struct result_host *h)
{
    static const char *const names[SESSION_HOST_KINDS] = {
        [SESSION_HOST_TENSORS] = "tensors_bytes",
        [SESSION_HOST_PINNED] = "pinned_bytes",
        [SESSION_HOST_MANAGED] = "managed_bytes",
        [SESSION_HOST_REGISTERED] = "registered_bytes",
    };
    static const char *const states[RESULT_HOST_STATES] = {
        "parameters_bytes", "gradients_bytes", "optimizer_bytes"};
    cJSON *process = json_add_object(list);

    if (h->ranked)
        json_add_uint(process, "rank", h->rank);
    cJSON_AddStringToObject(process, "program", h->program);
    cJSON_AddBoolToObject(process, "gpu", !h->below);
    json_add_bytes(process, "peak_bytes", h->peak_bytes);
    for (int i = 0; i < SESSION_HOST_KINDS; i++)
        json_add_bytes(process, names[i], h->high_bytes[i]);
    for (int i = 0; i < RESULT_HOST_STATES; i++)
        if (h->state_bytes[i])
            json_add_bytes(process, states[i], h->state_bytes[i]);
}

void host_json_add(cJSON *root, const struct result *r)
{
    char heap[160] = "";

    if (!result_has_hosts(r))
        return;
    cJSON *host = cJSON_AddObjectToObject(root, "host");
    json_add_bytes(host, "peak_bytes", r->host_bytes);
    if (r->host_limit_bytes)
        json_add_bytes(host, "limit_bytes", r->host_limit_bytes);
    json_add_bytes(host, "shared_bytes", r->host_shared_bytes);
    cJSON *list = cJSON_AddArrayToObject(host, "processes");
    for (size_t i = 0; i < r->host_count; i++)
        add_process(list, &r->hosts[i]);
    heap_text(r, heap, sizeof heap);
    if (*heap)
        cJSON_AddStringToObject(host, "growth_unknown", heap);
    else if (r->heap_least)
        json_add_bytes(host, "growth_least_bytes", r->heap_least);
    if (!result_host_grows(r))
        return;
    cJSON *growth = growth_json_add_host(host, "growth", r->host_growth);
    if (!r->host_lasts_steps)
        return;
    json_add_uint(growth, "lasts_steps", r->host_lasts_steps);
    json_add_uint(growth, "lasts_least_steps", r->host_lasts_least);
    if (r->host_lasts_most)
        json_add_uint(growth, "lasts_most_steps", r->host_lasts_most);
}
