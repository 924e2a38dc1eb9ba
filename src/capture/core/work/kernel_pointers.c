/* SPDX-License-Identifier: Apache-2.0
 * Which arguments of a kernel are addresses, and of what may be changed, read
 * from its mangled name as far as that is simple (Itanium C++ ABI, 5.1). Of
 * functions with template arguments only if asked: PyTorch has thousands. What
 * cannot be read is not taken for an address. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "capture/core/work/kernel.h"

#define SUBSTITUTIONS 36 /* S_, S0_ to SZ_ */

#define TEMPLATE_ARGUMENTS 16

/* What is known of a type. */
enum {
    TYPE_POINTER = 1,
    TYPE_CONST = 2,     /* of that kind itself */
    TYPE_READ_ONLY = 4, /* an address of what is const */
};

struct reader {
    const char *at;
    int types[SUBSTITUTIONS]; /* what each substitution stands for */
    int count;
    int arguments[TEMPLATE_ARGUMENTS], argument_count;
    bool with_templates, is_template;
};

static int remember_type(struct reader *r, int type)
{
    if (r->count < SUBSTITUTIONS)
        r->types[r->count++] = type;
    return type;
}

/* <length><identifier> */
static bool identifier_skip(struct reader *r)
{
    char *end;
    unsigned long length =
        isdigit((unsigned char)*r->at) ? strtoul(r->at, &end, 10) : 0;

    if (!length || length > strlen(end))
        return false;
    r->at = end + length;
    return true;
}

/* S_, S0_, ... of TYPES, T_, T0_, ... of ARGUMENTS: -1 where there is none. */
static int reference_read(struct reader *r, const int *types, int count)
{
    const char *digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int i = 0;

    if (*++r->at != '_') {
        const char *digit = *r->at ? strchr(digits, *r->at++) : NULL;

        if (!digit || *r->at != '_')
            return -1;
        i = (int)(digit - digits) + 1;
    }
    r->at++;
    return i < count ? types[i] : -1;
}

/* One type; -1: it cannot be read. */
static int parameter_read(struct reader *r)
{
    int inner;

    switch (*r->at) {
    case 'P':
        r->at++;
        inner = parameter_read(r);
        if (inner < 0)
            return -1;
        return remember_type(r, TYPE_POINTER |
                                    (inner & TYPE_CONST ? TYPE_READ_ONLY : 0));
    case 'K':
        r->at++;
        inner = parameter_read(r);
        return inner < 0 ? -1 : remember_type(r, inner | TYPE_CONST);
    case 'S':
        return reference_read(r, r->types, r->count);
    case 'T':
        inner = reference_read(r, r->arguments, r->argument_count);
        return inner < 0 ? -1 : remember_type(r, inner);
    default:
        if (isdigit((unsigned char)*r->at))
            return identifier_skip(r) ? remember_type(r, 0) : -1;
        if (!*r->at || !strchr("vwbcahstijlmxynofde", *r->at))
            return -1;
        r->at++;
        return 0;
    }
}

/* I<argument>...E: types, and simple literals as Li4E. */
static bool template_read(struct reader *r)
{
    int type;

    for (r->at++; *r->at != 'E'; r->arguments[r->argument_count++] = type) {
        if (r->argument_count == TEMPLATE_ARGUMENTS)
            return false;
        type = 0;
        if (*r->at != 'L') {
            type = parameter_read(r);
        } else if (r->at[1] && strchr("bcahstijlm", r->at[1])) {
            r->at = strchr(r->at, 'E');
            type = r->at ? 0 : -1;
            r->at += r->at != NULL;
        } else {
            type = -1;
        }
        if (type < 0)
            return false;
    }
    r->at++;
    r->is_template = true;
    return true;
}

/* _ZN<scope>...<name>E or _Z<name>. Each scope can be substituted, and so can a
 * template's name. */
static bool name_skip(struct reader *r)
{
    bool nested = *r->at == 'N';

    r->at += nested;
    do {
        r->at += *r->at == 'L'; /* static */
        if (!identifier_skip(r))
            return false;
        if (*r->at == 'I') {
            remember_type(r, 0);
            if (!r->with_templates || !template_read(r))
                return false;
        }
        if (nested && *r->at != 'E')
            remember_type(r, 0);
    } while (nested && *r->at != 'E');
    r->at += nested;
    return true;
}

struct kernel_pointers kernel_pointers(const char *name, bool with_templates)
{
    struct reader r = {.at = name, .with_templates = with_templates};
    struct kernel_pointers found = {0, 0};

    if (!text_begins(name, "_Z"))
        return found;
    r.at += 2;
    if (!name_skip(&r) || (r.is_template && parameter_read(&r) < 0))
        return found;
    for (uint32_t i = 0; i < 32 && *r.at; i++) {
        int type = parameter_read(&r);

        if (type < 0)
            break;
        found.all |= (uint32_t)(type & TYPE_POINTER) << i;
        if (type & TYPE_POINTER && !(type & TYPE_READ_ONLY))
            found.written |= 1u << i;
    }
    return found;
}
