/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nccl/operation.h"

#include <nccl.h>
#include <stdatomic.h>

#include "capture/core/base/number.h"
#include "capture/nccl/nccl_fake.h"

#define OPERATIONS 256 /* of the program's own, at once */

/* Signed numbers stand for unsigned ones of their size: what is counted is
 * small. */
static const struct {
    uint8_t bytes, number;
} types[] = {
    [ncclInt8] = {1, NUMBER_I8},
    [ncclUint8] = {1, NUMBER_U8},
    [ncclInt32] = {4, NUMBER_I32},
    [ncclUint32] = {4, NUMBER_I32},
    [ncclInt64] = {8, NUMBER_I64},
    [ncclUint64] = {8, NUMBER_I64},
    [ncclFloat16] = {2, NUMBER_F16},
    [ncclFloat32] = {4, NUMBER_F32},
    [ncclFloat64] = {8, NUMBER_F64},
    [ncclBfloat16] = {2, NUMBER_BF16},
    [ncclFloat8e4m3] = {1, NUMBER_NONE},
    [ncclFloat8e5m2] = {1, NUMBER_NONE},
};

static struct operation {
    _Atomic bool used;
    bool known;
    double scale;
} operations[OPERATIONS];

bool nccl_is_type(int type)
{
    return (unsigned)type < sizeof types / sizeof *types;
}

uint64_t nccl_type_bytes(int type)
{
    return nccl_is_type(type) ? types[type].bytes : 1;
}

static struct operation *operation_get(int operation)
{
    int i = operation - ncclNumOps;

    return i >= 0 && i < OPERATIONS && operations[i].used ? &operations[i]
                                                          : NULL;
}

bool nccl_is_operation(int operation)
{
    return operation_get(operation) ||
           (unsigned)operation < (unsigned)ncclNumOps;
}

struct reduction nccl_reduction(int operation, int type, uint64_t count)
{
    static const uint8_t kinds[] = {[ncclSum] = REDUCE_SUM,
                                    [ncclProd] = REDUCE_PROD,
                                    [ncclMax] = REDUCE_MAX,
                                    [ncclMin] = REDUCE_MIN,
                                    [ncclAvg] = REDUCE_SUM};
    const struct operation *own = operation_get(operation);
    bool is_known = own ? own->known : (unsigned)operation < sizeof kinds;

    return (struct reduction){
        .kind =
            own || !is_known ? REDUCE_SUM : (enum reduce_kind)kinds[operation],
        .type =
            is_known && nccl_is_type(type) ? types[type].number : NUMBER_NONE,
        .bytes = (uint32_t)nccl_type_bytes(type),
        .scale = own ? own->scale : 1,
        .count = count};
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                      ncclDataType_t type,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t comm)
{
    if (!communicator_get(comm) || !op || !scalar || !nccl_is_type(type))
        return ncclInvalidArgument;
    for (int i = 0; i < OPERATIONS; i++) {
        struct operation *o = &operations[i];
        bool used = false;

        if (!atomic_compare_exchange_strong(&o->used, &used, true))
            continue;
        /* one in device memory is read when the collective runs */
        o->known = residence == ncclScalarHostImmediate &&
                   types[type].number != NUMBER_NONE;
        o->scale =
            o->known ? memsim_reduce_number(types[type].number, scalar) : 1;
        *op = (ncclRedOp_t)(ncclNumOps + i);
        return ncclSuccess;
    }
    return ncclInternalError;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    struct operation *o = operation_get((int)op);

    if (!communicator_get(comm) || !o)
        return ncclInvalidArgument;
    o->used = false;
    return ncclSuccess;
}
