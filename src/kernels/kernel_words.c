/* SPDX-License-Identifier: Apache-2.0
 * Kernels in words: a row's own, or an operation's, or the kernel's name. For
 * that it collects the identifiers of mangled names, which the Itanium C++ ABI
 * writes with their lengths, and takes
 * the one that says most. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "kernels/kernel_row.h"
#include "kernels/kernel_words.h"

#define IDENTIFIER_MAX 128

/* What a kernel applies to its elements, where its row has no words: a functor,
 * or the function that launches it, wherever in the name; the first one counts.
 * From the kernels of PyTorch 2.5 to 2.15 (aten/src/ATen/native/cuda). */
static const struct operation {
    const char *part;
    const char *words;
} operations[] = {
    {"masked_scale", "dropout backward"},
    {"GeluBackward", "gelu backward"},
    {"GeluCUDA", "gelu"},
    {"silu_backward", "silu backward"},
    {"batch_norm", "batch_norm forward"},
    {"bernoulli", "random numbers (bernoulli)"},
    {"normal_and_transform", "random numbers (normal)"},
    {"normal_kernel", "random numbers (normal)"},
    {"uniform_and_transform", "random numbers (uniform)"},
    {"uniform_kernel", "random numbers (uniform)"},
    {"random_from_to", "random numbers (integers)"},
    {"distribution_", "random numbers"},
    {"FillFunctor", "filled (zeros, ones, full)"},
    {"direct_copy_kernel", "copy or cast"},
    {"float16_copy_kernel", "copy or cast"},
    {"CUDAFunctor_add", "add"},
    {"CUDAFunctorOn", "add"},
    {"MulFunctor", "mul"},
    {"DivFunctor", "div"},
    {"CompareEqFunctor", "eq or ne"},
    {"CompareFunctor", "comparison"},
    {"MeanOps", "mean"},
    {"NormTwoOps", "norm"},
    {"ArgMax", "argmax"},
    {"sum_functor", "sum"},
    {"where_kernel", "where"},
    {"masked_fill", "masked_fill"},
};

/* What says nothing by itself: wrappers, namespaces, argument types. */
static const char *const generic[] = {
    "at",
    "native",
    "c10",
    "std",
    "detail",
    "cuda",
    "void",
    "kernel",
    "array",
    "memory",
    "internal",
    "binary_internal",
    "anonymous",
    "__4",
    "cub",
    "elementwise_kernel",
    "vectorized_elementwise_kernel",
    "unrolled_elementwise_kernel",
    "elementwise_kernel_with_index",
    "index_elementwise_kernel",
    "gpu_kernel_impl",
    "gpu_kernel_impl_nocast",
    "reduce_kernel",
    "ReduceOp",
    "func_wrapper_t",
    "BinaryFunctor",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "BFloat16",
    "Half",
    "complex",
    "TensorIteratorBase",
    "TensorIterator",
    "OffsetCalculator",
    "TrivialOffsetCalculator",
    "Kernel2",
    "__nv_hdl_wrapper_t",
    "__nv_dl_wrapper_t",
    "__nv_dl_tag",
    "at_cuda_detail",
    "thrust",
};

static const char *const prefixes[] = {"launch_", "cunn_", "_"};

static const char *const suffixes[] = {
    "_kernel_cuda", "_cuda_kernel", "_kernel_impl",   "_kernel",
    "_cuda",        "_impl",        "CUDAKernelImpl", "CUDAKernel",
    "KernelImpl",   "Kernel",       "Functor",        "_functor",
};

static bool is_generic(const char *identifier)
{
    if (text_begins(identifier, "_GLOBAL__N_"))
        return true;
    for (size_t i = 0; i < sizeof generic / sizeof *generic; i++)
        if (!strcmp(identifier, generic[i]))
            return true;
    return false;
}

/* Literals "Li4E", substitutions "S1_" and parameters "T0_" hold digits that
 * are no lengths. Returns what follows one at P, or P. */
