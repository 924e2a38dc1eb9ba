/* SPDX-License-Identifier: Apache-2.0
 * The trace: a file of what one process did on its GPUs, in order.
 *
 * A file is a header page followed by slots of TRACE_CHUNK_BYTES each:
 *
 *   [ header, 4096 bytes ][ last chunk ][ chunk 0 ][ chunk 1 ] ...
 *   chunk = [ struct trace_chunk ][ record ][ record ] ...
 *
 * Slot 0 is written through a shared mapping. So every finished record is in
 * the file when the process ends, even by kill -9: the chunk's used_bytes
 * changes only after the record is complete. A full chunk is sealed with the
 * CRC-32C of its records and appended to the file, and slot 0 then holds the
 * next chunk. (To map every chunk at its final place would cost a page fault
 * for each page, which is four times the cost of appending.)
 *
 * A record begins with a word: its kind, which of the kind's 64-bit fields
 * follow (those that are not 0), whether text follows, and the time since the
 * previous record. Then come the text's length if there is text, the fields,
 * and the text, zero-padded to whole words. Later versions may append fields
 * to a kind: readers skip those that they do not know. All numbers are
 * little-endian. man/memsim-trace.5 describes every kind. */
#ifndef MEMSIM_COMMON_TRACE_TRACE_H
#define MEMSIM_COMMON_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC         "memsim\0T" /* 8 bytes, without the terminator */
#define TRACE_VERSION       2
#define TRACE_HEADER_BYTES  4096
#define TRACE_CHUNK_BYTES   (512u << 10)
#define TRACE_CHUNK_MAGIC   UINT32_C(0x4b43534d) /* "MSCK" */
#define TRACE_FIELDS_MAX    23
#define TRACE_TEXT_MAX      (64u << 10)

struct trace_header {
    char magic[8];
    uint32_t version;
    uint32_t chunk_bytes;
    uint64_t start_unix_ns;      /* wall clock at the first record */
    uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC at the same moment */
    uint32_t pid;
    uint32_t crc; /* CRC-32C of the header with this field zero */
};

struct trace_chunk {
    uint32_t magic;
    uint32_t index;      /* 0, 1, 2, ...: a gap is an error */
    uint64_t used_bytes; /* this header included; 8-byte multiple */
    uint32_t sealed;     /* 1 once crc is valid and nothing more will come */
    uint32_t crc;        /* CRC-32C of bytes [sizeof chunk, used_bytes) */
    uint64_t time_ns;    /* CLOCK_MONOTONIC; the first word's time adds to it */
    uint32_t thread;     /* of the first record: 0, 1, 2 as they appear */
    uint32_t reserved[7];
};

/* The word that a record begins with. Times never decrease. */
#define TRACE_WORD_TEXT    (1u << 8) /* text follows */
#define TRACE_WORD_FIELD_0 9         /* this bit: field 0 follows, and so on */
#define TRACE_WORD_TIME    32        /* from here on: ns since the last one */

/* Every kind of record: number, KIND, name, what it is for (TRACE_FOR_...),
 * fields, meaning of its text (NULL: it has none). This list generates the
 * structs and accessors below, the writers' RECORD and the names that `memsim
 * trace` prints. A test compares man/memsim-trace.5 with it.
 *
 * `device` is the index in the process's own numbering. `card` is the index in
 * the session's (CUDA_VISIBLE_DEVICES maps one to the other). `stream` is the
 * program's handle (0 is the legacy default stream). `name` is the id of an
 * earlier NAME record. `x_y` packs x in the low and y in the high 32 bits.
 * Numbers of existing kinds never change, and new fields are only added after
 * a kind's last one. A CLOCK sets the time and the thread of the next records
 * if they differ from the last record's; readers do not pass it on.
 *
 * Work recorded for a stream between its CAPTURE_JOIN and that capture's
 * CAPTURE_END did not run then. Each GRAPH_LAUNCH of the capture runs it
 * once. Work that the program adds to a graph node by node is recorded in the
 * same way, with the graph's handle as the stream. */

/* clang-format off */
/* Fields that several kinds share: named work of a kernel or a library, work on
 * a stream, a segment of PyTorch's allocator. */
#define TRACE_FIELDS_WORK    F(name) F(device) F(stream)
#define TRACE_FIELDS_STREAM  F(device) F(stream)
#define TRACE_FIELDS_SEGMENT                                                   \
    F(device) F(address) F(bytes) F(stream) F(pool_low) F(pool_high)

