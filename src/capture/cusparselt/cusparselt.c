/* SPDX-License-Identifier: Apache-2.0
 * cuSPARSELt: products with a matrix of which every group of four has two
 * zeros. Its objects lie in the program's memory, and our state in them: they
 * have at least 512 bytes in every version. */
#include "capture/cusparselt/cusparselt_fake.h"

#include <string.h>

#include "capture/core/work/library_call.h"
#include "capture/core/memory/device.h"
#include "capture/core/work/gemm.h"
#include "capture/core/run/record.h"

/* Values, scalars and alignments are not looked at; no header declares what is
 * defined here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define API    cusparseStatus_t
#define HANDLE const lt_object *handle
#define OK     CUSPARSE_STATUS_SUCCESS
#define BAD    CUSPARSE_STATUS_INVALID_VALUE

#define MAGIC      0x6d656d73696d4c74u /* what we set up begins with it */
#define ALGORITHMS 1

struct matrix {
    uint64_t magic;
    int64_t rows, columns, leading;
    int32_t type, order, structured, batch;
    int64_t batch_stride;
};

struct product {
    uint64_t magic;
    int32_t op_a, op_b, compute;
    struct matrix a, b, c, d;
    uint64_t values[LT_PRODUCT_ATTRIBUTES];
};

/* By enum lt_algorithm_attribute. */
struct selection {
    uint64_t magic;
    int32_t values[LT_ALGORITHM_ATTRIBUTES];
};

#define FITS(T)                                                                \
    _Static_assert(sizeof(struct T) <= 512, "objects have 512 bytes")
FITS(matrix);
FITS(product);
FITS(selection);

/* OBJECT as ours, or NULL where nobody set it up. */
static void *open_object(const void *object)
{
    uint64_t magic = 0;

    if (object)
        memcpy(&magic, object, sizeof magic);
    return magic == MAGIC ? (void *)object : NULL;
}

static API close_object(const void *object)
{
    void *ours = open_object(object);

    if (!ours)
        return BAD;
    memset(ours, 0, sizeof(uint64_t));
    return OK;
}

API cusparseLtInit(lt_object *handle)
{
    const uint64_t magic = MAGIC;

    if (!handle)
        return BAD;
    if (memsim_device_open(memsim_device_current()))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    memcpy(handle, &magic, sizeof magic);
    return OK;
}

API cusparseLtDestroy(HANDLE)
{
    return close_object(handle);
}

static const int version[] = {0, 8, 0};

API cusparseLtGetVersion(HANDLE, int *value)
{
    *value = version[0] * 1000 + version[1] * 100 + version[2];
    return OK;
}

API cusparseLtGetProperty(libraryPropertyType type, int *value)
{
    if ((unsigned)type > PATCH_LEVEL)
        return BAD;
    *value = version[type];
    return OK;
}

static API matrix_init(HANDLE, void *object, const struct matrix *like)
{
    if (!open_object(handle))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (!object || like->rows < 1 || like->columns < 1)
        return BAD;
    memcpy(object, like, sizeof *like);
    return OK;
}

#define SHAPE int64_t rows, int64_t columns, int64_t leading
#define MATRIX                                                                 \
    (&(const struct matrix){.magic = MAGIC, .rows = rows, .columns = columns,  \
                            .leading = leading, .type = (int32_t)type,         \
                            .order = (int32_t)order, .batch = 1,               \
                            .structured = structured})

API cusparseLtDenseDescriptorInit(HANDLE, lt_object *matrix,
                                  SHAPE, uint32_t alignment, cudaDataType type,
                                  cusparseOrder_t order)
{
    const int structured = 0;

    return matrix_init(handle, matrix, MATRIX);
}

API cusparseLtStructuredDescriptorInit(HANDLE,
                                       lt_object *matrix,
                                       SHAPE, uint32_t alignment,
                                       cudaDataType type,
                                       cusparseOrder_t order,
                                       int sparsity)
{
    const int structured = 1;

    return matrix_init(handle, matrix, MATRIX);
}

