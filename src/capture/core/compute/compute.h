/* SPDX-License-Identifier: Apache-2.0
 * Kernels that run on the host. If a program's control flow or a tensor's size
 * depends on a small integer or boolean tensor, the PyTorch kernels that
 * compute it run on the host, on the shadow memory of values.h. doc/values.md
 * lists which values are computed and which are guessed.
 *
 * A kernel is identified by its row of the catalogue (src/kernels) and read
 * from its mangled name. Its arguments have the layout of
 * PyTorch 2.5 to 2.15; tests/torch/test_values.py compares each with the CPU.
 */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_H

#include "capture/core/base/number.h"
#include "capture/core/work/carry.h"

/* Elements that a kernel may have and still be carried out: where all inputs
 * are known integers; where something floating is made of what is not known;
 * where all inputs are known and some are floating; where something is not
 * known (what comes of zeros: enough for flags) and what is made of it is an
 * integer. */
#define COMPUTE_INTEGERS (UINT64_C(128) << 10)
#define COMPUTE_REDUCED  (UINT64_C(1) << 20) /* integers, by reductions */
#define COMPUTE_FLOATS   UINT64_C(64)
#define COMPUTE_CHECKED  (UINT64_C(32) << 10)
#define COMPUTE_UNKNOWN  UINT64_C(2048)

#define COMPUTE_TYPES 4

/* A kernel's reading of its name: what its RUN needs, in terms of its own. */
struct compute {
    compute_run *run;
    uint32_t name;                  /* of the kernel, for GUESS records */
    const uint16_t *argument_bytes; /* that RUN reads: never more than it has */
    /* The same of argument I, where it varies with the kernel or the launch. */
    uint32_t (*reach)(const struct compute *compute,
                      const struct kernel_launch *launch, int i);
    int form, layout;
    bool is_cast;
    int count;                             /* of types */
    enum number_type types[COMPUTE_TYPES]; /* the output's first */
    enum number_type scalar;               /* of what the functor holds */
    uint32_t bytes; /* of an element, where opaque, or where nothing is known of
                     * it unless there are few */
    long double (*operation)(long double, long double, int);
};

/* Fills COMPUTE where NAME, of a kernel whose row says HOST, is carried out. */
bool compute_find(const char *name, enum kernel_host host,
                  struct compute *compute);

