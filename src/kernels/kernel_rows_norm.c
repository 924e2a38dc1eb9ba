/* SPDX-License-Identifier: Apache-2.0
 * Norms, softmax and losses over rows.
 * Files are PyTorch's, in aten/src/ATen/native/cuda where no folder is named;
 * arguments are those of 2.5 to 2.15. */
#include "kernels/kernel_row.h"

/* A block a row; columns in the first word. */
#define ROWS .rows = {WORK_GRID_X}, .columns = WORK_WORD_0
/* As many elements as a word says. */
#define ELEMENTS(word) .rows = {WORK_WORD_##word}
#define STATISTICS     8 /* a mean and a deviation of 4 bytes */
#define INDEX          8 /* bytes of an int64 index */

/* SoftMax.cu: T, the accumulator's type, the result's */
#define SOFTMAX_FORWARD(mark, text)                                            \
    {.base = "cunn_SoftMaxForwardSmem",                                        \
     .contains = mark,                                                         \
     .family = WORK_SOFTMAX_FORWARD,                                           \
     .rate = WORK_RATE_KEPT_SOFTMAX,                                           \
     .words = text,                                                            \
     .form = {ROWS, .read = 1, .written = 1, .written_type = 2, .flops = 5}},  \
        {.base = "cunn_SoftMaxForward",                                        \
         .contains = mark,                                                     \
         .family = WORK_SOFTMAX_FORWARD,                                       \
         .rate = WORK_RATE_LONG_SOFTMAX,                                       \
         .words = text,                                                        \
         .form = {ROWS, .read = 1, .written = 1, .written_type = 2,            \
                  .flops = 5}},                                                \
        {.base = "cunn_SoftMaxForwardReg",                                     \
         .contains = mark,                                                     \
         .family = WORK_SOFTMAX_FORWARD,                                       \
         .words = text,                                                        \
         .form = {ROWS, .read = 1, .written = 1, .written_type = 2,            \
                  .flops = 5}},                                                \
    {                                                                          \
        .base = "cunn_SpatialSoftMaxForward", .contains = mark,                \
        .family = WORK_SOFTMAX_FORWARD, .words = text, .form = {               \
            .rows = {WORK_WORD_0, WORK_WORD_2},                                \
            .columns = WORK_WORD_1,                                            \
            .read = 1,                                                         \
            .written = 1,                                                      \
            .written_type = 2,                                                 \
            .flops = 5                                                         \
        }                                                                      \
    }
#define SOFTMAX_BACKWARD(mark, text)                                           \
    {.base = "cunn_SoftMaxBackwardSmem",                                       \
     .contains = mark,                                                         \
     .family = WORK_SOFTMAX_BACKWARD,                                          \
     .rate = WORK_RATE_KEPT_SOFTMAX_DATA,                                      \
     .words = text,                                                            \
     .form = {ROWS, .read = 2, .written = 1, .read_type = 2, .flops = 5}},     \
        {.base = "cunn_SoftMaxBackward",                                       \
         .contains = mark,                                                     \
         .family = WORK_SOFTMAX_BACKWARD,                                      \
         .rate = WORK_RATE_LONG_SOFTMAX_DATA,                                  \
         .words = text,                                                        \
         .form = {ROWS, .read = 2, .written = 1, .read_type = 2, .flops = 5}}, \
    {                                                                          \
        .base = "cunn_SpatialSoftMaxBackward", .contains = mark,               \
        .family = WORK_SOFTMAX_BACKWARD, .words = text, .form = {              \
            .rows = {WORK_WORD_0, WORK_WORD_2},                                \
            .columns = WORK_WORD_1,                                            \
            .read = 2,                                                         \
            .written = 1,                                                      \
            .read_type = 2,                                                    \
            .flops = 5                                                         \
        }                                                                      \
    }

