/* SPDX-License-Identifier: Apache-2.0
 * Text from outside in a Markdown document. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_MARKDOWN_H
#define MEMSIM_MEMSIM_REPORT_TEXT_MARKDOWN_H

#include <stddef.h>

/* TEXT to OUT, which has SIZE bytes, so that no character of it is markup, a
 * cell's border or HTML. A TEXT that is too long is cut short. Returns OUT. */
const char *markdown_escape(char *out, size_t size, const char *text);

#endif
