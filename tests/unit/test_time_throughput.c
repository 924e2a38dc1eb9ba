/* SPDX-License-Identifier: Apache-2.0
 * Tokens and samples a second, of a GPU and of all ranks. */
#include "memsim/report/text/time_report.h"

#include <cjson/cJSON.h>

#include "check.h"

#define RANKS 3

struct job {
    struct timing_step steps[RANKS];
    struct timing timings[RANKS];
    struct result_rank ranks[RANKS];
    struct result result;
};

/* Rank 0, ranks 1 to 14 and rank 15, which has twice the batch and takes
 * 200 ms. */
static void job_make(struct job *j)
{
    static const uint64_t ms[RANKS] = {100, 100, 200};

    *j = (struct job){.result = {.ranks = j->ranks, .rank_count = RANKS}};
    for (unsigned i = 0; i < RANKS; i++) {
        uint64_t batch = i == 2 ? 8 : 4;
        j->steps[i] = (struct timing_step){
            .duration_ns = ms[i] * 1000000,
            .low_ns = ms[i] * 1000000,
            .high_ns = 2 * ms[i] * 1000000,
            .input = {.calls = 1, .samples = batch, .tokens = batch * 1000}};
        j->timings[i] = (struct timing){.steps = &j->steps[i],
                                        .step_count = 1,
                                        .input_module = (char *)"Net"};
        j->ranks[i] = (struct result_rank){.rank = i == 2 ? 15 : i,
                                           .timing = &j->timings[i]};
    }
    for (uint32_t i = 1; i < 15; i++)
        rank_set_add(&j->ranks[1].members, i);
}

static char *text_of(const struct job *j)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    time_throughput_write(&j->result, out);
    fclose(out);
    return text;
}

static double number(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, name));
}

TEST(ranks_are_added_with_those_that_they_stand_for)
{
    struct job j;

    job_make(&j);
    char *text = text_of(&j);
    CHECK_STR(text, /* 15 x 4000 + 8000 in 200 ms */
              "  throughput       21300 tokens/s a GPU (10600 to 21300)\n"
              "                   340000 tokens/s by 16 ranks, if each has its "
              "own batch\n");
    free(text);
    cJSON *time = cJSON_CreateObject();
    time_throughput_json(time, &j.result);
    cJSON *found = cJSON_GetObjectItem(time, "throughput");
    CHECK_NEAR(number(found, "tokens_per_second"), 20000, 1e-6);
    cJSON *job = cJSON_GetObjectItem(found, "job");
    CHECK_STR(cJSON_GetObjectItem(job, "ranks")->valuestring, "16");
    CHECK_NEAR(number(job, "tokens_per_second"), 340000, 1e-6);
    CHECK_NEAR(number(job, "tokens_per_second_per_gpu"), 21250, 1e-6);
    CHECK_NEAR(number(job, "samples_per_second"), 340, 1e-6);
    cJSON_Delete(time);
    rank_set_fini(&j.ranks[1].members);
}

/* Eight groups of two: rank 0's with another, and seven of ranks 1 to 14 and
 * 15, whose batches are those of the first of them. */
TEST(ranks_on_one_batch_count_once)
{
    struct job j;

    job_make(&j);
    j.result.batch_groups = 8;
    j.ranks[0].batches = 1;
    j.ranks[1].batches = 7;
    j.timings[2].input_module = NULL; /* the last one says nothing */
    char *text = text_of(&j);
    CHECK_STR(text, /* 8 x 4000 in 200 ms */
              "  throughput       10000 tokens/s a GPU (5000 to 10000)\n"
              "                   160000 tokens/s by 16 ranks, on 8 batches\n");
    free(text);
    cJSON *time = cJSON_CreateObject();
    time_throughput_json(time, &j.result);
    cJSON *job = cJSON_GetObjectItem(cJSON_GetObjectItem(time, "throughput"),
                                     "job");
    CHECK_STR(cJSON_GetObjectItem(job, "batches")->valuestring, "8");
    CHECK_NEAR(number(job, "tokens_per_second_per_gpu"), 10000, 1e-6);
    cJSON_Delete(time);
    rank_set_fini(&j.ranks[1].members);
}

/* A pipeline's later stages get no ids. */
TEST(a_rank_that_says_nothing_leaves_the_job_out)
{
    struct job j;

    job_make(&j);
    j.timings[2].input_module = NULL;
    char *text = text_of(&j);
    CHECK_STR(text, "  throughput       20000 tokens/s of one rank (10000 to "
                    "20000)\n");
    free(text);
    cJSON *time = cJSON_CreateObject();
    time_throughput_json(time, &j.result);
    CHECK(!cJSON_GetObjectItem(cJSON_GetObjectItem(time, "throughput"), "job"));
    cJSON_Delete(time);
    rank_set_fini(&j.ranks[1].members);
}

TEST(one_process_is_its_own_job)
{
    struct job j;

    job_make(&j);
    j.result.rank_count = 1;
    char *text = text_of(&j);
    CHECK_STR(text, "  throughput       40000 tokens/s (20000 to 40000)\n");
    free(text);
    rank_set_fini(&j.ranks[1].members);
}
