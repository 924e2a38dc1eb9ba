/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLES_CALL_H
#define SAMPLES_CALL_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program if CALL does not return 0, which is success for each of
 * these libraries. */
#define CALL(call)                                         \
    do {                                                   \
        int error = (int)(call);                           \
        if (error) {                                       \
            fprintf(stderr, "%s: status %d\n", #call, error); \
            exit(1);                                       \
        }                                                  \
    } while (0)

#endif
