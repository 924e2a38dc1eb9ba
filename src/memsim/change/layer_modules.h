/* SPDX-License-Identifier: Apache-2.0
 * The layers of a model by its modules' names: "blocks.0" to "blocks.11" are 12
 * layers where each has the same submodules with the same parameters. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYER_MODULES_H
#define MEMSIM_MEMSIM_CHANGE_LAYER_MODULES_H

#include "memsim/change/records.h"

struct layer_modules {
    char prefix[256];  /* "blocks" */
    uint32_t count;    /* of layers */
    size_t per_layer;  /* parameters */
    uint64_t elements; /* of all parameters in layers */
    /* Of each parameter of the records: its layer + 1; 0: it is in none. */
    uint32_t *layer_of;
};

/* Finds the layers of R; with PREFIX (NULL: any) those of that name. Of several
 * lists it takes the one with the most elements. Returns 0 with *M to be given
 * to layer_modules_fini; -1 with ERR set where there are none. */
int layer_modules_find(struct layer_modules *m, const struct records *r,
                       const char *prefix, struct err *err);
void layer_modules_fini(struct layer_modules *m);

#endif
