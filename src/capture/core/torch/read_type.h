/* SPDX-License-Identifier: Apache-2.0
 * The type of the numbers that PyTorch copies to the host: .item(), .cpu(),
 * .tolist(), float(x). */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_READ_TYPE_H
#define MEMSIM_CAPTURE_CORE_TORCH_READ_TYPE_H

#include "capture/core/base/number.h"

/* Of the copy that this thread is about to make; NUMBER_NONE where it is not
 * PyTorch's, or --no-modules was given. */
enum number_type torch_read_type(void);

#endif