API cusparseLtMatDescriptorDestroy(const lt_object *matrix)
{
    return close_object(matrix);
}

/* The attribute's place in M, and its size; NULL where there is none. */
static void *matrix_place(struct matrix *m, enum lt_matrix_attribute which,
                          size_t *bytes)
{
    switch (which) {
    case LT_MATRIX_BATCH:
        *bytes = sizeof m->batch;
        return &m->batch;
    case LT_MATRIX_BATCH_STRIDE:
        *bytes = sizeof m->batch_stride;
        return &m->batch_stride;
    default:
        return NULL;
    }
}

API cusparseLtMatDescSetAttribute(HANDLE, lt_object *matrix,
                                  enum lt_matrix_attribute which,
                                  const void *data, size_t bytes)
{
    struct matrix *m = open_object(matrix);
    size_t wanted = 0;
    void *place = m ? matrix_place(m, which, &wanted) : NULL;

    if (!place || !data || bytes != wanted)
        return BAD;
    memcpy(place, data, bytes);
    return OK;
}

API cusparseLtMatDescGetAttribute(HANDLE,
                                  const lt_object *matrix,
                                  enum lt_matrix_attribute which,
                                  void *data, size_t bytes)
{
    struct matrix *m = open_object(matrix);
    size_t wanted = 0;
    const void *place = m ? matrix_place(m, which, &wanted) : NULL;

    if (!place || !data || bytes != wanted)
        return BAD;
    memcpy(data, place, bytes);
    return OK;
}

API cusparseLtMatmulDescriptorInit(
    HANDLE, lt_object *product, cusparseOperation_t op_a,
    cusparseOperation_t op_b, const lt_object *a,
    const lt_object *b, const lt_object *c,
    const lt_object *d, int compute)
{
    const struct matrix *ma = open_object(a), *mb = open_object(b),
                        *mc = open_object(c), *md = open_object(d);

    if (!open_object(handle))
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (!product || !ma || !mb || !mc || !md ||
        ma->structured == mb->structured)
        return BAD;
    *(struct product *)product =
        (struct product){.magic = MAGIC, .op_a = (int32_t)op_a,
                         .op_b = (int32_t)op_b, .compute = (int32_t)compute,
                         .a = *ma, .b = *mb, .c = *mc, .d = *md};
    return OK;
}

API cusparseLtMatmulDescSetAttribute(HANDLE,
                                     lt_object *product,
                                     unsigned which,
                                     const void *data, size_t bytes)
{
    struct product *p = open_object(product);

    if (!p || !data || which >= LT_PRODUCT_ATTRIBUTES || bytes > 8)
        return BAD;
    p->values[which] = 0;
    memcpy(&p->values[which], data, bytes);
    return OK;
}

API cusparseLtMatmulDescGetAttribute(
    HANDLE, const lt_object *product,
    unsigned which, void *data, size_t bytes)
{
    const struct product *p = open_object(product);

    if (!p || !data || which >= LT_PRODUCT_ATTRIBUTES || bytes > 8)
        return BAD;
    memcpy(data, &p->values[which], bytes);
    return OK;
}

API cusparseLtMatmulAlgSelectionInit(
    HANDLE, lt_object *selection,
    const lt_object *product, int alg)
{
    if (!open_object(product) || !selection)
        return BAD;
    *(struct selection *)selection = (struct selection){
        .magic = MAGIC,
        .values = {[LT_ALGORITHM_COUNT] = ALGORITHMS,
                   [LT_ALGORITHM_SEARCH_ITERATIONS] = 1,
                   [LT_ALGORITHM_SPLIT_K] = 1,
                   [LT_ALGORITHM_SPLIT_K_MODE] =
                       LT_ONE_KERNEL},
    };
    return OK;
}

API cusparseLtMatmulAlgSelectionDestroy(
    const lt_object *selection)
{
    return close_object(selection);
}