#define TRACE_KINDS(X)                                                         \
    X(1, PROCESS, process, TIME, F(pid) F(parent) F(rank) F(local_rank)        \
      F(world_size) F(local_world_size), "argv")                               \
    X(2, SETTING, setting, TIME, , "key=value")                                \
    X(3, DEVICE, device, TIME, F(device) F(capacity_bytes) F(context_bytes)    \
      F(card), "name")                                                         \
    X(4, NAME, name, TIME, F(name), "text")                                    \
    X(5, END, end, TIME, F(reason) F(status), NULL)                            \
    X(6, FORK, fork, TIME, F(child), NULL)                                     \
    X(7, NOTE, note, TIME, , "text")                                           \
    X(8, CLOCK, clock, TIME, F(time_ns) F(thread), NULL)                       \
                                                                               \
    X(10, BLOCK_ALLOC, block_alloc, TIME, F(device) F(address)                 \
      F(requested_bytes) F(block_bytes) F(stream) F(allocated_bytes)           \
      F(reserved_bytes) F(pool_low) F(pool_high) F(module) F(phase)            \
      F(operator) F(range) F(stack) F(shape), NULL)                            \
    X(11, BLOCK_FREE, block_free, MEMORY, F(device) F(address) F(block_bytes)  \
      F(allocated_bytes) F(reserved_bytes) F(stream) F(deferred), NULL)        \
    X(12, FREE_DONE, free_done, MEMORY, F(device) F(address) F(bytes)          \
      F(stream), NULL)                                                         \
    X(13, SEGMENT_ALLOC, segment_alloc, MEMORY, TRACE_FIELDS_SEGMENT, NULL)    \
    X(14, SEGMENT_FREE, segment_free, MEMORY, TRACE_FIELDS_SEGMENT, NULL)      \
    X(15, SEGMENT_MAP, segment_map, MEMORY, TRACE_FIELDS_SEGMENT, NULL)        \
    X(16, SEGMENT_UNMAP, segment_unmap, MEMORY, TRACE_FIELDS_SEGMENT, NULL)    \
    X(17, OOM, oom, TIME, F(device) F(requested_bytes) F(free_bytes)           \
      F(allocated_bytes) F(reserved_bytes) F(stream) F(module) F(phase)        \
      F(operator) F(range) F(stack), NULL)                                     \
    X(18, MEMORY_FRACTION, memory_fraction, TIME, F(device), "fraction")       \
    X(19, ALLOCATOR_SETTINGS, allocator_settings, TIME, , "settings")          \
                                                                               \
    X(20, DEVICE_MALLOC, device_malloc, TIME, F(device) F(address) F(bytes)    \
      F(how) F(used_bytes) F(free_bytes), NULL)                                \
    X(21, DEVICE_FREE, device_free, TIME, F(device) F(address) F(bytes)        \
      F(how) F(used_bytes), NULL)                                              \
    X(22, DEVICE_REFUSE, device_refuse, TIME, F(device) F(bytes) F(how)        \
      F(used_bytes) F(free_bytes), NULL)                                       \
    X(23, LIBRARY_MEMORY, library_memory, MEMORY, F(device) F(bytes)           \
      F(used_bytes), "who")                                                    \
    X(24, HOST_MALLOC, host_malloc, MEMORY, F(address) F(bytes) F(flags),      \
      NULL)                                                                    \
    X(25, HOST_FREE, host_free, MEMORY, F(address) F(bytes), NULL)             \
    X(26, DEVICE_RESET, device_reset, TIME, F(device) F(used_bytes), NULL)     \
    X(27, SIZE_RANGE, size_range, MEMORY, F(device) F(bytes) F(least_bytes)    \
      F(most_bytes), NULL)                                                     \
    X(28, HOST_LEVEL, host_level, MEMORY, F(tensor_bytes) F(pinned_bytes)      \
      F(heap_bytes), NULL)                                                     \
    X(29, HOST_CPUS, host_cpus, ASIDE, F(ran_ns) F(waited_ns) F(process_ns)    \
      F(busy_ns) F(idle_ns), NULL)                                             \
                                                                               \
    X(30, LAUNCH, launch, TIME, TRACE_FIELDS_WORK F(grid_x_y)                  \
      F(grid_z_block_x) F(block_y_z) F(shared_bytes_rule) F(a) F(b) F(c) F(d)  \
      F(e) F(f) F(g) F(h), NULL)                                               \
    X(31, GEMM, gemm, TIME, TRACE_FIELDS_WORK F(m) F(n) F(k) F(batch)          \
      F(types_a_b_c_d) F(compute_scale) F(transpose_a_b) F(lda_ldb)            \
      F(ldc_ldd) F(stride_a) F(stride_b) F(stride_c) F(alignment) F(epilogue)  \
      F(workspace_bytes) F(math_mode) F(accumulates), NULL)                    \
    X(32, CONVOLUTION, convolution, TIME, TRACE_FIELDS_WORK F(operation)       \
      F(type) F(compute) F(workspace_bytes) F(engine) F(workspace_most)        \
      F(workspace_gpu), "dims")                                                \
    X(33, ATTENTION, attention, TIME, TRACE_FIELDS_WORK F(operation) F(type)   \
      F(workspace_bytes), "dims")                                              \
    X(34, LIBRARY_CALL, library_call, TIME, TRACE_FIELDS_WORK                  \
      F(workspace_bytes) F(a) F(b) F(c) F(d) F(e) F(f), "detail")              \
    X(35, COPY, copy, TIME, TRACE_FIELDS_STREAM F(direction) F(destination)    \
      F(source) F(bytes) F(blocking) F(peer) F(pinned), NULL)                  \
    X(36, SET, set, TIME, TRACE_FIELDS_STREAM F(address) F(value) F(bytes)     \
      F(blocking), NULL)                                                       \
    X(37, HOST_FUNCTION, host_function, TIME, TRACE_FIELDS_STREAM, NULL)       \
    X(38, COLLECTIVE, collective, TIME, TRACE_FIELDS_WORK F(communicator)      \
      F(rank) F(ranks) F(count) F(type) F(operation) F(root) F(bytes) F(send)  \
      F(receive) F(group) F(sequence) F(stack), NULL)                          \
    X(39, UNPRICED, unpriced, TIME, F(name) F(library), NULL)                  \
    X(40, GUESS, guess, TIME, TRACE_FIELDS_WORK F(elements) F(chosen), NULL)   \
                                                                               \
    X(50, STREAM_CREATE, stream_create, TIME, TRACE_FIELDS_STREAM F(flags)     \
      F(priority), NULL)                                                       \
    X(51, STREAM_DESTROY, stream_destroy, TIME, TRACE_FIELDS_STREAM, NULL)     \
    X(52, EVENT_CREATE, event_create, TIME, F(device) F(event) F(flags),       \
      NULL)                                                                    \
    X(53, EVENT_DESTROY, event_destroy, TIME, F(device) F(event), NULL)        \
    X(54, EVENT_RECORD, event_record, TIME, TRACE_FIELDS_STREAM F(event),      \
      NULL)                                                                    \
    X(55, STREAM_WAIT, stream_wait, TIME, TRACE_FIELDS_STREAM F(event), NULL)  \
    X(56, SYNC_STREAM, sync_stream, TIME, TRACE_FIELDS_STREAM, NULL)           \
    X(57, SYNC_DEVICE, sync_device, TIME, F(device), NULL)                     \
    X(58, SYNC_EVENT, sync_event, TIME, F(device) F(event), NULL)              \
    X(59, EVENT_QUERY, event_query, ASIDE, F(device) F(event) F(ready), NULL)  \
    X(60, STREAM_QUERY, stream_query, ASIDE, TRACE_FIELDS_STREAM F(ready),     \
      NULL)                                                                    \
    X(61, COMMUNICATOR, communicator, TIME, F(device) F(communicator) F(rank)  \
      F(ranks) F(root) F(ranges), "id")                                        \
    X(62, CAPTURE_JOIN, capture_join, TIME, TRACE_FIELDS_STREAM F(capture),    \
      NULL)                                                                    \
    X(63, CAPTURE_END, capture_end, TIME, F(capture) F(whole), NULL)           \
    X(64, GRAPH_INSTANTIATE, graph_instantiate, TIME, F(device) F(exec)        \
      F(capture) F(nodes) F(kernels), NULL)                                    \
    X(65, GRAPH_LAUNCH, graph_launch, TIME, TRACE_FIELDS_STREAM F(exec)        \
      F(capture) F(kernels), NULL)                                             \
                                                                               \
    X(70, RANGE_PUSH, range_push, TIME, F(domain), "text")                     \
    X(71, RANGE_POP, range_pop, TIME, F(domain), NULL)                         \
    X(72, MARK, mark, TIME, F(domain), "text")                                 \
                                                                               \
    X(80, MODULE, module, TIME, F(module) F(root) F(name), NULL)               \
    X(81, MODULE_ENTER, module_enter, TIME, F(module), NULL)                   \
    X(82, MODULE_LEAVE, module_leave, TIME, F(module), NULL)                   \
    X(83, PHASE, phase, TIME, F(phase), NULL)                                  \
    X(84, STORAGE, storage, MEMORY, F(address) F(module) F(category)           \
      F(element_bytes) F(name), NULL)                                          \
    X(85, OUTPUT, output, MEMORY, F(address) F(module), NULL)                  \
    X(86, INPUT, input, MEMORY, F(address) F(module), NULL)                    \
    X(87, BATCH, batch, ASIDE, F(module) F(samples) F(tokens) F(learns)        \
      F(values), NULL)                                                         \
                                                                               \
    X(90, MEASURED, measured, TIME, F(start_ns) F(duration_ns) F(held_ns)      \
      F(return_ns) F(latency_ns) F(gap_ns) F(family) F(profiler_ns), NULL)     \
    X(91, JOIN, join, TIME, F(joined), NULL)                                   \
    X(92, CALL, call, TIME, F(number) F(start_ns) F(end_ns), NULL)
