/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"

/* Unsigned types stand for others of their size, whose bits are moved. */
static const struct spelling {
    const char *text;
    enum number_type type;
} spellings[] = {
    {"h", NUMBER_U8},
    {"a", NUMBER_I8},
    {"s", NUMBER_I16},
    {"i", NUMBER_I32},
    {"l", NUMBER_I64},
    {"f", NUMBER_F32},
    {"d", NUMBER_F64},
    {"b", NUMBER_BOOL},
    {"t", NUMBER_I16},
    {"j", NUMBER_I32},
    {"m", NUMBER_I64},
    {"N3c104HalfE", NUMBER_F16},
    {"N3c108BFloat16E", NUMBER_BF16},
    {"6__half", NUMBER_F16}, /* CUB's sorts have CUDA's own */
    {"13__nv_bfloat16", NUMBER_BF16},
};

const char *name_after(const char *name, const char *pattern)
{
    const char *found = strstr(name, pattern);

    return found ? found + strlen(pattern) : NULL;
}

/* S_, S4_, SA_ */
static const char *substitution_end(const char *text)
{
    if (*text++ != 'S')
        return NULL;
    while (isdigit((unsigned char)*text) || isupper((unsigned char)*text))
        text++;
    return *text == '_' ? text + 1 : NULL;
}

/* NS4_4HalfE, where the name has had the namespace before. */
static enum number_type type_within(const char **text)
{
    const char *end = **text == 'N' ? substitution_end(*text + 1) : NULL;

    if (!end)
        return NUMBER_NONE;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const char *own = name_after(spellings[i].text, "N3c10");

        if (own && text_begins(end, own)) {
            *text = end + strlen(own);
            return spellings[i].type;
        }
    }
    return NUMBER_NONE;
}

static enum number_type type_spelled(const char **text)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        size_t length = strlen(spellings[i].text);

        if (!strncmp(*text, spellings[i].text, length)) {
            *text += length;
            return spellings[i].type;
        }
    }
    return type_within(text);
}

/* HALF is the last type of two bytes in the same list, or NUMBER_NONE. */
static enum number_type type_read(const char **text, enum number_type *half)
{
    const char *end = substitution_end(*text);

    if (end && *half != NUMBER_NONE) {
        *text = end;
        return *half;
    }
    enum number_type type = type_spelled(text);
    if (type == NUMBER_F16 || type == NUMBER_BF16)
        *half = type;
    return type;
}

bool name_types(const char **text, enum number_type *types, int count)
{
    return name_types_after(text, types, count, NUMBER_NONE);
}

bool name_types_after(const char **text, enum number_type *types, int count,
                      enum number_type half)
{
    for (int i = 0; i < count; i++) {
        types[i] = type_read(text, &half);
        if (types[i] == NUMBER_NONE)
            return false;
    }
    return true;
}

int name_lambda(const char *text, enum number_type *types, int most)
{
    return name_lambda_after(text, types, most, NUMBER_NONE);
}

int name_lambda_after(const char *text, enum number_type *types, int most,
                      enum number_type before)
{
    while ((text = name_after(text, "EUl"))) {
        enum number_type half = before;
        int count = 0;

        if (*text == 'v')
            continue;
        while (count < most && *text != 'E')
            if ((types[count++] = type_read(&text, &half)) == NUMBER_NONE)
                return -1;
        return *text == 'E' ? count : -1;
    }
    return -1;
}

enum number_type name_dispatched(const char *name)
{
    static const enum number_type order[] = {NUMBER_U8,  NUMBER_I8,  NUMBER_I32,
                                             NUMBER_I64, NUMBER_I16, NUMBER_F64,
                                             NUMBER_F32};
    const char *last = NULL;

    for (const char *at = name; (at = name_after(at, "NKUlvE"));)
        last = at;
    if (!last)
        return NUMBER_NONE;
    /* The first lambda has no number, the second is 0. */
    unsigned long ordinal = *last == '_' ? 0 : 1 + strtoul(last, NULL, 10);
    return ordinal < sizeof order / sizeof *order ? order[ordinal]
                                                  : NUMBER_NONE;
}

uint32_t name_bytes(const char *text)
{
    const char *opaque = name_after(text, "10OpaqueTypeIL");
    const char *end = strchr(text, 'E');
    enum number_type type;

    /* "INS0_10OpaqueTypeILi8EEE": before the first E, or it is another's. */
    if (opaque && end && opaque < end)
        return (uint32_t)strtoul(opaque + 1, NULL, 10);
    return name_types(&text, &type, 1) ? number_bytes(type) : 0;
}
