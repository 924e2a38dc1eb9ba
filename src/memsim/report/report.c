/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/report.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/file_write.h"
#include "memsim/report/gzip.h"

struct format {
    const struct report_ops *ops;
    const void *report;
    bool gzip;
};

static void format_write(const void *what, FILE *out)
{
    static const struct report_style plain = {.color = false};
    const struct format *format = what;
    FILE *stream = format->gzip ? gzip_open(out) : NULL;

    format->ops->write(format->report, &plain, stream ? stream : out);
    if (stream)
        fclose(stream);
}

static bool is_gzip(const char *path)
{
    size_t length = strlen(path);

    return length > 3 && !strcmp(path + length - 3, ".gz");
}

int report_write(const struct report_ops *ops, const void *report,
                 const char *path, struct err *err)
{
    const struct format format = {ops, report,
                                  ops->gzip_by_name && is_gzip(path)};

    return file_write(format_write, &format, path, err);
}
