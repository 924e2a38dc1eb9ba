/* SPDX-License-Identifier: Apache-2.0 */
#include "common/profile/nsys_read.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_open.h"
#include "common/base/map.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"

#define STRINGS_BYTES_MAX ((size_t)256 << 20)
#define STRING_BYTES_MAX  (1 << 20)
#define HEAP_BYTES_MAX    ((int64_t)384 << 20)
#define PATH_BYTES        8192
#define NO_COLUMN         (-1)

/* eventType of NVTX_EVENTS: a range that is pushed, and one that is started. */
enum { NVTX_PUSHED = 59, NVTX_STARTED = 60 };

struct reader {
    sqlite3 *db;
    const char *path;
    int64_t process;
    kineto_take *take;
    void *context;
    struct kineto_info *info;
    struct err *err;
    struct map strings; /* by id + 1 */
    size_t string_bytes;
    const char *step; /* how names of steps begin; NULL: none do */
    uint64_t steps;
    int64_t device; /* of the first kernel */
    bool stopped;
};

/* --- the database --------------------------------------------------------- */

bool nsys_is(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* and its zero */
    char head[sizeof magic] = "";
    struct err ignored = {""};
    int fd = file_open(path, &ignored); /* a FIFO would wait for a writer */
    ssize_t length = fd < 0 ? 0 : pread(fd, head, sizeof head, 0);

    if (fd >= 0)
        close(fd);
    return length == sizeof head && !memcmp(head, magic, sizeof head);
}

/* PATH as a URI: a file that is not changed, so that SQLite neither locks it
 * nor looks for a journal. */
static int uri_write(const char *path, char uri[PATH_BYTES], struct err *err)
{
    size_t at = (size_t)snprintf(uri, PATH_BYTES, "file:");

    for (; *path && at < PATH_BYTES - 32; path++) {
        bool plain = (*path >= '0' && *path <= '9') ||
                     (*path >= 'a' && *path <= 'z') ||
                     (*path >= 'A' && *path <= 'Z') || strchr("/._-", *path);
        at += (size_t)snprintf(uri + at, PATH_BYTES - at,
                               plain ? "%c" : "%%%02X", (unsigned char)*path);
    }
    if (*path)
        return err_set(err, "the path is too long");
    snprintf(uri + at, PATH_BYTES - at, "?immutable=1");
    return 0;
}

/* Only reading of tables is allowed. */
static int authorize_statement(void *context, int action, const char *a,
                               const char *b, const char *c, const char *d)
{
    (void)context, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK
                                                            : SQLITE_DENY;
}

static void limits_set(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, STRING_BYTES_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 64 << 10);
    sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 256);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_exec(db,
                 "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; "
                 "PRAGMA cache_size = -16384",
                 NULL, NULL, NULL);
    sqlite3_hard_heap_limit64(HEAP_BYTES_MAX);
    sqlite3_set_authorizer(db, authorize_statement, NULL);
}

static int db_open(struct reader *r)
{
    char uri[PATH_BYTES];
    struct stat st;

    if (stat(r->path, &st))
        return err_set(r->err, "%s: %m", r->path);
    if (!S_ISREG(st.st_mode))
        return err_set(r->err, "%s: not a regular file", r->path);
    r->info->file_bytes = r->info->read_bytes = (uint64_t)st.st_size;
    if (uri_write(r->path, uri, r->err))
        return -1;
    if (sqlite3_open_v2(uri, &r->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                        NULL) != SQLITE_OK) {
        err_set(r->err, "%s: %s", r->path,
                r->db ? sqlite3_errmsg(r->db) : "out of memory");
        sqlite3_close(r->db);
        return -1;
    }
    limits_set(r->db);
    return 0;
}

static int db_fail(const struct reader *r)
{
    return err_set(r->err, "%s: not a whole SQLite database: %s", r->path,
                   sqlite3_errmsg(r->db));
}

