/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudart/cudart.h"

#include <stddef.h>

static _Thread_local cudaError_t last;

cudaError_t cudart_result(int rc)
{
    if (rc)
        last = (cudaError_t)rc;
    return (cudaError_t)rc;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;

    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

/* Texts as the runtime has them: programs print and match them. */
#define E(code, text) {cuda##code, "cuda" #code, text}
static const struct text {
    cudaError_t code;
    const char *name, *text;
} texts[] = {
    E(Success, "no error"),
    E(ErrorInvalidValue, "invalid argument"),
    E(ErrorMemoryAllocation, "out of memory"),
    E(ErrorInitializationError, "initialization error"),
    E(ErrorCudartUnloading, "driver shutting down"),
    E(ErrorInvalidConfiguration, "invalid configuration argument"),
    E(ErrorInvalidSymbol, "invalid device symbol"),
    E(ErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    E(ErrorInvalidDeviceFunction, "invalid device function"),
    E(ErrorNoDevice, "no CUDA-capable device is detected"),
    E(ErrorInvalidDevice, "invalid device ordinal"),
    E(ErrorDeviceUninitialized, "invalid device context"),
    E(ErrorInvalidResourceHandle, "invalid resource handle"),
    E(ErrorSymbolNotFound, "named symbol not found"),
    E(ErrorNotReady, "device not ready"),
    E(ErrorIllegalAddress, "an illegal memory access was encountered"),
    E(ErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    E(ErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    E(ErrorHostMemoryAlreadyRegistered,
      "part or all of the requested memory range is already mapped"),
    E(ErrorHostMemoryNotRegistered,
      "pointer does not correspond to a registered memory region"),
    E(ErrorLaunchFailure, "unspecified launch failure"),
    E(ErrorNotPermitted, "operation not permitted"),
    E(ErrorNotSupported, "operation not supported"),
    E(ErrorStreamCaptureUnsupported,
      "operation not permitted when stream is capturing"),
    E(ErrorStreamCaptureInvalidated,
      "operation failed due to a previous error during capture"),
    E(ErrorIllegalState, "the operation cannot be performed in the present "
                         "state"),
    E(ErrorUnknown, "unknown error"),
};
#undef E

static const struct text *text_find(cudaError_t code)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            return &texts[i];
    return NULL;
}

const char *cudaGetErrorString(cudaError_t code)
{
    const struct text *text = text_find(code);

    return text ? text->text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
    const struct text *text = text_find(code);

    return text ? text->name : "unrecognized error code";
}
