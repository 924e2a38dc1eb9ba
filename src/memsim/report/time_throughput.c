/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "common/base/json_add.h"
#include "memsim/report/text_columns.h"
#include "memsim/report/time_report.h"

struct throughput {
    const struct result_rank *rank; /* NULL: nothing is known */
    const char *module;
    struct step_input input;
    double seconds, low, high; /* of the job's step, and its band */
};

static unsigned knowledge(const struct step_input *input)
{
    return input->tokens ? 2 : input->samples > 0;
}

/* Of the first rank that knows most: what ranks share is not known, so that
 * they cannot be added. */
static struct throughput throughput_find(const struct result *result)
{
    struct throughput found = {.rank = NULL};

    for (size_t i = 0; i < result->rank_count; i++) {
        const struct timing *t = result->ranks[i].timing;
        if (!t || !t->input_module || !timing_step_ns(t) ||
            knowledge(&t->steps[t->typical].input) <= knowledge(&found.input))
            continue;
        found.rank = &result->ranks[i];
        found.module = t->input_module;
        found.input = t->steps[t->typical].input;
    }
    if (found.rank) {
        const struct timing *t = time_slowest(result);
        const struct timing_step *step = &t->steps[t->typical];
        found.seconds = (double)step->duration_ns / 1e9;
        found.low = (double)step->low_ns / 1e9;
        found.high = (double)step->high_ns / 1e9;
    }
    return found;
}

struct time_rate time_rate_of(const struct result *result)
{
    const struct throughput t = throughput_find(result);
    uint64_t count = t.input.tokens ? t.input.tokens : t.input.samples;

    return (struct time_rate){
        .per_second = t.rank && t.seconds > 0 ? (double)count / t.seconds : 0,
        .tokens = t.input.tokens > 0};
}

void time_format_rate(double per_second, char *text, size_t size)
{
    double unit = pow(10, floor(log10(fmax(per_second, 1e-9))) - 2);

    snprintf(text, size, "%.*f", unit < 1 ? 1 : 0,
             round(per_second / unit) * unit);
}

/* COUNT a second in three digits, and between which rates. */
static void format_rate(const struct throughput *t, uint64_t count,
                        const char *what, char *text, size_t size)
{
    double rates[] = {(double)count / t->seconds, (double)count / t->high,
                      t->low > 0 ? (double)count / t->low : 0};
    char texts[3][32];

    for (int i = 0; i < 3; i++)
        time_format_rate(rates[i], texts[i], sizeof texts[i]);
    snprintf(text, size, "%s %s/s (%s to %s)", texts[0], what, texts[1],
             texts[2]);
}

/* What is counted: "8 x 1024 ids", "a batch of 32". */
static void format_batch(const struct step_input *input, char *text,
                         size_t size)
{
    uint64_t samples = input->samples / input->calls;
    uint64_t tokens = input->tokens / input->calls;

    if (input->samples % input->calls || (samples && tokens % samples))
        snprintf(text, size, "batches of several sizes");
    else if (tokens)
        snprintf(text, size, "%" PRIu64 " x %" PRIu64 " ids", samples,
                 tokens / samples);
    else
        snprintf(text, size, "a batch of %" PRIu64, samples);
}

void time_throughput_write(const struct result *result, FILE *out)
{
    const struct throughput t = throughput_find(result);
    char rate[128];

    if (!t.rank)
        return;
    if (t.input.tokens)
        format_rate(&t, t.input.tokens, "tokens", rate, sizeof rate);
    else
        format_rate(&t, t.input.samples, "samples", rate, sizeof rate);
    fprintf(out, "  %-16s %s%s\n", "throughput", rate,
            result->rank_count > 1 ? ", of one rank" : "");
}

void time_throughput_write_basis(const struct result *result, FILE *out)
{
    const struct throughput t = throughput_find(result);
    char batch[64], line[512], calls[64] = "", rank[64] = "";

    if (!t.rank)
        return;
    format_batch(&t.input, batch, sizeof batch);
    if (t.input.calls > 1)
        snprintf(calls, sizeof calls, " in each of %" PRIu32 " calls",
                 t.input.calls);
    if (result->rank_count > 1)
        snprintf(rank, sizeof rank, ", of rank %" PRIu64 " alone",
                 (uint64_t)t.rank->rank);
    snprintf(line, sizeof line, "throughput: counted are %s given to %s%s%s",
             batch, t.module, calls, rank);
    text_write_wrapped(out, " ", line);
}

void time_throughput_json(cJSON *time, const struct result *result)
{
    const struct throughput t = throughput_find(result);

    if (!t.rank)
        return;
    cJSON *object = cJSON_AddObjectToObject(time, "throughput");
    json_add_uint(object, "rank", t.rank->rank);
    cJSON_AddStringToObject(object, "module", t.module);
    json_add_uint(object, "calls", t.input.calls);
    json_add_uint(object, "samples", t.input.samples);
    cJSON_AddNumberToObject(object, "samples_per_second",
                            (double)t.input.samples / t.seconds);
    if (!t.input.tokens)
        return;
    json_add_uint(object, "tokens", t.input.tokens);
    cJSON_AddNumberToObject(object, "tokens_per_second",
                            (double)t.input.tokens / t.seconds);
}
