/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/change.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/suggest.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"

#define CHECKPOINT "checkpoint="
#define PARTS_MAX  65536 /* of a loss, or ranks */

int changeable_read(struct changeable *c, const char *path,
                    const struct replay_source *source, struct err *err)
{
    *c = (struct changeable){0};
    if (tape_read(&c->tape, path, source, TAPE_ITEMS, err))
        return -1;
    module_lists_find(&c->lists, c->tape.modules);
    return 0;
}

int changeable_make(struct changeable *c, struct tape_notes *notes,
                    const struct replay_source *source, struct err *err)
{
    *c = (struct changeable){0};
    if (tape_make(&c->tape, notes, source, err))
        return -1;
    module_lists_find(&c->lists, c->tape.modules);
    return 0;
}

void changeable_fini(struct changeable *c)
{
    module_lists_fini(&c->lists);
    tape_fini(&c->tape);
}

static int unknown_list(const char *name, const struct changeable *c,
                        struct err *err)
{
    struct suggest nearest;
    char names[128] = "";

    suggest_start(&nearest, name, 1);
    for (size_t i = 0; i < c->lists.count; i++) {
        size_t length = strlen(names);

        suggest_offer(&nearest, c->lists.rows[i].name);
        snprintf(names + length, sizeof names - length, "%s%s",
                 length ? ", " : "", c->lists.rows[i].name);
    }
    if (nearest.count)
        return err_set(err,
                       "--what-if: %s: no such list of modules; did you mean "
                       "%s?",
                       name, nearest.names[0]);
    return err_set(err, "--what-if: %s: no such list of modules; there is %s",
                   name, *names ? names : "none");
}

/* "LIST+LIST" */
static int parse_lists(struct change *change, char *names,
                       const struct changeable *c, struct err *err)
{
    char *name;

    if (!change->checkpoint)
        change->checkpoint =
            xcalloc(c->lists.count + 1, sizeof *change->checkpoint);
    while ((name = strsep(&names, "+"))) {
        size_t i = 0;

        while (i < c->lists.count && strcmp(c->lists.rows[i].name, name))
            i++;
        if (i == c->lists.count)
            return unknown_list(name, c, err);
        change->checkpoint[i] = true;
    }
    return 0;
}

/* The words of a change without a list of modules. */
static const struct word {
    const char *text; /* a number follows where it ends in "=" */
    size_t offset;    /* of a bool or, with a number, of an unsigned */
    const char *time; /* why a recording does not say what a step takes */
} words[] = {
    {"bf16-optimizer", offsetof(struct change, state.bf16),
     "a bf16 optimizer has other kernels"},
    {"8bit-optimizer", offsetof(struct change, state.int8),
     "an 8-bit optimizer has other kernels"},
    {"fused-optimizer", offsetof(struct change, state.fused),
     "a fused optimizer has other kernels"},
    {"shard-optimizer=", offsetof(struct change, state.shards),
     "sharding adds collectives"},
    {"chunked-loss=", offsetof(struct change, loss_chunks),
     "a loss in parts has other kernels"},
    {"set-to-none", offsetof(struct change, free_gradients),
     "gradients are no longer filled with zeros"},
    {"no-autocast-cache", offsetof(struct change, uncached_casts),
     "weights are cast again each time"},
    {"no-grad", offsetof(struct change, no_grad),
     "an evaluation without gradients takes less time"},
    {"kept-on-cpu", offsetof(struct change, kept_on_cpu),
     "copies to the CPU take time"},
    {"fsdp=", offsetof(struct change, fsdp), "sharding adds collectives"},
};

#define WORDS (sizeof words / sizeof *words)

static bool has_number(const struct word *word)
{
    return word->text[strlen(word->text) - 1] == '=';
}

static void *change_member(const struct change *change, const struct word *word)
{
    return (char *)change + word->offset;
}

static int parse_number(const char *text, const char *number, unsigned *to,
                        struct err *err)
{
    char *end;
    unsigned long n = strtoul(number, &end, 10);

    if (*number < '0' || *number > '9' || *end || n < 2 || n > PARTS_MAX)
        return err_set(err, "--what-if: %s: a number from 2 to %d, please",
                       text, PARTS_MAX);
    *to = (unsigned)n;
    return 0;
}

static int parse_word(struct change *change, const char *text, struct err *err)
{
    for (size_t i = 0; i < WORDS; i++) {
        size_t length = strlen(words[i].text);

        if (has_number(&words[i]) && !strncmp(text, words[i].text, length))
            return parse_number(text, text + length,
                                change_member(change, &words[i]), err);
        if (strcmp(text, words[i].text))
            continue;
        *(bool *)change_member(change, &words[i]) = true;
        return 0;
    }
    return err_set(err,
                   "--what-if: '%s' is none of " CHECKPOINT "LIST, "
                   "bf16-optimizer, 8bit-optimizer, fused-optimizer, "
                   "shard-optimizer=N, chunked-loss=N, set-to-none, "
                   "no-autocast-cache, no-grad, kept-on-cpu and fsdp=N",
                   text);
}