/* Prepares all rows of TABLE. Returns 1; 0: it is no table of the file; -1. */
static int table_open(const struct reader *r, const char *table,
                      sqlite3_stmt **rows)
{
    char sql[256];
    sqlite3_stmt *is;
    int found = 0;

    *rows = NULL;
    if (sqlite3_prepare_v2(r->db,
                           "SELECT sql FROM sqlite_master "
                           "WHERE type = 'table' AND name = ?1",
                           -1, &is, NULL) != SQLITE_OK)
        return db_fail(r);
    sqlite3_bind_text(is, 1, table, -1, SQLITE_STATIC);
    if (sqlite3_step(is) == SQLITE_ROW) {
        const char *made = (const char *)sqlite3_column_text(is, 0);
        found = made && text_begins(made, "CREATE TABLE");
    }
    sqlite3_finalize(is);
    if (!found)
        return 0;
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
    return sqlite3_prepare_v2(r->db, sql, -1, rows, NULL) == SQLITE_OK
               ? 1
               : db_fail(r);
}

/* Gives each row of TABLE to ROW, with the COUNT columns NAMES; NO_COLUMN is
 * what the table lacks. A missing table has no rows. */
typedef int row_take(struct reader *r, sqlite3_stmt *row, const int *columns);

static void columns_find(sqlite3_stmt *rows, const char *const *names,
                         size_t count, int *columns)
{
    for (size_t i = 0; i < count; i++)
        columns[i] = NO_COLUMN;
    for (int at = 0; at < sqlite3_column_count(rows); at++)
        for (size_t i = 0; i < count; i++)
            if (!strcmp(names[i], sqlite3_column_name(rows, at)))
                columns[i] = at;
}

static int table_read(struct reader *r, const char *table,
                      const char *const *names, size_t count, row_take *take)
{
    int columns[32];
    sqlite3_stmt *rows;
    int step = SQLITE_DONE, rc = table_open(r, table, &rows);

    if (rc <= 0)
        return rc;
    columns_find(rows, names, count, columns);
    for (rc = 0; !rc && (step = sqlite3_step(rows)) == SQLITE_ROW;)
        rc = take(r, rows, columns);
    if (!rc && step != SQLITE_DONE)
        rc = db_fail(r);
    sqlite3_finalize(rows);
    return rc;
}

/* What is no integer is not known. */
static int64_t column_number(sqlite3_stmt *row, int column)
{
    return column == NO_COLUMN ||
                   sqlite3_column_type(row, column) != SQLITE_INTEGER
               ? KINETO_NONE
               : sqlite3_column_int64(row, column);
}

