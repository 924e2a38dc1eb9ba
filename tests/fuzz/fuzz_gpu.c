/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the reader of GPU files: whatever it takes must hold what
 * gpu.h promises, whatever it refuses must say why. */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/catalogue/gpu_field.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stands in for the catalogue, so that nothing outside the input counts. */
static int find_one(const char *name, struct gpu *gpu, struct err *err)
{
    static const char json[] =
        "{\"compute_capability\": \"9.0\", \"memory_bytes\": 85899345920,"
        "\"sm_count\": 132, \"clock_boost_mhz\": 1980, \"memory_gbps\": 3350}";

    if (strcmp(name, "h100") != 0)
        return err_set(err, "%s: no GPU of that name", name);
    return gpu_load_text(json, sizeof json - 1, "h100", NULL, gpu, err);
}

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void check_taken(const struct gpu *gpu)
{
    for (size_t i = 0; i < gpu_field_count; i++)
        demand(gpu_field_known(&gpu_fields[i], gpu));
    demand(memchr(gpu->name, 0, sizeof gpu->name) != NULL);
    demand(memchr(gpu->device_name, 0, sizeof gpu->device_name) != NULL);
    demand(gpu->capability_major >= 6);
    demand(gpu->sm_count > 0 && gpu->memory_gbps > 0 && gpu->fp32_tflops > 0);
    demand(gpu->context_bytes <= gpu->context_torch_bytes);
    demand(gpu->context_torch_bytes < gpu->memory_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpu gpu;
    struct err err = {""};

    /* Not terminated: the reader must keep to SIZE. */
    if (!gpu_load_text((const char *)data, size, "fuzz.json", find_one, &gpu,
                       &err))
        check_taken(&gpu);
    else
        demand(err.text[0] != '\0');
    return 0;
}
