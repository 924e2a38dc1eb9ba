/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/kernel.h"

#include <dlfcn.h>
#include <string.h>

#include "capture/core/work/carry.h"
#include "capture/core/work/fatbin.h"
#include "capture/core/work/stream_capture.h"
#include "capture/core/memory/device.h"
#include "capture/core/diagnose/fault.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"
#include "capture/core/work/submit.h"
#include "capture/core/memory/values.h"

#define TABLE_SLOTS (1u << 20) /* torch 2.11 registers about 30,000 */

/* Open addressing; filled by static constructors, one thread at a time. */
static struct entry {
    const void *host;
    const char *name;
    const void *image;     /* what its code is in, as it was registered */
    struct kernel *kernel; /* once used */
} * table;
static uint32_t table_count;

static uint32_t host_hash(const void *host)
{
    uint64_t h = (uint64_t)host * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(h >> 44) & (TABLE_SLOTS - 1);
}

static struct entry *entry_find(const void *host)
{
    uint32_t i = host_hash(host);

    while (table[i].host && table[i].host != host)
        i = (i + 1) & (TABLE_SLOTS - 1);
    return &table[i];
}

void memsim_kernel_register(const void *host, const char *name,
                            const void *image)
{
    core_lock(LOCK_KERNEL);
    if (!table)
        table = memsim_pages_reserve(0, TABLE_SLOTS * sizeof *table);
    if (table && table_count < TABLE_SLOTS / 2) {
        struct entry *entry = entry_find(host);

        table_count += !entry->host;
        entry->name = name;
        entry->image = image;
        entry->kernel = NULL; /* a library was unloaded, another came */
        __atomic_store_n(&entry->host, host, __ATOMIC_RELEASE);
    }
    core_unlock(LOCK_KERNEL);
}

void memsim_kernel_parameters(struct kernel *kernel, const uint16_t *bytes,
                              uint32_t count)
{
    uint16_t *kept = count ? memsim_pages_keep(count * sizeof *kept) : NULL;

    if (!kept)
        return;
    memcpy(kept, bytes, count * sizeof *kept);
    kernel->parameter_bytes = kept;
    kernel->parameter_count = count;
    kernel_rule_blocks(kernel);
}

/* The parameters that are addresses by KERNEL's name. */
static void pointers_keep(struct kernel *kernel)
{
    uint16_t bytes[32] = {0};

    for (uint32_t i = 0; i < 32; i++)
        bytes[i] = kernel->pointers >> i & 1 ? sizeof(void *) : 0;
    memsim_kernel_parameters(kernel, bytes,
                             32 - (uint32_t)__builtin_clz(kernel->pointers));
}

#define TOLD_REACHES 64 /* of later arguments nothing is known */

/* What the next kernel of that name stores to, and reaches. */
static _Thread_local struct {
    char name[256];
    uint64_t written;
    struct kernel_reach reaches[TOLD_REACHES];
    uint32_t reach_count;
} told;

void memsim_kernel_stores(const char *name, uint64_t written)
{
    size_t length = strlen(name);

    *told.name = 0;
    if (length < sizeof told.name)
        memcpy(told.name, name, length + 1);
    told.written = written;
    told.reach_count = 0;
}

void memsim_kernel_reaches(const struct kernel_reach *reaches, uint32_t count)
{
    told.reach_count = count < TOLD_REACHES ? count : TOLD_REACHES;
    memcpy(told.reaches, reaches, told.reach_count * sizeof *reaches);
}

static void reaches_keep(struct kernel *kernel)
{
    size_t bytes = told.reach_count * sizeof *told.reaches;
    struct kernel_reach *kept = bytes ? memsim_pages_keep(bytes) : NULL;

    if (!kept)
        return;
    kernel->reaches = memcpy(kept, told.reaches, bytes);
    kernel->reach_count = told.reach_count;
}

/* The kernel whose source this thread compiled last. */
static _Thread_local struct {
    char name[64];
    char parameters[512];
} declared;

void memsim_kernel_declare(const char *name, size_t name_length,
                           const char *parameters, size_t length)
{
    *declared.name = 0;
    if (name_length >= sizeof declared.name ||
        length >= sizeof declared.parameters)
        return;
    memcpy(declared.name, name, name_length);
    declared.name[name_length] = 0;
    memcpy(declared.parameters, parameters, length);
    declared.parameters[length] = 0;
}

const char *kernel_declared(const char *name)
{
    return strcmp(declared.name, name) ? NULL : declared.parameters;
}

