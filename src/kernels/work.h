/* SPDX-License-Identifier: Apache-2.0
 * What an operation has to do, as the cost models ask: family, type, shape,
 * bytes and arithmetic. Made from a struct op by work_describe(). Pure. */
#ifndef MEMSIM_KERNELS_WORK_H
#define MEMSIM_KERNELS_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/op.h"

/* The families, which are priced by models of their own (cost.h). X(ID, NAME,
 * SHAPE): the name is that of fits, reports and --scale; the shape says which
 * extents describe such work, and so which inputs trees have of it
 * (cost_features.c) and which columns a table of measurements
 * (src/fitting/ops_row.c). doc/HOWTO-add-cost-family.md says what else there
 * is to do. */
#define WORK_FAMILY_LIST(X)                                                    \
    X(NOTHING, nothing, none) /* takes no time on the device */                \
    /* contiguous arithmetic, casts, fills, dropout */                         \
    X(ELEMENTWISE, elementwise, plain)                                         \
    /* kernels that load elements one by one: broadcast and transposed         \
       arithmetic and copies, casts, cat */                                    \
    X(STRIDED, strided, plain)                                                 \
    X(REDUCE, reduce, rows) /* sums, means, norms of vectors, arg max */       \
    X(NORM_FORWARD, norm_forward, rows) /* layer, group, RMS, batch norm */    \
    X(NORM_BACKWARD, norm_backward, rows)                                      \
    /* softmax, log_softmax, losses over rows */                               \
    X(SOFTMAX_FORWARD, softmax_forward, softmax)                               \
    X(SOFTMAX_BACKWARD, softmax_backward, softmax)                             \
    X(INDEX, index, plain) /* embedding, gather, scatter, index_put */         \
    X(SORT, sort, sort)    /* sorts, scans, unique, top-k */                   \
    X(OPTIMIZER, optimizer, plain) /* foreach and fused optimizers */          \
    X(POOL, pool, plain)           /* pooling, interpolation */                \
    X(GEMM, gemm, gemm)                                                        \
    X(ATTENTION_FORWARD, attention_forward, attention)                         \
    X(ATTENTION_BACKWARD, attention_backward, attention)                       \
    X(CONVOLUTION_FORWARD, convolution_forward, convolution)                   \
    X(CONVOLUTION_DGRAD, convolution_dgrad, convolution)                       \
    X(CONVOLUTION_WGRAD, convolution_wgrad, convolution)                       \
    X(COPY, copy, none) /* copy engines: between host and device, or GPUs */   \
    X(SET, set, none)                                                          \
    X(COLLECTIVE, collective, none)                                            \
    X(OTHER, other, none)

#define WORK_FAMILY_ID(id, name, shape) WORK_##id,
enum work_family { WORK_FAMILY_LIST(WORK_FAMILY_ID) WORK_FAMILIES };
#undef WORK_FAMILY_ID

/* The type that arithmetic is done in. */
enum work_type {
    WORK_FP32, /* without tensor cores */
    WORK_TF32,
    WORK_FP16,
    WORK_BF16,
    WORK_FP64,
    WORK_FP8,
    WORK_INT8,
    WORK_INTEGER,
    WORK_FP4, /* with a scale for some elements; two share a byte */
    WORK_TYPES,
};

enum work_attention {
    WORK_ATTENTION_FLASH2,
    WORK_ATTENTION_FLASH3,
    WORK_ATTENTION_EFFICIENT, /* PyTorch's memory-efficient kernels */
    WORK_ATTENTION_CUDNN,
};

enum work_layout { WORK_NCHW, WORK_NHWC };

enum work_sort {
    WORK_SORT_PASSES, /* cub's passes over memory, scans, unique */
    WORK_SORT_BLOCKS, /* a block sorts a row */
    WORK_SORT_SELECT, /* top-k */
};

/* What bounds a kernel that its family's models do not describe: few blocks,
 * waves of short ones, arithmetic for each element, reads of a row again.
 * runtime/cost/cost_rates.c has their numbers. X(ID). */
