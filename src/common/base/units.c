/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct unit {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},         {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10},
    {"kB", 1e3},     {"M", 0x1p20},   {"MiB", 0x1p20}, {"MB", 1e6},
    {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},     {"T", 0x1p40},
    {"TiB", 0x1p40}, {"TB", 1e12},
};

static const struct unit *unit_find(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(name, units[i].name))
            return &units[i];
    return NULL;
}

static int parse_integer(const char *text, uint64_t *bytes)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end)
        return -1;
    *bytes = value;
    return 0;
}

int units_parse_bytes(const char *text, uint64_t *bytes)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return -1;
    if (!parse_integer(text, bytes)) /* all 64 bits, which a double lacks */
        return 0;
    if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
        return -1;
    double value = strtod(text, &end);
    while (*end == ' ')
        end++;
    const struct unit *unit = unit_find(end);
    if (!unit || !(value * unit->bytes < 0x1p64))
        return -1;
    *bytes = (uint64_t)(value * unit->bytes);
    return 0;
}

char *units_format_bytes(uint64_t bytes, char *out, size_t out_size)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes / 1024;
    size_t i = 0;

    if (bytes < 1024) {
        snprintf(out, out_size, "%" PRIu64 " B", bytes);
        return out;
    }
    while (value >= 1023.995 && i + 1 < sizeof names / sizeof *names) {
        value /= 1024;
        i++;
    }
    snprintf(out, out_size, "%.2f %s", value, names[i]);
    return out;
}
