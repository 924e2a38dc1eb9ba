/* SPDX-License-Identifier: Apache-2.0
 * For the files that describe work, among themselves. */
#ifndef MEMSIM_KERNELS_WORK_INTERNAL_H
#define MEMSIM_KERNELS_WORK_INTERNAL_H

#include "common/base/cxx_name.h"
#include "kernels/work.h"

/* The fields of OP's record; all 0 where it was made from no such record. */
#define RECORD_OF(op, kind, name)                                              \
    ({                                                                         \
        static const struct trace_##name none_;                                \
        (op)->record == TRACE_##kind ? op_as_##name(op) : &none_;              \
    })

/* A launch's record, unpacked. */
struct work_launch {
    uint64_t grid[3], block[3]; /* at least 1 each */
    uint32_t shared_bytes;
    enum trace_rule rule;
    uint64_t words[TRACE_LAUNCH_WORDS]; /* what the rule says of them */
};

/* Where a number of rows or columns comes from. */
enum work_from {
    WORK_ONE,
    WORK_GRID_X,      /* a block a row */
    WORK_ALL_THREADS, /* one an element: at most so many */
    WORK_WORD_0,      /* words of TRACE_RULE_SIZES */
    WORK_WORD_1,
    WORK_WORD_2,
    WORK_WORD_3,
    WORK_WORD_4,
    WORK_WORD_5,
    WORK_WORD_6,
    WORK_WORD_7,
};

/* Work on rows x columns elements. Bytes of an element are those of a type
 * among the kernel's template arguments, by its index, or BYTES. */
struct work_form {
    uint8_t rows[2]; /* enum work_from, multiplied */
    uint8_t columns;
    uint8_t read, written;           /* times that an element is */
    uint8_t read_type, written_type; /* indices */
    uint8_t bytes;                   /* 0: by type */
    uint8_t column_read;             /* tensors of one row's size, as weights */
    uint8_t row_read, row_written;   /* bytes a row, as statistics */
    uint8_t element_written;         /* further bytes an element, as masks */
    uint8_t flops;                   /* an element; 0: 1 */
};

/* work_type.c: bytes of an element of the type TEXT names, 0 where they are not
 * known; the type of its arithmetic in *TYPE. */
uint32_t work_type_read(struct cxx_text text, enum work_type *type);

/* n of the first OpaqueType<n> in TEXT, 0 where there is none. */
uint32_t work_opaque_bytes(struct cxx_text text);

/* work_functor.c: the operands of an elementwise kernel from its functor.
 * INPUTS: how many it reads where that is known from elsewhere, else -1. */
void work_functor_read(struct cxx_text functor, int inputs,
                       struct work_kernel *kernel);

/* work_elementwise.c, work_rows.c: rules' functions. */
void work_read_vectorized(const struct cxx_name *name,
                          struct work_kernel *kernel);
void work_read_strided(const struct cxx_name *name, struct work_kernel *kernel);
void work_read_foreach(const struct cxx_name *name, struct work_kernel *kernel);
bool work_elementwise(const struct work_kernel *kernel,
                      const struct work_launch *launch, struct work *work);
bool work_strided(const struct work_kernel *kernel,
                  const struct work_launch *launch, struct work *work);
bool work_foreach(const struct work_kernel *kernel,
                  const struct work_launch *launch, struct work *work);
void work_read_reduce(const struct cxx_name *name, struct work_kernel *kernel);
bool work_reduce(const struct work_kernel *kernel,
                 const struct work_launch *launch, struct work *work);
bool work_cat(const struct work_kernel *kernel,
              const struct work_launch *launch, struct work *work);
void work_read_distribution(const struct cxx_name *name,
                            struct work_kernel *kernel);
void work_read_opaque(const struct cxx_name *name, struct work_kernel *kernel);
bool work_max_pool(const struct work_kernel *kernel,
                   const struct work_launch *launch, struct work *work);
bool work_max_pool_nhwc(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work);
bool work_average_pool(const struct work_kernel *kernel,
                       const struct work_launch *launch, struct work *work);
bool work_max_pool_backward(const struct work_kernel *kernel,
                            const struct work_launch *launch,
                            struct work *work);
bool work_upsample(const struct work_kernel *kernel,
                   const struct work_launch *launch, struct work *work);
bool work_upsample_backward(const struct work_kernel *kernel,
                            const struct work_launch *launch,
                            struct work *work);
bool work_upsample_nhwc(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work);

/* memsim_collective of capture/emulate: (send, receive, elements, shares,
 * factor, nanoseconds, nodes, ...) */
bool work_told(const struct work_kernel *kernel,
               const struct work_launch *launch, struct work *work);
/* memsim_delay of capture/emulate: (nanoseconds, parts, ...) */
bool work_told_delay(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);

/* work_attention.c */
void work_attention_set(const struct work_attention_shape *shape, bool backward,
                        struct work *work);
void work_read_flash(const struct cxx_name *name, struct work_kernel *kernel);
void work_read_efficient(const struct cxx_name *name,
                         struct work_kernel *kernel);
bool work_flash(const struct work_kernel *kernel,
                const struct work_launch *launch, struct work *work);
bool work_flash_rows(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);
bool work_efficient(const struct work_kernel *kernel,
                    const struct work_launch *launch, struct work *work);

/* work_depthwise.c */
bool work_depthwise(const struct work_kernel *kernel,
                    const struct work_launch *launch, struct work *work);

/* work_form.c */
bool work_form_apply(const struct work_form *form,
                     const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work);

/* work_library.c: calls of libraries, and copies. */
void work_gemm(const struct op *op, struct work *work);
void work_convolution(const struct op *op, struct work *work);
void work_attention(const struct op *op, struct work *work);
void work_copy(const struct op *op, struct work *work);
void work_set(const struct op *op, struct work *work);
void work_library_call(const struct op *op, const char *name,
                       struct work *work);
/* The number behind "KEY=" in OP's text; 0: there is none. */
uint64_t work_text_number(const struct op *op, const char *key);
bool work_text_has(const struct op *op, const char *word);

/* Bytes of an element of cudaDataType NUMBER, 0 for one that is not known. */
uint32_t work_data_type(uint64_t number, enum work_type *type);

/* The arithmetic and the bytes of WORK, whose family, element and shape are
 * set: of a product (BYTES: of an element of A, B and the result; ACCUMULATES:
 * the result is read, too), a convolution, a recurrent network (work_math.c).
 */
void work_gemm_moves(const uint32_t bytes[3], bool accumulates,
                     struct work *work);
void work_convolution_moves(uint64_t out_depth, struct work *work);
void work_recurrent_moves(struct work *work);

/* work_pack.c: WORK of TRACE_RULE_WORK as a launch's words; and back, into WORK
 * whose grid and block are set. Returns false where the words are none. */
void work_pack(const struct work *work, uint64_t words[TRACE_LAUNCH_WORDS]);
bool work_unpack(const uint64_t words[TRACE_LAUNCH_WORDS], struct work *work);

/* work_math.c: transforms, factorisations, sparse products and recurrent
 * networks. False where NAME is none that is known. */
bool work_math(const struct op *op, const char *name, struct work *work);
void work_collective(const struct op *op, struct work *work);

#endif
