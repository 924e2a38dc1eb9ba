/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/elf.h"

#include <elf.h>
#include <fcntl.h>

#include "check.h"

/* A program's head: the ELF header and SEGMENTS program headers. */
struct head {
    Elf64_Ehdr elf;
    Elf64_Phdr segments[4];
};

static struct head head_make(unsigned segments)
{
    struct head h = {
        .elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                            ELFDATA2LSB},
#ifdef __x86_64__
                .e_machine = EM_X86_64,
#else
                .e_machine = EM_AARCH64,
#endif
                .e_phoff = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = (Elf64_Half)segments},
    };

    for (unsigned i = 0; i < segments && i < 4; i++)
        h.segments[i].p_type = PT_LOAD;
    return h;
}

TEST(a_program_with_an_interpreter_is_dynamic)
{
    struct head h = head_make(3);

    CHECK(elf_classify(&h, sizeof h) == ELF_STATIC);
    h.segments[2].p_type = PT_INTERP;
    CHECK(elf_classify(&h, sizeof h) == ELF_DYNAMIC);
}

TEST(loaders_of_other_c_libraries_are_told_apart)
{
    static const struct {
        const char *loader;
        enum elf_kind kind;
    } loaders[] = {{"/lib64/ld-linux-x86-64.so.2", ELF_DYNAMIC},
                   {"/nix/store/x/lib/ld-linux-aarch64.so.1", ELF_DYNAMIC},
                   {"/lib64/ld64.so.2", ELF_DYNAMIC},
                   {"/lib/ld-musl-x86_64.so.1", ELF_OTHER_LIBC},
                   {"/system/bin/linker64", ELF_OTHER_LIBC},
                   {"/lib/ld64-uClibc.so.1", ELF_OTHER_LIBC}};

    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++) {
        struct {
            struct head head;
            char text[64];
        } file = {head_make(1), ""};
        file.head.segments[0].p_type = PT_INTERP;
        file.head.segments[0].p_offset = sizeof file.head;
        file.head.segments[0].p_filesz = strlen(loaders[i].loader) + 1;
        strcpy(file.text, loaders[i].loader);
        CHECK(elf_classify(&file, sizeof file) == loaders[i].kind);
        CHECK(elf_classify(&file, sizeof file.head + 5) == ELF_DYNAMIC);
        file.head.segments[0].p_offset = UINT64_MAX;
        CHECK(elf_classify(&file, sizeof file) == ELF_DYNAMIC);
    }
}

TEST(headers_out_of_sight_are_taken_for_dynamic)
{
    struct head h = head_make(60000);

    CHECK(elf_classify(&h, sizeof h) == ELF_DYNAMIC);
    h.elf.e_phnum = 1;
    h.elf.e_phoff = UINT64_MAX - 8;
    CHECK(elf_classify(&h, sizeof h) == ELF_DYNAMIC);
}

TEST(tells_other_machines)
{
    struct head h = head_make(1);

    h.elf.e_machine = EM_S390;
    CHECK(elf_classify(&h, sizeof h) == ELF_FOREIGN);
    h = head_make(1);
    h.elf.e_ident[EI_DATA] = ELFDATA2MSB;
    CHECK(elf_classify(&h, sizeof h) == ELF_FOREIGN);
    h.elf.e_ident[EI_CLASS] = ELFCLASS32;
    CHECK(elf_classify(&h, sizeof h) == ELF_32BIT);
}

TEST(tells_what_is_no_elf)
{
    struct head h = head_make(1);

    CHECK(elf_classify("#!/bin/sh\n", 10) == ELF_SCRIPT);
    CHECK(elf_classify("echo", 4) == ELF_OTHER);
    CHECK(elf_classify("", 0) == ELF_OTHER);
    CHECK(elf_classify("#", 1) == ELF_OTHER);
    CHECK(elf_classify(&h, 20) == ELF_OTHER);
    h.elf.e_phentsize = 3;
    CHECK(elf_classify(&h, sizeof h) == ELF_OTHER);
}

TEST(every_length_of_head_is_safe)
{
    struct head h = head_make(4);

    for (size_t bytes = 0; bytes < sizeof h; bytes++) {
        char *copy = malloc(bytes + !bytes); /* so that ASan sees the end */
        memcpy(copy, &h, bytes);
        elf_classify(copy, bytes);
        free(copy);
    }
}

TEST(judges_real_programs)
{
    char head[ELF_HEAD_BYTES];
    int fd = open("/proc/self/exe", O_RDONLY);
    ssize_t bytes = read(fd, head, sizeof head);

    CHECK(bytes == sizeof head);
    CHECK(elf_classify(head, (size_t)bytes) == ELF_DYNAMIC);
    close(fd);
}

static const struct {
    const char *line;
    const char *interpreter; /* NULL: there is none */
} scripts[] = {
    {"#!/bin/sh\nexit", "/bin/sh"},
    {"#! /bin/sh -e\n", "/bin/sh"},
    {"#!/bin/sh", "/bin/sh"},
    {"#!/usr/bin/env python3\n", "python3"},
    {"#!/usr/bin/env -S python3 -u\n", "python3"},
    {"#!/usr/bin/env -S -i A=1 B=2 \tpython3\n", "python3"},
    {"#!/opt/my-env/bin/python\n", "/opt/my-env/bin/python"},
    {"#!\n/bin/sh", NULL},
    {"#!   \n", NULL},
    {"#!/usr/bin/env\n", NULL},
    {"#!", NULL},
    {"#!/a/path/longer/than/the/room/that/there/is\n", NULL},
};

TEST(finds_the_interpreter_of_scripts)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char out[32] = "";
        const char *line = scripts[i].line;
        int rc = elf_interpreter(line, strlen(line), out, sizeof out);

        if (rc != (scripts[i].interpreter ? 0 : -1))
            CHECK_FAIL("%s: returned %d, \"%s\"", line, rc, out);
        else if (!rc)
            CHECK_STR(out, scripts[i].interpreter);
    }
}