API cusparseLtMatmulAlgSetAttribute(HANDLE,
                                    lt_object *selection,
                                    enum lt_algorithm_attribute which,
                                    const void *data, size_t bytes)
{
    struct selection *s = open_object(selection);

    if (!s || !data || which >= LT_ALGORITHM_ATTRIBUTES ||
        which == LT_ALGORITHM_COUNT ||
        bytes != sizeof *s->values)
        return BAD;
    memcpy(&s->values[which], data, bytes);
    return OK;
}

API cusparseLtMatmulAlgGetAttribute(
    HANDLE, const lt_object *selection,
    enum lt_algorithm_attribute which, void *data, size_t bytes)
{
    const struct selection *s = open_object(selection);

    if (!s || !data || which >= LT_ALGORITHM_ATTRIBUTES ||
        bytes != sizeof *s->values)
        return BAD;
    memcpy(data, &s->values[which], bytes);
    return OK;
}

/* A plan is its product: the algorithm is always the same. */
API cusparseLtMatmulPlanInit(HANDLE, lt_object *plan,
                             const lt_object *product,
                             const lt_object *selection)
{
    const struct product *p = open_object(product);

    if (!p || !open_object(selection) || !plan)
        return BAD;
    memcpy(plan, p, sizeof *p);
    return OK;
}

API cusparseLtMatmulPlanDestroy(const lt_object *plan)
{
    return close_object(plan);
}

/* What split-K adds up in: nothing, where K is not split. */
API cusparseLtMatmulGetWorkspace(HANDLE, const lt_object *plan,
                                 size_t *bytes)
{
    *bytes = 0;
    return open_object(plan) ? OK : BAD;
}

/* The stream where a product is launched: the first of COUNT. */
static cudaStream_t first_of(const cudaStream_t *streams, int32_t count)
{
    return streams && count > 0 ? streams[0] : NULL;
}

/* Recorded as the product of dense matrices that it stands for: the name says
 * that half of one operand is skipped. */
static API call_matmul(uint32_t name, const struct product *p, const void *a,
                       const void *b, const void *d, cudaStream_t stream)
{
    if (!p)
        return BAD;
    const struct gemm g = {
        .stream = (uint64_t)stream,
        .m = p->d.rows,
        .n = p->d.columns,
        .k = p->op_a ? p->a.rows : p->a.columns,
        .batch = p->d.batch,
        .type_a = p->a.type,
        .type_b = p->b.type,
        .type_c = p->c.type,
        .type_d = p->d.type,
        .compute = p->compute,
        .transpose_a = p->op_a,
        .transpose_b = p->op_b,
        .lda = p->a.leading,
        .ldb = p->b.leading,
        .ldc = p->c.leading,
        .ldd = p->d.leading,
        .a = a,
        .b = b,
        .c = d,
    };
    return memsim_gemm(name, &g) ? CUSPARSE_STATUS_EXECUTION_FAILED : OK;
}

API cusparseLtMatmul(HANDLE, const lt_object *plan,
                     const void *alpha, const void *a, const void *b,
                     const void *beta, const void *c, void *d, void *workspace,
                     cudaStream_t *streams, int32_t count)
{
    return call_matmul(NAME_OF("cusparseLtMatmul"), open_object(plan), a, b, d,
                       first_of(streams, count));
}

API cusparseLtMatmulSearch(HANDLE, lt_object *plan,
                           const void *alpha, const void *a, const void *b,
                           const void *beta, const void *c, void *d,
                           void *workspace, cudaStream_t *streams,
                           int32_t count)
{
    return call_matmul(NAME_OF("cusparseLtMatmulSearch"), open_object(plan), a,
                       b, d, first_of(streams, count));
}

static uint64_t type_bytes(int32_t type)
{
    switch (type) {
    case CUDA_R_32F:
        return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    default:
        return 1;
    }
}

/* Half of the values, and four bits of metadata for each group: of four, and
 * of two where elements have 32 bits (PTX ISA, "Sparse matrix storage"). That
 * is 9/16 of a matrix of 16-bit and 10/16 of one of 8-bit elements. */
