/* SPDX-License-Identifier: Apache-2.0
 * The kernels that are known, one row each. */
#include <string.h>

#include "runtime/cost/work_internal.h"

static const struct work_rule rules[] = {
    {"vectorized_elementwise_kernel", NULL, WORK_ELEMENTWISE,
     work_read_vectorized, work_elementwise},
    {"vectorized_templated_elementwise_kernel", NULL, WORK_ELEMENTWISE,
     work_read_vectorized, work_elementwise},
    {"unrolled_elementwise_kernel", NULL, WORK_ELEMENTWISE,
     work_read_vectorized, work_elementwise},
    {"elementwise_kernel", NULL, WORK_STRIDED, work_read_strided,
     work_elementwise},
    {"multi_tensor_apply_kernel", "NormFunctor", WORK_REDUCE, work_read_foreach,
     work_foreach},
    {"multi_tensor_apply_kernel", NULL, WORK_OPTIMIZER, work_read_foreach,
     work_foreach},
    {"reduce_kernel", NULL, WORK_REDUCE, work_read_reduce, work_reduce},
    {"vectorized_layer_norm_kernel", NULL, WORK_NORM_FORWARD, NULL,
     work_layer_norm},
    {"softmax_warp_forward", NULL, WORK_SOFTMAX_FORWARD, NULL,
     work_softmax_warp},
    {"softmax_warp_backward", NULL, WORK_SOFTMAX_BACKWARD, NULL,
     work_softmax_warp},
    {"cunn_SoftMaxForward", NULL, WORK_SOFTMAX_FORWARD, NULL,
     work_softmax_block},
    {"cunn_SoftMaxBackward", NULL, WORK_SOFTMAX_BACKWARD, NULL,
     work_softmax_block},
};

const struct work_rule *work_rule_of(const struct work_kernel *kernel)
{
    uint32_t row = kernel->rule;

    return row && row <= sizeof rules / sizeof *rules ? &rules[row - 1] : NULL;
}

uint16_t work_rule_find(struct text name, struct text base)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (text_is(base, rules[i].base) &&
            (!rules[i].contains || text_find(name, rules[i].contains)))
            return (uint16_t)(i + 1);
    return 0;
}
