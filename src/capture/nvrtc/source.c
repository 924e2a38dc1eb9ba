/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nvrtc/source.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "common/base/text_begins.h"

#define KEYWORD    "__global__"
#define C_LINKAGE  "extern \"C\""
#define EM_CUDA_ID 190 /* EM_CUDA of newer elf.h */

static bool is_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* Behind the bracket that closes the one at P. */
static const char *skip_group(const char *p)
{
    int depth = 0;

    do {
        depth += *p == '(';
        depth -= *p == ')';
    } while (*p++ && depth);
    return p;
}

/* "__global__ void __launch_bounds__(256) NAME(": NAME and its length. */
static const char *kernel_name(const char *p, size_t *length)
{
    for (;;) {
        const char *word = p = skip_space(p);

        while (is_name(*p))
            p++;
        *length = (size_t)(p - word);
        if (!*length)
            return NULL;
        p = skip_space(p);
        if (*p != '(')
            continue;
        if (!text_begins(word, "__"))
            return word;
        p = skip_group(p); /* an attribute */
    }
}

/* The words before AT that belong to the same declaration. */
static bool has_before(const char *source, const char *at, const char *word)
{
    const char *start = at;

    while (start > source && !strchr(";}", start[-1]))
        start--;
    const char *found = strstr(start, word);
    return found && found < at;
}

static bool in_c_block(const char *source, const char *at)
{
    const char *found = strstr(source, C_LINKAGE);

    while (found && found < at) {
        if (*skip_space(found + strlen(C_LINKAGE)) == '{')
            return true;
        found = strstr(found + 1, C_LINKAGE);
    }
    return false;
}

bool source_first(const char *source, struct source_kernel *kernel)
{
    const char *at = strstr(source, KEYWORD);

    kernel->name = at ? kernel_name(at + strlen(KEYWORD), &kernel->length)
                      : NULL;
    if (!kernel->name)
        return false;
    at = skip_space(kernel->name + kernel->length);
    kernel->parameters = at + 1;
    kernel->parameters_length = (size_t)(skip_group(at) - at) - 2;
    return true;
}

bool source_kernels(const char *source, struct buffer *names)
{
    const char *at = source;
    size_t length;
    bool fine = true;

    while (fine && (at = strstr(at, KEYWORD))) {
        const char *name = kernel_name(at + strlen(KEYWORD), &length);
        bool c = has_before(source, at, C_LINKAGE) || in_c_block(source, at);

        if (name && !has_before(source, at, "template")) {
            if (!c)
                fine = memsim_buffer_print(names, "_Z%zu", length);
            fine = fine && memsim_buffer_append(names, name, length) &&
                   memsim_buffer_append(names, c ? "" : "v", c ? 1 : 2);
        }
        at += strlen(KEYWORD);
    }
    return fine;
}

bool source_lower(const char *expression, struct buffer *name)
{
    const char *start = skip_space(expression);
    size_t whole, base;

    if (*start == '&')
        start = skip_space(start + 1);
    whole = strlen(start);
    base = strcspn(start, "<");
    bool fine = memsim_buffer_print(name, "_Z%zu", base);
    for (size_t i = 0; i < whole && fine; i++) {
        char c = is_name(start[i]) ? start[i] : '_';

        if (start[i] != ' ')
            fine = memsim_buffer_append(name, i == base ? "I" : &c, 1);
    }
    return fine && memsim_buffer_append(name, whole > base ? "Evv" : "v",
                                        whole > base ? 3 : 1);
}

bool source_ptx(const struct buffer *names, unsigned capability,
                struct buffer *ptx)
{
    const char *name = names->bytes;
    bool fine = memsim_buffer_print(ptx,
                                    "//\n// Compiled by memsim's NVRTC\n//\n\n"
                                    ".version 9.0\n.target sm_%u\n"
                                    ".address_size 64\n\n",
                                    capability);

    for (; fine && name && name < names->bytes + names->used;
         name += strlen(name) + 1)
        fine = memsim_buffer_print(ptx, ".visible .entry ") &&
               memsim_buffer_append(ptx, name, strlen(name)) &&
               memsim_buffer_print(ptx, "()\n{\n\tret;\n}\n\n");
    return fine;
}

/* [ header ][ section names ][ section headers: none, names, one a kernel ] */
bool source_cubin(const struct buffer *names, unsigned capability,
                  struct buffer *cubin)
{
    static const char first[] = "\0.shstrtab";
    struct buffer texts = {0}, sections = {0};
    const char *end = names->bytes + names->used;
    Elf64_Half count = 2;
    Elf64_Shdr section = {0};
    bool fine = memsim_buffer_append(&texts, first, sizeof first) &&
                memsim_buffer_append(&sections, &section, sizeof section) &&
                memsim_buffer_append(&sections, &section, sizeof section);

    for (const char *name = names->bytes; fine && name && name < end;
         name += strlen(name) + 1, count++) {
        section = (Elf64_Shdr){
            .sh_name = (Elf64_Word)texts.used,
            .sh_type = SHT_PROGBITS,
            .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
        };
        fine = memsim_buffer_print(&texts, ".text.") &&
               memsim_buffer_append(&texts, name, strlen(name) + 1) &&
               memsim_buffer_append(&sections, &section, sizeof section);
    }
    while (fine && texts.used % 8)
        fine = memsim_buffer_append(&texts, "", 1);
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_CUDA_ID,
        .e_version = EV_CURRENT,
        .e_flags = capability,
        .e_shoff = sizeof header + texts.used,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof section,
        .e_shnum = count,
        .e_shstrndx = 1,
    };
    if (fine) {
        Elf64_Shdr *names_section = (Elf64_Shdr *)sections.bytes + 1;

        *names_section = (Elf64_Shdr){.sh_name = 1,
                                      .sh_type = SHT_STRTAB,
                                      .sh_offset = sizeof header,
                                      .sh_size = texts.used};
    }
    fine = fine && memsim_buffer_append(cubin, &header, sizeof header) &&
           memsim_buffer_append(cubin, texts.bytes, texts.used) &&
           memsim_buffer_append(cubin, sections.bytes, sections.used);
    memsim_buffer_free(&texts);
    memsim_buffer_free(&sections);
    return fine;
}