static const char *skip_number(const char *p)
{
    const char *end = p + 1;

    if (*p == 'L' && islower((unsigned char)p[1])) {
        end = p + 2 + (p[2] == 'n');
        while (isdigit((unsigned char)*end))
            end++;
        return *end == 'E' ? end + 1 : p;
    }
    if (*p != 'S' && *p != 'T')
        return p;
    while (isdigit((unsigned char)*end) || isupper((unsigned char)*end))
        end++;
    return *end == '_' ? end + 1 : p;
}

/* Copies the next identifier after *AT to OUT; false at the end. */
static bool next_identifier(const char **at, char *out, size_t size)
{
    const char *p = *at;

    while (*p) {
        const char *after = skip_number(p);
        if (after != p) {
            p = after;
            continue;
        }
        if (!isdigit((unsigned char)*p)) {
            p++;
            continue;
        }
        char *start;
        unsigned long length = strtoul(p, &start, 10);
        p = start;
        if (!length || length > strlen(start))
            continue;
        snprintf(out, size, "%.*s", (int)length, start);
        *at = start + length;
        return true;
    }
    return false;
}

/* The same of a name as profilers write it, demangled; types and what the
 * language has itself are left out, as mangled names have them as letters. */
static bool next_word(const char **at, char *out, size_t size)
{
    static const char *const words[] = {
        "unsigned", "signed", "int",    "long",      "short",    "char",
        "bool",     "float",  "double", "const",     "lambda",   "operator",
        "namespace", "true",  "false",  "struct"};
    const char *p = *at;

    for (;;) {
        while (*p && !isalpha((unsigned char)*p) && *p != '_')
            p++;
        if (!*p)
            return false;
        size_t length = 0;
        while (isalnum((unsigned char)p[length]) || p[length] == '_')
            length++;
        snprintf(out, size, "%.*s", (int)length, p);
        p += length;
        size_t i = 0;
        while (i < sizeof words / sizeof *words && strcmp(words[i], out))
            i++;
        *at = p;
        if (i == sizeof words / sizeof *words)
            return true;
    }
}

static void tidy_identifier(const char *identifier, char *out, size_t size)
{
    size_t length;

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (text_begins(identifier, prefixes[i]) &&
            identifier[strlen(prefixes[i])])
            identifier += strlen(prefixes[i]);
    length = strlen(identifier);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t end = strlen(suffixes[i]);
        if (length > end && !strcmp(identifier + length - end, suffixes[i])) {
            length -= end;
            break;
        }
    }
    snprintf(out, size, "%.*s", (int)length, identifier);
}

/* A part of a name alone says nothing where it may be a namespace's: of a name
 * that a program has registered, which is mangled. */
static const char *row_words(const char *name, bool is_mangled)
{
    struct work_kernel kernel;

    work_kernel_read(name, &kernel);
    return kernel.row && (kernel.row->base || !is_mangled) ? kernel.row->words
                                                           : NULL;
}

static const char *operation_words(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strstr(name, operations[i].part))
            return operations[i].words;
    return NULL;
}

const char *kernel_words_find(const char *name)
{
    const char *words = row_words(name, text_begins(name, "_Z"));

    return words ? words : operation_words(name);
}

void kernel_words(const char *mangled, char *out, size_t size)
{
    char identifier[IDENTIFIER_MAX];
    const char *at = mangled;

    bool plain = !text_begins(mangled, "_Z");
    const char *words = kernel_words_find(mangled);

    if (words) {
        snprintf(out, size, "%s", words);
        return;
    }
    if (plain && !strpbrk(mangled, "<(")) {
        snprintf(out, size, "%s", mangled);
        return;
    }
    snprintf(out, size, "kernel");
    while (plain ? next_word(&at, identifier, sizeof identifier)
                 : next_identifier(&at, identifier, sizeof identifier)) {
        if (!is_generic(identifier)) {
            tidy_identifier(identifier, out, size);
            return;
        }
        snprintf(out, size, "%s", identifier);
    }
}
