/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/cuda_major.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/real/activity.h"
#include "capture/real/driver_file.h"
#include "common/base/text_begins.h"

static _Atomic uint64_t calls;
static _Thread_local unsigned depth; /* of calls of real functions */
void (*real_before)(void);
const struct real_works *real_works;

/* --- calls ---------------------------------------------------------------- */

void real_enter(struct real_call *call)
{
    call->outer = !depth++ && memsim_session();
    if (!call->outer)
        return;
    if (real_before)
        real_before();
    call->number = atomic_fetch_add(&calls, 1) + 1;
    activity_push(call->number);
    call->start_ns = clock_now();
}

void real_leave(const struct real_call *call)
{
    if (call->outer)
        activity_pop();
    depth--;
    if (call->outer && real_works)
        real_works->after();
}

void real_before_work(uint32_t name, uint64_t stream)
{
    if (!depth && memsim_session())
        real_works->before(name, stream);
}

void real_tell(const struct real_call *call)
{
    RECORD(CALL, .number = call->number, .start_ns = call->start_ns,
           .end_ns = clock_now());
}

/* --- functions ------------------------------------------------------------ */

/* cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND. */
static int64_t report_missing(void)
{
    return CORE_NOT_FOUND;
}

/* Libraries that a program's parts load, by what their functions begin with:
 * the first that is loaded, or that of the CUDA major that the program uses. */
#define RUNTIME {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}
static const struct {
    const char *prefix, *names[3];
} libraries[] = {
    {"cuda", RUNTIME},
    {"__cuda", RUNTIME},
    {"nccl", {"libnccl.so.2"}},
    {"cublasLt", {"libcublasLt.so.13", "libcublasLt.so.12"}},
    {"cublas", {"libcublas.so.13", "libcublas.so.12"}},
    {"cudnn", {"libcudnn.so.9"}},
    {"cupti", {"libcupti.so.13", "libcupti.so.12"}},
};
#define IS_12(name) (strstr(name, ".so.12") != NULL)

/* The C library's, not the one that stands before it. */
static void *open_real(const char *path, int flags)
{
    return REAL(dlopen)(path, flags);
}

static void *driver_handle(void)
{
    static void *handle;
    char path[DRIVER_FILE_BYTES];

    if (!handle && driver_file_find(path))
        handle = open_real(path, RTLD_LAZY | RTLD_LOCAL);
    return handle;
}

/* Of NAMES, the one that is loaded; not one of another CUDA major. */
static void *library_handle(const char *const names[3])
{
    int major = cuda_major_used(loader_directory());
    void *handle = NULL;

    for (int n = 0; n < 3 && !handle && names[n]; n++)
        if (!names[1] || !major || IS_12(names[n]) == (major == 12))
            handle = open_real(names[n], RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static void *look_up_in(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;

    return found ? found : dlsym(RTLD_NEXT, name);
}

/* An outer run has preloaded the driver; NVIDIA's is a file. */
static void *look_up_driver(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found || !driver_handle())
        return found;
    return dlsym(driver_handle(), name);
}

void *real_look_up(const char *name)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (text_begins(name, libraries[i].prefix))
            return look_up_in(library_handle(libraries[i].names), name);
    return look_up_driver(name);
}

void *real_function(const char *name)
{
    void *found = real_look_up(name);

    return found ? found : (void *)report_missing;
}

/* --- for the library with the driver's name ------------------------------- */

static void *own_handle(void)
{
    static void *handle;

    if (!handle)
        handle = open_real(INSTANCE_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

void *real_tap(const char *name)
{
    Dl_info info, own;
    void *found = own_handle() ? dlsym(own_handle(), name) : NULL;

    return found && dladdr(found, &info) && dladdr((void *)real_tap, &own) &&
                   info.dli_fbase == own.dli_fbase
               ? found
               : NULL;
}

void *memsim_real_driver(const char *name)
{
    void *tap = real_tap(name);

    return tap ? tap : real_function(name);
}
