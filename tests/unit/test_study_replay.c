/* SPDX-License-Identifier: Apache-2.0
 * A small profile, replayed by the study alone. */
#include "memsim/study/replay_profile.h"

#include <limits.h>

#include "check.h"
#include "memsim/import/profile_write.h"
#include "memsim/study/replay_changed.h"
#include "memsim/study/scratch.h"
#include "memsim/time/timing.h"

#define STEPS   4
#define STEP_US 1000
#define KERNELS 5

static struct scratch folder;
static struct run traces;

/* Each step launches KERNELS kernels of 100 us, one after the other. */
static void profile_put(FILE *f)
{
    int id = 1;

    fputs("[", f);
    for (int s = 0; s < STEPS; s++) {
        int at = 1000 + s * STEP_US;
        fprintf(f,
                "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                "\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,"
                "\"dur\":%d}",
                s ? "," : "", s, at, STEP_US - 1);
        for (int k = 0; k < KERNELS; k++, id++)
            fprintf(f,
                    ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                    "\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%d,"
                    "\"dur\":4,\"args\":{\"correlation\":%d}}"
                    ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"work\","
                    "\"ts\":%d,\"dur\":100,\"args\":{\"device\":0,"
                    "\"stream\":7,\"correlation\":%d}}",
                    at + 10 + 10 * k, id, at + 16 + 100 * k, id);
    }
    fputs("]", f);
}

static void profile_make(void)
{
    char json[PATH_MAX], path[PATH_MAX];
    struct profile p;
    struct err err = {""};

    CHECK(!scratch_make(&folder, &err));
    snprintf(json, sizeof json, "%.*s.json", PATH_MAX - 8, folder.path);
    FILE *f = fopen(json, "w");
    profile_put(f);
    fclose(f);
    CHECK(!profile_read(&p, json, 0, &err));
    unlink(json);
    profile_link(&p);
    run_trace_path(folder.path, 0, path, sizeof path);
    const struct profile_target target = {.path = path,
                                          .origin_ns = profile_origin(&p),
                                          .ranks = 1};
    CHECK(!profile_write(&p, &target, &err));
    profile_fini(&p);
    CHECK(!run_open(&traces, folder.path, &err));
    CHECK_STR(err.text, "");
}

static void profile_remove(void)
{
    run_close(&traces);
    scratch_remove(&folder);
}

static const struct timing *timing_of(const struct replayed *r)
{
    CHECK(r->result.rank_count == 1 && r->result.ranks[0].timing);
    return r->result.ranks[0].timing;
}

TEST(a_profile_is_replayed_as_it_was)
{
    const struct study_options options = {0};
    struct replayed r = {.changed = NULL};
    struct err err = {""};

    profile_make();
    const struct replay_profile p = {.run = &traces, .options = &options};
    CHECK(replay_is_profile(traces.traces[0].path));
    CHECK(!replay_is_simulated(traces.traces[0].path));
    CHECK(!replay_profile(&p, &r, &err));
    const struct timing *t = timing_of(&r);
    CHECK(r.ranks == 1 && !r.models && !r.simulated && !r.changed);
    CHECK_UINT(t->step_count, STEPS);
    CHECK_NEAR((double)t->steps[1].duration_ns, STEP_US * 1e3, .01);
    CHECK_NEAR((double)t->steps[1].compute_ns, KERNELS * 100e3, .01);
    CHECK_NEAR((double)t->steps[1].measured_ns, STEP_US * 1e3, .01);
    CHECK(r.result.verdict == VERDICT_UNKNOWN);
    replayed_fini(&r);
    profile_remove();
}

TEST(a_changed_profile_was_not_measured)
{
    const struct study_options options = {.change = "time:work=2"};
    struct replayed r = {.changed = NULL};
    struct err err = {""};

    profile_make();
    const struct replay_profile p = {.run = &traces, .options = &options};
    CHECK(!replay_profile(&p, &r, &err));
    const struct timing *t = timing_of(&r);
    CHECK_NEAR((double)t->steps[1].compute_ns, 2 * KERNELS * 100e3, .01);
    CHECK_UINT(t->steps[1].measured_ns, 0);
    replayed_fini(&r);
    profile_remove();
}

TEST(a_size_needs_a_second_recording)
{
    const struct study_options options = {0};
    struct job_changes changes = {.count = 0};
    struct replayed r = {.changed = NULL};
    struct err err = {""};

    profile_make();
    const struct replay_profile p = {.run = &traces, .options = &options};
    CHECK(!job_changes_parse("batch=8:16", &changes, &err));
    CHECK(replay_changed(&p, &changes.all[0], NULL, &r, &err) == -1);
    CHECK(strstr(err.text, "--second SIZE=DIR") != NULL);
    err_clear(&err);
    CHECK(replay_changed(&p, &changes.all[0], "8=x", &r, &err) == -1);
    CHECK(strstr(err.text, "a third size is needed") != NULL);
    replayed_fini(&r);
    profile_remove();
}

TEST(a_gpu_that_is_not_known_is_an_error)
{
    const struct study_options options = {0};
    struct replayed r = {.changed = NULL};
    struct err err = {""};

    profile_make();
    const struct replay_profile p = {
        .run = &traces, .options = &options, .gpu = "no-such-gpu"};
    CHECK(replay_profile(&p, &r, &err) == -1);
    CHECK(strstr(err.text, "no-such-gpu") != NULL);
    replayed_fini(&r);
    const struct replay_profile models = {
        .run = &traces, .options = &options, .models = true};
    CHECK(replay_profile(&models, &r, &err) == -1);
    CHECK(strstr(err.text, "--models needs a GPU of the catalogue") != NULL);
    replayed_fini(&r);
    profile_remove();
}
