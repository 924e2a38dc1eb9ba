/* SPDX-License-Identifier: Apache-2.0
 * Keeping the fake libraries in the way of everything that looks for the real
 * ones: by absolute path, by another name. NEEDED entries need nothing from us:
 * the preloaded libraries bear the names. */
#include "capture/core/run/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/run/cuda_major.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/process.h"
#include "common/base/text_begins.h"

/* Names without a version, as ctypes users and linker scripts write them. */
static const char *const unversioned[][2] = {
    {"libcuda.so", "libcuda.so.1"},
    {"libnvidia-ml.so", "libnvidia-ml.so.1"},
    {"libnccl.so", "libnccl.so.2"},
};

static char directory[512]; /* where our libraries lie */

#define NEWEST_SONAME 13 /* the highest number that ends one of ours */

__attribute__((constructor)) static void loader_start(void)
{
    Dl_info self;

    if (dladdr((void *)loader_start, &self) && self.dli_fname[0] == '/')
        snprintf(directory, sizeof directory, "%.*s",
                 (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
                 self.dli_fname);
}

const char *loader_directory(void)
{
    return directory;
}

/* True where we have a library of this base name. */
static bool is_ours(const char *name)
{
    char path[sizeof directory + 64];

    if (!text_begins(name, "libcu") && !text_begins(name, "libnv") &&
        !text_begins(name, "libnccl"))
        return false;
    int n = snprintf(path, sizeof path, "%s/%s", directory, name);
    return n < (int)sizeof path && !access(path, R_OK);
}

/* What to load for PATH: the base name of a library that is already loaded, a
 * path that does not exist in place of a library of a CUDA major that the
 * program does not use, or PATH itself. */
static const char *library_for(const char *path)
{
    if (!path || !directory[0])
        return path;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof unversioned / sizeof *unversioned; i++)
        if (!strcmp(name, unversioned[i][0]))
            return unversioned[i][1];
    if (INSTANCE_IS_REAL) /* only the driver's name is ours */
        return name != path && !strcmp(name, "libcuda.so.1") ? name : path;
    if (!strcmp(name, "libcupti.so")) /* Triton's profiler asks for it so */
        return cuda_major_hidden("libcupti.so.13", directory)
                   ? "libcupti.so.12"
                   : "libcupti.so.13";
    const char *hidden =
        name == path ? cuda_major_hidden(name, directory) : NULL;
    if (hidden)
        return hidden;
    return name != path && is_ours(name) ? name : path;
}

#define UNDEFINED ": undefined symbol: "
#define VERSION   ", version "

static bool is_ours_version(const char *version)
{
    return text_begins(version, "libcu") || text_begins(version, "libnv") ||
           text_begins(version, "libnccl");
}

/* True where we have the library NAME in another version. */
static bool has_version_of(const char *name)
{
    const char *end = strstr(name, ".so.");
    char other[64];

    for (int version = 0; end && version <= NEWEST_SONAME; version++) {
        int n = snprintf(other, sizeof other, "%.*s.so.%d", (int)(end - name),
                         name, version);
        if (n < (int)sizeof other && is_ours(other))
            return true;
    }
    return false;
}

/* A library of NVIDIA's that nobody has, or of another CUDA major than ours, as
 * the last dlopen() said of PATH: "libcudart.so.11.0: cannot open shared object
 * file: ...". */
static void missing_library_note(const char *path, const char *text)
{
    const char *end = text ? strstr(text, ": cannot open shared object") : NULL;

    if (end && is_ours_version(text))
        memsim_note("%s needs %.*s, which neither this machine has nor "
                    "memsim%s",
                    strrchr(path, '/') + 1, (int)(end - text), text,
                    has_version_of(text) ? ": it serves CUDA 12 and 13" : "");
}

/* Whether the last dlopen(), of PATH, failed for a function that we ought to
 * have: "PATH: undefined symbol: cudaFuture, version libcudart.so.13". */
static bool lacks_ours(const char *path)
{
    const char *text = dlerror();
    const char *symbol = text ? strstr(text, UNDEFINED) : NULL;
    const char *version = symbol ? strstr(symbol, VERSION) : NULL;

    if (!symbol)
        missing_library_note(path, text);
    if (!version || !is_ours_version(version + strlen(VERSION)))
        return false;
    const char *name = memrchr(text, '/', (size_t)(symbol - text));
    name = name ? name + 1 : text;
    symbol += strlen(UNDEFINED);
    memsim_note("%.*s needs %.*s of %s, which memsim does not have: a call of "
                "it ends the program",
                (int)(symbol - strlen(UNDEFINED) - name), name,
                (int)(version - symbol), symbol, version + strlen(VERSION));
    return true;
}

/* A library newer than ours is loaded as far as it can be: what it needs and
 * we lack is missed where it is called. Python asks for all of it at once. */
static void *open_newer(const char *path, int flags)
{
    void *library = REAL(dlopen)(path, flags);

    if (library || !lacks_ours(path))
        return library;
    return REAL(dlopen)(path, (flags & ~RTLD_NOW) | RTLD_LAZY);
}

/* A path that nobody has to search for. */
static bool is_plain_path(const char *path)
{
    return path && strchr(path, '/') && !strchr(path, '$');
}

const char *(*loader_stand_in)(const char *path, char *room);

const char *loader_file(const char *path, char *room)
{
    const char *used = NULL;

    if (path && *path && loader_stand_in)
        used = loader_stand_in(path, room);
    return used ? used : path;
}

/* The copy that stands in for the file PATH, opened; NULL: there is none. It is
 * an absolute path, which nobody has to search for. */
__attribute__((noinline)) static void *open_copy(const char *path, int flags)
{
    char room[PATH_MAX];
    const char *used = loader_file(path, room);

    return used == path ? NULL : REAL(dlopen)(used, flags);
}

/* The last act must be a jump, not a call: the real dlopen finds out by its
 * return address whose RUNPATH and $ORIGIN to search. The compiler makes it
 * one at -O2. */
CORE_API __attribute__((optimize("O2"))) void *dlopen(const char *path,
                                                      int flags)
{
    const char *name = library_for(path);
    void *copy = loader_stand_in && is_plain_path(name) ? open_copy(name, flags)
                                                        : NULL;

    if (copy)
        return copy;
    if (flags & RTLD_NOW && is_plain_path(name)) {
        void *library = open_newer(name, flags);
        if (library)
            return library; /* else once more, for dlerror() */
    }
    return REAL(dlopen)(name, flags);
}
