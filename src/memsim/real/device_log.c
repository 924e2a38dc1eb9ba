/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/real/device_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array_sort.h"
#include "common/base/xmalloc.h"

/* CUPTI's number of a call, and ours of the call that it is a part of. */
struct pair {
    uint64_t correlation, number;
};

struct pairs {
    struct pair *all;
    size_t count, capacity;
};

static int file_read(const char *path, char **bytes, size_t *size,
                     struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    size_t at = 0;

    *bytes = NULL;
    *size = 0;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st)) {
        err_set(err, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *bytes = xmalloc((size_t)st.st_size + 1);
    while (at < (size_t)st.st_size) {
        ssize_t n = read(fd, *bytes + at, (size_t)st.st_size - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(fd);
    *size = at;
    return 0;
}

/* The row at *AT of the BYTES at FILE, and its text; false at the end, or where
 * the last row is cut. */
static bool row_next(const char *file, size_t bytes, size_t *at,
                     struct device_log_row *row, const char **text)
{
    if (bytes - *at < sizeof *row)
        return false;
    memcpy(row, file + *at, sizeof *row);
    size_t padded = device_log_padded(row->text_bytes);
    if (row->text_bytes > bytes || padded > bytes - *at - sizeof *row)
        return false;
    *text = file + *at + sizeof *row;
    *at += sizeof *row + padded;
    return true;
}

static void rows_read(struct device_log *log, size_t bytes, struct pairs *pairs)
{
    struct device_log_row row;
    size_t at = 0, capacity = 0;
    const char *text;

    while (row_next(log->bytes, bytes, &at, &row, &text)) {
        if (row.kind == DEVICE_LOG_LOST) {
            log->lost += row.number;
        } else if (row.kind == DEVICE_LOG_CALL) {
            xgrow(&pairs->all, pairs->count, &pairs->capacity,
                  sizeof *pairs->all);
            pairs->all[pairs->count++] =
                (struct pair){row.correlation, row.number};
        } else {
            xgrow(&log->works, log->count, &capacity, sizeof *log->works);
            log->works[log->count++] =
                (struct device_work){.row = row, .name = text};
        }
    }
}

static int compare_pairs(const void *one, const void *other)
{
    const struct pair *a = one, *b = other;

    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int compare_works(const void *one, const void *other)
{
    const struct device_work *a = one, *b = other;

    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->number != b->number)
        return a->number > b->number ? -1 : 1; /* a call's own first */
    if (a->row.start_ns != b->row.start_ns)
        return a->row.start_ns < b->row.start_ns ? -1 : 1;
    return (a->row.correlation > b->row.correlation) -
           (a->row.correlation < b->row.correlation);
}

/* CUPTI counts calls upwards: the last pair not behind WORK's call is that of
 * its own call, or of the one before. */
static void work_place(const struct pairs *pairs, struct device_work *work)
{
    size_t low = 0, high = pairs->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pairs->all[middle].correlation <= work->row.correlation)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return;
    const struct pair *last = &pairs->all[low - 1];
    work->before = last->number;
    if (last->correlation == work->row.correlation)
        work->number = last->number;
}

int device_log_read(struct device_log *log, const char *path, struct err *err)
{
    struct pairs pairs = {0};
    size_t bytes;

    *log = (struct device_log){0};
    if (file_read(path, &log->bytes, &bytes, err))
        return -1;
    rows_read(log, bytes, &pairs);
    if (pairs.count)
        array_sort(pairs.all, pairs.count, sizeof *pairs.all, compare_pairs);
    for (size_t i = 0; i < log->count; i++)
        work_place(&pairs, &log->works[i]);
    free(pairs.all);
    if (log->count)
        array_sort(log->works, log->count, sizeof *log->works, compare_works);
    return 0;
}

void device_log_fini(struct device_log *log)
{
    free(log->works);
    free(log->bytes);
    *log = (struct device_log){0};
}

struct device_work *device_log_of(const struct device_log *log, uint64_t number,
                                  size_t *count)
{
    size_t low = 0, high = log->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (log->works[middle].before < number)
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < log->count &&
           log->works[low + *count].before == number &&
           log->works[low + *count].number == number)
        ++*count;
    return *count ? &log->works[low] : NULL;
}
