/* SPDX-License-Identifier: Apache-2.0
 * Advice as edits that a program can make: of the script's files, of the
 * command, of the environment. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_EDIT_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_EDIT_H

#include <cjson/cJSON.h>

#include "memsim/advice/change.h"

/* The edits that make CHANGE, of C, in a script that uses FRAMEWORK and has the
 * calls PLACES: an array that the caller deletes; NULL: they are not known. */
cJSON *advice_edits(const struct change *change, const struct changeable *c,
                    const char *framework, const cJSON *places);

/* Adds to EDITS that the environment has NAME=VALUE, or that the command has
 * the option NAME with VALUE. */
void advice_edit_environment(cJSON *edits, const char *name, const char *value);
void advice_edit_option(cJSON *edits, const char *name, const char *value);

#endif