/* clang-format on */

/* What records of a kind are for. */
enum trace_for {
    TRACE_FOR_TIME,   /* what was done, and when */
    TRACE_FOR_MEMORY, /* memory alone */
    TRACE_FOR_ASIDE,  /* neither: questions to the GPU that it does not notice,
                         the sizes of batches, how busy the CPUs are */
};

enum trace_kind {
#define X(number, kind, ...) TRACE_##kind = number,
    TRACE_KINDS(X)
#undef X
};

/* The fields of a record, in the order of its words: struct trace_copy, and so
 * on for every kind. TRACE_STRUCT_COPY is the same type, for macros that take
 * a KIND. */
#define F(field) uint64_t field;
#define X(number, kind, name, use, fields, text)                               \
    struct trace_##name {                                                      \
        fields                                                                 \
    };                                                                         \
    typedef struct trace_##name TRACE_STRUCT_##kind;
TRACE_KINDS(X)
#undef X
#undef F

/* The first fields of a kind whose fields begin with TRACE_FIELDS_WORK. */
#define F(field) uint64_t field;
struct trace_work {
    TRACE_FIELDS_WORK
};
#undef F

/* The bit of a KIND's FIELD, for trace_put's `always`. */
#define TRACE_BIT(kind, field)                                                 \
    (1u << offsetof(TRACE_STRUCT_##kind, field) / sizeof(uint64_t))

/* The words of a record of KIND, by name, and how many there are. Fields that
 * are not named are 0: TRACE_WORDS(COPY, .device = 1, .bytes = n). */
#define TRACE_WORDS(kind, ...)                                                 \
    ((const uint64_t *)&(const TRACE_STRUCT_##kind){__VA_ARGS__})
#define TRACE_WORD_COUNT(kind) (sizeof(TRACE_STRUCT_##kind) / sizeof(uint64_t))

/* The SETTING that marks the trace of a job on a real GPU, with its times. */
#define TRACE_REAL "memsim_measured=1"

/* The beginning of the SETTING that marks an imported profile. The profiler's
 * name follows. */
#define TRACE_IMPORTED "memsim_imported="

/* The beginning of the SETTING at the end of a process with a simulated clock.
 * The simulation's time after its last operation follows. */
#define TRACE_SIMULATED "simulated_ns="

/* The `direction` of a COPY, as cudaMemcpyKind numbers them. */
enum trace_direction {
    TRACE_HOST_TO_HOST,
    TRACE_HOST_TO_DEVICE,
    TRACE_DEVICE_TO_HOST,
    TRACE_DEVICE_TO_DEVICE,
};

/* The `how` of device memory. */
enum trace_how {
    TRACE_HOW_MALLOC,  /* cudaMalloc, cuMemAlloc */
    TRACE_HOW_ASYNC,   /* cudaMallocAsync and pools */
    TRACE_HOW_MANAGED, /* cudaMallocManaged */
    TRACE_HOW_VMM,     /* cuMemCreate */
    TRACE_HOW_ARRAY,   /* CUDA arrays */
};

/* The `rule` of a LAUNCH: the meaning of words a to h; unknown words are 0. */
enum trace_rule {
    TRACE_RULE_NONE,
    TRACE_RULE_ELEMENTWISE, /* a elements, b tensors (the result first), c the
                               bytes of an element of each, 8 bits each, lowest
                               first; 0: the kernel's name has them */
    TRACE_RULE_FOREACH,     /* elements, tensors, blocks, depth, equal lists */
    TRACE_RULE_WORDS,       /* the first 8 bytes of the first four arguments */
    TRACE_RULE_REDUCE,      /* the first 32 bytes of the ReduceOp */
    TRACE_RULE_SIZES,       /* arguments that are integers, and the elements of
                               those that describe a tensor, in their order */
    TRACE_RULE_STRIDED,     /* a elements, b tensors, c to h how each of the
                               first six is read or written: trace_strided */
    TRACE_RULE_REDUCTION,   /* a inputs of each output, b outputs, c blocks of
                               each output, d bytes between inputs */
    TRACE_RULE_CAT,         /* a elements, b tensors */
    TRACE_RULE_ATTENTION,   /* a queries_keys, b heads_kv_heads,
                               c head_size_value_size, d batch_causal; e queries
                               and f keys of all sequences where these differ
                               in length */
    TRACE_RULE_BLOCKS,      /* a bytes that can be reached, at most, of the b
                               blocks that the arguments point into */
    TRACE_RULE_WORK,        /* the work itself, by a profile's operator:
                               src/kernels/work_pack.c has its layout */
};

#define TRACE_LAUNCH_WORDS 8

/* How a strided kernel reads or writes a tensor: the number of elements, each
 * counted once even if it is read more often; the bytes between two neighbours
 * in the innermost dimension (0: the same element); and the smallest such
 * number above 0 of any dimension, which in a tensor without gaps is the
 * element's size. Values that do not fit are stored as the largest that do. */
struct trace_strided {
    uint64_t elements; /* 40 bits */
    uint32_t inner_bytes; /* 16 bits */
    uint32_t least_bytes; /* 8 bits */
};

/* The `phase` of a BLOCK_ALLOC and of PHASE: the program's current phase. */
enum trace_phase_kind {
    TRACE_PHASE_INIT, /* no module has been called yet */
    TRACE_PHASE_FORWARD,
    TRACE_PHASE_BACKWARD,
    TRACE_PHASE_RECOMPUTE, /* a module called by backward: checkpointing */
    TRACE_PHASE_OPTIMIZER,
    TRACE_PHASE_OTHER, /* between backward and the next forward */
    TRACE_PHASE_COUNT,
};

/* The `learns` of BATCH. */
enum trace_learns {
    TRACE_LEARNS_NOT,
    TRACE_LEARNS,      /* gradients are recorded, */
    TRACE_LEARNS_IDLE, /* of a model that is in evaluation */
};

/* The `category` of STORAGE: what a block holds. The first six come from the
 * program's modules and optimizers; the analysis finds the others. */
enum trace_category {
    TRACE_CATEGORY_OTHER,
    TRACE_CATEGORY_PARAMETER,
    TRACE_CATEGORY_BUFFER,
    TRACE_CATEGORY_GRADIENT,
    TRACE_CATEGORY_OPTIMIZER,
    TRACE_CATEGORY_INPUT,
    TRACE_CATEGORY_UNSHARDED_PARAMETER,
    TRACE_CATEGORY_UNSHARDED_GRADIENT,
    TRACE_CATEGORY_ACTIVATION,
    TRACE_CATEGORY_TEMPORARY,
    TRACE_CATEGORY_COMMUNICATION,
    TRACE_CATEGORY_WORKSPACE,
    TRACE_CATEGORY_COUNT,
};

/* The `reason` of END. Its `status` is the exit status of the process. */
enum trace_end_reason {
    TRACE_END_EXIT,  /* the process ended by itself */
    TRACE_END_EXEC,  /* the process executed another program */
    TRACE_END_FULL,  /* the disk is full: later events are missing */
    TRACE_END_LIMIT, /* --trace-limit was reached, likewise */
};

static inline uint64_t trace_strided_pack(const struct trace_strided *s)
{
    const uint64_t elements_max = (UINT64_C(1) << 40) - 1;

    return (s->elements < elements_max ? s->elements : elements_max) |
           (uint64_t)(s->inner_bytes < 65535 ? s->inner_bytes : 65535) << 40 |
           (uint64_t)(s->least_bytes < 255 ? s->least_bytes : 255) << 56;
}

static inline struct trace_strided trace_strided_unpack(uint64_t word)
{
    return (struct trace_strided){word & ((UINT64_C(1) << 40) - 1),
                                  (uint32_t)(word >> 40 & 65535),
                                  (uint32_t)(word >> 56)};
}

static inline uint64_t trace_pack(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

#endif
