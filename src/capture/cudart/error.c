/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudart/cudart.h"

#include <stddef.h>

#include "capture/core/diagnose/misuse.h"

static _Thread_local cudaError_t last;

cudaError_t cudart_fail(int rc, const char *function)
{
    memsim_misuse_call(function);
    return last = (cudaError_t)rc;
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
#define E(code, text)                                                          \
    {                                                                          \
        cuda##code, "cuda" #code, text                                         \
    }
static const struct text {
    cudaError_t code;
    const char *name, *text;
} texts[] = {
    E(Success, "no error"),
    E(ErrorInvalidValue, "invalid argument"),
    E(ErrorMemoryAllocation, "out of memory"),
    E(ErrorInitializationError, "initialization error"),
    E(ErrorCudartUnloading, "driver shutting down"),
    E(ErrorProfilerDisabled,
      "profiler disabled while using external profiling tool"),
    E(ErrorInvalidConfiguration, "invalid configuration argument"),
    E(ErrorInvalidPitchValue, "invalid pitch argument"),
    E(ErrorInvalidSymbol, "invalid device symbol"),
    E(ErrorInvalidTexture, "invalid texture reference"),
    E(ErrorInvalidTextureBinding, "texture is not bound to a pointer"),
    E(ErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    E(ErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    E(ErrorInvalidFilterSetting,
      "linear filtering not supported for non-float type"),
    E(ErrorInvalidNormSetting,
      "read as normalized float not supported for 32-bit non float type"),
    E(ErrorInsufficientDriver,
      "CUDA driver version is insufficient for CUDA runtime version"),
    E(ErrorMissingConfiguration, "__global__ function call is not configured"),
    E(ErrorInvalidDeviceFunction, "invalid device function"),
    E(ErrorNoDevice, "no CUDA-capable device is detected"),
    E(ErrorInvalidDevice, "invalid device ordinal"),
    E(ErrorInvalidKernelImage, "device kernel image is invalid"),
    E(ErrorDeviceUninitialized, "invalid device context"),
    E(ErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    E(ErrorUnmapBufferObjectFailed, "unmapping of buffer object failed"),
    E(ErrorNoKernelImageForDevice,
      "no kernel image is available for execution on the device"),
    E(ErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    E(ErrorUnsupportedLimit, "limit is not supported on this architecture"),
    E(ErrorPeerAccessUnsupported,
      "peer access is not supported between these two devices"),
    E(ErrorInvalidPtx, "a PTX JIT compilation failed"),
    E(ErrorFileNotFound, "file not found"),
    E(ErrorOperatingSystem,
      "OS call failed or operation not supported on this OS"),
    E(ErrorInvalidResourceHandle, "invalid resource handle"),
    E(ErrorIllegalState,
      "the operation cannot be performed in the present state"),
    E(ErrorSymbolNotFound, "named symbol not found"),
    E(ErrorNotReady, "device not ready"),
    E(ErrorIllegalAddress, "an illegal memory access was encountered"),
    E(ErrorLaunchOutOfResources, "too many resources requested for launch"),
    E(ErrorLaunchTimeout, "the launch timed out and was terminated"),
    E(ErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    E(ErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    E(ErrorSetOnActiveProcess,
      "cannot set while device is active in this process"),
    E(ErrorContextIsDestroyed, "context is destroyed"),
    E(ErrorAssert, "device-side assert triggered"),
    E(ErrorTooManyPeers, "peer mapping resources exhausted"),
    E(ErrorHostMemoryAlreadyRegistered,
      "part or all of the requested memory range is already mapped"),
    E(ErrorHostMemoryNotRegistered,
      "pointer does not correspond to a registered memory region"),
    E(ErrorHardwareStackError, "hardware stack error"),
    E(ErrorIllegalInstruction, "an illegal instruction was encountered"),
    E(ErrorMisalignedAddress, "misaligned address"),
    E(ErrorInvalidAddressSpace,
      "operation not supported on global/shared address space"),
    E(ErrorInvalidPc, "invalid program counter"),
    E(ErrorLaunchFailure, "unspecified launch failure"),
    E(ErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    E(ErrorNotPermitted, "operation not permitted"),
    E(ErrorNotSupported, "operation not supported"),
    E(ErrorSystemNotReady, "system not yet initialized"),
    E(ErrorStreamCaptureUnsupported,
      "operation not permitted when stream is capturing"),
    E(ErrorStreamCaptureInvalidated,
      "operation failed due to a previous error during capture"),
    E(ErrorStreamCaptureMerge,
      "operation would result in a merge of separate capture sequences"),
    E(ErrorStreamCaptureUnmatched,
      "capture was not ended in the same stream as it began"),
    E(ErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    E(ErrorStreamCaptureIsolation,
      "dependency created on uncaptured work in another stream"),
    E(ErrorStreamCaptureImplicit,
      "operation would make the legacy stream depend on a capturing "
      "blocking stream"),
    E(ErrorCapturedEvent,
      "operation not permitted on an event last recorded in a capturing "
      "stream"),
    E(ErrorStreamCaptureWrongThread,
      "attempt to terminate a thread-local capture sequence from another "
      "thread"),
    E(ErrorTimeout, "wait operation timed out"),
    E(ErrorGraphExecUpdateFailure,
      "the graph update was not performed because it included changes which "
      "violated constraints specific to instantiated graph update"),
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
