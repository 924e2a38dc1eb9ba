/* SPDX-License-Identifier: Apache-2.0
 * The trace: what one process did to its GPUs, in order, on disk.
 *
 * A file is a header page followed by slots of TRACE_CHUNK_BYTES each:
 *
 *   [ header, 4096 bytes ][ last chunk ][ chunk 0 ][ chunk 1 ] ...
 *   chunk = [ struct trace_chunk ][ record ][ record ] ...
 *
 * Slot 0 is written through a shared mapping, so whatever a record's writer
 * had finished is in the file when the process dies, kill -9 included: the
 * chunk's used_bytes moves only after the record is whole. A chunk that is
 * full is sealed with the CRC-32C of its records and appended to the file, and
 * slot 0 holds the next. (Mapping every chunk where it stays would cost a page
 * fault a page, which is four times what appending costs.)
 *
 * A record is a word that tells its kind, which of the kind's 64-bit fields
 * follow (those that are not 0), whether text does, and the time since the
 * record before; then the text's length where there is text, the fields, and
 * the text, zero-padded to whole words. Fields may be appended to a kind by
 * later versions: readers skip what they do not know. All numbers are
 * little-endian. man/memsim-trace.5 describes every kind. */
#ifndef MEMSIM_COMMON_TRACE_H
#define MEMSIM_COMMON_TRACE_H

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
    uint64_t time_ns;    /* CLOCK_MONOTONIC, which the first word adds to */
    uint32_t thread;     /* of the first record: 0, 1, 2 as they appear */
    uint32_t reserved[7];
};

/* The word that a record begins with. Times never decrease. */
#define TRACE_WORD_TEXT    (1u << 8) /* text follows */
#define TRACE_WORD_FIELD_0 9         /* this bit: field 0 follows, and so on */
#define TRACE_WORD_TIME    32        /* from here on: ns since the last one */

/* kind, name, names of its fields, name of its text or NULL.
 *
 * `device` is the index in the process's own numbering, `card` the session's
 * (CUDA_VISIBLE_DEVICES lies between them); `stream` the handle as
 * the program knows it (0 is the legacy default stream); `name` an id that a
 * NAME record gave earlier; `x_y` packs x in the low and y in the high 32
 * bits. Numbers of existing kinds and fields never change. A CLOCK sets time
 * and thread of what follows, where they are not the last record's; readers
 * keep it to themselves.
 *
 * Work recorded of a stream between its CAPTURE_JOIN and that capture's
 * CAPTURE_END was not carried out: it is what a GRAPH_LAUNCH of the capture
 * does, as often as there are such records. Work added to a graph by hand is
 * recorded in the same manner, with the graph's handle for a stream. */
