/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch.h"

#include <sys/stat.h>

#include "check.h"
#include "memsim/report/text/batch_report.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/batch_guess.h"

static char dir[64];

static void write_file(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CHECK(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/test_batch.%d", getpid());
    mkdir(dir, 0700);
    CHECK(!chdir(dir));
    write_file("train.py", "import model");
    write_file("model.py", "x = 1");
    write_file("config.json", "{}");
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

static char *key_of(const struct job *job, char *const *environment)
{
    return batch_key(job, "/nowhere:/bin/sh", environment);
}

/* The key of the same, and whether it has changed since FIRST. */
static bool is_new(const struct job *job, char *const *environment,
                   const char *first)
{
    char *key = key_of(job, environment);
    bool differs = strcmp(key, first) != 0;

    free(key);
    return differs;
}

TEST(fills_the_batch_in)
{
    char *command[] = {"a", "--b={}", "{}{}x", "{ }", NULL};
    char **made = batch_command(command, 16);

    CHECK(batch_command_has_place(command));
    CHECK_STR(made[0], "a");
    CHECK_STR(made[1], "--b=16");
    CHECK_STR(made[2], "1616x");
    CHECK_STR(made[3], "{ }");
    CHECK(!made[4]);
    CHECK(!batch_command_has_place(made));
    batch_command_free(made);
}

TEST(key_changes_with_what_matters)
{
    char *command[] = {"python", "train.py", "--config=config.json", NULL};
    char *other[] = {"python", "train.py", "--config=config.jsonl", NULL};
    char *bare[] = {"HOME=/h", NULL};
    char *same[] = {"HOME=/g", "TERM=x", NULL};
    char *conf[] = {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", NULL};
    struct job job = {.command = command};

    make_dir();
    char *key = key_of(&job, bare);
    CHECK(!is_new(&job, bare, key));
    CHECK(!is_new(&job, same, key));
    CHECK(is_new(&job, conf, key));
    job.gpu.memory_bytes = 1;
    CHECK(is_new(&job, bare, key));
    job.gpu.memory_bytes = 0;
    job.options.gpus = 2;
    CHECK(is_new(&job, bare, key));
    job.options.gpus = 0;
    job.command = other;
    CHECK(is_new(&job, bare, key));
    job.command = command;
    CHECK(!is_new(&job, bare, key));
    write_file("config.json", "{1}");
    CHECK(is_new(&job, bare, key));
    write_file("config.json", "{}");
    CHECK(!is_new(&job, bare, key));
    write_file("model.py", "x = 2");
    CHECK(is_new(&job, bare, key));
    free(key);
    remove_dir();
}

TEST(key_knows_a_module_by_its_file)
{
    char *command[] = {"python", "-m", "train", NULL};
    char *none[] = {NULL};
    struct job job = {.command = command};

    make_dir();
    char *key = key_of(&job, none);
    write_file("train.py", "import others");
    CHECK(is_new(&job, none, key));
    free(key);
    remove_dir();
}

static void check_guess(char *const *command, size_t at, const char *want)
{
    char **made = batch_guess(command);

    CHECK(want ? made != NULL : made == NULL);
    if (!made)
        return;
    CHECK_STR(made[at], want);
    batch_command_free(made);
}

TEST(guesses_which_argument_is_the_batch)
{
    char *word[] = {"python", "t.py", "--batch", "8", "--x", NULL};
    char *equals[] = {"python", "--micro_batch-size=8", "--x=1", NULL};
    char *hydra[] = {"python", "train.Batch=16", NULL};
    char *two[] = {"python", "--batch", "8", "--eval-batch", "8", NULL};
    char *path[] = {"python", "--out=batch", "batch.py", "8", NULL};
    char *last[] = {"python", "--batch", NULL};

    check_guess(word, 3, "{}");
    check_guess(equals, 1, "--micro_batch-size={}");
    check_guess(hydra, 1, "train.Batch={}");
    check_guess(two, 0, NULL);
    check_guess(path, 0, NULL);
    check_guess(last, 0, NULL);
}

TEST(writes_a_command_for_the_shell)
{
    char *template[] = {"python", "a b.py", "it's", "--batch={}", NULL};
    struct job job = {.options = JOB_DEFAULTS};
    char *text = batch_guess_text(&job, template);

    CHECK_STR(text, "memsim fit-batch -- python 'a b.py' 'it'\\''s' "
                    "--batch={}");
    free(text);
    job.options.gpu = "l4";
    job.options.gpus = 2;
    job.options.memory_bytes = 1024;
    text = batch_guess_text(&job, template + 3);
    CHECK_STR(text, "memsim fit-batch --gpu l4 --gpus 2 --memory 1024 -- "
                    "--batch={}");
    free(text);
}

TEST(keeps_outcomes)
{
    struct batch_outcome o = {.batch = 24,
                              .verdict = BATCH_OOM,
                              .status = 1,
                              .peak_used_bytes = 1,
                              .peak_reserved_bytes = 2,
                              .peak_allocated_bytes = UINT64_C(1) << 52,
                              .seconds = 2.5};
    struct batch_outcome found = {0};
    struct err err = {""};
    char cache[128];

    make_dir();
    snprintf(cache, sizeof cache, "%s/a/b", dir);
    CHECK(!batch_cache_load(cache, "key", &found));
    CHECK(!batch_cache_store(cache, "key", &o, &err));
    CHECK(batch_cache_load(cache, "key", &found));
    CHECK_UINT(found.batch, 24);
    CHECK_UINT(found.verdict, BATCH_OOM);
    CHECK_UINT((uint64_t)found.status, 1);
    CHECK_UINT(found.peak_allocated_bytes, UINT64_C(1) << 52);
    CHECK(found.cached && found.seconds > 2.4 && found.seconds < 2.6);
    CHECK(!batch_cache_load(cache, "another", &found));
    CHECK(batch_cache_store("/proc/none", "key", &o, &err) == -1);
    CHECK(strstr(err.text, "/proc/none"));
    remove_dir();
}

TEST(finds_its_directory)
{
    char *xdg = batch_cache_directory("/x", "/h");
    char *home = batch_cache_directory("relative", "/h");

    CHECK_STR(xdg, "/x/memsim/fit-batch");
    CHECK_STR(home, "/h/.cache/memsim/fit-batch");
    CHECK(!batch_cache_directory(NULL, NULL));
    free(xdg);
    free(home);
}

TEST(an_oom_that_was_survived_is_no_fit)
{
    struct result_oom oom = {.caught = true};
    struct result_device devices[] = {
        {.peak_used_bytes = 5, .peak_allocated_bytes = 3},
        {.peak_used_bytes = 7, .peak_allocated_bytes = 2},
    };
    struct result_rank rank = {.devices = devices, .device_count = 2};
    struct result result = {.ranks = &rank, .rank_count = 1, .seconds = 1};
    struct batch_outcome o = batch_outcome_make(&result, 8);

    CHECK_UINT(o.batch, 8);
    CHECK_UINT(o.verdict, BATCH_FITS);
    CHECK_UINT(o.peak_used_bytes, 7);
    CHECK_UINT(o.peak_allocated_bytes, 2);
    devices[0].ooms = &oom;
    devices[0].oom_count = 1;
    CHECK_UINT(batch_outcome_make(&result, 8).verdict, BATCH_CAUGHT);
    result.verdict = VERDICT_FAILED;
    CHECK_UINT(batch_outcome_make(&result, 8).verdict, BATCH_FAILED);
    CHECK(batch_verdict_find("caught-oom") == BATCH_CAUGHT);
    CHECK(batch_verdict_find("") == -1);
}
