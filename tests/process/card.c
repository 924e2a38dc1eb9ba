/* SPDX-License-Identifier: Apache-2.0
 * A card that does little, for tests/process/real_card: the driver, the runtime,
 * CUPTI and NVML in one, built once for each name. $CARD says what is wrong with
 * it. With JOB: a program for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef JOB

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);

typedef struct {
    char bytes[128];
} nccl_id;

/* One all-reduce of rank 0 of RANKS, by memsim's NCCL: it is preloaded. */
static int collective(int ranks)
{
    int (*id_make)(nccl_id *) = dlsym(RTLD_DEFAULT, "ncclGetUniqueId");
    int (*init)(void **, int, nccl_id, int) =
        dlsym(RTLD_DEFAULT, "ncclCommInitRank");
    int (*reduce)(const void *, void *, size_t, int, int, void *, void *) =
        dlsym(RTLD_DEFAULT, "ncclAllReduce");
    void *comm = NULL, *p = NULL;
    nccl_id id;

    if (!id_make || !init || !reduce)
        return 1;
    return cudaMalloc(&p, 1 << 20) || id_make(&id) ||
           init(&comm, ranks, id, 0) ||
           reduce(p, p, 1 << 18, 7 /* ncclFloat32 */, 0, comm, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return collective(atoi(argv[1]));
    int count = 0, rc = cudaGetDeviceCount(&count);
    void *p = NULL;

    printf("count %d, code %d\n", count, rc);
    if (!rc)
        printf("malloc %d, free %d\n", cudaMalloc(&p, 1 << 20), cudaFree(p));
    return 3;
}

#else

#define GIB (UINT64_C(1) << 30)

static int is(const char *what)
{
    const char *card = getenv("CARD");

    return card && strstr(card, what) != NULL;
}

/* --- the driver ----------------------------------------------------------- */

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDriverGetVersion(int *version)
{
    *version = is("old") ? 11040 : 13000;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, (size_t)length, "%s%s", "NVIDIA H100 80GB HBM3",
             is("mig") ? " MIG 1g.10gb" : "");
    return device;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = 80 * GIB;
    return device;
}

int cuDeviceGetPCIBusId(char *text, int length, int device)
{
    snprintf(text, (size_t)length, "0000:01:00.0");
    return device;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *total = 80 * GIB;
    *available = *total - (is("busy") ? 21 : 1) * GIB;
    return 0;
}

/* The kernel that stands for a collective: what it is told. */
int cuModuleLoadData(void **module, const void *image)
{
    *module = module;
    return !image;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = function;
    return !module ||
           !(strstr(name, "memsim_collective") || strstr(name, "memsim_delay"));
}

int cuMemAlloc_v2(uint64_t *p, size_t bytes)
{
    *p = 0x710000000000 + bytes;
    return 0;
}

int cuMemsetD8_v2(uint64_t p, unsigned char value, size_t count)
{
    return !p || value || !count;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned y, unsigned z,
                   unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **arguments, void **extra)
{
    const double *factor = arguments[4], *lag = arguments[7];
    const uint64_t *count = arguments[2], *ns = arguments[5];
    const uint64_t *last = arguments[8], *gate = arguments[9];

    (void)function, (void)ty, (void)tz, (void)shared, (void)stream;
    (void)extra;
    printf("blocks %u, elements %llu, factor %g, ns %d, lag %.4f, last %d, "
           "gate %d\n",
           blocks * y * z * (threads > 0), (unsigned long long)*count, *factor,
           *ns > 1000, *lag, *last != 0, *gate != 0);
    return 0;
}

/* --- the runtime ---------------------------------------------------------- */

int cudaGetDeviceCount(int *count)
{
    *count = !is("old");
    return is("old") ? 35 : 0; /* cudaErrorInsufficientDriver */
}

int cudaMalloc(void **p, size_t bytes)
{
    *p = (void *)(0x700000000000 + bytes);
    return 0;
}

int cudaFree(void *p)
{
    (void)p;
    return 0;
}

/* --- CUPTI ---------------------------------------------------------------- */

int cuptiActivityRegisterCallbacks(void *request, void *complete)
{
    return !request || !complete;
}

int cuptiActivityEnable(int kind)
{
    return is("forbidden") && kind ? 35 : 0; /* INSUFFICIENT_PRIVILEGES */
}

#define NOTHING(name)                                                          \
    int name(void)                                                             \
    {                                                                          \
        return 0;                                                              \
    }
NOTHING(cuptiActivityDisable)
NOTHING(cuptiActivityFlushAll)
NOTHING(cuptiActivityGetNextRecord)
NOTHING(cuptiActivityGetNumDroppedRecords)
NOTHING(cuptiActivityPushExternalCorrelationId)
NOTHING(cuptiActivityPopExternalCorrelationId)

int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = 1;
    return 0;
}

/* --- NVML ----------------------------------------------------------------- */

struct memory { /* nvmlMemory_v2_t */
    uint32_t version;
    uint64_t total, reserved, free, used;
};

NOTHING(nvmlInit_v2)

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = device;
    return (int)index;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **device)
{
    *device = device;
    return strcmp(text, "0000:01:00.0");
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory)
{
    memory->used = (is("busy") ? 20 : 0) * GIB;
    return !device;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    *mhz = 345;
    return !device || type != 1;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, uint64_t *reasons)
{
    *reasons = is("hot") ? 0x40 : 0; /* HW thermal slowdown */
    return !device;
}

int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    snprintf(text, length, "470.1");
    return 0;
}

#endif
