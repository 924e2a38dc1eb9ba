/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/name_fold.h"

#include <string.h>

#include "common/base/xmalloc.h"

char *name_fold(const char *name)
{
    char *text = xmalloc(strlen(name) + 1), *to = text;

    for (const char *at = name; *at;) {
        size_t length = strcspn(at, ".");
        size_t digits = strspn(at, "0123456789");
        if (length && digits == length) {
            *to++ = '*';
        } else {
            memcpy(to, at, length);
            to += length;
        }
        at += length;
        if (*at)
            *to++ = *at++;
    }
    *to = '\0';
    return text;
}

char *name_fold_text(const char *folded, const char *name, size_t count)
{
    return count > 1 ? xasprintf("%s, %zu", folded, count) : xstrdup(name);
}
