/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_edit.h"
#include "memsim/advice/advice_how.h"
#include "memsim/advice/change.h"

#define SIZE_LENGTH 16
#define LEAST_SHARE 100 /* one in so many */
#define ADVISED_SHARDS 8 /* GPUs */
#define ADVISED_CHUNKS 8 /* of a loss */

struct asking {
    struct advice *advice;
    struct recording *rec;
    const struct advice_options *options;
    struct changeable changeable;
    cJSON *places;        /* the script's calls; NULL: not known */
    uint64_t roomy_bytes; /* of a GPU that it fits on */
    struct err *err;
};

static uint64_t peak_bytes(const struct replay_device *d, enum advice_peak peak)
{
    switch (peak) {
    case ADVICE_ALLOCATED:
        return d->peak_allocated_bytes;
    case ADVICE_RESERVED:
        return d->peak_reserved_bytes;
    case ADVICE_USED:
        break;
    }
    return d->peak_used_bytes;
}

static uint64_t saved_bytes(const struct replay_result *now,
                            const struct advice_row *row, unsigned device)
{
    uint64_t before = peak_bytes(&now->devices[device], row->peak);
    uint64_t after = peak_bytes(&row->result.devices[device], row->peak);

    return before > after ? before - after : 0;
}

/* Does ROW save more than a per cent on DEVICE? */
static bool is_worth_it(const struct advice *a, const struct advice_row *row,
                        unsigned device)
{
    return saved_bytes(&a->now, row, device) >
           peak_bytes(&a->now.devices[device], row->peak) / LEAST_SHARE;
}

/* Does it on any, or makes the job fit? */
static bool is_useful(const struct advice *a, const struct advice_row *row)
{
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        if (is_worth_it(a, row, i))
            return true;
    return row->fits && !a->fits;
}

static int play_tape(const struct asking *a, struct tape *tape,
                     const char *conf, uint64_t memory_bytes,
                     struct replay_result *result)
{
    struct replay_config config = a->rec->whatif.config;

    config.total_bytes = memory_bytes;
    alloc_conf_init(&config.conf);
    if (alloc_conf_parse(&config.conf, conf, config.rules, a->err))
        return -1;
    return replay_run(tape_source(tape), &config, &a->rec->plan, NULL, result,
                      a->err);
}

/* Plays TAPE under CONF on a GPU that it fits on to *RESULT, and finds out
 * whether it fits on the one there is. */
static int play_both(const struct asking *a, struct tape *tape,
                     const char *conf, struct replay_result *result, bool *fits)
{
    struct replay_result small;

    if (play_tape(a, tape, conf, a->roomy_bytes, result))
        return -1;
    *fits = result->fits;
    if (a->roomy_bytes == a->options->memory_bytes)
        return 0;
    if (play_tape(a, tape, conf, a->options->memory_bytes, &small)) {
        replay_result_fini(result);
        return -1;
    }
    *fits = small.fits;
    replay_result_fini(&small);
    return 0;
}

/* Plays it as it is. */
static int play_now(struct asking *a)
{
    struct advice *to = a->advice;
    struct tape *tape = &a->changeable.tape;
    const char *conf = a->rec->info.alloc_conf;

    a->roomy_bytes = a->options->memory_bytes;
    if (play_tape(a, tape, conf, a->roomy_bytes, &to->now))
        return -1;
    to->fits = to->now.fits;
    if (to->fits)
        return 0;
    replay_result_fini(&to->now);
    a->roomy_bytes = ADVICE_UNLIMITED_BYTES;
    if (play_tape(a, tape, conf, a->roomy_bytes, &to->now))
        return -1;
    to->ends = to->now.changed_course || !to->now.fits;
    return 0;
}

static void row_fini(struct advice_row *row)
{
    free(row->what);
    free(row->command);
    free(row->basis);
    free(row->again);
    cJSON_Delete(row->edits);
    replay_result_fini(&row->result);
}

/* Plays TAPE under CONF as *ROW, which becomes one of the advice where it is
 * worth it. Returns whether it did, or -1. */