#define TRACE_KINDS(X)                                                         \
    X(1, PROCESS, "process", "pid parent rank local_rank world_size", "argv")  \
    X(2, SETTING, "setting", "", "key=value")                                  \
    X(3, DEVICE, "device", "device capacity_bytes context_bytes card", "name") \
    X(4, NAME, "name", "name", "text")                                         \
    X(5, END, "end", "reason status", NULL)                                           \
    X(6, FORK, "fork", "child", NULL)                                          \
    X(7, NOTE, "note", "", "text")                                             \
    X(8, CLOCK, "clock", "time_ns thread", NULL)                               \
                                                                               \
    X(10, BLOCK_ALLOC, "block_alloc",                                          \
      "device address requested_bytes block_bytes stream allocated_bytes "     \
      "reserved_bytes pool_low pool_high module phase operator range",         \
      NULL)                                                                    \
    X(11, BLOCK_FREE, "block_free",                                            \
      "device address block_bytes allocated_bytes reserved_bytes stream "      \
      "deferred",                                                              \
      NULL)                                                                    \
    X(12, FREE_DONE, "free_done", "device address bytes stream", NULL)         \
    X(13, SEGMENT_ALLOC, "segment_alloc",                                      \
      "device address bytes stream pool_low pool_high", NULL)                  \
    X(14, SEGMENT_FREE, "segment_free",                                        \
      "device address bytes stream pool_low pool_high", NULL)                  \
    X(15, SEGMENT_MAP, "segment_map",                                          \
      "device address bytes stream pool_low pool_high", NULL)                  \
    X(16, SEGMENT_UNMAP, "segment_unmap",                                      \
      "device address bytes stream pool_low pool_high", NULL)                  \
    X(17, OOM, "oom",                                                          \
      "device requested_bytes free_bytes allocated_bytes reserved_bytes "      \
      "stream module phase operator range",                                    \
      NULL)                                                                    \
    X(18, MEMORY_FRACTION, "memory_fraction", "device", "fraction")            \
    X(19, ALLOCATOR_SETTINGS, "allocator_settings", "", "settings")            \
                                                                               \
    X(20, DEVICE_MALLOC, "device_malloc",                                      \
      "device address bytes how used_bytes free_bytes", NULL)                  \
    X(21, DEVICE_FREE, "device_free", "device address bytes how used_bytes",   \
      NULL)                                                                    \
    X(22, DEVICE_REFUSE, "device_refuse",                                      \
      "device bytes how used_bytes free_bytes", NULL)                          \
    X(23, LIBRARY_MEMORY, "library_memory", "device bytes used_bytes", "who")  \
    X(24, HOST_MALLOC, "host_malloc", "address bytes flags", NULL)             \
    X(25, HOST_FREE, "host_free", "address bytes", NULL)                       \
    X(26, DEVICE_RESET, "device_reset", "device used_bytes", NULL)             \
                                                                               \
    X(30, LAUNCH, "launch",                                                    \
      "name device stream grid_x_y grid_z_block_x block_y_z shared_bytes_rule "\
      "a b c d",                                                               \
      NULL)                                                                    \
    X(31, GEMM, "gemm",                                                        \
      "name device stream m n k batch types_a_b_c_d compute_scale "            \
      "transpose_a_b lda_ldb ldc_ldd stride_a stride_b stride_c alignment "    \
      "epilogue workspace_bytes math_mode",                                    \
      NULL)                                                                    \
    X(32, CONVOLUTION, "convolution",                                          \
      "name device stream operation type compute workspace_bytes engine",      \
      "dims")                                                                  \
    X(33, ATTENTION, "attention",                                              \
      "name device stream operation type workspace_bytes", "dims")             \
    X(34, LIBRARY_CALL, "library_call",                                        \
      "name device stream workspace_bytes a b c d e f", "detail")              \
    X(35, COPY, "copy",                                                        \
      "device stream direction destination source bytes blocking peer", NULL)  \
    X(36, SET, "set", "device stream address value bytes blocking", NULL)      \
    X(37, HOST_FUNCTION, "host_function", "device stream", NULL)               \
    X(38, COLLECTIVE, "collective",                                            \
      "name device stream communicator rank ranks count type operation root "  \
      "bytes send receive group",                                              \
      NULL)                                                                    \
    X(39, UNPRICED, "unpriced", "name library", NULL)                          \
    X(40, GUESS, "guess", "name device stream elements chosen", NULL)          \
                                                                               \
    X(50, STREAM_CREATE, "stream_create", "device stream flags priority", NULL)\
    X(51, STREAM_DESTROY, "stream_destroy", "device stream", NULL)             \
    X(52, EVENT_CREATE, "event_create", "device event flags", NULL)            \
    X(53, EVENT_DESTROY, "event_destroy", "device event", NULL)                \
    X(54, EVENT_RECORD, "event_record", "device stream event", NULL)           \
    X(55, STREAM_WAIT, "stream_wait", "device stream event", NULL)             \
    X(56, SYNC_STREAM, "sync_stream", "device stream", NULL)                   \
    X(57, SYNC_DEVICE, "sync_device", "device", NULL)                          \
    X(58, SYNC_EVENT, "sync_event", "device event", NULL)                      \
    X(59, EVENT_QUERY, "event_query", "device event ready", NULL)              \
    X(60, STREAM_QUERY, "stream_query", "device stream ready", NULL)           \
    X(61, COMMUNICATOR, "communicator",                                        \
      "device communicator rank ranks root", "id")                                  \
    X(62, CAPTURE_JOIN, "capture_join", "device stream capture", NULL)         \
    X(63, CAPTURE_END, "capture_end", "capture whole", NULL)                   \
    X(64, GRAPH_INSTANTIATE, "graph_instantiate",                              \
      "device exec capture nodes kernels", NULL)                                       \
    X(65, GRAPH_LAUNCH, "graph_launch",                                        \
      "device stream exec capture kernels", NULL)                              \
                                                                               \
    X(70, RANGE_PUSH, "range_push", "domain", "text")                          \
    X(71, RANGE_POP, "range_pop", "domain", NULL)                              \
    X(72, MARK, "mark", "domain", "text")                                      \
                                                                               \
    X(80, MODULE, "module", "module root name", NULL)                          \
    X(81, MODULE_ENTER, "module_enter", "module", NULL)                        \
    X(82, MODULE_LEAVE, "module_leave", "module", NULL)                        \
    X(83, PHASE, "phase", "phase", NULL)                                       \
    X(84, STORAGE, "storage", "address module category element_bytes", NULL)   \
    X(85, OUTPUT, "output", "address module", NULL)                            \
    X(86, INPUT, "input", "address module", NULL)

enum trace_kind {
#define X(number, kind, ...) TRACE_##kind = number,
    TRACE_KINDS(X)
#undef X
};

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

/* The `rule` of a LAUNCH: what a, b, c and d say. Unknown ones are 0. */
enum trace_rule {
    TRACE_RULE_NONE,
    TRACE_RULE_ELEMENTWISE, /* a elements, b pointers (output first) */
    TRACE_RULE_FOREACH,     /* a elements, b tensors, c blocks, d depth */
    TRACE_RULE_WORDS,       /* the first 8 bytes of the first four arguments */
    TRACE_RULE_REDUCE,      /* a..d: element size and vector sizes, inputs per
                               output, outputs, all of ReduceConfig */
};

/* The `phase` of a BLOCK_ALLOC and of PHASE: what the program is at. */
enum trace_phase {
    TRACE_PHASE_INIT, /* no module has been called yet */
    TRACE_PHASE_FORWARD,
    TRACE_PHASE_BACKWARD,
    TRACE_PHASE_RECOMPUTE, /* a module called by backward: checkpointing */
    TRACE_PHASE_OPTIMIZER,
    TRACE_PHASE_OTHER, /* between backward and the next forward */
    TRACE_PHASE_COUNT,
};

/* The `category` of STORAGE: what a block holds. A program's modules and
 * optimizers say the first six; analysis tells the others apart. */
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

/* The `reason` of END; its `status` is that which the process exited with. */
enum trace_end {
    TRACE_END_EXIT,  /* the process ended by itself */
    TRACE_END_EXEC,  /* and became another program */
    TRACE_END_FULL,  /* the disk is full: later events are not here */
    TRACE_END_LIMIT, /* --trace-limit was reached, likewise */
};

static inline uint64_t trace_pack(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

#endif
