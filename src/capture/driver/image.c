/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/driver/image.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/text_begins.h"

#define FATBIN_MAGIC   0xba55ed50u /* fatbinary_section.h names the wrapper */
#define WRAPPER_MAGIC  0x466243b1u
#define LTO_MAGIC      0x7f4e43edu /* what NVVM and NVRTC make for nvJitLink */
#define TEXT_PREFIX    ".text."
#define SHARED_PREFIX  ".nv.shared."
#define INFO_PREFIX    ".nv.info."
#define REGISTER_SHIFT 24 /* sh_info of a .text section: registers on top */
#define PTX_ENTRY      ".entry"
#define PTX_GLOBAL     ".global"

enum image_form image_form(const void *image)
{
    uint32_t magic;

    if (!image)
        return IMAGE_BAD;
    memcpy(&magic, image, sizeof magic);
    if (!memcmp(&magic, ELFMAG, SELFMAG))
        return IMAGE_CUBIN;
    if (magic == FATBIN_MAGIC || magic == WRAPPER_MAGIC || magic == LTO_MAGIC)
        return IMAGE_FATBIN;
    const char *text = image;
    while (*text == ' ' || *text == '\n' || *text == '\t' || *text == '\r')
        text++;
    return text_begins(text, "//") || text_begins(text, ".version") ? IMAGE_PTX
                                                                    : IMAGE_BAD;
}

struct elf {
    const char *base;
    const Elf64_Shdr *sections;
    unsigned count;
    const char *names;
};

static struct elf elf_open(const void *image)
{
    const Elf64_Ehdr *header = image;
    struct elf elf = {.base = image};

    elf.sections = (const Elf64_Shdr *)(elf.base + header->e_shoff);
    elf.count = header->e_shnum;
    if (header->e_shstrndx < elf.count)
        elf.names = elf.base + elf.sections[header->e_shstrndx].sh_offset;
    else
        elf.count = 0;
    return elf;
}

/* The section named PREFIX and then NAME's LENGTH bytes; NULL without it. */
static const Elf64_Shdr *elf_section(const struct elf *elf, const char *prefix,
                                     const char *name, size_t length)
{
    size_t before = strlen(prefix);

    for (unsigned i = 0; i < elf->count; i++) {
        const char *found = elf->names + elf->sections[i].sh_name;

        if (!strncmp(found, prefix, before) &&
            !strncmp(found + before, name, length) && !found[before + length])
            return &elf->sections[i];
    }
    return NULL;
}

/* An attribute of .nv.info, as LLVM and cuobjdump name them: a word of format,
 * number and a value; of one format the value is the bytes that follow. */
#define INFO_SIZED     4
#define INFO_PARAMETER 0x17 /* EIATTR_KPARAM_INFO */

struct info_parameter {
    uint32_t index;
    uint16_t ordinal, offset;
    uint32_t size_space; /* the size in bytes above 18 bits */
};

static void parameter_take(const char *value, struct image_kernel *kernel)
{
    struct info_parameter p;

    memcpy(&p, value, sizeof p);
    uint32_t bytes = p.size_space >> 18;
    if (p.ordinal >= IMAGE_PARAMETERS)
        return;
    kernel->parameter_bytes[p.ordinal] = (uint16_t)bytes;
    if (kernel->parameter_count <= p.ordinal)
        kernel->parameter_count = p.ordinal + 1u;
}

static void cubin_parameters(const struct elf *elf, struct image_kernel *kernel)
{
    const Elf64_Shdr *info =
        elf_section(elf, INFO_PREFIX, kernel->name, kernel->length);
    uint64_t at = 0, bytes = info ? info->sh_size : 0;

    while (bytes - at >= 4) {
        const char *attribute = elf->base + info->sh_offset + at;
        uint16_t value;

        memcpy(&value, attribute + 2, sizeof value);
        at += 4;
        if (attribute[0] != INFO_SIZED)
            continue;
        if (value > bytes - at)
            return;
        if (attribute[1] == INFO_PARAMETER &&
            value >= sizeof(struct info_parameter))
            parameter_take(attribute + 4, kernel);
        at += value;
    }
}

