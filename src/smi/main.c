/* SPDX-License-Identifier: Apache-2.0
 * nvidia-smi: what a script of a run finds under that name. It prints what the
 * simulated NVML answers, in the forms that scripts read. */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "smi/smi.h"

#define EXIT_INVALID 2 /* as NVIDIA's: an argument */
#define EXIT_DRIVER  9

struct smi_nvml smi_nvml;

struct wanted {
    const char *gpu_fields, *process_fields;
    const char *ids; /* of -i; NULL: all */
    bool list, log, header, units, csv;
    unsigned loop_ms;
};

static int nvml_open(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define FUNCTION(name) {#name, offsetof(struct smi_nvml, name)},
        SMI_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

    for (size_t i = 0; library && i < sizeof functions / sizeof *functions;
         i++) {
        void *found = dlsym(library, functions[i].name);

        if (!found)
            return -1;
        memcpy((char *)&smi_nvml + functions[i].offset, &found, sizeof found);
    }
    return !library || smi_nvml.nvmlInit_v2() ? -1 : 0;
}

/* Is GPU number INDEX among the IDS, which are numbers or UUIDs with commas
 * between them? */
static bool is_chosen(const char *ids, unsigned index, nvmlDevice_t device)
{
    char uuid[SMI_TEXT] = "", number[16];

    snprintf(number, sizeof number, "%u", index);
    smi_nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid);
    return !ids || smi_names_have(ids, number, strlen(number)) ||
           smi_names_have(ids, uuid, strlen(uuid));
}

static void gpus_find(struct smi_gpus *gpus, const char *ids)
{
    unsigned count = 0;

    smi_nvml.nvmlDeviceGetCount_v2(&count);
    gpus->count = 0;
    for (unsigned i = 0; i < count && gpus->count < 64; i++)
        if (!smi_nvml.nvmlDeviceGetHandleByIndex_v2(
                i, &gpus->all[gpus->count]) &&
            is_chosen(ids, i, gpus->all[gpus->count]))
            gpus->count++;
}

/* --- comma-separated ------------------------------------------------------ */

static int unknown_field(const char *name, size_t length)
{
    printf("Field \"%.*s\" is not a valid field to query.\n\n", (int)length,
           name);
    return EXIT_INVALID;
}

static int query_check(const char *fields)
{
    const char *name;
    size_t length;

    while (smi_name_next(&fields, &name, &length))
        if (!smi_field_find(name, length))
            return unknown_field(name, length);
    return 0;
}

/* One line: the headings, or the values of DEVICE. */
static void query_line(const struct wanted *w, nvmlDevice_t device)
{
    const char *at = w->gpu_fields, *name;
    size_t length;

    while (smi_name_next(&at, &name, &length)) {
        const struct smi_field *field = smi_field_find(name, length);
        char text[SMI_TEXT + 16];

        if (device)
            smi_field_text(field, device, w->units, text);
        else
            snprintf(text, sizeof text, "%.*s%s%s%s", (int)length, name,
                     field->unit ? " [" : "", field->unit ? field->unit : "",
                     field->unit ? "]" : "");
        printf("%s%s", text, *at ? ", " : "\n");
    }
}

static void query_gpus(const struct wanted *w, const struct smi_gpus *gpus)
{
    if (w->header)
        query_line(w, NULL);
    for (unsigned i = 0; i < gpus->count; i++)
        query_line(w, gpus->all[i]);
}

enum { APP_PID, APP_NAME, APP_MEMORY, APP_UUID, APP_BUS, APP_GPU, APPS };

static const struct {
    const char *names, *heading;
} app_fields[APPS] = {
    [APP_PID] = {"pid", "pid"},
    [APP_NAME] = {"process_name,name", "process_name"},
    [APP_MEMORY] = {"used_memory,used_gpu_memory", "used_gpu_memory [MiB]"},
    [APP_UUID] = {"gpu_uuid", "gpu_uuid"},
    [APP_BUS] = {"gpu_bus_id", "gpu_bus_id"},
    [APP_GPU] = {"gpu_name", "gpu_name"},
};

static int app_find(const char *name, size_t length)
{
    for (int i = 0; i < APPS; i++)
        if (smi_names_have(app_fields[i].names, name, length))
            return i;
    return -1;
}

static void app_value(int field, nvmlDevice_t device,
                      const nvmlProcessInfo_t *process, bool unit)
{
    static const char *const of_gpu[] = {
        [APP_UUID] = "uuid", [APP_BUS] = "pci.bus_id", [APP_GPU] = "name"};
    char text[SMI_TEXT + 16] = "-";

    switch (field) {
    case APP_PID:
        printf("%u", process->pid);
        break;
    case APP_NAME:
        smi_nvml.nvmlSystemGetProcessName(process->pid, text, SMI_TEXT);
        fputs(text, stdout);
        break;
    case APP_MEMORY:
        printf("%llu%s", process->usedGpuMemory >> 20, unit ? " MiB" : "");
        break;
    default:
        smi_field_text(smi_field_find(of_gpu[field], strlen(of_gpu[field])),
                       device, false, text);
        fputs(text, stdout);
    }
}

static int apps_line(const struct wanted *w, nvmlDevice_t device,
                     const nvmlProcessInfo_t *process)
{
    const char *at = w->process_fields, *name;
    size_t length;

    while (smi_name_next(&at, &name, &length)) {
        int field = app_find(name, length);

        if (field < 0)
            return unknown_field(name, length);
        if (process)
            app_value(field, device, process, w->units);
        else if (w->header)
            fputs(app_fields[field].heading, stdout);
        if (process || w->header)
            fputs(*at ? ", " : "\n", stdout);
    }
    return 0;
}

