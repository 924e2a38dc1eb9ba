/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"
#include "common/base/simulated.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"
#include "fitting/ops.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 64

static const char *const clock_names[OPS_CLOCKS] = {
    [OPS_SUSTAINED] = "sustained", [OPS_BURSTS] = "bursts",
    [OPS_LAUNCH] = "launch",       [OPS_LOOP] = "loop",
    [OPS_DERIVED] = "derived",     [OPS_ESTIMATED] = "estimated",
};

/* What the clocks of known sources cover, for tables that do not say. */
static const struct {
    const char *text;
    enum ops_clock clock;
    double launch_us, floor_us;
} known[] = {
    {"NeuSight", OPS_LAUNCH, 8, 60},
    {"aiconfigurator", OPS_BURSTS, 0, 0},
    {"vidur", OPS_SUSTAINED, 0, 0},
    {"LLMServingSim", OPS_SUSTAINED, 0, 0},
    {"HolisticTraceAnalysis", OPS_SUSTAINED, 0, 0},
    {"cudnn-frontend", OPS_SUSTAINED, 0, 0},
    {"DeepBench", OPS_LOOP, 0, 0},
    {"KernelBench", OPS_LAUNCH, 8, 60},
    {"Liger", OPS_LAUNCH, 8, 60},
    {"efficient-attention", OPS_LAUNCH, 8, 300},
    {"SimuMax", OPS_DERIVED, 0, 0},
    {"xla", OPS_DERIVED, 0, 0},
};

struct table {
    const char *path;
    unsigned line;
    char *header;
    const char *names[COLUMNS_MAX];
    int columns;
    struct ops_source source;
};

const char *ops_clock_name(enum ops_clock clock)
{
    return (unsigned)clock < OPS_CLOCKS ? clock_names[clock] : "unknown";
}

static int split_line(char *line, const char **fields)
{
    int count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    while (count < COLUMNS_MAX) {
        char *comma = strchr(line, ',');

        fields[count++] = line;
        if (!comma)
            break;
        *comma = '\0';
        line = comma + 1;
    }
    return count;
}

static void assume_clock(struct ops_source *source)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(source->text, known[i].text)) {
            source->clock = known[i].clock;
            source->launch_ns = known[i].launch_us * 1e3;
            source->floor_ns = known[i].floor_us * 1e3;
            return;
        }
}

static int read_clock(struct table *table, const char *text, struct err *err)
{
    char name[16];
    double launch_us = 0, floor_us = 0;
    const char *sustained = strstr(text, "sustained=");

    table->source.band = table->source.sustained = 1;
    if (sustained)
        sscanf(sustained, "sustained=%lf", &table->source.sustained);
    sscanf(text, "estimated band=%lf", &table->source.band);
    sscanf(text, "%15s launch_us=%lf floor_us=%lf", name, &launch_us,
           &floor_us);
    for (int i = 0; i < OPS_CLOCKS; i++)
        if (!strcmp(name, clock_names[i])) {
            table->source.clock = i;
            table->source.launch_ns = launch_us * 1e3;
            table->source.floor_ns = floor_us * 1e3;
            return 0;
        }
    return err_set(err,
                   "%s:%u: clock \"%s\" is none of sustained, bursts, "
                   "launch, loop, derived, estimated",
                   table->path, table->line, name);
}

static int read_gpu(struct table *table, const char *text, struct err *err)
{
    struct gpu gpu;

    if (gpu_load(text, &gpu, err))
        return -1;
    cost_gpu_set(&gpu, &table->source.gpu);
    snprintf(table->source.gpu_name, sizeof table->source.gpu_name, "%s",
             gpu.name);
    return 0;
}

/* A "#" line: the source, the GPU, the clock or memsim's mark. */
static int read_comment(struct table *table, char *line, struct err *err)
{
    static const char source[] = "# source: ", gpu[] = "# gpu: ",
                      clock[] = "# clock: ";

    line[strcspn(line, "\r\n")] = '\0';
    if (text_begins(line, source) && !table->source.text) {
        table->source.text = xstrdup(line + sizeof source - 1);
        assume_clock(&table->source);
    } else if (text_begins(line, gpu)) {
        return read_gpu(table, line + sizeof gpu - 1, err);
    } else if (text_begins(line, clock)) {
        return read_clock(table, line + sizeof clock - 1, err);
    } else if (text_begins(line, SIMULATED_COMMENT))
        table->source.simulated = true;
    return 0;
}

