/* SPDX-License-Identifier: Apache-2.0
 * nvJitLink: what was given to it comes out again, joined where it is PTX text
 * and the last where it is not. NVIDIA's header has inline functions with the
 * names that the library exports too, so it cannot be included here; each
 * function goes by a name for every CUDA version since 12.0. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "capture/core/base/buffer.h"
#include "capture/core/base/handle.h"

/* nvJitLinkResult */
enum { SUCCESS = 0, MISSING_ARCH = 2, INVALID_INPUT = 3, INTERNAL = 6 };

/* VERSIONS(F, ...): one F for each suffix, and one for the name alone. */
#define VERSIONS(F, name, ...)                                                 \
    F(nvJitLink##name, __VA_ARGS__)                                            \
    F(__nvJitLink##name##_12_0, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_1, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_2, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_3, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_4, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_5, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_6, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_7, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_12_8, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_0, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_1, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_2, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_3, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_4, __VA_ARGS__)                                   \
    F(__nvJitLink##name##_13_5, __VA_ARGS__)

#define EXPORT(symbol, implementation, parameters, arguments)                  \
    CORE_API int symbol parameters;                                            \
    CORE_API int symbol parameters                                             \
    {                                                                          \
        return implementation arguments;                                       \
    }

static struct buffer *link_get(const void *handle)
{
    return memsim_handle_get(HANDLE_NVRTC, handle);
}

static int link_create(void **handle, uint32_t count, const char **options)
{
    bool has_arch = false;

    for (uint32_t i = 0; i < count; i++)
        has_arch |= text_begins(options[i], "-arch");
    if (!has_arch)
        return MISSING_ARCH;
    *handle = memsim_handle_new(HANDLE_NVRTC, sizeof(struct buffer));
    return *handle ? SUCCESS : INTERNAL;
}

static int link_destroy(void **handle)
{
    struct buffer *link = handle ? link_get(*handle) : NULL;

    if (!link)
        return INVALID_INPUT;
    memsim_buffer_free(link);
    memsim_handle_free(HANDLE_NVRTC, link);
    *handle = NULL;
    return SUCCESS;
}

static int link_add(void *handle, int type, const void *data, size_t bytes,
                    const char *name)
{
    struct buffer *link = link_get(handle);

    (void)type;
    (void)name;
    if (!link || !data)
        return INVALID_INPUT;
    bool text = bytes && memchr("/. \n\t", *(const char *)data, 5);
    if (!text)
        link->used = 0;
    return memsim_buffer_append(link, data, text ? strnlen(data, bytes) : bytes)
               ? SUCCESS
               : INTERNAL;
}

static int link_complete(const void *handle)
{
    return link_get(handle) ? SUCCESS : INVALID_INPUT;
}

static int link_size(const void *handle, size_t *bytes)
{
    const struct buffer *link = link_get(handle);

    if (!link)
        return INVALID_INPUT;
    *bytes = link->used + 1;
    return SUCCESS;
}

static int link_copy(const void *handle, void *out)
{
    const struct buffer *link = link_get(handle);

    if (!link)
        return INVALID_INPUT;
    if (link->used)
        memcpy(out, link->bytes, link->used + 1);
    return SUCCESS;
}

static int log_size(const void *handle, size_t *bytes)
{
    *bytes = 1;
    return link_complete(handle);
}

static int log_copy(const void *handle, char *log)
{
    *log = '\0';
    return link_complete(handle);
}

VERSIONS(EXPORT, Create, link_create,
         (void **handle, uint32_t count, const char **options),
         (handle, count, options))
VERSIONS(EXPORT, Destroy, link_destroy, (void **handle), (handle))
VERSIONS(EXPORT, AddData, link_add,
         (void *handle, int type, const void *data, size_t bytes,
          const char *name),
         (handle, type, data, bytes, name))
VERSIONS(EXPORT, Complete, link_complete, (void *handle), (handle))
VERSIONS(EXPORT, GetLinkedCubinSize, link_size, (void *handle, size_t *bytes),
         (handle, bytes))
VERSIONS(EXPORT, GetLinkedCubin, link_copy, (void *handle, void *out),
         (handle, out))
VERSIONS(EXPORT, GetLinkedPtxSize, link_size, (void *handle, size_t *bytes),
         (handle, bytes))
VERSIONS(EXPORT, GetLinkedPtx, link_copy, (void *handle, char *out),
         (handle, out))
VERSIONS(EXPORT, GetErrorLogSize, log_size, (void *handle, size_t *bytes),
         (handle, bytes))
VERSIONS(EXPORT, GetErrorLog, log_copy, (void *handle, char *log),
         (handle, log))
VERSIONS(EXPORT, GetInfoLogSize, log_size, (void *handle, size_t *bytes),
         (handle, bytes))
VERSIONS(EXPORT, GetInfoLog, log_copy, (void *handle, char *log), (handle, log))

CORE_API int nvJitLinkVersion(unsigned *major, unsigned *minor);
CORE_API int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    *major = MEMSIM_CUDA_MAJOR;
    *minor = MEMSIM_CUDA_MAJOR >= 13 ? 0 : 8;
    return SUCCESS;
}
