/* SPDX-License-Identifier: Apache-2.0
 * MEMSIM_LOG=FILE (or `stderr`): what the fake libraries were asked and could
 * not answer. For those who extend them. */
#ifndef MEMSIM_CAPTURE_LOG_H
#define MEMSIM_CAPTURE_LOG_H

#include "capture/core/base/core.h"

CORE_API void memsim_log(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