static int read_header(struct table *table, const char *line, struct err *err)
{
    if (!table->source.text)
        return err_set(err,
                       "%s:%u: no line \"# source: ...\" before the "
                       "columns; say where the times come from",
                       table->path, table->line);
    if (!table->source.gpu_name[0])
        return err_set(err,
                       "%s: no line \"# gpu: NAME\" before the columns; say "
                       "what the times were measured on",
                       table->path);
    table->header = xstrdup(line);
    table->columns = split_line(table->header, table->names);
    return 0;
}

static int read_time(const struct table *table, const struct ops_row *row,
                     double *ns, struct err *err)
{
    const char *text = ops_row_text(row, "time_us");
    char *end = NULL;
    double us = text ? strtod(text, &end) : 0;

    if (!text)
        return err_set(err, "no column time_us");
    if (end == text || *end || !(us > 0 && us < 1e9))
        return err_set(err, "time_us is \"%s\", not a time above 0", text);
    *ns = us * 1e3;
    (void)table;
    return 0;
}

/* Arithmetic draws most power where it is close to the peak: kernels that run
 * alone for a moment are faster than those of a model that runs. */
#define NEAR_PEAK 0.4

static bool is_arithmetic(const struct ops_source *source,
                          const struct ops_sample *sample)
{
    const struct work *work = &sample->work;
    struct work alone = *work;

    alone.read_bytes = alone.written_bytes = 0;
    return source->sustained > 1 &&
           cost_bound_ns(&source->gpu, &alone) > NEAR_PEAK * sample->ns;
}

/* Adds a sample unless its time is the launch's rather than the kernel's. */
static void add_sample(struct table *table, struct ops *ops,
                       struct ops_sample *sample)
{
    struct ops_source *source = &table->source;

    if (sample->ns <= source->floor_ns) {
        source->dropped++;
        return;
    }
    sample->ns -= source->launch_ns;
    if (is_arithmetic(source, sample))
        sample->ns *= source->sustained;
    sample->source = (uint32_t)ops->source_count;
    xgrow(&ops->samples, ops->count, &ops->capacity, sizeof *ops->samples);
    ops->samples[ops->count++] = *sample;
    source->rows++;
}

static int read_row(struct table *table, char *line, struct ops *ops,
                    struct err *err)
{
    char *values[COLUMNS_MAX];
    struct ops_row row = {table->names, values, table->columns};
    struct ops_sample sample = {0};
    struct err cause = {""};
    int count = split_line(line, (const char **)values);

    if (count != table->columns)
        return err_set(err, "%s:%u: %d fields, the header has %d", table->path,
                       table->line, count, table->columns);
    if (ops_row_work(&row, &sample.work, &sample.group, &cause) ||
        read_time(table, &row, &sample.ns, &cause))
        return err_set(err, "%s:%u: %s", table->path, table->line, cause.text);
    add_sample(table, ops, &sample);
    return 0;
}

static int read_lines(FILE *file, struct table *table, struct ops *ops,
                      struct err *err)
{
    char *line = NULL;
    size_t capacity = 0;
    int failed = 0;

    while (!failed && getline(&line, &capacity, file) >= 0) {
        table->line++;
        if (line[0] == '#')
            failed = read_comment(table, line, err);
        else if (!table->columns)
            failed = read_header(table, line, err);
        else if (line[strspn(line, " \t\r\n")])
            failed = read_row(table, line, ops, err);
    }
    free(line);
    return failed;
}

/* A fit has the texts of its sources. */
static void add_mark(struct ops_source *source)
{
    char *text = xasprintf("%s; " SIMULATED_TEXT, source->text);

    free(source->text);
    source->text = text;
}

int ops_read(const char *path, struct ops *ops, struct err *err)
{
    struct table table = {.path = path};
    FILE *file = fopen(path, "r");

    if (!file)
        return err_set(err, "%s: %s", path, strerror(errno));
    int failed = read_lines(file, &table, ops, err);
    fclose(file);
    free(table.header);
    if (!failed && !table.columns)
        failed = err_set(err, "%s: no table in it", path);
    if (!failed && table.source.simulated && !ops->takes_simulated)
        failed = simulated_refuse(path, err);
    if (!failed && table.source.simulated)
        add_mark(&table.source);
    table.source.file = xstrdup(path);
    xgrow(&ops->sources, ops->source_count, &ops->source_capacity,
          sizeof *ops->sources);
    ops->sources[ops->source_count++] = table.source;
    return failed;
}

int ops_read_all(char *const *paths, int count, struct ops *ops,
                 struct err *err)
{
    for (int i = 0; i < count; i++)
        if (ops_read(paths[i], ops, err))
            return -1;
    return 0;
}

void ops_free(struct ops *ops)
{
    for (size_t i = 0; i < ops->source_count; i++) {
        free(ops->sources[i].file);
        free(ops->sources[i].text);
    }
    free(ops->sources);
    free(ops->samples);
    *ops = (struct ops){0};
}
