/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/routing.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define EXPERTS 1024 /* that a router has at most */

#define FORMS "give even, zipf, zipf:S, power:A or a file of shares"

/* Whether TEXT is a number from above 0 to 100. */
static bool is_exponent(const char *text)
{
    char *end;
    double x = strtod(text, &end);

    return end != text && !*end && x > 0 && x <= 100;
}

/* "shares:0.5,0.25,": the numbers of FILE. NULL with ERR set. */
static char *shares_read(const char *path, FILE *file, struct err *err)
{
    char *value = xstrdup("shares:"), word[64];
    double sum = 0;
    size_t count = 0;

    for (; fscanf(file, "%63s", word) == 1; count++) {
        char *end, *longer = xasprintf("%s%s,", value, word);
        double x = strtod(word, &end);

        free(value);
        value = longer;
        sum += x;
        if (*end || !isfinite(x) || x < 0 || count == EXPERTS) {
            err_set(err, count == EXPERTS
                             ? "--routing: %s: more than 1024 shares: '%s'"
                             : "--routing: %s: '%s' is no share, which is a "
                               "number of at least 0",
                    path, word);
            free(value);
            return NULL;
        }
    }
    if (count > 1 && sum > 0)
        return value;
    err_set(err, "--routing: %s: a share for each expert is needed, and one "
                 "that is not 0", path);
    free(value);
    return NULL;
}

static int file_parse(const char *text, char **value, struct err *err)
{
    FILE *file = fopen(text, "re");

    if (!file)
        return err_set(err, "--routing: %s: %s; " FORMS, text, strerror(errno));
    *value = shares_read(text, file, err);
    fclose(file);
    return *value ? 0 : -1;
}

int routing_parse(const char *text, char **value, struct err *err)
{
    static const char *const forms[] = {"zipf", "power"};
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);

    *value = NULL;
    if (!strcmp(text, "even") || !strcmp(text, "zipf")) {
        *value = xstrdup(*text == 'z' ? "zipf:1" : text);
        return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        if (strlen(forms[i]) != length || strncmp(text, forms[i], length) != 0)
            continue;
        if (!colon || !is_exponent(colon + 1))
            return err_set(err, "--routing: '%s': a number above 0 follows %s:",
                           text, forms[i]);
        *value = xstrdup(text);
        return 0;
    }
    return file_parse(text, value, err);
}
