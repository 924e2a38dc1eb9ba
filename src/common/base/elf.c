/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/elf.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/text_begins.h"

#if defined __x86_64__
#define HOST_MACHINE EM_X86_64
#elif defined __aarch64__
#define HOST_MACHINE EM_AARCH64
#else
#error "which e_machine has this architecture?"
#endif

/* The loader that a program names, by its base name. glibc's are
 * ld-linux-x86-64.so.2, ld-linux-aarch64.so.1 and, on some machines, ld64.so.
 */
static enum elf_kind loader_kind(const char *path, size_t bytes)
{
    if (!memchr(path, '\0', bytes))
        return ELF_DYNAMIC;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (text_begins(name, "ld-linux") || text_begins(name, "ld64.so") ||
        text_begins(name, "ld.so"))
        return ELF_DYNAMIC;
    return ELF_OTHER_LIBC;
}

/* What is out of sight is taken for what most programs have. */
static enum elf_kind program_kind(const char *head, size_t bytes,
                                  const Elf64_Ehdr *elf)
{
    for (size_t i = 0; i < elf->e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t offset = elf->e_phoff + i * sizeof segment;

        if (offset > bytes || bytes - offset < sizeof segment)
            return ELF_DYNAMIC;
        memcpy(&segment, head + offset, sizeof segment);
        if (segment.p_type != PT_INTERP)
            continue;
        if (segment.p_offset > bytes ||
            bytes - segment.p_offset < segment.p_filesz)
            return ELF_DYNAMIC;
        return loader_kind(head + segment.p_offset, segment.p_filesz);
    }
    return ELF_STATIC;
}

enum elf_kind elf_classify(const void *head, size_t bytes)
{
    Elf64_Ehdr elf;

    if (bytes >= 2 && !memcmp(head, "#!", 2))
        return ELF_SCRIPT;
    if (bytes < EI_NIDENT || memcmp(head, ELFMAG, SELFMAG))
        return ELF_OTHER;
    if (((const unsigned char *)head)[EI_CLASS] == ELFCLASS32)
        return ELF_32BIT;
    if (bytes < sizeof elf)
        return ELF_OTHER;
    memcpy(&elf, head, sizeof elf);
    if (elf.e_ident[EI_DATA] != ELFDATA2LSB || elf.e_machine != HOST_MACHINE)
        return ELF_FOREIGN;
    if (elf.e_phentsize != sizeof(Elf64_Phdr))
        return ELF_OTHER;
    return program_kind(head, bytes, &elf);
}

/* The next word of *LINE, cut out of it; NULL at the end. */
static char *next_word(char **line)
{
    char *word;

    do
        word = strsep(line, " \t");
    while (word && !*word);
    return word;
}

static bool is_env(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !strcmp(slash ? slash + 1 : path, "env");
}

int elf_interpreter(const void *head, size_t bytes, char *interpreter,
                    size_t size)
{
    char buffer[256], *line = buffer;
    size_t length = 0;

    while (length + 2 < bytes && length < sizeof buffer - 1 &&
           ((const char *)head)[length + 2] != '\n')
        length++;
    memcpy(buffer, (const char *)head + 2, length);
    buffer[length] = '\0';

    char *word = next_word(&line);
    if (word && is_env(word))
        do /* env -S, -i, NAME=VALUE ... */
            word = next_word(&line);
        while (word && (word[0] == '-' || strchr(word, '=')));
    if (!word || strlen(word) >= size)
        return -1;
    strcpy(interpreter, word);
    return 0;
}
