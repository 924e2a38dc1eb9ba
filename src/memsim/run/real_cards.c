/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/real_cards.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child writes. */
struct answer {
    char error[256]; /* "": none */
    struct real_cards cards;
};

/* --- the driver ----------------------------------------------------------- */

/* cuda.h's, by their names in the library. */
struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*name)(char *name, int length, int device);
    int (*memory)(size_t *bytes, int device);
};

#define FUNCTION(library, name) dlsym(library, name)

static bool driver_open(struct driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);

    if (!library)
        return false;
    *(void **)&d->init = FUNCTION(library, "cuInit");
    *(void **)&d->version = FUNCTION(library, "cuDriverGetVersion");
    *(void **)&d->count = FUNCTION(library, "cuDeviceGetCount");
    *(void **)&d->name = FUNCTION(library, "cuDeviceGetName");
    *(void **)&d->memory = FUNCTION(library, "cuDeviceTotalMem_v2");
    return d->init && d->version && d->count && d->name && d->memory;
}

static void driver_ask(const struct driver *d, struct answer *a)
{
    int count = 0, rc = d->init(0);

    d->version(&a->cards.cuda_version);
    if (!rc)
        rc = d->count(&count);
    if (rc || count <= 0) {
        snprintf(a->error, sizeof a->error,
                 "--real: the driver finds no GPU (cuInit answers %d); see "
                 "nvidia-smi, and CUDA_VISIBLE_DEVICES",
                 rc);
        return;
    }
    a->cards.count =
        count < SESSION_DEVICES ? (uint32_t)count : SESSION_DEVICES;
    for (uint32_t i = 0; i < a->cards.count; i++) {
        struct real_card *card = &a->cards.cards[i];
        size_t bytes = 0;

        d->name(card->name, sizeof card->name - 1, (int)i);
        d->memory(&bytes, (int)i);
        card->memory_bytes = bytes;
        card->is_mig = strstr(card->name, "MIG ") != NULL;
    }
}

/* --- NVML ----------------------------------------------------------------- */

#define NVML_CLOCK_SM 1
/* nvmlMemory_v2_t, and its version */
#define MEMORY_VERSION ((uint32_t)(sizeof(struct nvml_memory) | 2u << 24))
/* nvmlClocksEventReason...: power, heat and what slows down for either */
#define SLOWED (0x4u | 0x8u | 0x20u | 0x40u | 0x80u)

struct nvml_memory {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct nvml {
    int (*init)(void);
    int (*handle)(unsigned index, void **device);
    int (*memory)(void *device, struct nvml_memory *memory);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*reasons)(void *device, unsigned long long *reasons);
    int (*driver)(char *text, unsigned length);
};

static bool nvml_open(struct nvml *n)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);

    if (!library)
        return false;
    *(void **)&n->init = FUNCTION(library, "nvmlInit_v2");
    *(void **)&n->handle = FUNCTION(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&n->memory = FUNCTION(library, "nvmlDeviceGetMemoryInfo_v2");
    *(void **)&n->clock = FUNCTION(library, "nvmlDeviceGetClockInfo");
    *(void **)&n->reasons =
        FUNCTION(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&n->driver = FUNCTION(library, "nvmlSystemGetDriverVersion");
    return n->init && n->handle && !n->init();
}

/* Its numbers are those of the machine: right where no card is hidden. */
static void nvml_ask(const struct nvml *n, struct real_cards *cards)
{
    if (n->driver)
        n->driver(cards->driver_version, sizeof cards->driver_version);
    if (getenv("CUDA_VISIBLE_DEVICES"))
        return;
    for (uint32_t i = 0; i < cards->count; i++) {
        struct nvml_memory memory = {.version = MEMORY_VERSION};
        unsigned long long reasons = 0;
        unsigned mhz = 0;
        void *device;

        if (cards->cards[i].is_mig || n->handle(i, &device))
            continue;
        if (n->memory && !n->memory(device, &memory))
            cards->cards[i].used_bytes = memory.used;
        if (n->clock && !n->clock(device, NVML_CLOCK_SM, &mhz))
            cards->cards[i].clock_mhz = mhz;
        if (n->reasons && !n->reasons(device, &reasons))
            cards->cards[i].is_slowed = reasons & SLOWED;
    }
}

/* --- the child ------------------------------------------------------------ */

static bool has_mps(void)
{
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[4096];

    snprintf(path, sizeof path, "%s/control",
             directory && *directory ? directory : "/tmp/nvidia-mps");
    return !access(path, F_OK);
}

static void ask_driver(struct answer *a)
{
    struct driver driver;
    struct nvml nvml;

    if (!driver_open(&driver)) {
        snprintf(a->error, sizeof a->error,
                 "--real: there is no libcuda.so.1 here: install NVIDIA's "
                 "driver, start the container with GPUs, or leave --real out "
                 "to simulate a GPU");
        return;
    }
    driver_ask(&driver, a);
    a->cards.has_mps = has_mps();
    if (!*a->error && nvml_open(&nvml))
        nvml_ask(&nvml, &a->cards);
}

static void answer_in_child(int out)
{
    struct answer a = {0};

    ask_driver(&a);
    for (size_t at = 0; at < sizeof a;) {
        ssize_t n = write(out, (char *)&a + at, sizeof a - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    _exit(0);
}

static bool read_all(int in, void *to, size_t bytes)
{
    size_t at = 0;

    while (at < bytes) {
        ssize_t n = read(in, (char *)to + at, bytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

int real_cards_find(struct real_cards *cards, struct err *err)
{
    struct answer a;
    int ends[2], status;

    if (pipe(ends))
        return err_set(err, "--real: %s", strerror(errno));
    pid_t pid = fork();
    if (!pid) {
        close(ends[0]);
        answer_in_child(ends[1]);
    }
    close(ends[1]);
    bool whole = pid > 0 && read_all(ends[0], &a, sizeof a);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!whole)
        return err_set(err, "--real: the process that asked the driver for its "
                            "GPUs ended early; see nvidia-smi");
    if (*a.error)
        return err_set(err, "%s", a.error);
    *cards = a.cards;
    return 0;
}
