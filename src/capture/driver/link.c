/* SPDX-License-Identifier: Apache-2.0
 * The just-in-time linker: what it is given is what it makes. Texts of PTX are
 * joined, so that a module of them has all their kernels; beside them a binary
 * counts for nothing, as only device runtimes come that way. */
#include <string.h>
#include <sys/mman.h>

#include "capture/core/base/handle.h"
#include "capture/driver/driver.h"
#include "capture/driver/image.h"

#define LINK_BYTES_MAX ((size_t)1 << 30) /* of one input */

struct link {
    char *image; /* its own mapping, zeroed beyond BYTES */
    size_t bytes, room;
    bool is_text;
};

/* Makes room for BYTES more and a NUL. */
static bool link_grow(struct link *link, size_t bytes)
{
    size_t room = (link->bytes + bytes + (1 << 16)) & ~(size_t)0xffff;
    void *image;

    if (room <= link->room)
        return true;
    if (link->image)
        image = mremap(link->image, link->room, room, MREMAP_MAYMOVE);
    else
        image = mmap(NULL, room, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return false;
    link->image = image;
    link->room = room;
    return true;
}

static void link_clear(struct link *link)
{
    if (link->image)
        munmap(link->image, link->room);
    *link = (struct link){0};
}

static CUresult link_add(CUlinkState state, CUjitInputType type,
                         const void *data, size_t bytes)
{
    struct link *link = memsim_handle_get(HANDLE_LINK, state);
    bool is_text = type == CU_JIT_INPUT_PTX;

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !bytes || bytes > LINK_BYTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_text && image_form(data) != IMAGE_PTX)
        return CUDA_ERROR_INVALID_PTX;
    if (link->is_text && !is_text)
        return CUDA_SUCCESS;
    if (!link->is_text)
        link_clear(link);
    if (is_text)
        bytes = strnlen(data, bytes);
    if (!link_grow(link, bytes + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(link->image + link->bytes, data, bytes);
    link->bytes += bytes;
    if (is_text)
        link->image[link->bytes++] = '\n';
    link->is_text = is_text;
    return CUDA_SUCCESS;
}

static CUresult link_add_file(CUlinkState state, CUjitInputType type,
                              const char *path)
{
    struct image_file file;

    if (!image_file_open(&file, path))
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult rc = link_add(state, type, file.data, file.bytes);
    image_file_close(&file);
    return rc;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values,
                      CUlinkState *state)
{
    (void)count;
    (void)options;
    (void)values;
    NEED(driver_context());
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = memsim_handle_new(HANDLE_LINK, sizeof(struct link));
    return *state ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data,
                       size_t bytes, const char *name, unsigned int count,
                       CUjit_option *options, void **values)
{
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    NEED(driver_ready());
    return link_add(state, type, data, bytes);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                       unsigned int count, CUjit_option *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    NEED(driver_ready());
    return link_add_file(state, type, path);
}

/* The image stays the linker's. */
CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
    struct link *link = memsim_handle_get(HANDLE_LINK, state);

    NEED(driver_ready());
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!image || !link->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *image = link->image;
    if (bytes)
        *bytes = link->bytes;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    struct link *link = memsim_handle_get(HANDLE_LINK, state);

    NEED(driver_ready());
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    link_clear(link);
    return driver_result(memsim_handle_free(HANDLE_LINK, link));
}
