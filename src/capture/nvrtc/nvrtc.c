/* SPDX-License-Identifier: Apache-2.0
 * The run-time compiler. Nothing is compiled: a program becomes PTX text that
 * names its kernels, so that the fake driver finds them. Their bodies trap:
 * programs keep such images in caches (~/.cache/torch/kernels), and where one
 * ever reaches a real GPU it shall fail at once and not compute nothing.
 * Kernels without extern "C" are found by their name expressions only, under a
 * lowered name that is not the C++ ABI's. */
#include <ctype.h>
#include <nvrtc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/handle.h"
#include "capture/core/pages.h"

#define KERNEL      "__global__"
#define SPARE_BYTES (UINT64_C(1) << 20)

struct expression {
    struct expression *next;
    const char *text, *lowered;
};

/* Everything lies in one mapping, which goes when the program does. */
struct program {
    char *pages;
    size_t size_bytes, used_bytes;
    const char *source;
    struct expression *expressions;
    char *ptx;
    size_t ptx_bytes; /* with the NUL */
    bool compiled;
};

/* GPUs that nvcc --list-gpu-arch of this toolkit names. */
static const int archs[] = {
#if MEMSIM_CUDA_MAJOR >= 13
    75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121,
#else
    50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90,
#endif
};

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    if (!major || !minor)
        return NVRTC_ERROR_INVALID_INPUT;
    *major = MEMSIM_CUDA_MAJOR;
    *minor = MEMSIM_CUDA_MAJOR >= 13 ? 0 : 4;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    if (!count)
        return NVRTC_ERROR_INVALID_INPUT;
    *count = sizeof archs / sizeof *archs;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    if (!list)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(list, archs, sizeof archs);
    return NVRTC_SUCCESS;
}

static void *program_take(struct program *program, size_t bytes)
{
    size_t start = (program->used_bytes + 15) & ~(size_t)15;

    if (start + bytes > program->size_bytes)
        return NULL;
    program->used_bytes = start + bytes;
    return program->pages + start;
}