/* What the kinds of kernels know of NAME; compute.c has their table. */
bool compute_loop_parse(const char *name, struct compute *compute);
bool compute_outputs_parse(const char *name, struct compute *compute);
bool compute_arange_parse(const char *name, struct compute *compute);
bool compute_linspace_parse(const char *name, struct compute *compute);
bool compute_reduce_parse(const char *name, struct compute *compute);
bool compute_count_parse(const char *name, struct compute *compute);
bool compute_total_parse(const char *name, struct compute *compute);
bool compute_select_parse(const char *name, struct compute *compute);
bool compute_places_parse(const char *name, struct compute *compute);
bool compute_unique_parse(const char *name, struct compute *compute);
bool compute_runs_parse(const char *name, struct compute *compute);
bool compute_difference_parse(const char *name, struct compute *compute);
bool compute_inverse_parse(const char *name, struct compute *compute);
bool compute_gather_rows_parse(const char *name, struct compute *compute);
bool compute_take_parse(const char *name, struct compute *compute);
bool compute_index_parse(const char *name, struct compute *compute);
bool compute_scatter_parse(const char *name, struct compute *compute);
bool compute_index_select_parse(const char *name, struct compute *compute);
bool compute_loss_parse(const char *name, struct compute *compute);
bool compute_cat_parse(const char *name, struct compute *compute);
bool compute_unfold_backward_parse(const char *name, struct compute *compute);
bool compute_reduce_jitted_parse(const char *name, struct compute *compute);
bool compute_scan_parse(const char *name, struct compute *compute);
bool compute_scan_rows_parse(const char *name, struct compute *compute);
bool compute_scan_columns_parse(const char *name, struct compute *compute);
bool compute_histogram_parse(const char *name, struct compute *compute);
bool compute_sort_tile_parse(const char *name, struct compute *compute);
bool compute_sort_pass_parse(const char *name, struct compute *compute);
bool compute_sort_rows_parse(const char *name, struct compute *compute);
bool compute_topk_parse(const char *name, struct compute *compute);
bool compute_kth_parse(const char *name, struct compute *compute);
bool compute_median_parse(const char *name, struct compute *compute);
bool compute_mode_parse(const char *name, struct compute *compute);
bool compute_random_parse(const char *name, struct compute *compute);
bool compute_sample_parse(const char *name, struct compute *compute);
bool compute_row_numbers_parse(const char *name, struct compute *compute);
bool compute_roll_parse(const char *name, struct compute *compute);
bool compute_flip_parse(const char *name, struct compute *compute);
bool compute_triangle_parse(const char *name, struct compute *compute);
bool compute_search_parse(const char *name, struct compute *compute);
bool compute_repeat_parse(const char *name, struct compute *compute);
bool compute_unique_bool_parse(const char *name, struct compute *compute);
bool compute_inverse_bool_parse(const char *name, struct compute *compute);
bool compute_index_add_parse(const char *name, struct compute *compute);
bool compute_index_put_add_parse(const char *name, struct compute *compute);
bool compute_foreach_scalar_parse(const char *name, struct compute *compute);
bool compute_foreach_tensor_parse(const char *name, struct compute *compute);
bool compute_foreach_parse(const char *name, struct compute *compute);
bool compute_merge_sort_parse(const char *name, struct compute *compute);
bool compute_unique_by_key_parse(const char *name, struct compute *compute);
bool compute_flag_parse(const char *name, struct compute *compute);
bool compute_fill_rest_parse(const char *name, struct compute *compute);
bool compute_extremes_rows_parse(const char *name, struct compute *compute);
bool compute_extremes_columns_parse(const char *name, struct compute *compute);
bool compute_unique_agent_parse(const char *name, struct compute *compute);
bool compute_unique_rows_parse(const char *name, struct compute *compute);
bool compute_adjacent_parse(const char *name, struct compute *compute);
bool compute_transform_parse(const char *name, struct compute *compute);
bool compute_for_each_parse(const char *name, struct compute *compute);
bool compute_compressed_parse(const char *name, struct compute *compute);
bool compute_flatten_parse(const char *name, struct compute *compute);
bool compute_coalesce_parse(const char *name, struct compute *compute);
bool compute_sparse_add_parse(const char *name, struct compute *compute);
bool compute_triangle_indices_parse(const char *name, struct compute *compute);
bool compute_scan_mask_parse(const char *name, struct compute *compute);
bool compute_scan_other_parse(const char *name, struct compute *compute);
bool compute_jitted_parse(const char *name, struct compute *compute);
bool compute_divisor_parse(const char *name, struct compute *compute);
bool compute_collective_parse(const char *name, struct compute *compute);
bool compute_in_place_parse(const char *name, struct compute *compute);
bool compute_changes_parse(const char *name, struct compute *compute);
bool compute_counts_parse(const char *name, struct compute *compute);
bool compute_most_parse(const char *name, struct compute *compute);
bool compute_find_parse(const char *name, struct compute *compute);
bool compute_found_copy_parse(const char *name, struct compute *compute);
bool compute_matches_parse(const char *name, struct compute *compute);
bool compute_pointwise_parse(const char *name, struct compute *compute);
bool compute_cross_parse(const char *name, struct compute *compute);
bool compute_amp_update_parse(const char *name, struct compute *compute);

/* Arguments. */
uint64_t compute_u64(const struct kernel_launch *launch, uint32_t i);
uint32_t compute_u32(const struct kernel_launch *launch, uint32_t i);

/* One element of device memory. Loading says whether it is known; what is not
 * known and not finite is stored as zero. */
