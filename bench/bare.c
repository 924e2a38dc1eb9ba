/* SPDX-License-Identifier: Apache-2.0
 * Preloaded before libmemsim.so, turns the fake device into bare stubs: work
 * is accepted and forgotten, nothing is recorded, torch's books are not read.
 * What the same script costs more without this is what memsim costs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int memsim_kernel_launch(const void *kernel, const void *launch);
int memsim_gemm(uint32_t name, const void *gemm);
int memsim_copy(uint64_t to, uint64_t from, uint64_t bytes, int direction,
                uint64_t stream, bool blocking);
int memsim_set(uint64_t address, uint64_t value, uint64_t unit, uint64_t count,
               uint64_t stream, bool blocking);
void memsim_record(int kind, const uint64_t *fields, size_t count);
void memsim_record_text(int kind, const uint64_t *fields, size_t count,
                        const char *text, size_t bytes);
bool memsim_torch_calls(const void *address);
int memsim_event_record(uint64_t event, uint64_t stream);
int memsim_event_query(uint64_t event);
int memsim_stream_wait(uint64_t stream, uint64_t event);
int memsim_stream_synchronize(uint64_t stream);

#define NOTHING(name, ...)                                                     \
    int name(__VA_ARGS__)                                                      \
    {                                                                          \
        return 0;                                                              \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(memsim_kernel_launch, const void *kernel, const void *launch)
NOTHING(memsim_gemm, uint32_t name, const void *gemm)
NOTHING(memsim_copy, uint64_t to, uint64_t from, uint64_t bytes, int direction,
        uint64_t stream, bool blocking)
NOTHING(memsim_set, uint64_t address, uint64_t value, uint64_t unit,
        uint64_t count, uint64_t stream, bool blocking)
NOTHING(memsim_event_record, uint64_t event, uint64_t stream)
NOTHING(memsim_event_query, uint64_t event)
NOTHING(memsim_stream_wait, uint64_t stream, uint64_t event)
NOTHING(memsim_stream_synchronize, uint64_t stream)

void memsim_record(int kind, const uint64_t *fields, size_t count)
{
}

void memsim_record_text(int kind, const uint64_t *fields, size_t count,
                        const char *text, size_t bytes)
{
}

bool memsim_torch_calls(const void *address)
{
    return true;
}

/* c10::reportMemoryUsageToProfiler */
void bare_report(void *p, int64_t bytes, size_t allocated, size_t reserved,
                 uint16_t device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void bare_report(void *p, int64_t bytes, size_t allocated, size_t reserved,
                 uint16_t device)
{
}
