/* SPDX-License-Identifier: Apache-2.0
 * Why attention runs as plain operators. PyTorch asks two functions of its own
 * whether a fused kernel can be used (sdp_utils.cpp, select_sdp_backend), and
 * its library calls them as another's, so that ours stand before them. Where
 * both say no, they are asked again for their reason, which is a warning. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/base/core.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/torch_function.h"

/* bool sdp::can_use_...(const sdp_params &, bool debug),
 * void c10::warn(const Warning &), const std::string &c10::Warning::msg(). */
#define PARAMS      "ERKNS_10sdp_paramsEb"
#define FLASH       "_ZN3sdp23can_use_flash_attention" PARAMS
#define EFFICIENT   "_ZN3sdp31can_use_mem_efficient_attention" PARAMS
#define WARN        "_ZN3c104warnERKNS_7WarningE"
#define MESSAGE     "_ZNK3c107Warning3msgB5cxx11Ev"
#define MESSAGE_OLD "_ZNK3c107Warning3msgEv"

#define CUDA "libtorch_cuda.so"
#define C10  "libc10.so"

#define REASON_BYTES 192

typedef bool can_use(const void *params, bool debug);

enum kernel { KERNEL_FLASH, KERNEL_EFFICIENT, KERNELS };

static can_use *real_of(enum kernel kernel)
{
    static const char *const names[] = {FLASH, EFFICIENT};
    static can_use *found[KERNELS];

    if (!found[kernel])
        found[kernel] = (can_use *)torch_function(CUDA, names[kernel]);
    return found[kernel];
}

/* Where a warning's text goes while a reason is asked for. */
static _Thread_local char *reason;
static _Thread_local const void *refused; /* by the one that was asked last */

/* A string's first word is the address of its text, in both of GCC's forms. */
static const char *warning_text(const void *warning)
{
    static const char *const *(*message)(const void *);

    if (!message)
        message = (__typeof__(message))torch_function(C10, MESSAGE);
    if (!message)
        message = (__typeof__(message))torch_function(C10, MESSAGE_OLD);
    return message ? *message(warning) : "";
}

void torch_warn(const void *warning) __asm__(WARN);
CORE_API void torch_warn(const void *warning)
{
    static __typeof__(&torch_warn) real;

    if (!real)
        real = (__typeof__(real))torch_function(C10, WARN);
    if (reason)
        snprintf(reason, REASON_BYTES, "%s", warning_text(warning));
    else if (real)
        real(warning);
}

static void reason_ask(enum kernel kernel, const void *params, char *text)
{
    can_use *ask = real_of(kernel);

    *text = '\0';
    reason = text;
    if (ask)
        ask(params, true);
    reason = NULL;
}

/* The memory-efficient kernel takes most: what it lacks is the reason. Whoever
 * has disabled the kernels wants it so. */
static void fallback_note(const void *params)
{
    char text[REASON_BYTES];

    reason_ask(KERNEL_EFFICIENT, params, text);
    if (!strstr(text, "runtime disabled"))
        memsim_note("attention (SDPA) runs as plain operators, as on a GPU; "
                    "PyTorch: %s",
                    text);
}

static bool ask_one(enum kernel kernel, const void *params, bool debug)
{
    can_use *real = real_of(kernel);
    bool can = real && real(params, debug);

    if (!can && !debug && refused == params)
        fallback_note(params);
    refused = can || debug || refused == params ? NULL : params;
    return can;
}

bool torch_can_use_flash(const void *params, bool debug) __asm__(FLASH);
CORE_API bool torch_can_use_flash(const void *params, bool debug)
{
    return ask_one(KERNEL_FLASH, params, debug);
}

bool torch_can_use_efficient(const void *params, bool debug) __asm__(EFFICIENT);
CORE_API bool torch_can_use_efficient(const void *params, bool debug)
{
    return ask_one(KERNEL_EFFICIENT, params, debug);
}
