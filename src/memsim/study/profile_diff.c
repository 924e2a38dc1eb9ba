/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/profile_diff.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "memsim/import/profile_write.h"
#include "memsim/report/text/time_report.h"

#define HEAD_BYTES 256 /* of a file of memsim's, which has "schema" there */

static bool is_imported(const char *directory)
{
    struct err err = {""};
    struct run run;
    bool found = false;

    if (!run_open(&run, directory, &err) && run.count)
        found = replay_is_profile(run.traces[0].path);
    run_close(&run);
    return found;
}

bool diff_is_profile(const char *path)
{
    char head[HEAD_BYTES] = "";
    struct stat st;

    if (stat(path, &st))
        return false;
    if (S_ISDIR(st.st_mode))
        return is_imported(path);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[length] = '\0';
    bool zipped = length > 2 && !memcmp(head, "\x1f\x8b", 2);
    return zipped || profile_is_database(path) ||
           (length && strchr("{[", *head) && !strstr(head, "\"schema\":"));
}

/* Imports the trace of SIDE into a directory of its own. */
static int side_import(struct profile_side *side, struct err *err)
{
    char path[PATH_MAX];
    struct profile p;

    if (scratch_make(&side->scratch, err))
        return -1;
    run_trace_path(side->scratch.path, 0, path, sizeof path);
    int rc = profile_read(&p, side->name, 0, err);
    if (!rc) {
        profile_link(&p);
        const struct profile_target target = {
            .path = path,
            .gpu = p.info.gpu,
            .capacity_bytes = p.info.memory_bytes,
            .origin_ns = profile_origin(&p),
            .ranks = 1};
        rc = profile_write(&p, &target, err);
    }
    profile_fini(&p);
    return rc;
}

static int profile_open(struct profile_side *side, struct err *err)
{
    static const struct study_options plain = {0};
    const struct replay_profile replay = {.run = &side->run, .options = &plain};
    struct stat st;
    bool directory = !stat(side->name, &st) && S_ISDIR(st.st_mode);

    if (!directory && side_import(side, err))
        return -1;
    if (run_open(&side->run, directory ? side->name : side->scratch.path, err))
        return -1;
    side->simulated = replay_is_simulated(side->run.traces[0].path);
    return replay_profile(&replay, &side->replayed, err);
}

static void side_close(struct profile_side *side)
{
    if (!side->is_profile) {
        input_run_close(&side->input);
        return;
    }
    replayed_fini(&side->replayed);
    run_close(&side->run);
    scratch_remove(&side->scratch);
}

/* Returns 0 with *SIDE to be given to side_close, or -1. */
static int side_open(struct profile_side *side, const char *name,
                     struct err *err)
{
    *side = (struct profile_side){.name = name,
                                  .is_profile = diff_is_profile(name)};
    side->input.name = name;
    if (!side->is_profile)
        return input_run_open(&side->input, err);
    int rc = profile_open(side, err);
    if (rc)
        side_close(side);
    return rc;
}

static const struct result *side_result(const struct profile_side *side)
{
    return side->is_profile ? &side->replayed.result : &side->input.file.result;
}

int profile_diff_open(struct profile_diff *d, const char *estimate,
                      const char *trace, struct err *err)
{
    *d = (struct profile_diff){.a = NULL};
    if (side_open(&d->before, estimate, err))
        return -1;
    if (side_open(&d->after, trace, err)) {
        side_close(&d->before);
        return -1;
    }
    d->a = time_slowest(side_result(&d->before));
    d->b = time_slowest(side_result(&d->after));
    if (d->a && d->b) {
        time_diff_make(&d->time, side_result(&d->before),
                       side_result(&d->after));
        return 0;
    }
    err_set(err, "%s: no training step was found in it",
            d->a ? d->after.name : d->before.name);
    profile_diff_close(d);
    return -1;
}

void profile_diff_close(struct profile_diff *d)
{
    time_diff_fini(&d->time);
    side_close(&d->after);
    side_close(&d->before);
}
