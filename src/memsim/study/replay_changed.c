/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_changed.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/change/buckets.h"
#include "memsim/change/layers.h"
#include "memsim/change/precision.h"
#include "memsim/change/replicas.h"
#include "memsim/change/sizes.h"
#include "memsim/study/replay_replicas.h"
#include "memsim/study/scratch.h"
#include "memsim/study/size_prices.h"

/* Which ranks stand for others stays as it was. */
static int ranks_link(const char *from, const char *to, struct err *err)
{
    char absolute[PATH_MAX], source[PATH_MAX], target[PATH_MAX];

    if (!from || snprintf(source, sizeof source, "%s/%s", from, RUN_RANKS) >=
                     (int)sizeof source)
        return 0;
    if (!realpath(source, absolute))
        return 0;
    snprintf(target, sizeof target, "%.*s/%s", PATH_MAX - 16, to, RUN_RANKS);
    if (symlink(absolute, target))
        return err_set(err, "%s: %m", target);
    return 0;
}

/* What is to be changed, and what it made of the recording. */
struct changing {
    const struct job_change *change;
    uint32_t size;     /* of the second recording */
    struct run second; /* of a size; zeroed without one */
    struct layers_report layers;
    struct sizes_report sizes;
    struct size_prices prices; /* of a size; zeroed without one */
    struct precision_report precision;
    struct replicas_report replicas; /* of a profile; steps 0: none */
    bool buckets;    /* of DDP: made again */
    bool is_profile; /* not a recording of ours */
};

static struct size_points size_points_of(const struct changing *g)
{
    return (struct size_points){.first = g->change->recorded,
                                .second = g->size,
                                .wanted = g->change->wanted};
}

/* COPIES: of gradients, out of DDP's buckets. */
static int change_make(struct changing *g, const char *const from[2],
                       bool copies, const char *to, struct err *err)
{
    const struct job_change *c = g->change;
    const struct layers_change layers = {
        .layers = c->wanted,
        .recorded = c->recorded,
        .prefix = *c->name ? c->name : NULL,
        .copies = copies,
    };
    const struct sizes_change sizes = {
        .what = c->name,
        .points = size_points_of(g),
        .price = g->prices.image ? size_prices_find : NULL,
        .context = (void *)&g->prices,
    };
    const struct precision_change precision = {c->name, c->to};

    if (c->kind == CHANGE_LAYERS)
        return layers_change(&layers, from[0], to, &g->layers, err);
    if (c->kind == CHANGE_PRECISION)
        return precision_change(&precision, from[0], to, &g->precision, err);
    return sizes_change(&sizes, from[0], from[1], to, &g->sizes, err);
}

/* What is changed beside DDP's buckets, which follow from it. */
static int rest_change(struct changing *g, const char *const from[2],
                       const struct buckets *buckets, const char *to,
                       struct err *err)
{
    char *second = xasprintf("%s.second", to);
    char *changed = xasprintf("%s.changed", to);
    const char *rest[2] = {from[0], second};
    struct buckets *others = NULL;
    int rc = from[1] ? buckets_take(from[1], second, &others, err) : 0;

    if (!rc && from[1] && !others)
        rc = err_set(err,
                     "--second: %s has no buckets of DDP, the first "
                     "recording has",
                     from[1]);
    if (!rc)
        rc = change_make(g, rest, true, changed, err) ||
                     buckets_put(buckets, changed, to, err)
                 ? -1
                 : 0;
    g->buckets = true;
    buckets_destroy(others);
    unlink(second);
    unlink(changed);
    free(second);
    free(changed);
    return rc;
}

static int trace_change(struct changing *g, const char *from,
                        const char *second, const char *to, struct err *err)
{
    char *rest = xasprintf("%s.rest", to);
    struct buckets *buckets = NULL;
    int rc = g->change->kind == CHANGE_PRECISION
                 ? 0
                 : buckets_take(from, rest, &buckets, err);

    if (!rc && buckets)
        rc = rest_change(g, (const char *const[]){rest, second}, buckets, to,
                         err);
    else if (!rc)
        rc =
            change_make(g, (const char *const[]){from, second}, false, to, err);
    buckets_destroy(buckets);
    unlink(rest);
    free(rest);
    return rc;
}

