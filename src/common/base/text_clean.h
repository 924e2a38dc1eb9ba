/* SPDX-License-Identifier: Apache-2.0
 * Text from outside (names, paths, arguments, files) made fit for a terminal
 * and for documents, which must be UTF-8. No heap. */
#ifndef MEMSIM_COMMON_BASE_TEXT_CLEAN_H
#define MEMSIM_COMMON_BASE_TEXT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the character at TEXT takes, 1 to 4; 0 where no valid UTF-8
 * begins there (RFC 3629: no surrogates, nothing overlong) or at the end. */
size_t text_character(const char *text);

/* Whether the character at TEXT, valid UTF-8, is a control character: C0, DEL
 * or C1, or one that turns the direction of text. A terminal would obey it. */
bool text_is_control(const char *text);

/* Replaces each byte of TEXT that is no valid UTF-8 by '?', in place. */
void text_make_utf8(char *text);

/* The same, and for each control character. */
void text_make_printable(char *text);

/* TEXT to OUT, which has SIZE bytes, with \xHH in place of each byte of a
 * control character or of what is no valid UTF-8. Where OUT is too small, the
 * middle is left out and "..." stands there: an error's place comes first, and
 * its reason last. */
void text_quote(char *out, size_t size, const char *text);

/* Ends TEXT, which filled its SIZE bytes and was cut, behind its last word that
 * "..." has room after. */
void text_cut_at_word(char *text, size_t size);

#endif