static int row_try(struct asking *a, struct advice_row *row, struct tape *tape,
                   const char *conf)
{
    struct advice *to = a->advice;

    if (play_both(a, tape, conf, &row->result, &row->fits)) {
        row_fini(row);
        return -1;
    }
    if (!is_useful(to, row) || (to->ends && !row->fits)) {
        row_fini(row);
        return 0;
    }
    to->rows = xreallocarray(to->rows, to->count + 1, sizeof *to->rows);
    to->rows[to->count++] = *row;
    return 1;
}

/* What was played: all, or how much of it. */
static const char *job_extent(const struct asking *a)
{
    return a->changeable.tape.cut ? ", of the beginning of the run" : "";
}

static const char *setting_name(const char *conf)
{
    return strcmp(conf, "expandable_segments:True") ? conf
                                                    : "expandable segments";
}

/* On a recording of a GPU that the job fits on, the command has to name the one
 * that the advice is on. */
static const char *command_gpu(const struct asking *a)
{
    return a->advice->fits || !a->options->gpu ? "" : a->options->gpu;
}

static cJSON *setting_edits(const char *conf)
{
    cJSON *edits = cJSON_CreateArray();

    advice_edit_environment(edits, "PYTORCH_CUDA_ALLOC_CONF", conf);
    return edits;
}

static int ask_setting(struct asking *a, const char *conf)
{
    struct advice_row row = {
        .what = xstrdup(setting_name(conf)),
        .command = xasprintf("memsim replay %s --alloc-conf %s%s",
                             a->options->name, conf, command_gpu(a)),
        .basis = xasprintf("the recorded allocations%s, replayed with "
                           "PYTORCH_CUDA_ALLOC_CONF=%s",
                           job_extent(a), conf),
        .how = "PYTORCH_CUDA_ALLOC_CONF, with that setting",
        .edits = setting_edits(conf),
        .peak = ADVICE_RESERVED,
    };

    return row_try(a, &row, &a->changeable.tape, conf);
}

/* The advised setting under which most is saved; NULL: none. */
static const char *ask_settings(struct asking *a, int *rc)
{
    const char *best = NULL, *conf;
    uint64_t least = whatif_peak_used(&a->advice->now);

    *rc = 0;
    for (size_t i = 0; *rc >= 0 && (conf = whatif_candidate(i)); i++) {
        struct alloc_conf parsed;

        alloc_conf_init(&parsed);
        if (alloc_conf_parse(&parsed, conf, a->rec->whatif.config.rules, NULL))
            continue; /* not with this PyTorch */
        *rc = ask_setting(a, conf);
        if (*rc <= 0)
            continue;
        uint64_t used =
            whatif_peak_used(&a->advice->rows[a->advice->count - 1].result);
        if (used < least) {
            least = used;
            best = conf;
        }
    }
    return best;
}

static size_t change_members(const struct asking *a,
                             const struct change *change)
{
    size_t count = 0;

    for (size_t i = 0; change->checkpoint && i < a->changeable.lists.count; i++)
        if (change->checkpoint[i])
            count += a->changeable.lists.rows[i].members;
    return count;
}

/* The lists that CHANGE puts under checkpointing. */
static char *checkpoint_what(const struct asking *a,
                             const struct change *change)
{
    const struct module_lists *lists = &a->changeable.lists;
    char *what = xstrdup("activation checkpointing of");
    const char *glue = " ";

    for (size_t i = 0; i < lists->count; i++)
        if (change->checkpoint[i]) {
            char *longer = xasprintf("%s%s%s", what, glue, lists->rows[i].name);
            free(what);
            what = longer;
            glue = ", ";
        }
    return what;
}

/* What CHANGE, which is one alone, is, in words. */
static char *change_what(const struct asking *a, const struct change *change)
{
    if (change->checkpoint)
        return checkpoint_what(a, change);
    if (change->loss_chunks > 1)
        return xasprintf("loss in %u parts (estimate)",
                         change->loss_chunks);
    if (change->state.shards > 1)
        return xasprintf("optimizer state over %u GPUs (ZeRO-1)",
                         change->state.shards);
    if (change->fsdp > 1)
        return xasprintf("FSDP over %u GPUs (estimate)", change->fsdp);
    if (change->free_gradients)
        return xstrdup("zero_grad(set_to_none=True)");
    if (change->uncached_casts)
        return xstrdup("autocast(cache_enabled=False)");
    if (change->no_grad)
        return xstrdup("evaluation under torch.no_grad() (estimate)");
    if (change->kept_on_cpu)
        return xstrdup("what lists keep on the CPU (estimate)");
    if (change->state.int8)
        return xstrdup("8-bit optimizer");
    if (change->state.fused)
        return xstrdup("fused=True in the optimizer");
    return xstrdup("bf16 optimizer state");
}