static uint32_t number_32(sqlite3_stmt *row, int column)
{
    int64_t value = column_number(row, column);

    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* --- names ---------------------------------------------------------------- */

static int take_string(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    int64_t id = column_number(row, columns[0]);
    const char *text = columns[1] == NO_COLUMN
                           ? NULL
                           : (const char *)sqlite3_column_text(row, columns[1]);

    if (!text || id < 0 || map_get(&r->strings, (uint64_t)id + 1))
        return 0;
    r->string_bytes += strlen(text) + 64;
    if (r->string_bytes > STRINGS_BYTES_MAX)
        return err_set(r->err, "%s: more than %zu MiB of names", r->path,
                       STRINGS_BYTES_MAX >> 20);
    map_put(&r->strings, (uint64_t)id + 1, xstrdup(text));
    return 0;
}

static int strings_read(struct reader *r)
{
    static const char *const names[] = {"id", "value"};

    return table_read(r, "StringIds", names, 2, take_string);
}

static void strings_fini(struct reader *r)
{
    size_t cursor = 0;

    for (void *text; (text = map_next(&r->strings, &cursor));)
        free(text);
    map_fini(&r->strings);
}

/* The name with the id in COLUMN; NULL: it has none. */
static const char *name_get(const struct reader *r, sqlite3_stmt *row,
                            int column)
{
    int64_t id = column_number(row, column);

    return id < 0 ? NULL : map_get(&r->strings, (uint64_t)id + 1);
}

/* --- processes and threads ------------------------------------------------ */

/* A global id has the process in bits 24 to 47 and the thread below. */
static int64_t process_of(int64_t id)
{
    return id == KINETO_NONE ? 0 : id >> 24 & 0xffffff;
}

static int64_t thread_of(int64_t id)
{
    return id == KINETO_NONE ? 0 : id & 0xffffff;
}

/* --- events --------------------------------------------------------------- */

static struct profile_event event_make(enum kineto_category category,
                                      int64_t start, int64_t end)
{
    return (struct profile_event){
        .category = category,
        .phase = 'X',
        .name = "",
        .start_ns = start,
        .duration_ns = end != KINETO_NONE && start != KINETO_NONE && end > start
                           ? (int64_t)((uint64_t)end - (uint64_t)start)
                           : 0,
        .process = KINETO_NONE,
        .thread = KINETO_NONE,
        .device = KINETO_NONE,
        .stream = KINETO_NONE,
        .correlation = KINETO_NONE,
        .external_id = KINETO_NONE,
        .bytes = KINETO_NONE,
        .in_elements = KINETO_NONE,
        .out_elements = KINETO_NONE,
        .group_size = KINETO_NONE,
        .rank = KINETO_NONE,
        .wait_stream = KINETO_NONE,
        .wait_correlation = KINETO_NONE,
        .event_id = KINETO_NONE,
        .launched_ns = KINETO_NONE,
        .gap_ns = KINETO_NONE,
        .host_start_ns = KINETO_NONE,
        .host_end_ns = KINETO_NONE,
    };
}

static int event_give(struct reader *r, const struct profile_event *e)
{
    r->info->events++;
    if (!r->take(r->context, e))
        return 0;
    r->stopped = true;
    return -1;
}

/* The columns that operations share. */
#define OP_COLUMNS                                                             \
    "start", "end", "deviceId", "streamId", "correlationId", "globalPid",      \
        "bytes"
enum { START, END, DEVICE, STREAM, CORRELATION, GLOBAL_PID, BYTES, OP_OWN };

/* Sets *E to the operation in ROW. False: it is another process's. */
static bool op_read(const struct reader *r, sqlite3_stmt *row,
                    const int *columns, enum kineto_category category,
                    struct profile_event *e)
{
    int64_t process = process_of(column_number(row, columns[GLOBAL_PID]));

    if (process != r->process)
        return false;
    *e = event_make(category, column_number(row, columns[START]),
                    column_number(row, columns[END]));
    e->process = process;
    e->device = column_number(row, columns[DEVICE]);
    e->stream = column_number(row, columns[STREAM]);
    e->correlation = column_number(row, columns[CORRELATION]);
    e->bytes = column_number(row, columns[BYTES]);
    return true;
}

static const char *const kernel_columns[] = {OP_COLUMNS,
                                             "demangledName",
                                             "shortName",
                                             "gridX",
                                             "gridY",
                                             "gridZ",
                                             "blockX",
                                             "blockY",
                                             "blockZ",
                                             "registersPerThread",
                                             "staticSharedMemory",
                                             "dynamicSharedMemory"};

static int take_kernel(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    const int *own = columns + OP_OWN;
    struct profile_event e;
    const char *name;

    if (!op_read(r, row, columns, KINETO_KERNEL, &e))
        return 0;
    if (r->device == KINETO_NONE)
        r->device = e.device;
    name = name_get(r, row, own[0]);
    if (!name)
        name = name_get(r, row, own[1]);
    e.name = name ? name : "kernel without a name";
    for (int i = 0; i < 3; i++) {
        e.grid[i] = number_32(row, own[2 + i]);
        e.block[i] = number_32(row, own[5 + i]);
    }
    e.registers = number_32(row, own[8]);
    e.shared_bytes = number_32(row, own[9]) + number_32(row, own[10]);
    return event_give(r, &e);
}

static const char *const copy_columns[] = {OP_COLUMNS, "copyKind", "srcKind",
                                           "dstKind"};

static const char *memory_name(int64_t kind)
{
    static const char *const names[] = {"Pageable", "Pinned",  "Device",
                                        "Array",    "Managed", "Device"};

    return kind >= 0 && kind < 6 ? names[kind] : "Unknown";
}

/* As Kineto names copies. */
static int take_copy(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    static const char *const kinds[] = {
        [1] = "HtoD", [2] = "DtoH", [8] = "DtoD", [10] = "PtoP"};
    const int *own = columns + OP_OWN;
    int64_t kind = column_number(row, own[0]);
    struct profile_event e;
    char name[64];

    if (!op_read(r, row, columns, KINETO_COPY, &e))
        return 0;
    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
             kind >= 0 && kind <= 10 && kinds[kind] ? kinds[kind] : "DtoD",
             memory_name(column_number(row, own[1])),
             memory_name(column_number(row, own[2])));
    e.name = name;
    return event_give(r, &e);
}

