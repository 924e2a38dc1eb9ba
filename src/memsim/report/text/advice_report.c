/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/advice_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/time_report.h"

#define SIZE_LENGTH    16
#define WHAT_COLUMN    23
#define LEAST_SHARE    100 /* one in so many */
#define COMMAND_INDENT 4

/* How much less of the GPU is used with A: one measure for all, whichever peak
 * its saving is of. */
static uint64_t used_less(const struct result_device *d,
                          const struct result_advice *a)
{
    return a->peak_used_bytes < d->unlimited_bytes
               ? d->unlimited_bytes - a->peak_used_bytes
               : 0;
}

/* What the allocator keeps in its cache instead is no saving that one sees. */
static bool is_shown(const struct result_device *d,
                     const struct result_advice *a)
{
    return d->advice_ends || !a->of || (a->fits && !d->advice_fits) ||
           used_less(d, a) > d->unlimited_bytes / LEAST_SHARE;
}

static void write_row(const struct result_device *d,
                      const struct result_advice *a, FILE *out)
{
    char size[SIZE_LENGTH];
    uint64_t less = used_less(d, a);
    char *what = xasprintf("%s%s", a->what,
                           a->fits && !d->advice_fits ? " (fits)" : "");

    fprintf(out, "  %12s %5.1f%%  ",
            units_format_bytes(less, size, sizeof size),
            100.0 * (double)less / (double)d->unlimited_bytes);
    text_write_end(out, what, TEXT_COLUMNS - WHAT_COLUMN);
    fputc('\n', out);
    free(what);
}

/* Where A is done: "in the script, FILE:LINE" of its first edit, if that is
 * known. */
static void write_place(const struct result_advice *a, char *out, size_t size)
{
    const cJSON *edit = cJSON_GetArrayItem(a->edits, 0);
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(edit, "file"));
    const char *name = file ? strrchr(file, '/') : NULL;

    if (name)
        snprintf(out, size, "in the script, %.100s:%d", name + 1,
                 cJSON_GetObjectItem(edit, "line")->valueint);
    else
        snprintf(out, size, "in the %s",
                 cJSON_GetObjectItem(edit, "value") ? "environment" : "script");
}

/* What it costs, and how it is done. */
static void write_change(const struct result_advice *a, FILE *out)
{
    char time[32], text[400], place[160];

    time_format_ns(a->costs_ns, time, sizeof time);
    if (a->costs_ns > 0)
        fprintf(out, "    costs about %s a step (%.0f%%): its forward runs "
                     "twice\n",
                time, a->step_ns > 0 ? 100 * a->costs_ns / a->step_ns : 0);
    if (!a->how)
        return;
    write_place(a, place, sizeof place);
    snprintf(text, sizeof text, "%s: %s", place, a->how);
    text_write_wrapped(out, "   ", text);
}

/* In lines of TEXT_COLUMNS where its options allow, for a shell to join. */
static void write_command(const char *command, FILE *out)
{
    const char *option;

    while (strlen(command) > TEXT_COLUMNS - COMMAND_INDENT &&
           (option = strstr(command + 1, " --"))) {
        for (const char *next;
             (next = strstr(option + 1, " --")) &&
             next - command < TEXT_COLUMNS - COMMAND_INDENT - 2;)
            option = next;
        fprintf(out, "%.*s \\\n%*s", (int)(option - command), command,
                COMMAND_INDENT + 3, "");
        command = option;
    }
    fputs(command, out);
}

/* The commands' DIR, where they have one. */
static void write_directory(const struct result_device *d, const char *dim,
                            const char *plain, FILE *out)
{
    for (size_t i = 0; i < d->advice_count; i++)
        if (strstr(d->advice[i].command, " DIR ")) {
            fprintf(out, "    %sDIR: what `memsim run -o DIR%s ...' keeps%s\n",
                    dim,
                    d->advice_fits || d->advice_ends ? "" : " --memory 1TiB",
                    plain);
            return;
        }
}

