/* SPDX-License-Identifier: Apache-2.0
 * MEMSIM_LOG=FILE (or `stderr`): logs the calls that the fake libraries could
 * not answer. For developers who extend them. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_LOG_H
#define MEMSIM_CAPTURE_CORE_BASE_LOG_H

#include "capture/core/base/core.h"

CORE_API void memsim_log(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
