/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/cxx_name.h"

#include <ctype.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"

struct cxx_text cxx_text_of(const char *string)
{
    return (struct cxx_text){string, strlen(string)};
}

bool cxx_is(struct cxx_text text, const char *string)
{
    return text.length == strlen(string) &&
           !memcmp(text.at, string, text.length);
}

bool cxx_ends(struct cxx_text text, const char *string)
{
    size_t length = strlen(string);

    return text.length >= length &&
           !memcmp(text.at + text.length - length, string, length);
}

bool cxx_begins(struct cxx_text text, const char *string)
{
    size_t length = strlen(string);

    return text.length >= length && !memcmp(text.at, string, length);
}

const char *cxx_find(struct cxx_text text, const char *string)
{
    return memmem(text.at, text.length, string, strlen(string));
}

static struct cxx_text cxx_from(struct cxx_text text, size_t offset)
{
    return (struct cxx_text){text.at + offset, text.length - offset};
}

static struct cxx_text cxx_trim(struct cxx_text text)
{
    while (text.length && *text.at == ' ')
        text = cxx_from(text, 1);
    while (text.length && text.at[text.length - 1] == ' ')
        text.length--;
    return text;
}

/* The bracket that closes what text.at[open] opens; the end where none does. */
static size_t find_closing(struct cxx_text text, size_t open)
{
    int depth = 0;

    for (size_t i = open; i < text.length; i++) {
        if (strchr("<({[", text.at[i]))
            depth++;
        else if (strchr(">)}]", text.at[i]) && !--depth)
            return i;
    }
    return text.length;
}

static void split_list(struct cxx_text list, struct cxx_parts *parts)
{
    size_t start = 0;

    parts->count = 0;
    list = cxx_trim(list);
    for (size_t i = 0; i < list.length; i++) {
        if (strchr("<({[", list.at[i]))
            i = find_closing(list, i);
        bool ends = i + 1 >= list.length;
        if (!ends && list.at[i] != ',')
            continue;
        size_t stop = ends ? list.length : i;
        if (parts->count < CXX_PARTS_MAX)
            parts->part[parts->count++] =
                cxx_trim((struct cxx_text){list.at + start, stop - start});
        start = i + 1;
    }
}

/* The list between the brackets at OPEN; where it ends. */
static size_t split_brackets(struct cxx_text text, size_t open,
                             struct cxx_parts *parts)
{
    size_t close = find_closing(text, open);

    split_list((struct cxx_text){text.at + open + 1,
                                 close > open ? close - open - 1 : 0},
               parts);
    return close < text.length ? close + 1 : close;
}

void cxx_split(struct cxx_text name, struct cxx_name *parts)
{
    size_t base = 0, i = 0;

    *parts = (struct cxx_name){.base = {0}};
    if (!name.at)
        return;
    if (cxx_begins(name, "void "))
        name = cxx_from(name, 5);
    while (i < name.length) {
        if (cxx_begins(cxx_from(name, i), ANONYMOUS))
            i += strlen(ANONYMOUS);
        if (i >= name.length || strchr("<({", name.at[i]))
            break;
        if (name.at[i++] == ':')
            base = i;
    }
    parts->base = (struct cxx_text){name.at + base, i - base};
    if (i < name.length && name.at[i] == '<')
        i = split_brackets(name, i, &parts->arguments);
    if (i < name.length && name.at[i] == '(')
        split_brackets(name, i, &parts->parameters);
}

bool cxx_lambda(struct cxx_text name, struct cxx_parts *parameters)
{
    static const char mark[] = "{lambda(";
    size_t length = strlen(mark);

    name = cxx_trim(name);
    if (!cxx_ends(name, "}") || name.length < length)
        return false;
    for (size_t i = name.length - length; i; i--) {
        struct cxx_text rest = cxx_from(name, i);

        if (!cxx_begins(rest, mark) || find_closing(rest, 0) + 1 != rest.length)
            continue;
        split_brackets(rest, length - 1, parameters);
        return true;
    }
    return false;
}

struct cxx_text cxx_unqualified(struct cxx_text text)
{
    text = cxx_trim(text);
    if (cxx_begins(text, "const "))
        text = cxx_from(text, 6);
    for (;;) {
        if (cxx_ends(text, "&"))
            text.length--;
        else if (cxx_ends(text, " const"))
            text.length -= 6;
        else
            return cxx_trim(text);
    }
}

bool cxx_number(struct cxx_text text, int32_t *number)
{
    int64_t value = 0;
    bool negative = false;

    if (cxx_is(text, "true") || cxx_is(text, "false")) {
        *number = text.length == 4;
        return true;
    }
    if (text.length && *text.at == '(')
        text = cxx_from(text, find_closing(text, 0) + 1 < text.length
                                  ? find_closing(text, 0) + 1
                                  : text.length);
    if (text.length && *text.at == '-') {
        negative = true;
        text = cxx_from(text, 1);
    }
    if (!text.length || !isdigit((unsigned char)*text.at))
        return false;
    for (; text.length && isdigit((unsigned char)*text.at);
         text = cxx_from(text, 1))
        if (value < INT32_MAX / 16)
            value = value * 10 + (*text.at - '0');
    if (strspn(text.at, "ul") < text.length)
        return false;
    *number = (int32_t)(negative ? -value : value);
    return true;
}