/* Of a kernel of a library or a program that nothing here knows. */
static void writes_choose(struct kernel *kernel, const char *name,
                          struct kernel_pointers pointers)
{
    kernel->writes = pointers.all ? KERNEL_WRITES : KERNEL_MAY_WRITE;
    kernel->written = pointers.written;
    if (strcmp(told.name, name))
        return;
    kernel->writes = KERNEL_WRITES;
    kernel->written = told.written;
    reaches_keep(kernel);
}

/* Of one of PyTorch's own that is not carried out: what it may write is not
 * const. Mostly that is a new block, of which nothing is known anyhow. */
static void stores_choose(struct kernel *kernel, const char *name)
{
    kernel->written = kernel_pointers(name, true).written;
    kernel->writes = kernel->written ? KERNEL_STORES : KERNEL_KNOWN;
}

static struct kernel *kernel_new(const char *name, bool foreign)
{
    struct kernel *kernel = memsim_handle_new(HANDLE_KERNEL, sizeof *kernel);
    struct work_kernel work;

    if (!kernel)
        return NULL;
    kernel->name = memsim_name(name);
    work_kernel_read(name, &work);
    kernel_rule_choose(kernel, &work);
    if (carry)
        kernel->compute = carry->find(name, kernel_host(&work), &kernel->run);
    const struct kernel_pointers pointers = kernel_pointers(name, foreign);
    kernel->pointers = pointers.all;
    if (kernel->pointers)
        pointers_keep(kernel);
    if (!kernel->run && foreign)
        writes_choose(kernel, name, pointers);
    else if (!kernel->run)
        stores_choose(kernel, name);
    if (memsim_session())
        kernel->shared_limit_bytes =
            memsim_device_gpu()->shared_per_block_optin_bytes;
    return kernel;
}

struct kernel *memsim_kernel_named(const char *name, bool foreign)
{
    if (foreign && carry)
        carry->meet();
    return kernel_new(name, foreign);
}

int memsim_kernel_allow_shared(struct kernel *kernel, int64_t bytes)
{
    if (bytes < 0 || bytes > memsim_device_gpu()->shared_per_block_optin_bytes)
        return CORE_INVALID_VALUE;
    kernel->shared_limit_bytes = (uint32_t)bytes;
    return CORE_OK;
}

/* Whether HOST's kernel is not PyTorch's. It takes the loader's lock. */
static bool is_foreign(const void *host)
{
    Dl_info info;

    return !dladdr(host, &info) || !strstr(info.dli_fname, "/libtorch_cuda");
}

static __attribute__((noinline)) struct kernel *
entry_kernel(struct entry *entry)
{
    bool foreign = is_foreign(entry->host);

    if (foreign && carry)
        carry->meet();
    core_lock(LOCK_KERNEL);
    if (!entry->kernel) {
        struct kernel *kernel = kernel_new(entry->name, foreign);
        const struct gpu *gpu = memsim_session() ? memsim_device_gpu() : NULL;

        if (kernel && gpu) {
            kernel->shared_limit_bytes = gpu->shared_per_block_bytes;
            const struct capability_set code =
                fatbin_capabilities(entry->image);
            kernel->lacks_code = !capability_has(
                &code, gpu->capability_major, gpu->capability_minor);
            session_code_add(memsim_session(), foreign, &code);
        }
        __atomic_store_n(&entry->kernel, kernel, __ATOMIC_RELEASE);
    }
    core_unlock(LOCK_KERNEL);
    return entry->kernel;
}

struct kernel *memsim_kernel_get(const void *host)
{
    if (!table || !host)
        return NULL;
    struct entry *entry = entry_find(host);
    if (!entry->host)
        return NULL;
    struct kernel *kernel = __atomic_load_n(&entry->kernel, __ATOMIC_ACQUIRE);
    return kernel ? kernel : entry_kernel(entry);
}

struct kernel *memsim_kernel_of_handle(const void *handle)
{
    struct kernel **function = memsim_handle_get(HANDLE_FUNCTION, handle);

    return function ? *function : memsim_handle_get(HANDLE_KERNEL, handle);
}

/* "Technical Specifications per Compute Capability" of the CUDA programming
 * guide: the same for all from 3.0 on. */
#define GRID_YZ_MAX 65535u /* all 16 bits */
#define BLOCK_Z_MAX 64u

static int configuration_refuse(const char *why)
{
    misuse_launch(why);
    return CORE_INVALID_CONFIGURATION;
}