#define WORK_RATE_LIST(X)                                                      \
    X(NONE)                                                                    \
    X(LAYER_NORM)                                                              \
    X(LAYER_NORM_DATA)                                                         \
    X(LAYER_NORM_WEIGHTS) X(MOMENTS) X(SMALL_NORM) X(BATCH_STATISTICS)         \
        X(BATCH_TRANSFORM) X(BATCH_REDUCE) X(BATCH_DATA) X(CHANNEL_FORWARD)    \
            X(CHANNEL_BACKWARD) /* cuDNN: a block a channel */                 \
        X(SUM_INNER)                                                           \
            X(SUM_OUTER) /* of contiguous elements; of strided ones */         \
        X(LONG_SOFTMAX) X(LONG_SOFTMAX_DATA) X(KEPT_SOFTMAX)                   \
            X(KEPT_SOFTMAX_DATA) X(WARP_SOFTMAX) X(WARP_SOFTMAX_DATA) X(CAST)  \
                X(CAST_PAIR) X(DROPOUT) X(CAT) X(CAT_WIDE) X(FUSED_LISTS)      \
                    X(POOL) X(POOL_DATA) X(UPSAMPLE) X(UPSAMPLE_DATA)          \
                        X(GATHER_ROWS) X(SEGMENTS) X(SCATTER_SEGMENTS)         \
                            X(SERIAL_ROWS) X(SORT_PASS) X(SORT_SMALL) X(SCAN)  \
                                X(BOXES) X(BOX_PAIRS) X(ALIGN) X(ALIGN_DATA)   \
                                    X(WEIGHT_NORM) X(WEIGHT_NORM_DATA) X(ONE)  \
                                        X(LOSS) X(LOSS_DATA)                   \
                                        X(GELU) X(GELU_DATA) X(GELU_TANH)      \
                                            X(GELU_TANH_DATA) X(NORMAL_NUMBERS)

#define WORK_RATE_ID(id) WORK_RATE_##id,
enum work_rate { WORK_RATE_LIST(WORK_RATE_ID) WORK_RATES };
#undef WORK_RATE_ID

/* How sure the description is. */
enum work_source {
    WORK_EXACT,   /* shapes from the call's own arguments */
    WORK_RULE,    /* bytes from the kernel's name and arguments */
    WORK_GUESSED, /* bytes of the blocks that the arguments point into */
    WORK_UNKNOWN, /* nothing: priced by its grid, if at all */
};

struct work_gemm { /* row-major: out[batch][m][n] = A[m][k] B[k][n] */
    uint64_t m, n, k, batch;
    uint64_t lda, ldb, ldc; /* leading dimensions in elements; 0: packed */
    uint32_t alignment;     /* bytes, of the worst operand; 0: not known */
    bool transpose_a, transpose_b;
    bool shared_a, shared_b; /* one matrix for the whole batch */
    uint32_t epilogue;  /* cublasLtEpilogue_t */
    uint32_t out_bytes; /* of an element of the result */
};

struct work_attention_shape {
    uint64_t batch, heads, kv_heads, queries, keys, head_size, value_size;
    uint32_t padded_head_size, tile_q, tile_k; /* 0: not known */
    bool causal;
    bool dropout;
    bool bias; /* of a pair; a mask is one */
    enum work_attention kernel;
};

struct work_convolution {
    uint64_t n, c, h, w, k; /* input and output channels */
    uint64_t d, t;          /* input's and filter's depth, 1 in two dims */
    uint64_t r, s;          /* filter's height and width */
    uint64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    uint64_t groups;
    uint64_t out_h, out_w;
    enum work_layout layout;
};

enum work_pass {
    WORK_PASS_FORWARD,
    WORK_PASS_DATA,    /* gradients of inputs and states */
    WORK_PASS_WEIGHTS, /* gradients of weights */
};

struct work_recurrent { /* RNN, LSTM, GRU */
    uint64_t tokens, steps, input, hidden, layers;
    uint32_t directions, gates, type_bytes;
    enum work_pass pass;
};

struct work_rows {          /* reductions, norms, softmax */
    uint64_t rows, columns; /* columns are reduced */
    uint64_t stride;        /* between reduced elements; 1: contiguous */
    uint64_t partials;      /* that one thread adds at the end; 0: none */
};