static void cubin_kernels(const struct elf *elf,
                          const struct image_reader *reader)
{
    for (unsigned i = 0; i < elf->count; i++) {
        const char *name = elf->names + elf->sections[i].sh_name;

        if (!text_begins(name, TEXT_PREFIX))
            continue;
        struct image_kernel kernel = {
            .name = name + strlen(TEXT_PREFIX),
            .registers = elf->sections[i].sh_info >> REGISTER_SHIFT,
        };
        kernel.length = strlen(kernel.name);
        const Elf64_Shdr *shared =
            elf_section(elf, SHARED_PREFIX, kernel.name, kernel.length);
        if (shared)
            kernel.shared_bytes = (uint32_t)shared->sh_size;
        cubin_parameters(elf, &kernel);
        if (!reader->kernel(&kernel, reader->context))
            return;
    }
}

static void cubin_variables(const struct elf *elf, const Elf64_Shdr *table,
                            const struct image_reader *reader)
{
    const char *names = elf->base + elf->sections[table->sh_link].sh_offset;
    const Elf64_Sym *symbol = (const Elf64_Sym *)(elf->base + table->sh_offset);
    const Elf64_Sym *end = symbol + table->sh_size / sizeof *symbol;

    for (; symbol < end; symbol++) {
        struct image_variable variable = {.name = names + symbol->st_name,
                                          .bytes = symbol->st_size};

        if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || !variable.bytes)
            continue;
        variable.length = strlen(variable.name);
        if (!reader->variable(&variable, reader->context))
            return;
    }
}

static void cubin_read(const void *image, const struct image_reader *reader)
{
    const struct elf elf = elf_open(image);

    cubin_kernels(&elf, reader);
    for (unsigned i = 0; i < elf.count; i++)
        if (elf.sections[i].sh_type == SHT_SYMTAB &&
            elf.sections[i].sh_link < elf.count)
            cubin_variables(&elf, &elf.sections[i], reader);
}

static bool is_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/* ".visible .entry NAME(": PTX names its kernels so. */
static void ptx_kernels(const char *text, const struct image_reader *reader)
{
    while ((text = strstr(text, PTX_ENTRY))) {
        struct image_kernel kernel = {.name = text + strlen(PTX_ENTRY)};

        while (*kernel.name == ' ' || *kernel.name == '\t')
            kernel.name++;
        while (is_name(kernel.name[kernel.length]))
            kernel.length++;
        text = kernel.name + kernel.length;
        if (kernel.length && !reader->kernel(&kernel, reader->context))
            return;
    }
}

/* The bytes of ".b8", ".u32", ".f64"; 0 for any other directive. */
static uint64_t ptx_width(const char *directive)
{
    return strchr("busf", directive[1]) ? strtoul(directive + 2, NULL, 10) / 8
                                        : 0;
}

/* ".global .align 8 .b8 NAME[64];": the width, the name and the count. */
static void ptx_variables(const char *text, const struct image_reader *reader)
{
    while ((text = strstr(text, PTX_GLOBAL))) {
        struct image_variable variable = {0};
        uint64_t width = 0;

        for (text += strlen(PTX_GLOBAL); *text && !strchr(";=[", *text);) {
            if (*text == '.' && ptx_width(text))
                width = ptx_width(text);
            if (*text == '.' || is_name(*text)) {
                variable.name = text++;
                while (is_name(*text))
                    text++;
                variable.length = (size_t)(text - variable.name);
            } else {
                text++;
            }
        }
        variable.bytes =
            width * (*text == '[' ? strtoul(text + 1, NULL, 10) : 1);
        if (variable.length && variable.bytes &&
            !reader->variable(&variable, reader->context))
            return;
    }
}

void image_read(const void *image, const struct image_reader *reader)
{
    switch (image_form(image)) {
    case IMAGE_CUBIN:
        cubin_read(image, reader);
        return;
    case IMAGE_PTX:
        ptx_kernels(image, reader);
        ptx_variables(image, reader);
        return;
    default:
        return;
    }
}

static void *read_all(int fd, size_t bytes)
{
    size_t at = 0;
    ssize_t got;
    char *data = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED)
        return NULL;
    while (at < bytes && (got = read(fd, data + at, bytes - at)) > 0)
        at += (size_t)got;
    if (at == bytes)
        return data;
    munmap(data, bytes + 1);
    return NULL;
}

bool image_file_open(struct image_file *file, const char *path)
{
    struct stat st;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    *file = (struct image_file){0};
    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_size > 0) {
        file->bytes = (size_t)st.st_size;
        file->data = read_all(fd, file->bytes);
    }
    close(fd);
    return true;
}

void image_file_close(struct image_file *file)
{
    if (file->data)
        munmap(file->data, file->bytes + 1);
    *file = (struct image_file){0};
}