static void write_heading(const struct result_device *d, const char *dim,
                          const char *plain, FILE *out)
{
    char size[SIZE_LENGTH];

    fprintf(out, "  %s", dim);
    if (d->advice_ends)
        fputs("would have met the request that failed (what comes after is not "
              "known)",
              out);
    else if (d->advice_fits)
        fputs("possible savings of used memory, each alone", out);
    else
        fprintf(out,
                "on a GPU without a limit it uses %s; possible savings of "
                "that, each alone",
                units_format_bytes(d->unlimited_bytes, size, sizeof size));
    fprintf(out, "%s\n", plain);
}

bool advice_is_told(const struct result_device *d)
{
    return d->advised && (!d->advice_ends || d->advice_count);
}

void advice_write(const struct result_device *d, const char *dim,
                  const char *plain, FILE *out)
{
    if (!advice_is_told(d))
        return;
    if (!d->advice_count) {
        fprintf(out, "  %snothing that was tried saves more than 1%%%s\n", dim,
                plain);
        return;
    }
    if (d->advice[0].of)
        write_heading(d, dim, plain, out);
    for (size_t i = 0; i < d->advice_count; i++) {
        if (!is_shown(d, &d->advice[i]))
            continue;
        if (d->advice_ends || !d->advice[i].of)
            fprintf(out, "  %s\n", d->advice[i].what);
        else
            write_row(d, &d->advice[i], out);
        write_change(&d->advice[i], out);
        fprintf(out, "    %s", dim);
        write_command(d->advice[i].command, out);
        fprintf(out, "%s\n", plain);
    }
    write_directory(d, dim, plain, out);
}

static char *advice_text(const struct result_device *d,
                         const struct result_advice *a)
{
    char size[SIZE_LENGTH];

    if (!a->of)
        return xstrdup(a->what);
    if (d->advice_ends)
        return xasprintf("%s would have met the request that failed", a->what);
    if (!a->saves_bytes)
        return xasprintf("with %s it fits", a->what);
    return xasprintf("%s saves %s", a->what,
                     units_format_bytes(a->saves_bytes, size, sizeof size));
}

static void add_peaks(cJSON *to, const struct result_advice *a)
{
    cJSON_AddStringToObject(to, "of", a->of);
    json_add_bytes(to, "peak_allocated_bytes", a->peak_allocated_bytes);
    json_add_bytes(to, "peak_reserved_bytes", a->peak_reserved_bytes);
    json_add_bytes(to, "peak_used_bytes", a->peak_used_bytes);
}

/* What to do: in words, and as edits. */
static void add_change(cJSON *to, const struct result_advice *a)
{
    cJSON *change = cJSON_AddObjectToObject(to, "change");

    if (a->how)
        cJSON_AddStringToObject(change, "text", a->how);
    if (a->edits)
        cJSON_AddItemToObject(change, "edits", cJSON_Duplicate(a->edits, true));
    else
        cJSON_AddNullToObject(change, "edits");
}

void advice_json_add(cJSON *object, const struct result_device *d)
{
    cJSON *array = cJSON_AddArrayToObject(object, "advice");

    for (size_t i = 0; i < d->advice_count; i++) {
        const struct result_advice *a = &d->advice[i];
        cJSON *to = json_add_object(array);
        char *text = advice_text(d, a);

        cJSON_AddStringToObject(to, "text", text);
        json_add_bytes(to, "saves_bytes", a->saves_bytes);
        cJSON_AddBoolToObject(to, "fits", a->fits);
        if (a->of)
            add_peaks(to, a);
        add_change(to, a);
        if (a->costs_ns > 0)
            cJSON_AddNumberToObject(to, "costs_ns", a->costs_ns);
        if (a->time_unknown)
            cJSON_AddStringToObject(to, "time_unknown", a->time_unknown);
        cJSON_AddStringToObject(to, "command", a->command);
        cJSON_AddStringToObject(to, "basis", a->basis);
        free(text);
    }
}