static int query_apps(const struct wanted *w, const struct smi_gpus *gpus)
{
    nvmlProcessInfo_t all[64];
    int status = apps_line(w, NULL, NULL);

    for (unsigned i = 0; !status && i < gpus->count; i++) {
        unsigned count = 64;

        if (smi_nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpus->all[i],
                                                             &count, all))
            continue;
        for (unsigned k = 0; k < count; k++)
            apps_line(w, gpus->all[i], &all[k]);
    }
    return status;
}

/* --- options -------------------------------------------------------------- */

enum { OPTION_GPU = 256, OPTION_APPS, OPTION_FORMAT, OPTION_HELP_FIELDS };

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {"list-gpus", no_argument, NULL, 'L'},
    {"query", no_argument, NULL, 'q'},
    {"display", required_argument, NULL, 'd'},
    {"id", required_argument, NULL, 'i'},
    {"loop", optional_argument, NULL, 'l'},
    {"loop-ms", required_argument, NULL, 'm'},
    {"query-gpu", required_argument, NULL, OPTION_GPU},
    {"query-compute-apps", required_argument, NULL, OPTION_APPS},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"help-query-gpu", no_argument, NULL, OPTION_HELP_FIELDS},
    {0},
};

static const char help[] =
    "nvidia-smi of memsim: what the simulated GPUs of a run are.\n\n"
    "  nvidia-smi [-i ID,...]               a table\n"
    "  nvidia-smi -L                        a line for each GPU\n"
    "  nvidia-smi -q                        all that is known\n"
    "  nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n"
    "  nvidia-smi --query-compute-apps=FIELD,... --format=csv[,...]\n"
    "  nvidia-smi --help-query-gpu          the fields\n"
    "  -l SECONDS, -lms MILLISECONDS        again and again\n\n"
    "Utilization, power, temperature and clocks are not simulated: they are\n"
    "constants. See memsim(1).";

static void format_read(struct wanted *w, const char *text)
{
    w->csv = strstr(text, "csv") != NULL;
    w->header = !strstr(text, "noheader");
    w->units = !strstr(text, "nounits");
}

static void print_fields(void)
{
    for (const struct smi_field *f = smi_fields; f->names; f++)
        puts(f->names);
}

/* Returns -1, or the status to exit with. */
static int option_take(struct wanted *w, int option, const char *value)
{
    switch (option) {
    case 'h':
        puts(help);
        return 0;
    case 'L':
        w->list = true;
        return -1;
    case 'q':
        w->log = true;
        return -1;
    case 'd':
        return -1;
    case 'i':
        w->ids = value;
        return -1;
    case 'l':
        w->loop_ms = value ? 1000 * (unsigned)atoi(value) : 5000;
        return -1;
    case 'm':
        w->loop_ms = (unsigned)atoi(value);
        return -1;
    case OPTION_GPU:
        w->gpu_fields = value;
        return query_check(value) ? EXIT_INVALID : -1;
    case OPTION_APPS:
        w->process_fields = value;
        return -1;
    case OPTION_FORMAT:
        format_read(w, value);
        return -1;
    case OPTION_HELP_FIELDS:
        print_fields();
        return 0;
    default:
        puts("Invalid combination of input arguments. Please run "
             "'nvidia-smi -h' for help.\n");
        return EXIT_INVALID;
    }
}

static int options_read(struct wanted *w, int argc, char **argv)
{
    int option, status = -1;

    for (int i = 1; i < argc; i++) /* a long option with one dash */
        if (!strncmp(argv[i], "-lms", 4))
            argv[i] = "--loop-ms";
    opterr = 0;
    while (status < 0 && (option = getopt_long(argc, argv, "hLqd:i:l:", options,
                                               NULL)) != -1)
        status = option_take(w, option, optarg);
    if (status < 0 && optind < argc) {
        printf("ERROR: Option %s is not recognized. Please run 'nvidia-smi "
               "-h'.\n",
               argv[optind]);
        status = EXIT_INVALID;
    }
    if (status < 0 && (w->gpu_fields || w->process_fields) && !w->csv) {
        puts("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for "
             "help.\n");
        status = EXIT_INVALID;
    }
    return status;
}

static int show_wanted(const struct wanted *w)
{
    struct smi_gpus gpus;

    gpus_find(&gpus, w->ids);
    if (!gpus.count) {
        puts("No devices were found");
        return 6;
    }
    if (w->gpu_fields)
        query_gpus(w, &gpus);
    else if (w->process_fields)
        return query_apps(w, &gpus);
    else if (w->list)
        smi_list(&gpus);
    else if (w->log)
        smi_log(&gpus);
    else
        smi_table(&gpus);
    return 0;
}

int main(int argc, char **argv)
{
    struct wanted wanted = {.header = true, .units = true};
    int status = options_read(&wanted, argc, argv);

    if (status >= 0)
        return status;
    if (nvml_open()) {
        puts("NVIDIA-SMI has failed because it couldn't communicate with the "
             "NVIDIA driver. This is memsim's nvidia-smi: it works under "
             "`memsim run'.\n");
        return EXIT_DRIVER;
    }
    do {
        status = show_wanted(&wanted);
        fflush(stdout);
        wanted.header = false;
        if (wanted.loop_ms)
            usleep(1000 * wanted.loop_ms);
    } while (wanted.loop_ms && !status);
    return status;
}