int change_parse(struct change *change, const char *text,
                 const struct changeable *c, struct err *err)
{
    char *copy = xstrdup(text), *rest = copy, *word;
    int rc = 0;

    *change = (struct change){0};
    while (!rc && (word = strsep(&rest, ","))) {
        if (text_begins(word, CHECKPOINT))
            rc = parse_lists(change, word + strlen(CHECKPOINT), c, err);
        else
            rc = parse_word(change, word, err);
    }
    free(copy);
    if (rc)
        change_fini(change);
    return rc;
}

void change_fini(struct change *change)
{
    free(change->checkpoint);
    *change = (struct change){0};
}

static char *append_text(char *text, const char *glue, const char *more)
{
    char *joined = xasprintf("%s%s%s", text, glue, more);

    free(text);
    return joined;
}

static bool is_set(const struct change *change, const struct word *word)
{
    const void *value = change_member(change, word);

    return has_number(word) ? *(const unsigned *)value > 1
                            : *(const bool *)value;
}

_Static_assert(WORDS < CHANGE_PARTS, "a word is a part, the lists are one");

size_t change_parts(const struct change *change,
                    struct change parts[CHANGE_PARTS])
{
    size_t count = 0;

    if (change->checkpoint)
        parts[count++] = (struct change){.checkpoint = change->checkpoint};
    for (size_t i = 0; i < WORDS; i++) {
        if (!is_set(change, &words[i]))
            continue;
        struct change *part = &parts[count++];
        *part = (struct change){0};
        if (has_number(&words[i]))
            *(unsigned *)change_member(part, &words[i]) =
                *(const unsigned *)change_member(change, &words[i]);
        else
            *(bool *)change_member(part, &words[i]) = true;
    }
    return count;
}

const char *change_time_unknown(const struct change *change)
{
    for (size_t i = 0; i < WORDS; i++)
        if (is_set(change, &words[i]))
            return words[i].time;
    return NULL;
}

char *change_lists_text(const struct change *change, const struct changeable *c)
{
    char *text = NULL;

    for (size_t i = 0; change->checkpoint && i < c->lists.count; i++) {
        if (!change->checkpoint[i])
            continue;
        char *longer = xasprintf("%s%s%s", text ? text : "", text ? "+" : "",
                                 c->lists.rows[i].name);
        free(text);
        text = longer;
    }
    return text;
}

char *change_text(const struct change *change, const struct changeable *c)
{
    char *lists = change_lists_text(change, c);
    char *text = lists ? xasprintf(CHECKPOINT "%s", lists) : xstrdup("");

    free(lists);
    for (size_t i = 0; i < WORDS; i++) {
        const void *value = change_member(change, &words[i]);
        char number[16] = "";

        if (!is_set(change, &words[i]))
            continue;
        if (has_number(&words[i]))
            snprintf(number, sizeof number, "%u", *(const unsigned *)value);
        text = append_text(text, *text ? "," : "", words[i].text);
        text = append_text(text, "", number);
    }
    return text;
}

/* The tape that the next change is made of: AT, or the one before it, whose
 * place *AT takes. */
static void advance_tape(struct tape *at, struct tape *next, bool *owned)
{
    if (*owned)
        tape_fini(at);
    *at = *next;
    *owned = true;
}

struct change_effect change_make(struct tape *to, const struct changeable *c,
                                 const struct change *change)
{
    struct change_effect effect = {0};
    struct tape at = c->tape, next;
    bool owned = false;

    effect.state = tape_change_states(&next, &at, &change->state);
    advance_tape(&at, &next, &owned);
    if (change->loss_chunks > 1) {
        effect.loss_bytes = tape_chunk_loss(&next, &at, change->loss_chunks);
        advance_tape(&at, &next, &owned);
    }
    if (change->free_gradients) {
        effect.gradient_bytes = tape_free_gradients(&next, &at);
        advance_tape(&at, &next, &owned);
    }
    if (change->uncached_casts) {
        effect.cast_bytes = tape_uncache_casts(&next, &at);
        advance_tape(&at, &next, &owned);
    }
    if (change->no_grad) {
        effect.idle_bytes = tape_free_idle(&next, &at);
        advance_tape(&at, &next, &owned);
    }
    if (change->kept_on_cpu) {
        effect.kept_bytes = tape_free_kept(&next, &at);
        advance_tape(&at, &next, &owned);
    }
    if (change->checkpoint) {
        effect.forwards =
            tape_checkpoint(&next, &at, &c->lists, change->checkpoint);
        advance_tape(&at, &next, &owned);
    }
    if (change->fsdp > 1) {
        effect.fsdp_bytes =
            tape_shard_all(&next, &at, &c->lists, change->fsdp);
        advance_tape(&at, &next, &owned);
    }
    *to = at;
    return effect;
}

int changed_apply(struct changed *c, struct recording *r, const char *text,
                  struct err *err)
{
    *c = (struct changed){0};
    if (!r->trace)
        return err_set(err,
                       "%s: a snapshot does not say what its blocks are for; "
                       "--what-if wants a trace",
                       r->path);
    if (changeable_read(&c->from, r->path, r->whatif.source, err) ||
        change_parse(&c->change, text, &c->from, err)) {
        changed_fini(c);
        return -1;
    }
    change_make(&c->tape, &c->from, &c->change);
    r->whatif.source = tape_source(&c->tape);
    return 0;
}

void changed_fini(struct changed *c)
{
    tape_fini(&c->tape);
    change_fini(&c->change);
    changeable_fini(&c->from);
    *c = (struct changed){0};
}
