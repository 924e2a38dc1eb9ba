/* SPDX-License-Identifier: Apache-2.0
 * NVRTC: 'compiles' a source into a binary that has the source's kernels and
 * nothing in them, for the driver here to load. It finds no errors in a
 * program that the real one would not compile. */
#include <nvrtc.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/base/handle.h"
#include "capture/core/work/kernel.h"
#include "capture/nvrtc/source.h"

struct program {
    struct buffer source;
    struct buffer expressions; /* "expression NUL lowered NUL" each */
    struct buffer names;
    struct buffer ptx, cubin;
    bool compiled;
};

static struct program *program_get(nvrtcProgram handle)
{
    return memsim_handle_get(HANDLE_NVRTC, handle);
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    if (!major || !minor)
        return NVRTC_ERROR_INVALID_INPUT;
    *major = MEMSIM_CUDA_MAJOR;
    *minor = MEMSIM_CUDA_MAJOR >= 13 ? 0 : 8;
    return NVRTC_SUCCESS;
}

/* What `nvrtc --list-gpu-arch` of CUDA 12.8 and 13.0 has in common. */
static const int architectures[] = {75,  80,  86,  87,  89, 90,
                                    100, 101, 103, 120, 121};

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    if (!count)
        return NVRTC_ERROR_INVALID_INPUT;
    *count = sizeof architectures / sizeof *architectures;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    if (!list)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(list, architectures, sizeof architectures);
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    static const char *const texts[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    };

    return (size_t)result < sizeof texts / sizeof *texts
               ? texts[result]
               : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *handle, const char *source,
                               const char *name, int count,
                               const char *const *headers,
                               const char *const *names)
{
    (void)name, (void)headers, (void)names;
    if (!handle || !source || count < 0)
        return NVRTC_ERROR_INVALID_INPUT;
    struct program *program = memsim_handle_new(HANDLE_NVRTC, sizeof *program);
    if (!program ||
        !memsim_buffer_append(&program->source, source, strlen(source)))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    *handle = (nvrtcProgram)program;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle)
{
    struct program *program = handle ? program_get(*handle) : NULL;

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memsim_buffer_free(&program->source);
    memsim_buffer_free(&program->expressions);
    memsim_buffer_free(&program->names);
    memsim_buffer_free(&program->ptx);
    memsim_buffer_free(&program->cubin);
    memsim_handle_free(HANDLE_NVRTC, program);
    *handle = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram handle, const char *expression)
{
    struct program *program = program_get(handle);

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (program->compiled)
        return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    size_t start = program->names.used;
    bool fine = source_lower(expression, &program->names) &&
                memsim_buffer_append(&program->names, "", 1) &&
                memsim_buffer_append(&program->expressions, expression,
                                     strlen(expression) + 1) &&
                memsim_buffer_append(&program->expressions,
                                     program->names.bytes + start,
                                     program->names.used - start);
    return fine ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram handle, const char *expression,
                                const char **name)
{
    const struct program *program = program_get(handle);

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!program->compiled)
        return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const struct buffer *list = &program->expressions;
    for (const char *at = list->bytes; at && at < list->bytes + list->used;) {
        const char *lowered = at + strlen(at) + 1;

        if (!strcmp(at, expression)) {
            *name = lowered;
            return NVRTC_SUCCESS;
        }
        at = lowered + strlen(lowered) + 1;
    }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* "--gpu-architecture=sm_90a" and "-arch=compute_80", or in two words. A real
 * architecture gives a binary, a virtual one PTX alone. */
static unsigned read_architecture(int count, const char *const *options,
                                  bool *real)
{
    unsigned capability = 75; /* what CUDA 13's NVRTC takes without one */

    *real = false;
    for (int i = 0; i < count; i++) {
        const char *sm = strstr(options[i], "sm_");
        const char *compute = strstr(options[i], "compute_");

        if (sm || compute)
            capability = (unsigned)strtoul(sm ? sm + strlen("sm_")
                                              : compute + strlen("compute_"),
                                           NULL, 10);
        *real |= sm != NULL;
    }
    return capability;
}

/* PyTorch compiles one kernel at a time and loads it at once. */
static void declare_kernels(const char *source)
{
    struct source_kernel kernel;

    if (source_first(source, &kernel))
        memsim_kernel_declare(kernel.name, kernel.length, kernel.parameters,
                              kernel.parameters_length);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count,
                                const char *const *options)
{
    struct program *program = program_get(handle);
    bool real;

    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (count < 0 || (count && !options))
        return NVRTC_ERROR_INVALID_INPUT;
    unsigned capability = read_architecture(count, options, &real);
    program->compiled = true;
    program->ptx.used = program->cubin.used = 0;
    declare_kernels(program->source.bytes);
    bool fine =
        source_kernels(program->source.bytes, &program->names) &&
        source_ptx(&program->names, capability, &program->ptx) &&
        (!real || source_cubin(&program->names, capability, &program->cubin));
    return fine ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

static const struct buffer *program_output(nvrtcProgram handle, size_t field)
{
    const struct program *program = program_get(handle);

    return program && program->compiled
               ? (const struct buffer *)((const char *)program + field)
               : NULL;
}

/* Text counts the NUL that ends it. */
static nvrtcResult output_size(nvrtcProgram handle, size_t field, bool text,
                               size_t *bytes)
{
    const struct buffer *found = program_output(handle, field);

    if (!found || !bytes)
        return found ? NVRTC_ERROR_INVALID_INPUT : NVRTC_ERROR_INVALID_PROGRAM;
    *bytes = found->used ? found->used + text : 0;
    return NVRTC_SUCCESS;
}

static nvrtcResult output_copy(nvrtcProgram handle, size_t field, bool text,
                               char *out)
{
    const struct buffer *found = program_output(handle, field);

    if (!found || !out)
        return found ? NVRTC_ERROR_INVALID_INPUT : NVRTC_ERROR_INVALID_PROGRAM;
    if (found->used)
        memcpy(out, found->bytes, found->used + text);
    return NVRTC_SUCCESS;
}

#define OUTPUT(name, field, text)                                              \
    nvrtcResult nvrtcGet##name##Size(nvrtcProgram handle, size_t *bytes)       \
    {                                                                          \
        return output_size(handle, offsetof(struct program, field), text,      \
                           bytes);                                             \
    }                                                                          \
    nvrtcResult nvrtcGet##name(nvrtcProgram handle, char *out)                 \
    {                                                                          \
        return output_copy(handle, offsetof(struct program, field), text,      \
                           out);                                               \
    }

OUTPUT(PTX, ptx, true)
OUTPUT(CUBIN, cubin, false)
OUTPUT(LTOIR, ptx, true) /* our nvJitLink takes it for what it is */

/* Nothing is ever complained of: the log is an empty string. */
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *bytes)
{
    if (!program_get(handle))
        return NVRTC_ERROR_INVALID_PROGRAM;
    *bytes = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *log)
{
    if (!program_get(handle))
        return NVRTC_ERROR_INVALID_PROGRAM;
    *log = '\0';
    return NVRTC_SUCCESS;
}
