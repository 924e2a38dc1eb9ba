/* SPDX-License-Identifier: Apache-2.0
 * Kernels of which no price is made from their arguments, but which are carried
 * out on the host or have words of their own: cub's, thrust's and PyTorch's. */
#include "kernels/kernel_row.h"

#define PLAIN .family = WORK_OTHER

/* A kernel by its name, carried out. */
#define HOST(name, id) {.base = name, PLAIN, .host = KERNEL_HOST_##id}
/* One whose name is a frame's, by what it is used for. */
#define FRAME(name, mark, id)                                                  \
    {.base = name, .contains = mark, PLAIN, .host = KERNEL_HOST_##id}
#define WORDS(name, text) {.base = name, PLAIN, .words = text}

const struct kernel_row kernel_rows_host[] = {
    /* cub: sums and counts, nonzero, unique, sorts */
    FRAME("DeviceReduceKernel", "::not_equal_to<", CHANGES),
    FRAME("DeviceReduceKernel", "::__find_if::functor<", FIND),
    HOST("DeviceReduceKernel", COUNT),
    FRAME("DeviceReduceSingleTileKernel", "::not_equal_to<", CHANGES),
    FRAME("DeviceReduceSingleTileKernel", "::__find_if::functor<", FIND),
    HOST("DeviceReduceSingleTileKernel", TOTAL),
    HOST("DeviceSelectSweepKernel", SELECT),
    HOST("DeviceReduceByKeyKernel", RUNS),
    HOST("DeviceMergeSortBlockSortKernel", MERGE_SORT),
    HOST("DeviceAdjacentDifferenceDifferenceKernel", ADJACENT),
    HOST("transform_kernel", TRANSFORM),
    HOST("static_kernel", FOR_EACH),
    WORDS("DeviceRadixSort*", "sort"),
    WORDS("RadixSortScanBinsKernel", "sort"),

    /* thrust, whose kernels all have one name */
    FRAME("_kernel_agent", "::UniqueByKeyAgent<", UNIQUE_BY_KEY),
    FRAME("_kernel_agent", "::UniqueAgent<", UNIQUE_AGENT),
    FRAME("_kernel_agent", "::ReduceByKeyAgent<", COUNTS),
    FRAME("_kernel_agent", "::__extrema::arg_max_f<", MOST),
    FRAME("_kernel_agent", "::__uninitialized_copy::functor<cuda::std::",
          FOUND_COPY),
    FRAME("_kernel_agent", "::ParallelForAgent<", FOR_EACH),

    /* Nonzero.cu, UniqueCub.cu, Unique.cu, Repeat.cu */
    HOST("write_indices", PLACES),
    HOST("flag_kernel", FLAG),
    HOST("write_fill_value", FILL_REST),
    HOST("adjacent_difference_kernel", DIFFERENCE),
    HOST("scatter_kernel", INVERSE),
    HOST("unique_bool_write_output", UNIQUE_BOOL),
    HOST("unique_bool_write_inverse_indices", INVERSE_BOOL),
    HOST("compute_cuda_kernel", REPEAT),

    /* Loss.cu, NLLLoss2d.cu */
    {.base = "nll_loss_forward_no_reduce_cuda_kernel", PLAIN,
     .host = KERNEL_HOST_LOSS, .words = "nll_loss forward"},
    {.base = "nll_loss_forward_reduce_cuda_kernel_1d", PLAIN,
     .host = KERNEL_HOST_LOSS_1D, .words = "nll_loss forward"},
    HOST("nll_loss2d_forward_kernel", LOSS_IMAGE),
    WORDS("nll_loss_backward*", "nll_loss backward"),

    /* ScanUtils.cuh, SummaryOps.cu, Sorting.cu, TensorModeKernel.cu */
    HOST("tensor_kernel_scan_innermost_dim", SCAN_ROWS),
    HOST("tensor_kernel_scan_outer_dim", SCAN_COLUMNS),
    HOST("tensor_kernel_scan_innermost_dim_with_indices", EXTREMES_ROWS),
    HOST("tensor_kernel_scan_outer_dim_with_indices", EXTREMES_COLUMNS),
    HOST("kernelHistogram1D", HISTOGRAM),
    HOST("gatherKthValue", KTH),
    HOST("gatherMedian", MEDIAN),
    HOST("compute_mode", MODE),

    /* MultinomialKernel.cu, TensorTransformations.cu, Bucketization.cu */
    HOST("sampleMultinomialWithReplacement", SAMPLE),
    HOST("_unfold_backward_elementwise_kernel", UNFOLD_BACKWARD),
    HOST("roll_cuda_kernel", ROLL),
    HOST("searchsorted_cuda_kernel", SEARCH),
    HOST("kernelPointwiseApply2", POINTWISE),
    HOST("cross_kernel", CROSS),
    HOST("amp_update_scale_cuda_kernel", AMP_UPDATE),
    HOST("triu_indices_kernel", TRIANGLE_INDICES),
    HOST("tril_indices_kernel", TRIANGLE_INDICES),

    /* sparse/cuda */
    HOST("convert_indices_from_coo_to_csr_cuda_kernel", TO_COMPRESSED),
    HOST("convert_indices_from_csr_to_coo_cuda_kernel", FROM_COMPRESSED),
    HOST("coalesceValuesKernel", COALESCE),
    HOST("sparseElementwiseKernel", SPARSE_ADD),
    HOST("sparseElementwiseKernelScalar", SPARSE_ADD),

    /* jiterator's, compiled while the program runs: no C++ names */
    HOST("reduction_prod_kernel", REDUCE_JITTED),
    HOST("gcd_*", DIVISOR),
    HOST("lcm_*", DIVISOR),
    FRAME("*_kernel", "_vectorized", JITTED),

    /* words alone */
    WORDS("compute_grad_weight_bags", "embedding backward"),
    WORDS("batch_norm*", "batch_norm forward"),
    {.base = NULL},
};
