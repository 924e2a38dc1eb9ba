/* SPDX-License-Identifier: Apache-2.0 */
#include "common/profile/profile_format.h"

#include "common/profile/nsys_read.h"

static int count_nsys(const char *path, uint32_t *count, struct err *err)
{
    struct nsys_processes processes;

    if (nsys_processes_read(path, &processes, err))
        return -1;
    *count = (uint32_t)processes.count;
    return 0;
}

static int read_nsys(const char *path, uint32_t nth, kineto_take *take,
                     void *context, struct kineto_info *info, struct err *err)
{
    struct nsys_processes processes;

    if (nsys_processes_read(path, &processes, err))
        return -1;
    if (nth >= processes.count)
        return err_set(err, "%s: it has %zu processes", path, processes.count);
    return nsys_read(path, processes.ids[nth], take, context, info, err);
}

static int read_kineto(const char *path, uint32_t nth, kineto_take *take,
                       void *context, struct kineto_info *info,
                       struct err *err)
{
    (void)nth;
    return kineto_read(path, take, context, NULL, info, err);
}

static const struct profile_format formats[] = {
    {nsys_is, count_nsys, read_nsys},
    {NULL, NULL, read_kineto},
};

const struct profile_format *profile_format_of(const char *path)
{
    const struct profile_format *format = formats;

    while (format->is && !format->is(path))
        format++;
    return format;
}