struct work {
    enum work_family family;
    enum work_type type;
    enum work_source source;
    uint32_t element_bytes; /* of the main operand */
    double flops;           /* arithmetic, multiply and add counted as two */
    double read_bytes, written_bytes;
    uint64_t elements;
    uint32_t load_bytes; /* a thread loads so much at a time; 0: not known */
    uint64_t blocks;  /* of the grid; 0: not known */
    uint32_t threads; /* of a block */
    uint32_t shared_bytes;
    uint32_t registers; /* a thread; 0: not known */
    uint64_t told_ns;   /* its launch says how long it lasts; 0: no */
    uint64_t told_parts; /* ... and so many millionths of what was before it on
                            its stream */
    bool between_nodes; /* ... in the place of a collective of several nodes */
    uint32_t direction; /* enum trace_direction, of a copy */
    bool pinned;        /* the host side of a copy */
    bool is_recurrent;  /* of WORK_OTHER: a recurrent network */
    uint32_t launches;  /* that the host makes for it; 0: one */
    bool is_part; /* a further kernel of a call that a kernel before it has the
                     work of: it costs nothing more */
    uint8_t sort;       /* enum work_sort */
    uint8_t rate;       /* enum work_rate */
    union {
        struct work_gemm gemm;
        struct work_attention_shape attention;
        struct work_convolution convolution;
        struct work_rows rows;
        struct work_recurrent recurrent;
    };
};

/* An argument of a kernel that says how much work it has: an integer, or a
 * description of a tensor (at::cuda::detail::TensorInfo, at::PackedTensor-
 * Accessor) with 32 or 64 bits a size. */
enum work_size_kind {
    WORK_SIZE_INT,
    WORK_SIZE_LONG,
    WORK_SIZE_INFO,
    WORK_SIZE_INFO_LONG,
    WORK_SIZE_ACCESSOR,
    WORK_SIZE_ACCESSOR_LONG,
};

#define WORK_SIZES_MAX 8
struct work_size {
    uint8_t argument; /* its index */
    uint8_t kind;
    uint8_t dimensions; /* of an accessor */
};

/* What a kernel's name says of its work, read once for each name: a caller with
 * many launches keeps one for each. */
#define WORK_OPERANDS_MAX 8
#define WORK_NUMBERS_MAX  8
struct kernel_row;
struct work_kernel {
    const struct kernel_row *row; /* of the catalogue; NULL: none has it */
    uint8_t arguments, count; /* enum kernel_arguments, and how many */
    uint8_t type;     /* enum work_type of its main operand */
    uint8_t operands; /* of an elementwise kernel: the result, then inputs */
    uint8_t size_count;
    struct work_size sizes[WORK_SIZES_MAX]; /* among its arguments */
    uint8_t bytes[WORK_OPERANDS_MAX];       /* of an element of each */
    uint8_t type_bytes[WORK_NUMBERS_MAX];   /* of the types among the template
                                               arguments, in their order */
    int32_t numbers[WORK_NUMBERS_MAX];      /* the numbers among them */
};

/* Reads NAME, mangled or not; NULL or "": a name that says nothing. */
void work_kernel_read(const char *name, struct work_kernel *kernel);

/* Describes the work of OP, whose kernel's name is NAME, mangled or not (other
 * operations: NULL). What is not known of it is 0. Always gives a family. */
void work_describe(const struct op *op, const char *name, struct work *work);

/* The same, of a launch whose kernel's name has been read. */
void work_describe_launch(const struct op *op, const struct work_kernel *kernel,
                          struct work *work);

/* The words of a LAUNCH of TRACE_RULE_WORK with the work of OP, which is none,
 * NAME as above. Returns whether it is known. */
bool work_words(const struct op *op, const char *name,
                uint64_t words[TRACE_LAUNCH_WORDS]);

/* The family's name, as in fits and reports: "gemm", "attention_forward". */
const char *work_family_name(enum work_family family);
/* Its inverse; WORK_OTHER where NAME is none. */
enum work_family work_family_find(const char *name);
const char *work_type_name(enum work_type type);

/* Families that differ by more than shape have variants, which models tell
 * apart: attention by its kernel, convolutions by whether they are depthwise
 * (a channel a group: kernels of their own), products by whether they are
 * batched, sorts by enum work_sort; all others have variant 0. */
#define WORK_VARIANTS 4
unsigned work_variant(const struct work *work);

/* The variant's name, as in fits: "flash2", "depthwise"; NULL where FAMILY has
 * no such variant. */
const char *work_variant_name(enum work_family family, unsigned variant);

#endif