static int traces_change(struct changing *g, const struct run *run,
                         const char *to, struct err *err)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < run->count; i++) {
        const struct run_trace *t = &run->traces[i];
        run_trace_path(to, t->process == RUN_NO_PROCESS ? 0 : t->process, path,
                       sizeof path);
        if (trace_change(g, t->path,
                         g->second.count ? g->second.traces[i].path : NULL,
                         path, err))
            return -1;
    }
    return ranks_link(run->directory, to, err);
}

/* "6 layers (blocks) in place of 4" */
static char *change_describe(const struct changing *g)
{
    const struct job_change *c = g->change;

    if (c->kind == CHANGE_SIZE)
        return xasprintf("%s %" PRIu32 " in place of %" PRIu32, c->name,
                         c->wanted, c->recorded);
    if (c->kind == CHANGE_PRECISION)
        return xasprintf("%s in place of %s", c->to, c->name);
    return xasprintf("%" PRIu32 " layers (%s) in place of %" PRIu32, c->wanted,
                     *g->layers.prefix ? g->layers.prefix : "by repetition",
                     g->layers.recorded);
}

static void note_layers(struct result *result,
                        const struct layers_report *report, bool is_profile)
{
    if (is_profile)
        result_note(result,
                    "a layer has %zu operations of the forward and %zu of the "
                    "backward, by repetition",
                    report->forward_ops, report->backward_ops);
    if (is_profile && report->guessed >= 2 &&
        report->guessed != report->recorded)
        result_note(result,
                    "what repeats in this profile does so %" PRIu32 " times, "
                    "not %" PRIu32,
                    report->guessed, report->recorded);
    if (is_profile && report->covered_percent < 50)
        result_note(result,
                    "what repeats %" PRIu32 " times is %zu%% of a step's "
                    "operations alone: the rest is as recorded",
                    report->recorded, report->covered_percent);
    if (report->lists_scaled)
        result_note(result,
                    "the times of %" PRIu32 " kernels on lists of tensors were "
                    "multiplied by the ratio of the layers: a profile does not "
                    "say what is in the lists",
                    report->lists_scaled);
    if (report->steps_kept)
        result_note(result,
                    "%" PRIu32 " steps without the layers are as recorded",
                    report->steps_kept);
}

/* What is certain of a size's change, and what is not. */
static void note_sizes(struct result *result, const struct changing *g)
{
    const struct sizes_report *r = &g->sizes;
    const struct size_points points = size_points_of(g);

    result_note(result,
                "of the operations of %" PRIu32 " steps, %zu are as recorded "
                "and %zu follow a power of %s, by two recordings",
                r->steps, r->same, r->powers, g->change->name);
    if (!size_is_between(&points))
        result_note(result,
                    "%s %" PRIu32 " is beyond both recordings: where PyTorch "
                    "chooses other kernels there, the times are others",
                    g->change->name, g->change->wanted);
    if (r->lines)
        result_note(result,
                    "%zu have numbers on a line through the two recordings: "
                    "right where these are sums with a constant",
                    r->lines);
    if (r->others)
        result_note(result,
                    "%zu are other kernels in the second recording: those of "
                    "the first are kept",
                    r->others);
    if (r->rounded)
        result_note(result, "the blocks of %zu are an estimate", r->rounded);
    if (r->modelled)
        result_note(result,
                    "the times of %zu are those of the cost models, times how "
                    "much longer they took in the profiles",
                    r->modelled);
    if (r->times)
        result_note(result,
                    "the times of %zu are on a power law through the two "
                    "profiles",
                    r->times);
    if (g->is_profile)
        result_note(result, "the host's times are the first profile's");
    if (r->steps_kept)
        result_note(result,
                    "%" PRIu32 " warm-up steps that differ are as recorded",
                    r->steps_kept);
}

static void note_precision(struct result *result,
                           const struct precision_report *r, const char *to)
{
    result_note(result,
                "%zu launches, and %zu products, convolutions, attention and "
                "collectives, are in %s; the others are as recorded",
                r->kernels, r->calls, to);
    if (r->profile)
        result_note(result, "their times are the measured ones: both types "
                            "have 2 bytes and the same rates");
    if (r->scaler)
        result_note(result,
                    "a GradScaler is at work in the recording, and stays: "
                    "bf16 does not need it");
}