/* TEXT with MORE behind it; TEXT is freed, MORE may be NULL. */
static char *join_texts(char *text, char *more)
{
    if (!more)
        return text;
    char *both = xasprintf("%s; %s", text, more);
    free(text);
    free(more);
    return both;
}

/* How the states are changed; NULL: they are not. */
static char *state_basis(const struct state_change *change,
                         const struct change_effect *effect)
{
    char size[SIZE_LENGTH], parts[64] = "";
    const char *how = change->int8   ? "kept in 8 bits, with a scale for each "
                                       "256 of them"
                      : change->bf16 ? "halved"
                                     : "as they are";

    if (!effect->state.state_bytes)
        return NULL;
    units_format_bytes(effect->state.state_bytes, size, sizeof size);
    if (change->shards > 1)
        snprintf(parts, sizeof parts, ", evenly divided over %u ranks",
                 change->shards);
    return xasprintf("the states that the optimizer keeps in fp32 are %s%s, "
                     "%s less",
                     how, parts, size);
}

static char *change_basis(const struct asking *a, const struct change *change,
                          const struct change_effect *effect)
{
    char *basis =
        xasprintf("the recorded allocations%s, replayed", job_extent(a));

    if (change->checkpoint)
        basis = join_texts(
            basis,
            xasprintf("what %zu modules leave for backward is freed at the "
                      "end of their forward and made again when backward "
                      "comes to them, as "
                      "torch.utils.checkpoint(use_reentrant=False) does",
                      change_members(a, change)));
    basis = join_texts(basis, state_basis(&change->state, effect));
    if (effect->state.step_bytes)
        basis =
            join_texts(basis, xstrdup("without the temporaries of its steps"));
    if (effect->loss_bytes)
        basis = join_texts(
            basis,
            xasprintf("what has the dimensions of the logits takes 1/%u: an "
                      "estimate, for the weight's gradient is made in parts, "
                      "too",
                      change->loss_chunks));
    if (effect->gradient_bytes)
        basis =
            join_texts(basis, xstrdup("gradients are freed where they are set "
                                      "to zero"));
    if (effect->cast_bytes)
        basis =
            join_texts(basis, xstrdup("copies of weights that only autocast's "
                                      "cache kept are freed at the end of "
                                      "their module"));
    if (effect->idle_bytes)
        basis = join_texts(
            basis,
            xstrdup("in evaluation what a module took is freed at its end, its "
                    "result once the next one has ended: an estimate"));
    if (effect->kept_bytes)
        basis = join_texts(
            basis,
            xstrdup("what a forward leaves for longer than the next call of a "
                    "model is freed after that call: an estimate"));
    if (effect->fsdp_bytes)
        basis = join_texts(
            basis,
            xasprintf("parameters, gradients and optimizer states are divided "
                      "evenly over %u ranks, those of each block gathered as "
                      "torch.distributed.fsdp.fully_shard does",
                      change->fsdp));
    return basis;
}

static bool has_effect(const struct change_effect *e)
{
    return e->forwards || e->state.state_bytes || e->state.step_bytes ||
           e->loss_bytes || e->gradient_bytes || e->cast_bytes ||
           e->idle_bytes || e->kept_bytes || e->fsdp_bytes;
}

/* Those that make CHANGE under CONF (NULL, "": as it is). */
static cJSON *change_edits(const struct asking *a, const struct change *change,
                           const char *conf)
{
    cJSON *edits = advice_edits(change, &a->changeable,
                                a->rec->info.framework, a->places);

    if (edits && conf && *conf)
        advice_edit_environment(edits, "PYTORCH_CUDA_ALLOC_CONF", conf);
    return edits;
}

