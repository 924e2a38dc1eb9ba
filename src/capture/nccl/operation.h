/* SPDX-License-Identifier: Apache-2.0
 * NCCL's types and reductions, and the program's own: sums of what each rank's
 * numbers are multiplied by first (ncclRedOpCreatePreMulSum). */
#ifndef MEMSIM_CAPTURE_NCCL_OPERATION_H
#define MEMSIM_CAPTURE_NCCL_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/memory/values_reduce.h"

/* Whether NCCL has TYPE (ncclDataType_t), and OPERATION (ncclRedOp_t), the
 * program's own included. */
bool nccl_is_type(int type);
bool nccl_is_operation(int operation);

/* Bytes of an element of TYPE (ncclDataType_t). */
uint64_t nccl_type_bytes(int type);

/* How OPERATION (ncclRedOp_t) reduces COUNT elements of TYPE. */
struct reduction nccl_reduction(int operation, int type, uint64_t count);

#endif