static void note_change(struct result *result, const void *what)
{
    const struct changing *g = what;

    if (g->buckets)
        result_note(result, "gradients are averaged in the buckets that DDP "
                            "makes of the changed parameters");
    if (g->replicas.steps)
        replay_replicas_note(result, &g->replicas);
    switch (g->change->kind) {
    case CHANGE_LAYERS:
        note_layers(result, &g->layers, g->is_profile);
        break;
    case CHANGE_PRECISION:
        note_precision(result, &g->precision, g->change->to);
        break;
    default:
        note_sizes(result, g);
    }
}

/* "128=run128" */
static int second_open(struct changing *g, const char *text,
                       const struct run *first, struct err *err)
{
    const struct job_change *c = g->change;
    char *end = NULL;
    unsigned long size =
        text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

    if (!text)
        return err_set(err,
                       "--change: one recording does not say which numbers "
                       "follow from %s: record the script at another size, "
                       "too, and name that with --second SIZE=DIR",
                       c->name);
    if (!size || size > UINT32_MAX || *end != '=' || !end[1])
        return err_set(err, "--second: '%s' is not of the form SIZE=DIR", text);
    g->size = (uint32_t)size;
    if (g->size == c->recorded || g->size == c->wanted)
        return err_set(err,
                       "--second: %s is %lu there, as in --change: a third "
                       "size is needed",
                       c->name, size);
    if (run_open(&g->second, end + 1, err))
        return -1;
    if (g->second.count && g->second.count == first->count &&
        run_is_trace(g->second.traces[0].path))
        return 0;
    return err_set(err, "--second: %s has %zu traces, the first recording %zu",
                   end + 1, g->second.count, first->count);
}

static int prices_open(struct changing *g, const struct replay_profile *p,
                       struct err *err)
{
    return g->is_profile
               ? size_prices_open(&g->prices, p->run->traces[0].path, err)
               : 0;
}

/* The gradients of what one GPU's profile became are averaged over the ranks of
 * *P, which then asks for no more. A profile that averages stays: its
 * collectives get another width. */
static int replicas_add(struct changing *g, struct replay_profile *p,
                        const char *folder, struct err *err)
{
    if (!g->is_profile || !p->data_parallel || p->run->count > 1)
        return 0;
    if (g->change->kind == CHANGE_SIZE)
        return err_set(err,
                       "--dp: how large gradients are with another %s is not "
                       "known: change the profile's layers or precision, or "
                       "give --dp alone",
                       g->change->name);
    if (replay_replicas_put(p, folder, &g->replicas, err))
        return -1;
    if (g->replicas.steps) {
        p->data_parallel = 0;
        p->contends = true;
    }
    return 0;
}

static int change_and_play(const struct replay_profile *p, struct changing *g,
                           struct replayed *r, struct err *err)
{
    struct replay_profile alone = *p;
    struct scratch scratch;

    if (scratch_make(&scratch, err))
        return -1;
    int rc = traces_change(g, p->run, scratch.path, err) ||
                     replicas_add(g, &alone, scratch.path, err)
                 ? -1
                 : 0;
    if (!rc)
        rc = replay_profile_changed(&alone,
                                    &(struct replay_made){scratch.path,
                                                          change_describe(g),
                                                          note_change, g},
                                    r, err);
    scratch_remove(&scratch);
    return rc;
}

int replay_changed(const struct replay_profile *p,
                   const struct job_change *change, const char *second,
                   struct replayed *r, struct err *err)
{
    struct changing g = {.change = change, .is_profile = !p->why};
    bool sized = change->kind == CHANGE_SIZE;
    int rc = -1;

    if (!sized && second)
        err_set(err, "--second is for --change with hidden, seq or batch");
    else if (!sized || (!second_open(&g, second, p->run, err) &&
                        !prices_open(&g, p, err)))
        rc = change_and_play(p, &g, r, err);
    size_prices_close(&g.prices);
    run_close(&g.second);
    return rc;
}