static const char *const set_columns[] = {OP_COLUMNS};

static int take_set(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    struct profile_event e;

    if (!op_read(r, row, columns, KINETO_SET, &e))
        return 0;
    e.name = "Memset (Device)";
    return event_give(r, &e);
}

static const char *const call_columns[] = {"start", "end", "globalTid",
                                           "correlationId", "nameId"};

/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000": CUPTI adds the version of
 * CUDA that a call came with. Calls of the driver end in _v2 and _v3. */
static size_t call_length(const char *name)
{
    size_t length = strlen(name), digits = 0;

    while (digits < length && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9')
        digits++;
    bool version = digits >= 4 && length > digits + 2 &&
                   !memcmp(name + length - digits - 2, "_v", 2);
    return version ? length - digits - 2 : length;
}

static int take_call(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    int64_t id = column_number(row, columns[2]);
    const char *name = name_get(r, row, columns[4]);
    struct profile_event e =
        event_make(KINETO_RUNTIME, column_number(row, columns[0]),
                   column_number(row, columns[1]));
    char text[128];

    if (process_of(id) != r->process)
        return 0;
    name = name ? name : "call without a name";
    size_t length = call_length(name);
    snprintf(text, sizeof text, "%.*s",
             (int)(length < sizeof text ? length : sizeof text - 1), name);
    e.name = text;
    e.process = process_of(id);
    e.thread = thread_of(id);
    e.correlation = column_number(row, columns[3]);
    return event_give(r, &e);
}

/* --- ranges --------------------------------------------------------------- */

static const char *const range_columns[] = {"start", "end",    "globalTid",
                                            "text",  "textId", "eventType"};

/* The name of the range in ROW; NULL: it is none of the process's. */
static const char *range_name(const struct reader *r, sqlite3_stmt *row,
                              const int *columns)
{
    int64_t type = column_number(row, columns[5]);
    const char *text = columns[3] == NO_COLUMN
                           ? NULL
                           : (const char *)sqlite3_column_text(row, columns[3]);

    if ((type != NVTX_PUSHED && type != NVTX_STARTED && type != KINETO_NONE) ||
        process_of(column_number(row, columns[2])) != r->process)
        return NULL;
    return text ? text : name_get(r, row, columns[4]);
}

/* How the names of steps begin: the first of these that any range has. */
static int take_step_name(struct reader *r, sqlite3_stmt *row,
                          const int *columns)
{
    static const char *const starts[] = {"ProfilerStep", "iteration",
                                         "Iteration", "step", "Step"};
    const char *name = range_name(r, row, columns);

    for (size_t i = 0; name && i < sizeof starts / sizeof *starts; i++) {
        if (r->step == starts[i])
            return 0;
        if (!text_begins(name, starts[i]))
            continue;
        r->step = starts[i];
        return 0;
    }
    return 0;
}

/* Steps get the name that torch.profiler gives them. */
static int take_range(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    const char *name = range_name(r, row, columns);
    int64_t id = column_number(row, columns[2]);
    struct profile_event e =
        event_make(KINETO_ANNOTATION, column_number(row, columns[0]),
                   column_number(row, columns[1]));
    char step[48];

    if (!name || column_number(row, columns[1]) == KINETO_NONE)
        return 0;
    e.name = name;
    if (r->step && text_begins(name, r->step)) {
        snprintf(step, sizeof step, "ProfilerStep#%" PRIu64, r->steps++);
        e.name = step;
    }
    e.process = process_of(id);
    e.thread = thread_of(id);
    return event_give(r, &e);
}

/* --- the GPU -------------------------------------------------------------- */

static const char *const gpu_columns[] = {"name", "totalMemory", "cuDevice",
                                          "id"};

static int take_gpu(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    const char *name = columns[0] == NO_COLUMN
                           ? NULL
                           : (const char *)sqlite3_column_text(row, columns[0]);
    int64_t bytes = column_number(row, columns[1]);
    int64_t device =
        column_number(row, columns[columns[2] == NO_COLUMN ? 3 : 2]);

    if (!name || (r->info->gpu[0] && device != r->device))
        return 0;
    snprintf(r->info->gpu, sizeof r->info->gpu, "%s", name);
    r->info->memory_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    return 0;
}

/* --- the file ------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int events_read(struct reader *r)
{
    const struct {
        const char *table;
        const char *const *columns;
        size_t count;
        row_take *take;
    } tables[] = {
        {"CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, COUNT(kernel_columns),
         take_kernel},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, COUNT(copy_columns),
         take_copy},
        {"CUPTI_ACTIVITY_KIND_MEMSET", set_columns, COUNT(set_columns),
         take_set},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, COUNT(call_columns),
         take_call},
        {"NVTX_EVENTS", range_columns, COUNT(range_columns), take_step_name},
        {"NVTX_EVENTS", range_columns, COUNT(range_columns), take_range},
        {"TARGET_INFO_GPU", gpu_columns, COUNT(gpu_columns), take_gpu},
    };

    for (size_t i = 0; i < COUNT(tables); i++)
        if (table_read(r, tables[i].table, tables[i].columns, tables[i].count,
                       tables[i].take))
            return -1;
    return 0;
}

static void reader_close(struct reader *r)
{
    strings_fini(r);
    sqlite3_close(r->db);
    sqlite3_hard_heap_limit64(0);
}

int nsys_read(const char *path, int64_t process, kineto_take *take,
              void *context, struct kineto_info *info, struct err *err)
{
    struct reader r = {.path = path,
                       .process = process,
                       .take = take,
                       .context = context,
                       .info = info,
                       .err = err,
                       .device = KINETO_NONE};

    memset(info, 0, sizeof *info);
    info->rank = info->world = KINETO_NONE;
    if (db_open(&r))
        return -1;
    int rc = strings_read(&r);
    if (!rc)
        rc = events_read(&r);
    reader_close(&r);
    return rc && !r.stopped ? -1 : 0;
}

/* --- processes ------------------------------------------------------------ */

static int take_process(struct reader *r, sqlite3_stmt *row, const int *columns)
{
    struct nsys_processes *p = r->context;
    int64_t id = process_of(column_number(row, columns[0]));

    for (size_t i = 0; i < p->count; i++)
        if (p->ids[i] == id)
            return 0;
    if (p->count == NSYS_PROCESSES_MAX)
        return err_set(r->err,
                       "%s: more than %d processes used a GPU; "
                       "profile fewer",
                       r->path, NSYS_PROCESSES_MAX);
    p->ids[p->count++] = id;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int nsys_processes_read(const char *path, struct nsys_processes *processes,
                        struct err *err)
{
    static const char *const names[] = {"globalPid"};
    struct kineto_info info;
    struct reader r = {
        .path = path, .context = processes, .info = &info, .err = err};

    processes->count = 0;
    if (db_open(&r))
        return -1;
    int rc =
        table_read(&r, "CUPTI_ACTIVITY_KIND_KERNEL", names, 1, take_process);
    if (!rc)
        rc = table_read(&r, "CUPTI_ACTIVITY_KIND_MEMCPY", names, 1,
                        take_process);
    reader_close(&r);
    if (rc)
        return -1;
    qsort(processes->ids, processes->count, sizeof *processes->ids,
          compare_ids);
    if (processes->count)
        return 0;
    return err_set(err,
                   "%s: no CUDA events in it; record with `nsys profile "
                   "--trace=cuda,nvtx' and export with `nsys export --type "
                   "sqlite'",
                   path);
}