static char *program_copy(struct program *program, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = program_take(program, bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source,
                               const char *name, int count,
                               const char *const *headers,
                               const char *const *include_names)
{
    (void)name, (void)headers, (void)include_names;
    if (!out || !source || count < 0)
        return NVRTC_ERROR_INVALID_INPUT;
    struct program *program =
        memsim_handle_new(HANDLE_NVRTC, sizeof *program);
    if (!program)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    program->size_bytes = 3 * strlen(source) + SPARE_BYTES;
    program->pages = memsim_pages_reserve(0, program->size_bytes);
    if (!program->pages) {
        memsim_handle_free(HANDLE_NVRTC, program);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    program->source = program_copy(program, source);
    *out = (nvrtcProgram)program;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle)
{
    struct program *program =
        handle ? memsim_handle_get(HANDLE_NVRTC, *handle) : NULL;

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    munmap(program->pages, program->size_bytes);
    memsim_handle_free(HANDLE_NVRTC, program);
    *handle = NULL;
    return NVRTC_SUCCESS;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram handle, const char *text)
{
    struct program *program = memsim_handle_get(HANDLE_NVRTC, handle);

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!text)
        return NVRTC_ERROR_INVALID_INPUT;
    if (program->compiled)
        return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    struct expression *made = program_take(program, sizeof *made);
    char *kept = program_copy(program, text);
    char *lowered = program_copy(program, text + strspn(text, "& \t"));
    if (!made || !kept || !lowered)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    for (char *c = lowered; *c; c++)
        if (!is_name(*c))
            *c = '_';
    *made = (struct expression){program->expressions, kept, lowered};
    program->expressions = made;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram handle, const char *text,
                                const char **lowered)
{
    struct program *program = memsim_handle_get(HANDLE_NVRTC, handle);

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!text || !lowered)
        return NVRTC_ERROR_INVALID_INPUT;
    if (!program->compiled)
        return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    for (struct expression *e = program->expressions; e; e = e->next) {
        if (!strcmp(e->text, text)) {
            *lowered = e->lowered;
            return NVRTC_SUCCESS;
        }
    }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

__attribute__((format(printf, 2, 3)))
static bool ptx_add(struct program *program, const char *format, ...)
{
    char *end = program->pages + program->used_bytes;
    size_t room = program->size_bytes - program->used_bytes;
    va_list values;

    va_start(values, format);
    int length = vsnprintf(end, room, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room)
        return false;
    program->used_bytes += (size_t)length;
    return true;
}

static bool ptx_kernel(struct program *program, const char *name, size_t length)
{
    return ptx_add(program, ".visible .entry %.*s()\n{\ntrap;\n}\n",
                   (int)length, name);
}

/* The character after the parenthesis that closes the one at TEXT. */
static const char *skip_parentheses(const char *text)
{
    int depth = 0;

    for (; *text; text++) {
        depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
        if (!depth)
            return text + 1;
    }
    return text;
}

/* The name of the function declared at TEXT: what stands before the first
 * parenthesis, those of __launch_bounds__(256) and its like left out. */
static const char *kernel_name(const char *text, size_t *length)
{
    const char *name = NULL;

    *length = 0;
    while (*text && !strchr(";{", *text)) {
        if (is_name(*text)) {
            for (name = text; is_name(*text);)
                text++;
            *length = (size_t)(text - name);
        } else if (*text == '(' && name && strncmp(name, "__", 2)) {
            return name;
        } else {
            text = *text == '(' ? skip_parentheses(text) : text + 1;
        }
    }
    return NULL;
}

static bool ptx_kernels(struct program *program)
{
    size_t length;

    for (const char *at = program->source; (at = strstr(at, KERNEL));) {
        at += strlen(KERNEL);
        const char *name = kernel_name(at, &length);
        if (name && !ptx_kernel(program, name, length))
            return false;
    }
    for (struct expression *e = program->expressions; e; e = e->next)
        if (!ptx_kernel(program, e->lowered, strlen(e->lowered)))
            return false;
    return true;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count,
                                const char *const *options)
{
    struct program *program = memsim_handle_get(HANDLE_NVRTC, handle);

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (count < 0 || (count && !options))
        return NVRTC_ERROR_INVALID_INPUT;
    program->ptx = program_take(program, 0);
    if (!ptx_add(program, "// by memsim: names, no code\n.version 8.0\n"
                          ".target sm_50\n.address_size 64\n") ||
        !ptx_kernels(program))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    program->ptx_bytes = strlen(program->ptx) + 1;
    program_take(program, 1);
    program->compiled = true;
    return NVRTC_SUCCESS;
}

static nvrtcResult result_size(nvrtcProgram handle, size_t *bytes)
{
    struct program *program = memsim_handle_get(HANDLE_NVRTC, handle);

    if (!program || !program->compiled)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!bytes)
        return NVRTC_ERROR_INVALID_INPUT;
    *bytes = program->ptx_bytes;
    return NVRTC_SUCCESS;
}

static nvrtcResult result_text(nvrtcProgram handle, char *text)
{
    struct program *program = memsim_handle_get(HANDLE_NVRTC, handle);

    if (!program || !program->compiled)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!text)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(text, program->ptx, program->ptx_bytes);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    return result_size(program, bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *text)
{
    return result_text(program, text);
}

/* The driver takes PTX wherever it takes a cubin. */
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    return result_size(program, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *text)
{
    return result_text(program, text);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    if (!memsim_handle_get(HANDLE_NVRTC, program))
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!bytes)
        return NVRTC_ERROR_INVALID_INPUT;
    *bytes = 1; /* an empty text */
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    if (!memsim_handle_get(HANDLE_NVRTC, program))
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!log)
        return NVRTC_ERROR_INVALID_INPUT;
    *log = 0;
    return NVRTC_SUCCESS;
}