static int launch_check(const struct kernel *kernel,
                        const struct kernel_launch *launch)
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

    if (kernel->lacks_code)
        return CORE_NO_KERNEL_IMAGE;
    if (!threads || !grid[0] || !grid[1] || !grid[2])
        return configuration_refuse("no block, or no thread in a block");
    if (threads > memsim_device_gpu()->max_threads_per_block ||
        block[2] > BLOCK_Z_MAX)
        return configuration_refuse("more threads than a block can have");
    if ((grid[1] | grid[2]) > GRID_YZ_MAX || grid[0] > INT32_MAX)
        return configuration_refuse("more blocks than a grid can have");
    if (launch->shared_bytes <= kernel->shared_limit_bytes)
        return CORE_OK;
    misuse_launch("more dynamic shared memory than it may have "
                  "(cudaFuncSetAttribute raises that)");
    return CORE_INVALID_VALUE;
}

/* torch's first kernel makes the context larger, unless that has taken every
 * kernel's code and stack already. */
static bool modules_loaded[SESSION_DEVICES];

void kernel_reset(int device)
{
    modules_loaded[device] = false;
}

static void modules_load(int device)
{
    const struct gpu *gpu = memsim_device_gpu();

    modules_loaded[device] = true;
    if (gpu->context_torch_bytes > gpu->context_bytes)
        memsim_device_library_kernels(device, "kernels",
                                      gpu->context_torch_bytes -
                                          gpu->context_bytes);
}

/* Not inline, as all that few launches do: a launch then saves no registers. */
static __attribute__((noinline)) void
launch_is_special(struct session_process *slot, int device)
{
    if (!modules_loaded[device])
        modules_load(device);
    if (atomic_load_explicit(&slot->last_oom_ns, memory_order_relaxed))
        process_goes_on();
}

void memsim_kernel_count(int device)
{
    struct session_process *slot = process_slot();

    if (!slot)
        return;
    atomic_fetch_add_explicit(
        &slot->usage[memsim_device_physical(device)].launches, 1,
        memory_order_relaxed);
    if (!modules_loaded[device] ||
        atomic_load_explicit(&slot->last_oom_ns, memory_order_relaxed))
        launch_is_special(slot, device);
}

/* As far as anything of it is known. Returns what the launch answers. */
static int kernel_run(const struct kernel *kernel,
                      const struct kernel_launch *launch, int device)
{
    if (kernel->run) {
        carry_launches++;
        carry_run(kernel->compute, kernel->run, launch);
    }
    if (kernel->writes != KERNEL_KNOWN)
        kernel_blocks_write(kernel, launch);
    if (kernel->pointers)
        misuse_arguments(kernel, launch, device);
    return fault_of_launch(device);
}

int memsim_kernel_launch(const struct kernel *kernel,
                         const struct kernel_launch *launch)
{
    uint64_t words[TRACE_LAUNCH_WORDS] = {0};
    int device;
    int rc = memsim_stream_device(launch->stream, &device);

    if (!rc && device != memsim_device_current()) {
        misuse_device("a stream", device, memsim_device_current());
        rc = CORE_INVALID_HANDLE; /* a launch is the current device's */
    }
    if (!rc)
        rc = launch_check(kernel, launch);
    if (rc)
        return rc;
    stream_await(launch->stream);
    enum trace_rule rule = kernel->rule
                               ? kernel_rule_apply(kernel, launch, words)
                               : TRACE_RULE_NONE;
    if ((kernel->run || kernel->pointers || kernel->writes) &&
        launch->arguments &&
        !(capture_is_on() && capture_kernel(kernel, launch)))
        rc = kernel_run(kernel, launch, device);
    memsim_kernel_count(device);
    submit_launch(kernel->name, device, launch, rule, words);
    return rc;
}

int memsim_kernel_cooperative(const struct kernel_launch *launch)
{
    const struct gpu *gpu = memsim_device_gpu();
    uint64_t threads =
        (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint64_t blocks =
        (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t per_sm = threads ? gpu->max_threads_per_sm / threads : UINT32_MAX;

    if (per_sm > gpu->max_blocks_per_sm)
        per_sm = gpu->max_blocks_per_sm;
    if (blocks <= per_sm * gpu->sm_count)
        return CORE_OK;
    misuse_launch("more cooperative blocks than run at once");
    return CORE_COOPERATIVE_TOO_LARGE;
}
