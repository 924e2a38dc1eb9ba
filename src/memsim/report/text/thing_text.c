/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/thing_text.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text_clean.h"

/* LABEL without a category at its end, " (activation)". */
static void category_drop(char *label)
{
    size_t length = strlen(label);
    char *open = strrchr(label, '(');

    if (length && label[length - 1] == ')' && open && open > label &&
        open[-1] == ' ')
        open[-1] = '\0';
}

/* Leaves out modules at the beginning of LABEL's name until it has WIDTH
 * bytes, as far as that goes. */
static void modules_drop(char *label, size_t width)
{
    char *name = strstr(label, " of "), *from;

    name = name ? name + 4 : label;
    from = name;
    while (strlen(from) + (size_t)(name - label) + 3 > width) {
        char *dot = strchr(from, '.');
        if (!dot || !dot[1])
            break;
        from = dot + 1;
    }
    if (from == name)
        return;
    char rest[THING_TEXT_BYTES];
    snprintf(rest, sizeof rest, "%s", from);
    snprintf(name, THING_TEXT_BYTES - (size_t)(name - label), "...%s", rest);
}

/* Leaves out words at the beginning of LABEL until it has WIDTH bytes, as far
 * as that goes. */
static void words_drop(char *label, size_t width)
{
    char rest[THING_TEXT_BYTES - 3];
    char *from = label;

    while (strlen(from) + 3 > width) {
        char *next = strpbrk(from + 1, "_. ");
        if (!next || !next[1])
            return;
        from = next + 1;
    }
    snprintf(rest, sizeof rest, "%s", from);
    snprintf(label, THING_TEXT_BYTES, "...%s", rest);
}

const char *thing_text(const struct peak_thing *t, size_t width,
                       char out[THING_TEXT_BYTES])
{
    char where[THING_TEXT_BYTES], label[THING_TEXT_BYTES];

    text_quote(where, sizeof where, t->where);
    text_quote(label, sizeof label, t->label);
    size_t last = *where ? strlen(where) + 2 : 0;
    if (last > width / 2)
        last = 0;
    if (strlen(label) > width - last)
        category_drop(label);
    if (strlen(label) > width - last)
        modules_drop(label, width - last);
    if (strlen(label) > width - last)
        words_drop(label, width - last);
    text_quote(out, width - last + 1, label);
    if (last)
        snprintf(out + strlen(out), last + 1, ", %s", where);
    return out;
}