/* Asks for CHANGE, and where CONF is not NULL for that setting with it. */
static int ask_change(struct asking *a, const struct change *change,
                      const char *conf)
{
    struct tape changed;
    struct change_effect effect = change_make(&changed, &a->changeable, change);
    char *text = change_text(change, &a->changeable);
    int rc = 0;

    if (has_effect(&effect)) {
        struct advice_row row = {
            .what = conf ? xstrdup(change->loss_chunks
                                      ? "the best of these together (estimate)"
                                      : "the best of these together")
                         : change_what(a, change),
            .command = xasprintf(
                "memsim replay %s --what-if %s%s%s%s", a->options->name, text,
                conf && *conf ? " --alloc-conf " : "", conf ? conf : "",
                command_gpu(a)),
            .basis = change_basis(a, change, &effect),
            .how = conf ? NULL
                        : advice_way(change, a->rec->info.framework, a->places)
                              .how,
            .edits = change_edits(a, change, conf),
            .time_unknown = change_time_unknown(change),
            .again = change_lists_text(change, &a->changeable),
            .peak = conf && *conf ? ADVICE_USED : ADVICE_ALLOCATED,
        };
        rc = row_try(a, &row, &changed,
                     conf && *conf ? conf : a->rec->info.alloc_conf);
    }
    free(text);
    tape_fini(&changed);
    return rc;
}

/* Each list by itself, and, where there are several that are worth it, all of
 * them; CHANGE gets those. */
static int ask_checkpointing(struct asking *a, struct change *change)
{
    const struct module_lists *lists = &a->changeable.lists;
    size_t useful = 0;
    int rc = 0;

    change->checkpoint = xcalloc(lists->count + 1, sizeof(bool));
    for (size_t i = 0; rc >= 0 && i < lists->count; i++) {
        struct change one = {.checkpoint =
                                 xcalloc(lists->count + 1, sizeof(bool))};

        one.checkpoint[i] = true;
        rc = tape_is_checkpointed(&a->changeable.tape, lists, i)
                 ? 0
                 : ask_change(a, &one, NULL);
        change->checkpoint[i] = rc > 0;
        useful += rc > 0;
        change_fini(&one);
    }
    if (rc >= 0 && useful > 1)
        rc = ask_change(a, change, NULL);
    if (!useful)
        change_fini(change);
    return rc;
}

/* The ranks share the optimizer's state already. */
static bool is_sharded(const struct asking *a)
{
    return tape_is_sharded(&a->changeable.tape) ||
           !strcmp(a->rec->info.framework, "deepspeed");
}

/* Each of the changes that concern no module alone; BEST gets those that are
 * worth it and go together. Another number of GPUs is not among them. */
static int ask_others(struct asking *a, struct change *best)
{
    static const struct change others[] = {
        {.state = {.bf16 = true}},       {.state = {.int8 = true}},
        {.state = {.fused = true}},      {.state = {.shards = ADVISED_SHARDS}},
        {.loss_chunks = ADVISED_CHUNKS}, {.free_gradients = true},
        {.uncached_casts = true},        {.no_grad = true},
        {.kept_on_cpu = true},           {.fsdp = ADVISED_SHARDS},
    };
    int rc = 0;

    for (size_t i = 0; rc >= 0 && i < sizeof others / sizeof *others; i++) {
        if ((others[i].state.shards && is_sharded(a)) ||
            (others[i].kept_on_cpu && !advice_place(a->places, "kept", NULL)))
            continue;
        rc = ask_change(a, &others[i], NULL);
        if (rc <= 0)
            continue;
        best->state.int8 |= others[i].state.int8;
        best->state.bf16 |= others[i].state.bf16;
        best->state.fused |= others[i].state.fused;
        best->free_gradients |= others[i].free_gradients;
        best->uncached_casts |= others[i].uncached_casts;
        best->no_grad |= others[i].no_grad;
        best->kept_on_cpu |= others[i].kept_on_cpu;
        if (others[i].loss_chunks)
            best->loss_chunks = others[i].loss_chunks;
    }
    if (best->state.int8)
        best->state.bf16 = best->state.fused = false;
    return rc;
}

