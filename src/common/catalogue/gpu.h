/* SPDX-License-Identifier: Apache-2.0
 * One GPU, as the fake device answers for it and the cost models price it.
 * Read from data/gpus/NAME.json, whose keys are the names below; README.md
 * there says what each means and where it comes from. */
#ifndef MEMSIM_COMMON_CATALOGUE_GPU_H
#define MEMSIM_COMMON_CATALOGUE_GPU_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* Plain bytes without pointers: it is copied into shared memory. The peaks are
 * dense, from the tensor cores where the type has them, in 1e12 operations a
 * second; 0: the GPU cannot. */
struct gpu {
    char name[32];        /* in the catalogue: "h100-sxm-80gb" */
    char device_name[64]; /* as the driver says: "NVIDIA H100 80GB HBM3" */
    uint32_t capability_major;
    uint32_t capability_minor;

    uint64_t memory_bytes;        /* cudaMemGetInfo's total */
    uint64_t context_bytes;       /* taken by a bare context: cudaFree(0) */
    uint64_t context_torch_bytes; /* the same after torch's first kernel */
    uint64_t context_driver_bytes; /* of context_bytes, not the process's */
    uint64_t modules_eager_bytes;  /* more under CUDA_MODULE_LOADING=EAGER */

    /* Taken beside it: by each handle, or once by a process. */
    uint64_t cublas_bytes;         /* each handle */
    uint64_t cudnn_bytes;          /* each handle */
    uint64_t cufft_bytes;          /* once */
    uint64_t cufft_plan_bytes;     /* each plan */
    uint64_t cusparse_bytes;       /* once */
    uint64_t cusolver_bytes;       /* each handle */
    uint64_t cusolver_first_bytes; /* once */
    uint64_t streams_bytes;        /* once, by the first stream that is made */
    uint64_t managed_bytes;        /* once, by the first managed memory */
    uint64_t nccl_first_bytes;     /* once, by the first communicator */
    uint64_t nccl_bytes;     /* each communicator; 0: nccl_memory.h says */

    uint32_t smi_memory_mib; /* nvidia-smi's memory.total */
    uint32_t nccl_channels;  /* of a ring of all GPUs of a machine */
    uint32_t ecc;            /* 1: on as delivered */

    uint32_t sm_count;
    uint32_t clock_base_mhz;
    uint32_t clock_boost_mhz;  /* the highest, cudaDevAttrClockRate */
    uint32_t clock_load_mhz;   /* what POWER_WATTS leaves to matrix products */
    uint32_t clock_memory_mhz; /* cudaDevAttrMemoryClockRate: half the pins' */
    uint32_t memory_bus_bits;
    uint32_t copy_engines;
    double memory_gbps; /* 1e9 bytes a second */
    uint64_t l2_bytes;

    double fp64_tflops;
    double fp64_tensor_tflops;
    double fp32_tflops;
    double tf32_tflops;
    double fp16_tflops; /* accumulating in fp32, as PyTorch does */
    double bf16_tflops;
    double fp8_tflops;
    double int8_tops;
    double fp4_tflops;

    double nvlink_gbps; /* 1e9 bytes a second, each way; 0: none */
    uint32_t nvlink_links;
    uint32_t pcie_generation;
    uint32_t pcie_lanes;
    uint32_t power_watts;
    uint32_t idle_watts; /* without work */

    /* What the compute capability says, unless the file says otherwise. */
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_threads_per_sm;
    uint32_t max_blocks_per_sm;
    uint32_t registers_per_block;
    uint32_t registers_per_sm;
    uint32_t shared_per_block_bytes;
    uint32_t shared_per_block_optin_bytes;
    uint32_t shared_per_sm_bytes;
    uint32_t shared_reserved_bytes; /* of each block's, by the system */
    uint32_t fp32_lanes_per_sm;

    uint32_t is_variant; /* its file has a "base": a slice, another driver */

    /* CLOCK_LOAD_MHZ over that of the GPU whose products were measured: that
     * of the catalogue itself, or of the base. */
    double load_ratio;
};

/* Finds the GPU that a file's "base" names. */
typedef int gpu_find(const char *name, struct gpu *gpu, struct err *err);

/* Reads LENGTH bytes of JSON into *GPU. ORIGIN stands for the file in messages,
 * and gives the name where the text has none. FIND serves "base"; where it is
 * NULL, "base" is an error. Pure but for what FIND does. Returns 0, or -1 with
 * *GPU untouched. */
int gpu_load_text(const char *json, size_t length, const char *origin,
                  gpu_find *find, struct gpu *gpu, struct err *err);

/* Reads the GPU that NAME_OR_PATH says: a file where it has a '/' or ends in
 * .json; else a name, alias or device name of the catalogue, in any case.
 * Returns 0, or -1 with *GPU untouched. */
int gpu_load(const char *name_or_path, struct gpu *gpu, struct err *err);

/* Writes the path of the file that gpu_load would read to PATH. */
int gpu_path(const char *name_or_path, char *path, size_t size,
             struct err *err);

/* Reads the whole catalogue, variants too, by name; the caller frees *LIST.
 * Returns 0 or -1. */
int gpu_list(struct gpu **list, size_t *count, struct err *err);

#endif
