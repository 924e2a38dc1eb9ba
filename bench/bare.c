/* SPDX-License-Identifier: Apache-2.0
 * Preloaded before libmemsim.so, turns the fake device into bare stubs while
 * bare_switch(1) holds: work is accepted and forgotten, nothing is recorded,
 * torch's books are not read. What the same steps cost more without it is what
 * memsim costs. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

static int bare;

void bare_switch(int on)
{
    bare = on;
}

/* Callgrind counts in between (--instr-atstart=no). */
void bare_count(int on)
{
    if (on) {
        CALLGRIND_START_INSTRUMENTATION;
    } else {
        CALLGRIND_STOP_INSTRUMENTATION;
    }
}

/* An int function that succeeds where bare. */
#define STUB(name, parameters, arguments)                                      \
    int name parameters                                                        \
    {                                                                          \
        static int(*real) parameters;                                          \
                                                                               \
        if (bare)                                                              \
            return 0;                                                          \
        if (!real)                                                             \
            real = dlsym(RTLD_NEXT, #name);                                    \
        return real arguments;                                                 \
    }

STUB(memsim_kernel_launch, (const void *kernel, const void *launch),
     (kernel, launch))
STUB(memsim_gemm, (uint32_t name, const void *gemm), (name, gemm))
STUB(memsim_copy,
     (uint64_t to, uint64_t from, uint64_t bytes, int direction,
      uint64_t stream, bool blocking),
     (to, from, bytes, direction, stream, blocking))
STUB(memsim_set,
     (uint64_t address, uint64_t value, uint64_t unit, uint64_t count,
      uint64_t stream, bool blocking),
     (address, value, unit, count, stream, blocking))
STUB(memsim_event_record, (uint64_t event, uint64_t stream), (event, stream))
STUB(memsim_event_query, (uint64_t event), (event))
STUB(memsim_stream_wait, (uint64_t stream, uint64_t event), (stream, event))
STUB(memsim_stream_synchronize, (uint64_t stream), (stream))
STUB(memsim_record, (int kind, const uint64_t *fields, size_t count),
     (kind, fields, count))
STUB(memsim_record_text,
     (int kind, const uint64_t *fields, size_t count, const char *text,
      size_t bytes),
     (kind, fields, count, text, bytes))

STUB(memsim_submit,
     (int kind, const uint64_t *fields, size_t count, const char *text,
      size_t bytes),
     (kind, fields, count, text, bytes))

/* c10::reportMemoryUsageToProfiler: PyTorch's own runs, ours is left out. */
void bare_report(void *p, int64_t bytes, size_t allocated, size_t reserved,
                 uint16_t device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void bare_report(void *p, int64_t bytes, size_t allocated, size_t reserved,
                 uint16_t device)
{
    static __typeof__(&bare_report) ours, torchs;
    static const char name[] =
        "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

    if (!ours) {
        ours = dlsym(RTLD_NEXT, name);
        torchs = dlsym(dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD), name);
    }
    (bare ? torchs : ours)(p, bytes, allocated, reserved, device);
}
