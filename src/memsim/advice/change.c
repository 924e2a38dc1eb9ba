/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/change.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/suggest.h"
#include "common/base/xmalloc.h"

#define CHECKPOINT     "checkpoint="
#define BF16_OPTIMIZER "bf16-optimizer"

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
    return err_set(err, "--what-if: %s: no such list of modules; there %s",
                   name, *names ? names : "is none");
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

int change_parse(struct change *change, const char *text,
                 const struct changeable *c, struct err *err)
{
    char *copy = xstrdup(text), *rest = copy, *word;
    int rc = 0;

    *change = (struct change){0};
    while (!rc && (word = strsep(&rest, ","))) {
        if (!strcmp(word, BF16_OPTIMIZER))
            change->bf16_optimizer = true;
        else if (!strncmp(word, CHECKPOINT, strlen(CHECKPOINT)))
            rc = parse_lists(change, word + strlen(CHECKPOINT), c, err);
        else
            rc = err_set(err,
                         "--what-if: '%s' is neither " CHECKPOINT
                         "LIST nor " BF16_OPTIMIZER,
                         word);
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

static char *append(char *text, const char *glue, const char *more)
{
    char *joined = xasprintf("%s%s%s", text, glue, more);

    free(text);
    return joined;
}

char *change_text(const struct change *change, const struct changeable *c)
{
    char *text = xstrdup("");
    const char *glue = CHECKPOINT;

    for (size_t i = 0; change->checkpoint && i < c->lists.count; i++)
        if (change->checkpoint[i]) {
            text = append(text, glue, c->lists.rows[i].name);
            glue = "+";
        }
    if (change->bf16_optimizer)
        text = append(text, *text ? "," : "", BF16_OPTIMIZER);
    return text;
}

struct change_effect change_make(struct tape *to, const struct changeable *c,
                                 const struct change *change)
{
    struct change_effect effect = {0};
    struct tape halved;

    if (!change->bf16_optimizer) {
        effect.forwards =
            tape_checkpoint(to, &c->tape, &c->lists, change->checkpoint);
        return effect;
    }
    effect.state_bytes = tape_halve_states(&halved, &c->tape);
    if (!change->checkpoint) {
        *to = halved;
        return effect;
    }
    effect.forwards =
        tape_checkpoint(to, &halved, &c->lists, change->checkpoint);
    tape_fini(&halved);
    return effect;
}

int changed_apply(struct changed *c, struct recording *r, const char *text,
                  struct err *err)
{
    struct change change;

    *c = (struct changed){0};
    if (!r->trace)
        return err_set(err,
                       "%s: a snapshot does not say what its blocks are for; "
                       "--what-if wants a trace",
                       r->path);
    if (changeable_read(&c->from, r->path, r->whatif.source, err) ||
        change_parse(&change, text, &c->from, err)) {
        changed_fini(c);
        return -1;
    }
    change_make(&c->tape, &c->from, &change);
    change_fini(&change);
    r->whatif.source = tape_source(&c->tape);
    return 0;
}

void changed_fini(struct changed *c)
{
    tape_fini(&c->tape);
    changeable_fini(&c->from);
    *c = (struct changed){0};
}