const struct kernel_row kernel_rows_norm[] = {
    /* layer_norm_kernel.cu */
    {.base = "vectorized_layer_norm_kernel",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_LAYER_NORM,
     .words = "layer_norm forward",
     .form = {ROWS, .read = 1, .written = 1, .column_read = 2,
              .row_written = STATISTICS, .flops = 5}},
    {.base = "RowwiseMoments*",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_MOMENTS,
     .words = "layer_norm statistics",
     .form = {ROWS, .read = 1, .row_written = STATISTICS, .flops = 3}},
    {.base = "LayerNormForwardCUDAKernel",
     .family = WORK_NORM_FORWARD,
     .words = "layer_norm forward",
     .form = {ROWS, .read = 1, .written = 1, .column_read = 2,
              .row_read = STATISTICS, .flops = 3}},
    {.base = "layer_norm_grad_input_kernel_vectorized",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_LAYER_NORM_DATA,
     .words = "layer_norm backward",
     .form = {ROWS, .read = 2, .written = 1, .column_read = 1,
              .row_read = STATISTICS, .flops = 10}},
    {.base = "layer_norm_grad_input_kernel",
     .family = WORK_NORM_BACKWARD,
     .words = "layer_norm backward",
     .form = {ROWS, .read = 2, .written = 1, .column_read = 1,
              .row_read = STATISTICS, .flops = 10}},
    {.base = "GammaBetaBackwardCUDAKernelTemplate",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_LAYER_NORM_WEIGHTS,
     .words = "layer_norm weight gradient",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 2,
              .row_read = STATISTICS,
              .flops = 4}},
    /* group_norm_kernel.cu: per batch and channel */
    {.base = "ComputeFusedParamsCUDAKernel",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_SMALL_NORM,
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .bytes = 4,
              .read = 2,
              .written = 2}},
    {.base = "ComputeInternalGradientsCUDAKernel*",
     .family = WORK_NORM_BACKWARD,
     .form = {.rows = {WORK_GRID_X},
              .columns = WORK_WORD_0,
              .read = 2,
              .row_written = STATISTICS,
              .flops = 4}},
    {.base = "ComputeBackwardFusedParamsCUDAKernel",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_SMALL_NORM,
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_ONE,
              .bytes = 4,
              .read = 2,
              .written = 2}},
    {.base = "GammaBetaBackwardCUDAKernel1",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_SMALL_NORM,
     .words = "layer_norm weight gradient",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .bytes = 4,
              .read = 2}},
    {.base = "GammaBetaBackwardCUDAKernel2",
     .family = WORK_NORM_BACKWARD,
     .words = "layer_norm weight gradient",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .bytes = 4,
              .read = 2}},
    {.base = "GammaBetaBackwardCUDAKernel*", /* of a layer norm, before 2.8 */
     .family = WORK_NORM_BACKWARD,
     .words = "layer_norm weight gradient",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 2,
              .row_read = STATISTICS,
              .flops = 4}},
    {.base = "GammaBetaBackwardSimpleCUDAKernel",
     .family = WORK_NORM_BACKWARD,
     .words = "layer_norm weight gradient",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 2,
              .row_read = STATISTICS,
              .flops = 4}},
    /* Normalization.cuh: tensors (batch, channels, rest); or rows, channels */
    {.base = "batch_norm_collect_statistics_kernel",
     .family = WORK_NORM_FORWARD,
     .words = "batch_norm forward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1, .flops = 3,
              .read_type = 0}},
    {.base = "batch_norm_transform_input_kernel",
     .family = WORK_NORM_FORWARD,
     .words = "batch_norm forward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1, .written = 1,
              .flops = 2}},
    {.base = "batch_norm_backward_reduce_kernel",
     .family = WORK_NORM_BACKWARD,
     .words = "batch_norm backward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 2, .flops = 4}},
    {.base = "batch_norm_backward_elemt_kernel",
     .family = WORK_NORM_BACKWARD,
     .words = "batch_norm backward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 2, .written = 1,
              .flops = 4}},
    {.base = "batch_norm_backward_kernel",
     .family = WORK_NORM_BACKWARD,
     .words = "batch_norm backward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 2, .written = 1,
              .flops = 8}},
    {.base = "batch_norm_collect_statistics_channels_last_kernel",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_BATCH_STATISTICS,
     .words = "batch_norm forward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 1,
              .flops = 3}},
    {.base = "batch_norm_transform_input_channels_last_kernel",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_BATCH_TRANSFORM,
     .words = "batch_norm forward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 1,
              .written = 1,
              .flops = 2}},
    {.base = "batch_norm_backward_reduce_channels_last_kernel",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_BATCH_REDUCE,
     .words = "batch_norm backward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 2,
              .flops = 4}},
    {.base = "batch_norm_backward_elemt_channels_last_kernel",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_BATCH_DATA,
     .words = "batch_norm backward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_1,
              .read = 2,
              .written = 1,
              .flops = 4}},

    /* SoftMax.cu: T, the accumulator's type, the result's */
    SOFTMAX_FORWARD("LogSoftMax", "log_softmax forward"),
    SOFTMAX_FORWARD(NULL, "softmax forward"),
    SOFTMAX_BACKWARD("LogSoftMax", "log_softmax backward"),
    SOFTMAX_BACKWARD(NULL, "softmax backward"),
    /* PersistentSoftmax.cuh: input's type, result's; backward the other way */
    {.base = "softmax_warp_forward",
     .family = WORK_SOFTMAX_FORWARD,
     .rate = WORK_RATE_WARP_SOFTMAX,
     .words = "softmax forward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_2,
              .read = 1,
              .written = 1,
              .written_type = 1,
              .flops = 5}},
    {.base = "softmax_warp_backward",
     .family = WORK_SOFTMAX_BACKWARD,
     .rate = WORK_RATE_WARP_SOFTMAX_DATA,
     .words = "softmax backward",
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_WORD_2,
              .read = 2,
              .written = 1,
              .written_type = 1,
              .flops = 5}},
    /* Loss.cu: a target and a value of each row */
    {.base = "nll_loss_forward_reduce_cuda_kernel_2d",
     .family = WORK_INDEX,
     .rate = WORK_RATE_LOSS,
     .host = KERNEL_HOST_LOSS_2D,
     .words = "nll_loss forward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1, .row_read = INDEX}},
    {.base = "nll_loss_backward_reduce_cuda_kernel_2d",
     .family = WORK_INDEX,
     .rate = WORK_RATE_LOSS_DATA,
     .words = "nll_loss backward",
     .form = {ELEMENTS(0), .columns = WORK_ONE, .written = 1,
              .row_read = INDEX}},
    /* WeightNorm.cu: a block for 16 columns (last dimension), or for a row
     * (first); the weights are read for the norm and again for the result */
    {.base = "weight_norm_fwd_last_dim_kernel",
     .family = WORK_NORM_FORWARD,
     .rate = WORK_RATE_WEIGHT_NORM,
     .words = "weight_norm forward",
     .form = {.rows = {WORK_WORD_1}, .columns = WORK_WORD_0, .read = 2,
              .written = 1, .column_read = 1, .flops = 3}},
    {.base = "weight_norm_fwd_first_dim_kernel",
     .family = WORK_NORM_FORWARD,
     .words = "weight_norm forward",
     .form = {ROWS, .read = 2, .written = 1, .flops = 3}},
    {.base = "weight_norm_bwd_last_dim_kernel",
     .family = WORK_NORM_BACKWARD,
     .rate = WORK_RATE_WEIGHT_NORM_DATA,
     .words = "weight_norm backward",
     .form = {.rows = {WORK_WORD_1}, .columns = WORK_WORD_0, .read = 4,
              .written = 1, .column_read = 2, .flops = 6}},
    {.base = "weight_norm_bwd_first_dim_kernel",
     .family = WORK_NORM_BACKWARD,
     .words = "weight_norm backward",
     .form = {ROWS, .read = 4, .written = 1, .flops = 6}},
    {.base = NULL},
};
