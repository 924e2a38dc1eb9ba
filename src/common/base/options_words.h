/* SPDX-License-Identifier: Apache-2.0
 * Options as words again, for another program that takes them. */
#ifndef MEMSIM_COMMON_BASE_OPTIONS_WORDS_H
#define MEMSIM_COMMON_BASE_OPTIONS_WORDS_H

#include <stddef.h>

#include "common/base/options.h"

/* Adds the copy of WORD to *WORDS, a NULL-terminated list of *COUNT. The caller
 * frees the words and the list. */
void options_word_add(char ***words, size_t *count, const char *word);

/* Adds a word "--name=value", or "--name" for a flag, to *WORDS (of *COUNT) for
 * each of ROWS whose value in VALUES is another one than in DEFAULTS. The
 * caller frees the words and the list. */
void options_words_add(char ***words, size_t *count,
                       const struct option_row *rows, const void *values,
                       const void *defaults);

/* The names of ROWS, separated by commas; the caller frees the text. */
char *options_words_names(const struct option_row *rows);

#endif
