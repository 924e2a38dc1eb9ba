/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/cuda_major.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/text_begins.h"

#define MAJORS 2

/* The same library of CUDA 12 and of CUDA 13, as a path where nothing is. */
static const char *const names[][MAJORS] = {
    {"/libcudart.so.12", "/libcudart.so.13"},
    {"/libnvrtc.so.12", "/libnvrtc.so.13"},
    {"/libcublas.so.12", "/libcublas.so.13"},
    {"/libcublasLt.so.12", "/libcublasLt.so.13"},
    {"/libcufft.so.11", "/libcufft.so.12"},
    {"/libcusolver.so.11", "/libcusolver.so.12"},
    {"/libcupti.so.12", "/libcupti.so.13"},
    {"/libnvJitLink.so.12", "/libnvJitLink.so.13"},
};

/* The major of the library NAME and its path in the table, which may be null;
 * -1 if it belongs to both majors or is not a library of CUDA's. */
static int major_of(const char *name, const char **path)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int major = 0; major < MAJORS; major++)
            if (!strcmp(name, names[i][major] + 1)) {
                if (path)
                    *path = names[i][major];
                return major;
            }
    return -1;
}

struct needs {
    const char *ours;
    bool majors[MAJORS];
};

/* glibc has put the object's place into d_ptr, but not in the kernel's vDSO. */
static const char *string_table(const struct dl_phdr_info *info,
                                const ElfW(Dyn) * dynamic)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_STRTAB)
            return (const char *)(dynamic->d_un.d_ptr < info->dlpi_addr
                                      ? info->dlpi_addr + dynamic->d_un.d_ptr
                                      : dynamic->d_un.d_ptr);
    return NULL;
}

static const ElfW(Dyn) * dynamic_section(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(uintptr_t)(info->dlpi_addr +
                                                  info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static int needs_add(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    struct needs *needs = data;
    const ElfW(Dyn) *dynamic = dynamic_section(info);
    const char *strings = dynamic ? string_table(info, dynamic) : NULL;

    if (!strings || text_begins(info->dlpi_name, needs->ours))
        return 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        int major = dynamic->d_tag == DT_NEEDED
                        ? major_of(strings + dynamic->d_un.d_val, NULL)
                        : -1;
        if (major >= 0)
            needs->majors[major] = true;
    }
    return 0;
}

const char *cuda_major_hidden(const char *name, const char *ours)
{
    struct needs needs = {.ours = ours};
    const char *path = NULL;
    int major = major_of(name, &path);

    if (major < 0)
        return NULL;
    dl_iterate_phdr(needs_add, &needs);
    return needs.majors[!major] && !needs.majors[major] ? path : NULL;
}

int cuda_major_used(const char *ours)
{
    struct needs needs = {.ours = ours};

    dl_iterate_phdr(needs_add, &needs);
    if (needs.majors[0] == needs.majors[1])
        return 0;
    return needs.majors[0] ? 12 : 13;
}