static uint64_t compressed_bytes(const struct matrix *m)
{
    uint64_t unit = type_bytes(m->type);
    uint64_t count = (uint64_t)m->rows * (uint64_t)m->columns;
    uint64_t groups = count / (unit == 4 ? 2 : 4);

    return (uint64_t)m->batch * (count * unit / 2 + (groups + 1) / 2);
}

static const struct matrix *structured_of(const struct product *p)
{
    if (!p)
        return NULL;
    return p->a.structured ? &p->a : &p->b;
}

/* No buffer: compression needs nothing but what it reads and writes. */
static API size_of(const struct matrix *m, size_t *bytes, size_t *buffer_bytes)
{
    if (!m || !bytes || !buffer_bytes)
        return BAD;
    *bytes = compressed_bytes(m);
    *buffer_bytes = 0;
    return OK;
}

API cusparseLtSpMMACompressedSize(HANDLE, const lt_object *plan,
                                  size_t *bytes, size_t *buffer_bytes)
{
    return size_of(structured_of(open_object(plan)), bytes, buffer_bytes);
}

API cusparseLtSpMMACompressedSize2(HANDLE,
                                   const lt_object *matrix,
                                   size_t *bytes, size_t *buffer_bytes)
{
    return size_of(open_object(matrix), bytes, buffer_bytes);
}

/* Work on one matrix. */
static API call_work(uint32_t name, const struct matrix *m, cudaStream_t stream)
{
    if (!m)
        return BAD;
    const struct call call = {
        .name = name,
        .stream = (uint64_t)stream,
        .values = {(uint64_t)m->rows, (uint64_t)m->columns, 0,
                   (uint64_t)m->batch, (uint64_t)m->type},
    };
    return memsim_call(&call) ? CUSPARSE_STATUS_EXECUTION_FAILED : OK;
}

API cusparseLtSpMMACompress(HANDLE, const lt_object *plan,
                            const void *dense, void *compressed, void *buffer,
                            cudaStream_t stream)
{
    return call_work(NAME_OF("cusparseLtSpMMACompress"),
                     structured_of(open_object(plan)), stream);
}

API cusparseLtSpMMACompress2(HANDLE, const lt_object *matrix,
                             int is_a, cusparseOperation_t op,
                             const void *dense, void *compressed, void *buffer,
                             cudaStream_t stream)
{
    return call_work(NAME_OF("cusparseLtSpMMACompress2"), open_object(matrix),
                     stream);
}

API cusparseLtSpMMAPrune(HANDLE, const lt_object *product,
                         const void *in, void *out, int alg,
                         cudaStream_t stream)
{
    return call_work(NAME_OF("cusparseLtSpMMAPrune"),
                     structured_of(open_object(product)), stream);
}

API cusparseLtSpMMAPrune2(HANDLE, const lt_object *matrix,
                          int is_a, cusparseOperation_t op, const void *in,
                          void *out, int alg,
                          cudaStream_t stream)
{
    return call_work(NAME_OF("cusparseLtSpMMAPrune2"), open_object(matrix),
                     stream);
}

/* VALID becomes 0: every group has its zeros. */
API cusparseLtSpMMAPruneCheck(HANDLE,
                              const lt_object *product,
                              const void *in, int *valid, cudaStream_t stream)
{
    memsim_call_result(valid, sizeof *valid);
    return call_work(NAME_OF("cusparseLtSpMMAPruneCheck"),
                     structured_of(open_object(product)), stream);
}

API cusparseLtSpMMAPruneCheck2(HANDLE, const lt_object *matrix,
                               int is_a, cusparseOperation_t op,
                               const void *in, int *valid, cudaStream_t stream)
{
    memsim_call_result(valid, sizeof *valid);
    return call_work(NAME_OF("cusparseLtSpMMAPruneCheck2"), open_object(matrix),
                     stream);
}
