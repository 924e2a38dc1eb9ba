/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "common/base/json_add.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/time_report.h"

struct throughput {
    const struct result_rank *rank; /* NULL: nothing is known */
    const char *module;
    struct step_input input;
    double seconds, low, high; /* of the job's step, and its band */
    /* Of all ranks; GROUPS of them work on one batch each, or, where it is not
     * known which (0), no two are taken to do so. */
    uint64_t ranks, samples, tokens; /* ranks 0: one rank says nothing */
    uint64_t groups;
};

static unsigned input_knowledge(const struct step_input *input)
{
    return input->tokens ? 2 : input->samples > 0;
}

unsigned time_input_known(const struct timing *t)
{
    if (!t || !t->input_module || !timing_step_ns(t))
        return 0;
    return input_knowledge(&t->steps[t->typical].input);
}

/* So many of COUNT ranks or batches that were recorded are there with --dp. */
static uint64_t wider_count(const struct result *result, uint64_t count)
{
    return result->wider.recorded
               ? count * result->wider.ranks / result->wider.recorded
               : count;
}

/* Adds the ranks of RESULT up, where all whose batch counts know as much as
 * T's. */
static void job_sum(struct throughput *t, const struct result *result)
{
    uint64_t ranks = 0;

    for (size_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        uint64_t members = rank->members.count ? rank->members.count : 1;
        uint64_t count = result->batch_groups ? rank->batches : members;

        ranks += members;
        if (!count)
            continue;
        if (time_input_known(rank->timing) != input_knowledge(&t->input))
            return;
        const struct timing *own = rank->timing;
        t->samples += count * own->steps[own->typical].input.samples;
        t->tokens += count * own->steps[own->typical].input.tokens;
    }
    t->samples = wider_count(result, t->samples);
    t->tokens = wider_count(result, t->tokens);
    t->ranks = wider_count(result, ranks);
    t->groups = wider_count(result, result->batch_groups);
}

/* Of the first rank that knows most. */
static struct throughput throughput_find(const struct result *result)
{
    struct throughput found = {.rank = NULL};

    for (size_t i = 0; i < result->rank_count; i++) {
        const struct timing *t = result->ranks[i].timing;
        if (time_input_known(t) <= input_knowledge(&found.input))
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
        job_sum(&found, result);
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

double time_job_tokens(const struct result *result)
{
    const struct throughput t = throughput_find(result);
    const struct timing *slowest = time_slowest(result);
    bool alone = result->rank_count == 1;

    if (!t.rank)
        return slowest ? slowest->job_tokens : 0;
    uint64_t tokens = t.ranks ? t.tokens : alone ? t.input.tokens : 0;
    return t.seconds > 0 ? (double)tokens / t.seconds : 0;
}

void time_format_rate(double per_second, char *text, size_t size)
{
    double unit = pow(10, floor(log10(fmax(per_second, 1e-9))) - 2);

    snprintf(text, size, "%.*f", unit < 1 ? 1 : 0,
             round(per_second / unit) * unit);
}

/* RATE in three digits, in TEXT. */
static const char *format_rate(double rate, char *text, size_t size)
{
    time_format_rate(rate, text, size);
    return text;
}

/* COUNT of WHAT in each step: "11300 tokens/s a GPU (10200 to 12000)", with
 * OF in place of " a GPU". */
static void write_rate(const struct throughput *t, double count,
                       const char *what, const char *of, FILE *out)
{
    char rate[32], least[32], most[32];

    fprintf(out, "  %-16s %s %s/s%s (%s to %s)\n", "throughput",
            format_rate(count / t->seconds, rate, sizeof rate), what, of,
            format_rate(count / t->high, least, sizeof least),
            format_rate(t->low > 0 ? count / t->low : 0, most, sizeof most));
}

/* What is counted: "8 x 1024 ids", "a batch of 32". */
static void format_batch(const struct step_input *input, char *text,
                         size_t size)
{
    uint64_t samples = input->samples / input->calls;
    uint64_t tokens = input->tokens / input->calls;

    if (input->samples % input->calls || (samples && tokens % samples))
        snprintf(text, size, "batches of several sizes");
    else if (input->generates)
        snprintf(text, size, "%" PRIu64 " new tokens", tokens);
    else if (tokens)
        snprintf(text, size, "%" PRIu64 " x %" PRIu64 " ids", samples,
                 tokens / samples);
    else
        snprintf(text, size, "a batch of %" PRIu64, samples);
}

/* Who has a batch. */
static void write_batches(const struct throughput *t, FILE *out)
{
    if (!t->groups)
        fprintf(out, "if each has its own batch\n");
    else if (t->groups == t->ranks)
        fprintf(out, "each with its own batch\n");
    else if (t->groups == 1)
        fprintf(out, "on one batch\n");
    else
        fprintf(out, "on %" PRIu64 " batches\n", t->groups);
}

void time_throughput_write(const struct result *result, FILE *out)
{
    const struct throughput t = throughput_find(result);
    bool tokens = t.input.tokens > 0;
    double one = (double)(tokens ? t.input.tokens : t.input.samples);
    double all = (double)(tokens ? t.tokens : t.samples);
    const char *what = tokens ? "tokens" : "samples";
    char rate[32];

    if (!t.rank)
        return;
    if (t.ranks > 1) {
        write_rate(&t, all / (double)t.ranks, what, " a GPU", out);
        fprintf(out, "  %-16s %s %s/s by %" PRIu64 " ranks, ", "",
                format_rate(all / t.seconds, rate, sizeof rate), what,
                t.ranks);
        write_batches(&t, out);
        return;
    }
    write_rate(&t, one, what, result->rank_count > 1 ? " of one rank" : "",
               out);
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
    snprintf(line, sizeof line, "throughput: counted are %s %s %s%s%s", batch,
             t.input.generates ? "of" : "given to", t.module, calls, rank);
    text_write_wrapped(out, " ", line);
}

static void job_json(cJSON *to, const struct throughput *t)
{
    double samples = (double)t->samples / t->seconds;
    double tokens = (double)t->tokens / t->seconds;
    double ranks = (double)t->ranks;

    json_add_uint(to, "ranks", t->ranks);
    if (t->groups)
        json_add_uint(to, "batches", t->groups);
    cJSON_AddNumberToObject(to, "samples_per_second", samples);
    cJSON_AddNumberToObject(to, "samples_per_second_per_gpu", samples / ranks);
    if (!t->tokens)
        return;
    cJSON_AddNumberToObject(to, "tokens_per_second", tokens);
    cJSON_AddNumberToObject(to, "tokens_per_second_per_gpu", tokens / ranks);
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
    if (t.input.tokens) {
        json_add_uint(object, "tokens", t.input.tokens);
        cJSON_AddNumberToObject(object, "tokens_per_second",
                                (double)t.input.tokens / t.seconds);
    }
    if (t.ranks)
        job_json(cJSON_AddObjectToObject(object, "job"), &t);
}
