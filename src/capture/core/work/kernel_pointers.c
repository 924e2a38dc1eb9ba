/* SPDX-License-Identifier: Apache-2.0
 * Which arguments of a kernel are addresses, read from its mangled name as far
 * as that is simple (Itanium C++ ABI, 5.1): functions without template
 * arguments, which programs' own kernels mostly are. What cannot be read is
 * not taken for an address. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/work/kernel.h"

#define SUBSTITUTIONS 36 /* S_, S0_ to SZ_ */

struct reader {
    const char *at;
    bool is_pointer[SUBSTITUTIONS]; /* what each substitution stands for */
    int count;
};

static bool remember(struct reader *r, bool is_pointer)
{
    if (r->count < SUBSTITUTIONS)
        r->is_pointer[r->count++] = is_pointer;
    return is_pointer;
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

/* S_, S0_, ...: -1 where it stands for nothing seen here. */
static int substitution_read(struct reader *r)
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
    return i < r->count ? r->is_pointer[i] : -1;
}

/* One type: 1 an address, 0 not, -1 cannot be read. */
static int parameter_read(struct reader *r)
{
    int inner;

    switch (*r->at) {
    case 'P':
        r->at++;
        inner = parameter_read(r);
        return inner < 0 ? -1 : remember(r, true);
    case 'K':
        r->at++;
        inner = parameter_read(r);
        return inner < 0 ? -1 : remember(r, inner);
    case 'S':
        return substitution_read(r);
    default:
        if (isdigit((unsigned char)*r->at))
            return identifier_skip(r) ? remember(r, false) : -1;
        if (!*r->at || !strchr("vwbcahstijlmxynofde", *r->at))
            return -1;
        r->at++;
        return 0;
    }
}

/* _ZN<scope>...<name>E or _Z<name>. Each scope can be substituted. */
static bool name_skip(struct reader *r)
{
    bool nested = *r->at == 'N';

    if (!nested) {
        r->at += *r->at == 'L'; /* static */
        return identifier_skip(r);
    }
    r->at++;
    while (*r->at != 'E') {
        r->at += *r->at == 'L';
        if (!identifier_skip(r))
            return false;
        if (*r->at != 'E')
            remember(r, false);
    }
    r->at++;
    return true;
}

uint32_t kernel_pointers(const char *name)
{
    struct reader r = {.at = name};
    uint32_t pointers = 0;

    if (strncmp(name, "_Z", 2))
        return 0;
    r.at += 2;
    if (!name_skip(&r))
        return 0;
    for (uint32_t i = 0; i < 32 && *r.at; i++) {
        int type = parameter_read(&r);

        if (type < 0)
            break;
        pointers |= (uint32_t)type << i;
    }
    return pointers;
}