static int ask_all(struct asking *a)
{
    struct change change = {0};
    int rc;
    const char *conf = ask_settings(a, &rc);

    if (rc < 0 || a->options->settings_only || a->advice->ends)
        return rc;
    rc = ask_checkpointing(a, &change);
    if (rc >= 0)
        rc = ask_others(a, &change);
    unsigned kinds = (conf != NULL) + (change.checkpoint != NULL) +
                     change.state.bf16 + change.state.int8 +
                     change.state.fused + (change.loss_chunks > 1) +
                     change.free_gradients + change.uncached_casts +
                     change.no_grad + change.kept_on_cpu;
    if (rc >= 0 && kinds > 1)
        rc = ask_change(a, &change, conf ? conf : "");
    change_fini(&change);
    return rc;
}

int advice_make(struct advice *advice, struct recording *rec,
                const struct advice_options *options, struct err *err)
{
    struct asking a = {
        .advice = advice, .rec = rec, .options = options, .err = err};

    *advice = (struct advice){0};
    if (!rec->trace)
        return err_set(err,
                       "%s: a snapshot does not say what its blocks are "
                       "for; --advice wants a trace",
                       rec->path);
    int rc = options->notes
                 ? changeable_make(&a.changeable, options->notes,
                                   rec->whatif.source, err)
                 : changeable_read(&a.changeable, rec->path,
                                   rec->whatif.source, err);
    if (rc)
        return -1;
    a.places = cJSON_Parse(rec->info.places);
    rc = play_now(&a);
    if (!rc && ask_all(&a) < 0) {
        advice_fini(advice);
        rc = -1;
    }
    cJSON_Delete(a.places);
    changeable_fini(&a.changeable);
    return rc;
}

void advice_fini(struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        row_fini(&advice->rows[i]);
    free(advice->rows);
    replay_result_fini(&advice->now);
    *advice = (struct advice){0};
}

/* By what of the GPU is used with it: savings are of several peaks. */
static int by_saving(const void *x, const void *y)
{
    const struct result_advice *a = x, *b = y;

    if (a->peak_used_bytes != b->peak_used_bytes)
        return a->peak_used_bytes > b->peak_used_bytes ? 1 : -1;
    if (a->saves_bytes != b->saves_bytes)
        return a->saves_bytes < b->saves_bytes ? 1 : -1;
    return strcmp(a->what, b->what);
}

void advice_tell(const struct advice *advice, unsigned device,
                 struct result_device *to)
{
    static const char *const peaks[] = {
        [ADVICE_ALLOCATED] = "allocated",
        [ADVICE_RESERVED] = "reserved",
        [ADVICE_USED] = "used",
    };

    to->advice = xcalloc(advice->count + 1, sizeof *to->advice);
    to->advice_count = 0;
    to->advised = true;
    to->advice_fits = advice->fits;
    to->advice_ends = advice->ends;
    to->unlimited_bytes = advice->now.devices[device].peak_used_bytes;
    for (size_t i = 0; i < advice->count; i++) {
        const struct advice_row *row = &advice->rows[i];
        const struct replay_device *d = &row->result.devices[device];

        if (!is_worth_it(advice, row, device) && !(row->fits && !advice->fits))
            continue;
        to->advice[to->advice_count++] = (struct result_advice){
            .what = xstrdup(row->what),
            .command = xstrdup(row->command),
            .basis = xstrdup(row->basis),
            .how = row->how,
            .edits = row->edits ? cJSON_Duplicate(row->edits, true) : NULL,
            .time_unknown = row->time_unknown,
            .again = row->again ? xstrdup(row->again) : NULL,
            .of = peaks[row->peak],
            .saves_bytes =
                advice->ends ? 0 : saved_bytes(&advice->now, row, device),
            .peak_bytes = peak_bytes(&advice->now.devices[device], row->peak),
            .fits = row->fits,
            .peak_allocated_bytes = d->peak_allocated_bytes,
            .peak_reserved_bytes = d->peak_reserved_bytes,
            .peak_used_bytes = d->peak_used_bytes,
        };
    }
    qsort(to->advice, to->advice_count, sizeof *to->advice, by_saving);
}
