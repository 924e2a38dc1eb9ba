/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/profile_clock.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/torch_function.h"

#define PROFILER "libtorch_cpu.so" /* has the profiler, and Kineto */

/* Whether ADDRESS is in the library with the profiler: the allocator has a
 * converter, too, which lives as long as it does. */
static bool is_profiler(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) && info.dli_fname &&
           strstr(info.dli_fname, PROFILER);
}

static bool is_simulated(void)
{
    return memsim_session() && memsim_session()->simulated_clock;
}

bool memsim_profile_clock_is(const void *function)
{
    return is_simulated() && is_profiler(function);
}

#ifdef __x86_64__

/* What both C++ classes are called. Their two functions that others call: */
#define C10(function)    "_ZN3c10" CLASS function
#define KINETO(function) "_ZN9libkineto" CLASS function
#define CLASS            "35ApproximateClockToUnixTimeConverter"
#define CONSTRUCT "C1Ev"
#define MAKE      "13makeConverterEv"

#define CONVERTERS 16

/* Times of this and later are nanoseconds since 1970, of 2001 and later; the
 * cycles of 5 GHz in six years. */
#define UNIX_NS UINT64_C(1000000000000000000)

/* std::function<int64_t(uint64_t)> as libstdc++ has it. */
struct function {
    uint64_t data[2];
    bool (*manage)(struct function *to, const struct function *from,
                   int operation);
    int64_t (*invoke)(const struct function *f, uint64_t *argument);
};

/* --- cycles --------------------------------------------------------------- */

/* The processor's cycles and the host's clock at a moment. */
struct moment {
    uint64_t cycles, host_ns;
};
static struct moment begin, end;

/* The best of some looks: one that nothing interrupted. */
static struct moment moment_now(void)
{
    struct moment best = {0, 0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 20; i++) {
        uint64_t before = __builtin_ia32_rdtsc();
        uint64_t host_ns = clock_host(CLOCK_MONOTONIC);
        uint64_t after = __builtin_ia32_rdtsc();
        if (after - before >= least)
            continue;
        least = after - before;
        best = (struct moment){before + least / 2, host_ns};
    }
    return best;
}

static uint64_t host_of(uint64_t cycles)
{
    uint64_t span = end.cycles - begin.cycles;
    int64_t passed = (int64_t)(cycles - begin.cycles);

    if (!span)
        return begin.host_ns;
    __int128 ns = (__int128)passed * (int64_t)(end.host_ns - begin.host_ns);
    return begin.host_ns + (uint64_t)(int64_t)(ns / (int64_t)span);
}

/* --- converters ----------------------------------------------------------- */

/* Those of the profiler that have not yet made a function. */
static const void *converters[CONVERTERS];
static uint32_t next;

static const void **converter_find(const void *converter)
{
    for (uint32_t i = 0; i < CONVERTERS; i++)
        if (converters[i] == converter)
            return &converters[i];
    return NULL;
}

static void converter_begin(const void *converter)
{
    if (converter_find(converter))
        return;
    const void **place = &converters[next++ % CONVERTERS];
    if (*place)
        clock_log_end(); /* it was never asked */
    *place = converter;
    if (!clock_log_is_on)
        begin = moment_now();
    const struct clock_line now = clock_line_now();
    clock_log_begin(&now);
}

static int64_t convert_time(const struct function *f, uint64_t *argument)
{
    uint64_t time = *argument, user_ns;

    (void)f;
    if (time >= UNIX_NS)
        return (int64_t)time;
    if (!clock_log_user(host_of(time), &user_ns))
        user_ns = clock_user_at(host_of(time));
    return (int64_t)clock_unix_of(user_ns);
}

/* Operations of libstdc++'s _Manager_operation. */
static bool manage_function(struct function *to, const struct function *from,
                            int operation)
{
    enum { TYPE, POINTER, CLONE, DESTROY };

    if (operation == TYPE)
        to->data[0] = 0;
    else if (operation == POINTER)
        to->data[0] = (uint64_t)from;
    else if (operation == CLONE)
        memcpy(to->data, from->data, sizeof to->data);
    return false;
}

/* Ours has no state. The real one would look at the clock 1,000 times, which at
 * --host-speed 0 is taken for a wait. */
static void construct_converter(const char *library, const char *name,
                                void *converter, const void *caller)
{
    void (*real)(void *);

    if (memsim_profile_clock_is(caller))
        converter_begin(converter);
    else if ((real = (__typeof__(real))torch_function(library, name)))
        real(converter);
}

static struct function make_converter(const char *library, const char *name,
                                      const void *converter, const void *caller)
{
    const void **place = converter_find(converter);
    struct function (*real)(const void *);

    if (!memsim_profile_clock_is(caller)) {
        real = (__typeof__(real))torch_function(library, name);
        return real ? real(converter) : (struct function){.manage = NULL};
    }
    if (place) {
        *place = NULL;
        end = moment_now();
        clock_log_end();
    }
    return (struct function){.manage = manage_function, .invoke = convert_time};
}

void c10_construct(void *converter) __asm__(C10(CONSTRUCT));
CORE_API void c10_construct(void *converter)
{
    construct_converter("libc10.so", C10(CONSTRUCT), converter,
                        __builtin_return_address(0));
}

struct function c10_make(const void *converter) __asm__(C10(MAKE));
CORE_API struct function c10_make(const void *converter)
{
    return make_converter("libc10.so", C10(MAKE), converter,
                          __builtin_return_address(0));
}

void kineto_construct(void *converter) __asm__(KINETO(CONSTRUCT));
CORE_API void kineto_construct(void *converter)
{
    construct_converter(PROFILER, KINETO(CONSTRUCT), converter,
                        __builtin_return_address(0));
}

struct function kineto_make(const void *converter) __asm__(KINETO(MAKE));
CORE_API struct function kineto_make(const void *converter)
{
    return make_converter(PROFILER, KINETO(MAKE), converter,
                          __builtin_return_address(0));
}

#endif
