/* SPDX-License-Identifier: Apache-2.0
 * The long lists of numbers in a fit's JSON. They are cut out of the text
 * before the rest is parsed, so that only those that are needed are read. */
#ifndef MEMSIM_FITS_COST_LISTS_H
#define MEMSIM_FITS_COST_LISTS_H

#include <stddef.h>
#include <stdint.h>

struct cJSON;

struct cost_lists {
    const char *text; /* borrowed */
    char *rest;       /* the text with the number of a list for each list */
    struct cost_list {
        size_t from, to;
    } *lists;
    size_t count, capacity;
};

/* Cuts what "edges" and "trees" have out of the LENGTH bytes of TEXT, where it
 * is a list. The rest is as long and has as many lines; it is to be given to
 * cost_lists_fini. */
void cost_lists_cut(struct cost_lists *l, const char *text, size_t length);
void cost_lists_fini(struct cost_lists *l);

/* Numbers of a list of lists, one after the other. starts[i] is where list i
 * begins and starts[count] where all end. The caller frees both. */
struct cost_numbers {
    double *values;
    uint32_t *starts;
    uint32_t count;
};

/* Reads the list that ITEM, a value of the rest, stands for. Returns 0, or -1
 * where it is none of numbers, or has too many; *N is to be freed in any case.
 */
int cost_lists_read(const struct cost_lists *l, const struct cJSON *item,
                    struct cost_numbers *n);

#endif
