/* SPDX-License-Identifier: Apache-2.0
 * memsim-trace.5 describes every kind of record and every field; memsim.1 lists
 * every family of operations. */
#include <ctype.h>
#include <stdbool.h>

#include "check.h"
#include "common/trace/trace_read.h"
#include "kernels/work.h"

static char page[256 << 10];

/* The page lies at ../../../man from this program: build/tests/unit/x. */
static void page_read(const char *name)
{
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

    path[n < 0 ? 0 : n] = '\0';
    for (int i = 0; i < 4; i++)
        *strrchr(path, '/') = '\0';
    strcat(path, "/man/");
    strcat(path, name);
    FILE *f = fopen(path, "r");
    if (!f) {
        CHECK_FAIL("%s cannot be read", path);
        exit(1);
    }
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
}

static bool has_word(const char *text, const char *end, const char *word,
                     size_t length)
{
    for (; text + length <= end; text++)
        if (!strncmp(text, word, length) && !isalnum((unsigned char)text[-1]) &&
            text[-1] != '_' && !isalnum((unsigned char)text[length]) &&
            text[length] != '_')
            return true;
    return false;
}

static void check_kind(const struct trace_kind_info *kind)
{
    char title[64];

    snprintf(title, sizeof title, "\n.BR %s \" (%d)\"\n", kind->name,
             kind->kind);
    const char *start = strstr(page, title);
    if (!start) {
        CHECK_FAIL("%s (%d) is not described", kind->name, kind->kind);
        return;
    }
    start += strlen(title);
    const char *end = strstr(start, "\n.TP");
    end = end ? end : start + strlen(start);
    for (unsigned i = 0; i < kind->field_count; i++) {
        const char *field = kind->fields[i];

        if (!has_word(start, end, field, strlen(field)))
            CHECK_FAIL("%s: %s is not described", kind->name, field);
    }
    if (kind->text && !memmem(start, (size_t)(end - start), "text", 4) &&
        !memmem(start, (size_t)(end - start), "Text", 4))
        CHECK_FAIL("%s: its text is not described", kind->name);
}

TEST(every_kind_and_field_is_described)
{
    page_read("memsim-trace.5");
    for (const struct trace_kind_info *k = trace_kind_next(0); k;
         k = trace_kind_next(k->kind))
        check_kind(k);
}

/* The line of memsim.1's list that names the family at *AT, which it passes;
 * false where another line is there. */
static bool family_line_take(const char **at, const char *name)
{
    static const char *const forms[] = {".BR %s ,\n", ".B %s\n", ".BR %s .\n"};

    *at += strncmp(*at, "and\n", 4) ? 0 : 4;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char line[64];

        snprintf(line, sizeof line, forms[i], name);
        if (!strncmp(*at, line, strlen(line))) {
            *at += strlen(line);
            return true;
        }
    }
    return false;
}

TEST(every_family_can_be_looked_up_for_scale)
{
    static const char title[] = "\nThe families are\n";

    page_read("memsim.1");
    const char *at = strstr(page, title);
    CHECK(at);
    at = at ? at + strlen(title) : page;
    for (int i = WORK_NOTHING + 1; i < WORK_FAMILIES; i++) {
        const char *name = work_family_name((enum work_family)i);

        if (!family_line_take(&at, name))
            CHECK_FAIL("memsim.1, --scale: %s is not next, but: %.20s", name,
                       at);
    }
    CHECK(!strncmp(at, ".TP\n", 4));
}
