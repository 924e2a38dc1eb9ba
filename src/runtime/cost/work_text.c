/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/work_text.h"

#include <ctype.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)"

struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

bool text_is(struct text text, const char *string)
{
    return text.length == strlen(string) &&
           !memcmp(text.at, string, text.length);
}

bool text_ends(struct text text, const char *string)
{
    size_t length = strlen(string);

    return text.length >= length &&
           !memcmp(text.at + text.length - length, string, length);
}

static bool text_begins(struct text text, const char *string)
{
    size_t length = strlen(string);

    return text.length >= length && !memcmp(text.at, string, length);
}

const char *text_find(struct text text, const char *string)
{
    return memmem(text.at, text.length, string, strlen(string));
}

static struct text text_from(struct text text, size_t offset)
{
    return (struct text){text.at + offset, text.length - offset};
}

static struct text text_trim(struct text text)
{
    while (text.length && *text.at == ' ')
        text = text_from(text, 1);
    while (text.length && text.at[text.length - 1] == ' ')
        text.length--;
    return text;
}

/* The bracket that closes what text.at[open] opens; the end where none does. */
static size_t closing(struct text text, size_t open)
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

static void split_list(struct text list, struct text_parts *parts)
{
    size_t start = 0;

    parts->count = 0;
    list = text_trim(list);
    for (size_t i = 0; i < list.length; i++) {
        if (strchr("<({[", list.at[i]))
            i = closing(list, i);
        bool ends = i + 1 >= list.length;
        if (!ends && list.at[i] != ',')
            continue;
        size_t stop = ends ? list.length : i;
        if (parts->count < TEXT_PARTS_MAX)
            parts->part[parts->count++] =
                text_trim((struct text){list.at + start, stop - start});
        start = i + 1;
    }
}

/* The list between the brackets at OPEN; where it ends. */
static size_t split_brackets(struct text text, size_t open,
                             struct text_parts *parts)
{
    size_t close = closing(text, open);

    split_list(
        (struct text){text.at + open + 1, close > open ? close - open - 1 : 0},
        parts);
    return close < text.length ? close + 1 : close;
}

void text_split(struct text name, struct text_name *parts)
{
    size_t base = 0, i = 0;

    *parts = (struct text_name){.base = {0}};
    if (text_begins(name, "void "))
        name = text_from(name, 5);
    while (i < name.length && !strchr("<({", name.at[i])) {
        if (name.at[i] == ':')
            base = i + 1;
        i++;
        if (text_begins(text_from(name, i), ANONYMOUS))
            i += strlen(ANONYMOUS);
    }
    if (!i && text_begins(name, ANONYMOUS))
        i = strlen(ANONYMOUS);
    parts->base = (struct text){name.at + base, i - base};
    if (i < name.length && name.at[i] == '<')
        i = split_brackets(name, i, &parts->arguments);
    if (i < name.length && name.at[i] == '(')
        split_brackets(name, i, &parts->parameters);
}

bool text_lambda(struct text name, struct text_parts *parameters)
{
    static const char mark[] = "{lambda(";
    size_t length = strlen(mark);

    name = text_trim(name);
    if (!text_ends(name, "}") || name.length < length)
        return false;
    for (size_t i = name.length - length; i; i--) {
        struct text rest = text_from(name, i);

        if (!text_begins(rest, mark) || closing(rest, 0) + 1 != rest.length)
            continue;
        split_brackets(rest, length - 1, parameters);
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    uint8_t bytes, type;
} types[] = {
    {"float", 4, WORK_FP32},
    {"double", 8, WORK_FP64},
    {"c10::BFloat16", 2, WORK_BF16},
    {"c10::Half", 2, WORK_FP16},
    {"__nv_bfloat16", 2, WORK_BF16},
    {"__half", 2, WORK_FP16},
    {"half", 2, WORK_FP16},
    {"cutlass::bfloat16_t", 2, WORK_BF16},
    {"cutlass::half_t", 2, WORK_FP16},
    {"cutlass::tfloat32_t", 4, WORK_TF32},
    {"long", 8, WORK_INTEGER},
    {"unsigned long", 8, WORK_INTEGER},
    {"long long", 8, WORK_INTEGER},
    {"unsigned long long", 8, WORK_INTEGER},
    {"int", 4, WORK_INTEGER},
    {"unsigned int", 4, WORK_INTEGER},
    {"short", 2, WORK_INTEGER},
    {"unsigned short", 2, WORK_INTEGER},
    {"char", 1, WORK_INTEGER},
    {"signed char", 1, WORK_INTEGER},
    {"unsigned char", 1, WORK_INTEGER},
    {"bool", 1, WORK_INTEGER},
    {"c10::complex<float>", 8, WORK_FP32},
    {"c10::complex<double>", 16, WORK_FP64},
    {"c10::complex<c10::Half>", 4, WORK_FP16},
    {"c10::Float8_e4m3fn", 1, WORK_FP8},
    {"c10::Float8_e5m2", 1, WORK_FP8},
    {"c10::Float8_e4m3fnuz", 1, WORK_FP8},
    {"c10::Float8_e5m2fnuz", 1, WORK_FP8},
    {"c10::Float8_e8m0fnu", 1, WORK_FP8},
};

/* OpaqueType<4u> and its kin, which stand for any type of that size. */
static uint32_t opaque_bytes(struct text text)
{
    const char *at = text_find(text, "OpaqueType<");
    uint32_t bytes = 0;

    if (!at)
        return 0;
    for (at += strlen("OpaqueType<");
         at < text.at + text.length && isdigit((unsigned char)*at); at++)
        bytes = bytes * 10 + (uint32_t)(*at - '0');
    return bytes <= 16 ? bytes : 0;
}

static struct text strip_qualifiers(struct text text)
{
    text = text_trim(text);
    if (text_begins(text, "const "))
        text = text_from(text, 6);
    for (;;) {
        if (text_ends(text, "&"))
            text.length--;
        else if (text_ends(text, " const"))
            text.length -= 6;
        else
            return text_trim(text);
    }
}

uint32_t text_type(struct text text, enum work_type *type)
{
    text = strip_qualifiers(text);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text_is(text, types[i].name)) {
            *type = (enum work_type)types[i].type;
            return types[i].bytes;
        }
    if (!text_ends(text, ">"))
        return 0;
    *type = WORK_INTEGER;
    return opaque_bytes(text);
}

bool text_number(struct text text, int32_t *number)
{
    int64_t value = 0;
    bool negative = false;

    if (text_is(text, "true") || text_is(text, "false")) {
        *number = text.length == 4;
        return true;
    }
    if (text.length && *text.at == '(')
        text = text_from(text, closing(text, 0) + 1 < text.length
                                   ? closing(text, 0) + 1
                                   : text.length);
    if (text.length && *text.at == '-') {
        negative = true;
        text = text_from(text, 1);
    }
    if (!text.length || !isdigit((unsigned char)*text.at))
        return false;
    for (; text.length && isdigit((unsigned char)*text.at);
         text = text_from(text, 1))
        if (value < INT32_MAX / 16)
            value = value * 10 + (*text.at - '0');
    if (strspn(text.at, "ul") < text.length)
        return false;
    *number = (int32_t)(negative ? -value : value);
    return true;
}
