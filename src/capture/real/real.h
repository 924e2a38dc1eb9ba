/* SPDX-License-Identifier: Apache-2.0
 * A tapped call: it is passed on to the real function, and recorded. */
#ifndef MEMSIM_CAPTURE_REAL_REAL_H
#define MEMSIM_CAPTURE_REAL_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"

struct real_call {
    uint64_t number, start_ns; /* of the process's recorded calls, from 1 */
    bool outer; /* to be recorded: nobody's part, and in a run */
};

/* Set by a folder beside this one: called before each call of the program's.
 * NULL: there is nothing to do. */
extern void (*real_before)(void);

/* Set by a folder beside this one, which may give the GPU work of its own
 * around the program's: kernels and libraries' calls. NULL: it has none. */
extern const struct real_works {
    void (*before)(uint32_t name, uint64_t stream); /* NAME comes to STREAM */
    void (*after)(void);                            /* a call has ended */
} *real_works;

/* Around each call of a real function. */
void real_enter(struct real_call *call);
void real_leave(const struct real_call *call);

/* Before the real_enter() of a call that gives STREAM such work, under NAME. */
void real_before_work(uint32_t name, uint64_t stream);

/* Before the record of CALL: says which it is, and when it was made. */
void real_tell(const struct real_call *call);

/* The real function NAME; where there is none, one that answers "not found".
 * Not to be called for what is not a function of CUDA's. */
void *real_function(const char *name);

/* The same; NULL where there is none. */
void *real_look_up(const char *name);

/* For the library with the driver's name: the tap of NAME, else the real
 * function, else one that answers "not found". */
CORE_API void *memsim_real_driver(const char *name);

/* The tap of the driver's NAME; NULL: there is none. */
void *real_tap(const char *name);

/* REAL_FUNCTION(cudaFree)(p): the real one, looked up once. CUDA's headers
 * define some names to others, which is done before a name becomes a text. */
#define REAL_TEXT(name) #name
#define REAL_FUNCTION(name)                                                    \
    ({                                                                         \
        static __typeof__(&name) real_;                                        \
        if (!real_)                                                            \
            real_ = (__typeof__(&name))real_function(REAL_TEXT(name));         \
        real_;                                                                 \
    })

/* The body of a tap: RC = the real NAME with ARGUMENTS in brackets; what
 * follows is done for the outermost call, CALL, whatever it answered. */
#define REAL_CALL(name, arguments, ...)                                        \
    struct real_call call;                                                     \
    real_enter(&call);                                                         \
    __auto_type rc = REAL_FUNCTION(name) arguments;                            \
    if (call.outer) {                                                          \
        __VA_ARGS__;                                                           \
    }                                                                          \
    real_leave(&call);                                                         \
    return rc

/* The same for a call that succeeded. */
#define REAL_TAP(name, arguments, ...)                                         \
    REAL_CALL(name, arguments, if (!rc) { __VA_ARGS__; })

/* REAL_TAP for a call that gives STREAM work, which is recorded as ID. */
#define REAL_WORK(name, arguments, id, stream, ...)                            \
    if (real_works)                                                            \
        real_before_work(id, (uint64_t)(stream));                              \
    REAL_TAP(name, arguments, __VA_ARGS__)

#endif