bool compute_load(enum number_type type, uint64_t address, long double *value);
void compute_store(enum number_type type, uint64_t address, long double value,
                   bool known);

/* What this launch stores from now on follows from a policy. */
void compute_assume(void);

/* What is said of known bytes that this launch stores (values.h). */
unsigned char compute_mark(void);

/* BYTES at ADDRESS, numbers of TYPE, are not known any more. */
void compute_forget(enum number_type type, uint64_t address, uint64_t bytes);

/* Moves BYTES that may be known or not. */
void compute_move(uint64_t destination, uint64_t source, uint32_t bytes);

/* OffsetCalculator<ARGS, uint32_t> of ATen/cuda/detail/OffsetCalculator.cuh:
 * int dims; IntDivider sizes[25]; uint32_t strides[25][ARGS], in bytes. */
#define OFFSETS_DIMS 25
#define OFFSETS_BYTES(args)                                                    \
    (4u + 12u * OFFSETS_DIMS + 4u * OFFSETS_DIMS * (args))

/* Whether AT looks like one. */
bool compute_offsets_valid(const char *at);
void compute_offsets(const char *at, int args, uint64_t index,
                     uint64_t *offsets);

/* TensorInfo<T, uint32_t> of ATen/cuda/detail/TensorInfo.cuh: T *data;
 * uint32_t sizes[25], strides[25]; int dims. Strides in elements. */
struct compute_tensor {
    uint64_t data;
    uint32_t sizes[OFFSETS_DIMS], strides[OFFSETS_DIMS];
    int dims;
};

bool compute_tensor_read(const void *argument, struct compute_tensor *tensor);

/* The elements of one of COUNT indices in {indexSelect,indexFunc}{Small,Large}
 * Index, where argument 5 is the inner size or, of the large ones (layout 1),
 * the elements of all indices: their inner size is the number of indices where
 * these run faster. */
uint64_t compute_slice(const struct compute *c,
                       const struct kernel_launch *launch, uint64_t count);

/* The place, in elements, of element INDEX in row-major order. */
uint64_t compute_tensor_offset(const struct compute_tensor *tensor,
                               uint64_t index);

/* The policy: of COUNT unknown elements, how many are selected. The question
 * WHAT is reported once, and recorded in the trace each time.
 */
uint64_t compute_guess(const struct compute *compute,
                       const struct kernel_launch *launch, uint64_t count,
                       const char *what);

#define COMPUTE_GUESS_MASK "what a mask selects"

/* Whether that choice takes element INDEX: evenly spread. */
bool compute_guess_takes(uint64_t index);

/* Whether the number at ADDRESS, one of COUNT, is not 0. Where that is not
 * known: the choice for the next of the elements that are UNKNOWN; of a single
 * one, what it came to. */
bool compute_takes(enum number_type type, uint64_t address, uint64_t count,
                   uint64_t *unknown);

/* The place, of COUNT, that element INDEX of ROW's first K is taken to be: not
 * the first or last ones of a row, which have meanings in a vocabulary. What is
 * longer than a router's list of experts is one. */
bool compute_is_vocabulary(uint64_t count);
uint64_t compute_any_place(uint64_t count, uint64_t k, uint64_t row,
                           uint64_t index);

/* The place, of SIZE, that index number I of a LAUNCH names which writes there,
 * where the index is not known: each in turn. Reported once for a launch. */
uint64_t compute_place_guess(const struct compute *compute,
                             const struct kernel_launch *launch, uint64_t size,
                             uint64_t i);

/* Writes that choice into the unknown elements of a mask, so that later reads
 * give the same. Returns the number of elements that were not known. */
uint64_t compute_mask_decide(uint64_t mask, uint64_t count);

/* Records that CHOSEN was picked for COUNT elements, and notes WHAT. */
void compute_guess_note(const struct compute *compute,
                        const struct kernel_launch *launch, uint64_t count,
                        uint64_t chosen, const char *what);

#endif
