/* SPDX-License-Identifier: Apache-2.0
 * What to change in a script, by the framework that it uses: in words, and as
 * edits of calls that places.py saw in it. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_HOW_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_HOW_H

#include <cjson/cJSON.h>

#include "memsim/advice/change.h"

/* What advice does to a call that has a role. */
enum edit_kind {
    EDIT_NONE,
    EDIT_CALL,      /* TEXT takes its place */
    EDIT_FUNCTION,  /* TEXT takes the place of what is called */
    EDIT_ARGUMENT,  /* TEXT, "NAME=VALUE", is among its arguments */
    EDIT_STATEMENT, /* TEXT is a line of its own before it */
};

/* In TEXT {function}, {arguments}, {model}, {switch}, {class} and {operand}
 * stand for what the call has, {list} for the list of modules that is
 * changed. */
struct edit_rule {
    const char *role; /* as places.py calls it */
    enum edit_kind kind;
    const char *text;
};

#define ADVICE_RULES 2

struct advice_way {
    const char *how;    /* in words; NULL: what the advice is called says it */
    struct edit_rule rules[ADVICE_RULES]; /* none: it takes more than edits */
    const char *import; /* a module that the edits name; NULL: none */
    const char *unless; /* the call has one of these arguments, with blanks
                           around each; NULL: any will do */
};

/* How CHANGE, which is one alone, is made in a script that uses FRAMEWORK, a
 * name as sitecustomize.py gives it ("": plain PyTorch, or not known), and has
 * the calls PLACES (NULL: not known). */
struct advice_way advice_way(const struct change *change, const char *framework,
                             const cJSON *places);

/* The call of ROLE, for LIST where it is of one; NULL: it is not known. */
const cJSON *advice_place(const cJSON *places, const char *role,
                          const char *list);

#endif
