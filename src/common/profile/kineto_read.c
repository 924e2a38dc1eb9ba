/* SPDX-License-Identifier: Apache-2.0
 * yajl calls back for each value; numbers come as text, which keeps the
 * nanoseconds that a double would lose. Where a value stands is its depth and
 * the keys above it:
 *
 *   { "deviceProperties": [ {"name": ...} ], "distributedInfo": {...},
 *     "traceEvents": [ { "name": ..., "args": { "grid": [x, y, z] } } ] }
 *     depth 1         2 3               4         5
 */
#include "common/profile/kineto_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

#include "common/base/simulated.h"

#define READ_BYTES  (256u << 10)
#define DEPTH_MAX   256      /* deeper JSON is an error */
#define TEXT_BYTES  (64u << 10) /* of one event's strings; the rest is cut */
#define KEY_BYTES   32

/* The parser scans a value anew for each piece of the file that it lies in. */
#define VALUE_BYTES (16u << 20)

/* What a key of an event, or of its args, is stored as. */
enum field_type { FIELD_NUMBER, FIELD_TIME, FIELD_TEXT, FIELD_U32 };

struct field {
    const char *key;
    size_t length; /* of the key: each key of a file is compared with all */
    enum field_type type;
    size_t offset;
};

#define ROW(key, type, member)                                                 \
    {                                                                          \
        key, sizeof key - 1, FIELD_##type,                                     \
            offsetof(struct profile_event, member)                             \
    }

static const struct field event_fields[] = {
    ROW("name", TEXT, name),       ROW("ts", TIME, start_ns),
    ROW("dur", TIME, duration_ns), ROW("pid", NUMBER, process),
    ROW("tid", NUMBER, thread),    {NULL, 0, 0, 0},
};

/* Older files write "external id" in lower case. */
static const struct field args_fields[] = {
    ROW("device", NUMBER, device),
    ROW("stream", NUMBER, stream),
    ROW("correlation", NUMBER, correlation),
    ROW("External id", NUMBER, external_id),
    ROW("external id", NUMBER, external_id),
    ROW("bytes", NUMBER, bytes),
    ROW("registers per thread", U32, registers),
    ROW("shared memory", U32, shared_bytes),
    ROW("Collective name", TEXT, collective),
    ROW("Process Group Name", TEXT, group),
    ROW("Process Group Ranks", TEXT, group_ranks),
    ROW("dtype", TEXT, type),
    ROW("In msg nelems", NUMBER, in_elements),
    ROW("Out msg nelems", NUMBER, out_elements),
    ROW("Group size", NUMBER, group_size),
    ROW("Rank", NUMBER, rank),
    ROW("wait_on_stream", NUMBER, wait_stream),
    ROW("wait_on_cuda_event_record_corr_id", NUMBER, wait_correlation),
    ROW("wait_on_cuda_event_id", NUMBER, event_id),
    ROW("launched_ns", NUMBER, launched_ns),
    ROW("gap_ns", NUMBER, gap_ns),
    ROW("family", TEXT, family),
    ROW("work", TEXT, work),
    ROW("host_start_ns", NUMBER, host_start_ns),
    ROW("host_end_ns", NUMBER, host_end_ns),
    {NULL, 0, 0, 0},
};

static const struct {
    const char *name;
    enum kineto_category category;
} categories[] = {
    {"kernel", KINETO_KERNEL},        {"Kernel", KINETO_KERNEL},
    {"gpu_memcpy", KINETO_COPY},      {"Memcpy", KINETO_COPY},
    {"gpu_memset", KINETO_SET},       {"Memset", KINETO_SET},
    {"cuda_runtime", KINETO_RUNTIME}, {"Runtime", KINETO_RUNTIME},
    {"cuda_driver", KINETO_RUNTIME},  {"cuda_sync", KINETO_SYNC},
    {"cpu_op", KINETO_OPERATOR},      {"Operator", KINETO_OPERATOR},
    {"user_annotation", KINETO_ANNOTATION},
};

/* Where the bytes come from. */
struct source {
    /* As read(2). Sets *AT to how much of the file, as it lies there, that was;
     * with an error, what was read before is kept, as of a file that was cut.
     */
    int (*read)(void *from, unsigned char *bytes, unsigned size, uint64_t *at);
    void *from;
    const char *name; /* for messages */
};

struct reader {
    kineto_take *take;
    void *context;
    struct kineto_info *info;
    struct profile_event event;
    const struct field *field;  /* that the next value fills; NULL: none */
    bool event_category, event_phase; /* the next value is "cat", "ph" */
    unsigned depth;
    unsigned events_depth; /* of the array of events; 0: not inside */
    bool seen_events;
    bool in_args;
    uint32_t *triple; /* grid or block: its numbers follow */
    unsigned triple_at;
    char top[KEY_BYTES]; /* key at depth 1 */
    char key[KEY_BYTES]; /* the last key elsewhere, outside events */
    char text[TEXT_BYTES];
    size_t text_used;
    char **list; /* text member that a nested list is copied to */
    size_t list_start;
    unsigned list_depth;
    bool stopped, too_deep;
    size_t quiet_bytes; /* since the parser last called back */
};

static bool key_is(const unsigned char *key, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(key, name, length) == 0;
}

static void key_copy(char *to, const unsigned char *key, size_t length)
{
    size_t n = length < KEY_BYTES - 1 ? length : KEY_BYTES - 1;

    memcpy(to, key, n);
    to[n] = '\0';
}

static void event_begin(struct reader *r)
{
    struct profile_event *e = &r->event;

    memset(e, 0, sizeof *e);
    e->device = e->stream = e->correlation = e->external_id = KINETO_NONE;
    e->bytes = e->in_elements = e->out_elements = KINETO_NONE;
    e->group_size = e->rank = e->process = e->thread = KINETO_NONE;
    e->wait_stream = e->wait_correlation = e->event_id = KINETO_NONE;
    e->launched_ns = e->gap_ns = KINETO_NONE;
    e->host_start_ns = e->host_end_ns = KINETO_NONE;
    e->start_ns = KINETO_NONE;
    r->text_used = 0;
    r->field = NULL;
    r->triple = NULL;
    r->list = NULL;
    r->in_args = r->event_category = r->event_phase = false;
}

static int event_end(struct reader *r)
{
    r->info->events++;
    if (!r->event.name)
        r->event.name = "";
    if (r->take(r->context, &r->event)) {
        r->stopped = true;
        return 0;
    }
    return 1;
}

/* Keeps LENGTH bytes of TEXT with the event; what has no room is cut. */
static char *text_keep(struct reader *r, const unsigned char *text,
                       size_t length)
{
    size_t room = TEXT_BYTES - r->text_used;
    char *at = r->text + r->text_used;

    if (room < 2)
        return "";
    if (length > room - 1)
        length = room - 1;
    memcpy(at, text, length);
    at[length] = '\0';
    r->text_used += length + 1;
    return at;
}

static bool is_digit(const char *text, size_t length, size_t i)
{
    return i < length && text[i] >= '0' && text[i] <= '9';
}

/* The digits after the point of a microsecond, in nanoseconds. */
static int64_t fraction_parse(const char *text, size_t length, size_t *i)
{
    int64_t ns = 0;

    for (int scale = 100; is_digit(text, length, *i); ++*i, scale /= 10)
        ns += (text[*i] - '0') * scale;
    return ns;
}

/* "12.345" microseconds as 12345 nanoseconds, to the digit. */
static int64_t time_parse(const char *text, size_t length)
{
    bool negative = length && text[0] == '-';
    int64_t ns = 0;
    size_t i = negative;

    for (; is_digit(text, length, i); i++)
        if (__builtin_mul_overflow(ns, 10, &ns) ||
            __builtin_add_overflow(ns, text[i] - '0', &ns))
            return KINETO_NONE;
    if (__builtin_mul_overflow(ns, 1000, &ns))
        return KINETO_NONE;
    if (i < length && text[i] == '.') {
        i++;
        ns += fraction_parse(text, length, &i);
    }
    if (i == length)
        return negative ? -ns : ns;
    double us = strtod(text, NULL); /* an exponent: rare, and then not exact */
    return us > -9e15 && us < 9e15 ? (int64_t)(us * 1000) : KINETO_NONE;
}

static int64_t number_parse(const char *text)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end == '.' || *end == 'e' || *end == 'E') {
        double d = strtod(text, NULL);

        return d > -9e18 && d < 9e18 ? (int64_t)d : KINETO_NONE;
    }
    return errno ? KINETO_NONE : value;
}

static uint32_t clamp_u32(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static void field_number(struct reader *r, const char *text, size_t length)
{
    char *at = (char *)&r->event + r->field->offset;

    switch (r->field->type) {
    case FIELD_TIME:
        *(int64_t *)at = time_parse(text, length);
        break;
    case FIELD_NUMBER:
        *(int64_t *)at = number_parse(text);
        break;
    case FIELD_U32:
        *(uint32_t *)at = clamp_u32(number_parse(text));
        break;
    case FIELD_TEXT:
        *(const char **)at = text_keep(r, (const unsigned char *)text, length);
        break;
    }
}

static bool at_event(const struct reader *r)
{
    return r->events_depth && r->depth == r->events_depth + 1;
}

/* What the file says of the GPU and of the job. */
static void info_number(struct reader *r, const char *text)
{
    struct kineto_info *info = r->info;

    if (r->depth == 1 && strcmp(r->top, "baseTimeNanoseconds") == 0)
        info->base_ns = number_parse(text);
    else if (strcmp(r->top, "deviceProperties") == 0 && !info->memory_bytes &&
             strcmp(r->key, "totalGlobalMem") == 0)
        info->memory_bytes = (uint64_t)llabs(number_parse(text));
    else if (strcmp(r->top, "distributedInfo") == 0 && r->depth == 2) {
        if (strcmp(r->key, "rank") == 0)
            info->rank = number_parse(text);
        else if (strcmp(r->key, "world_size") == 0)
            info->world = number_parse(text);
    }
}

/* A list such as [[8, 1024], [1024]] is kept as text. */
static void list_add(struct reader *r, const char *text, size_t length)
{
    size_t room = TEXT_BYTES - r->text_used;

    if (length + 2 >= room)
        return;
    char last = r->text_used > r->list_start ? r->text[r->text_used - 1] : '[';
    if (last != '[' && *text != ']')
        r->text[r->text_used++] = ',';
    memcpy(r->text + r->text_used, text, length);
    r->text_used += length;
}

static int on_number(void *context, const char *text, size_t length)
{
    struct reader *r = context;
    char copy[64];
    size_t n = length < sizeof copy - 1 ? length : sizeof copy - 1;

    r->quiet_bytes = 0;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (r->list)
        list_add(r, copy, n);
    else if (r->triple && r->triple_at < 3)
        r->triple[r->triple_at++] = clamp_u32(number_parse(copy));
    else if (r->field)
        field_number(r, copy, n);
    else if (!r->events_depth)
        info_number(r, copy);
    r->field = NULL;
    return 1;
}

static enum kineto_category category_find(const unsigned char *text,
                                          size_t length)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (key_is(text, length, categories[i].name))
            return categories[i].category;
    return KINETO_OTHER;
}

/* A GPU event's "tid" is "stream 7" in older files. */
static int64_t number_in_text(const unsigned char *text, size_t length)
{
    size_t i = 0;
    char digits[24];
    size_t n = 0;

    while (i < length && (text[i] < '0' || text[i] > '9'))
        i++;
    while (i < length && n < sizeof digits - 1 && text[i] >= '0' &&
           text[i] <= '9')
        digits[n++] = (char)text[i++];
    digits[n] = '\0';
    return n ? number_parse(digits) : KINETO_NONE;
}

static void field_text(struct reader *r, const unsigned char *text,
                       size_t length)
{
    char *at = (char *)&r->event + r->field->offset;

    if (r->field->type == FIELD_TEXT)
        *(const char **)at = text_keep(r, text, length);
    else if (r->field->type == FIELD_NUMBER)
        *(int64_t *)at = number_in_text(text, length);
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
    struct reader *r = context;

    r->quiet_bytes = 0;
    if (r->list)
        list_add(r, length ? (const char *)text : "-", length ? length : 1);
    else if (r->event_category)
        r->event.category = category_find(text, length);
    else if (r->event_phase)
        r->event.phase = length ? (char)text[0] : 0;
    else if (r->field)
        field_text(r, text, length);
    else if (!r->events_depth && strcmp(r->top, "deviceProperties") == 0 &&
             strcmp(r->key, "name") == 0 && !r->info->gpu[0]) {
        size_t n = length < sizeof r->info->gpu ? length
                                                : sizeof r->info->gpu - 1;

        memcpy(r->info->gpu, text, n);
    }
    r->event_category = r->event_phase = false;
    r->field = NULL;
    return 1;
}

static const struct field *field_find(const struct field *fields,
                                      const unsigned char *key, size_t length)
{
    for (; fields->key; fields++)
        if (fields->length == length && !memcmp(key, fields->key, length))
            return fields;
    return NULL;
}

static void event_key(struct reader *r, const unsigned char *key, size_t length)
{
    r->in_args = key_is(key, length, "args");
    r->event_category = key_is(key, length, "cat");
    r->event_phase = key_is(key, length, "ph");
    r->field = field_find(event_fields, key, length);
}

static void args_key(struct reader *r, const unsigned char *key, size_t length)
{
    r->field = field_find(args_fields, key, length);
    r->triple = key_is(key, length, "grid")    ? r->event.grid
                : key_is(key, length, "block") ? r->event.block
                                               : NULL;
    r->triple_at = 0;
    if (key_is(key, length, "Input Dims"))
        r->list = (char **)&r->event.input_dims;
    else if (key_is(key, length, "Input type"))
        r->list = (char **)&r->event.input_types;
    else if (key_is(key, length, "Input Strides"))
        r->list = (char **)&r->event.input_strides;
    else if (key_is(key, length, "Concrete Inputs"))
        r->list = (char **)&r->event.concrete_inputs;
    r->list_start = r->text_used;
    r->list_depth = r->depth;
}

static int on_key(void *context, const unsigned char *key, size_t length)
{
    struct reader *r = context;

    r->quiet_bytes = 0;
    r->field = NULL;
    r->triple = NULL;
    if (at_event(r))
        event_key(r, key, length);
    else if (r->events_depth && r->depth == r->events_depth + 2 && r->in_args)
        args_key(r, key, length);
    else if (r->depth == 1) {
        key_copy(r->top, key, length);
        r->info->simulated |= key_is(key, length, SIMULATED_KEY);
    }
    else if (!r->events_depth)
        key_copy(r->key, key, length);
    return 1;
}

static int depth_enter(struct reader *r)
{
    if (++r->depth <= DEPTH_MAX)
        return 1;
    r->too_deep = true;
    return 0;
}

static int on_map(void *context)
{
    struct reader *r = context;

    r->quiet_bytes = 0;
    if (!depth_enter(r))
        return 0;
    if (at_event(r))
        event_begin(r);
    r->list = NULL;
    return 1;
}

static int on_map_end(void *context)
{
    struct reader *r = context;

    if (at_event(r) && !event_end(r))
        return 0;
    r->depth--;
    r->field = NULL;
    return 1;
}

static int on_array(void *context)
{
    struct reader *r = context;

    r->quiet_bytes = 0;
    if (!depth_enter(r))
        return 0;
    if (!r->events_depth && !r->seen_events &&
        (r->depth == 1 ||
         (r->depth == 2 && strcmp(r->top, "traceEvents") == 0))) {
        r->events_depth = r->depth;
        r->seen_events = true;
    }
    if (r->list)
        list_add(r, "[", 1);
    return 1;
}

/* The list that began at LIST_DEPTH is whole: the event has its text. */
static void list_end(struct reader *r)
{
    list_add(r, "]", 1);
    if (r->depth != r->list_depth + 1)
        return;
    if (r->text_used < TEXT_BYTES) {
        r->text[r->text_used++] = '\0';
        *r->list = r->text + r->list_start;
    }
    r->list = NULL;
}

static int on_array_end(void *context)
{
    struct reader *r = context;

    if (r->list)
        list_end(r);
    if (r->depth == r->events_depth)
        r->events_depth = 0;
    r->depth--;
    r->triple = NULL;
    r->field = NULL;
    return 1;
}

static int on_other(void *context)
{
    struct reader *r = context;

    r->quiet_bytes = 0;
    r->field = NULL;
    r->event_category = r->event_phase = false;
    if (r->list && r->depth == r->list_depth)
        r->list = NULL; /* "Input Dims": null */
    return 1;
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return on_other(context);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_other,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/* Opens a regular file only: a FIFO would hang, a device never end. */
static gzFile file_open(const char *path, struct kineto_info *info,
                        struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        err_set(err, "%s: %m", path);
        return NULL;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        err_set(err, "%s: not a regular file", path);
        close(fd);
        return NULL;
    }
    info->file_bytes = (uint64_t)st.st_size;
    gzFile file = gzdopen(fd, "rb");
    if (!file) {
        err_set(err, "%s: out of memory", path);
        close(fd);
        return NULL;
    }
    gzbuffer(file, READ_BYTES);
    return file;
}

/* What stands before the place where the parser gave up. */
static int parse_failed(const struct reader *r, yajl_handle parser,
                        const char *path, const unsigned char *bytes, int n,
                        struct err *err)
{
    if (r->stopped)
        return 0;
    if (r->too_deep)
        return err_set(err, "%s: nested more than %d levels deep", path,
                       DEPTH_MAX);
    unsigned char *text = yajl_get_error(parser, 0, bytes, (size_t)n);
    char cause[128];
    size_t length = strcspn((const char *)text, "\n");

    if (length >= sizeof cause)
        length = sizeof cause - 1;
    memcpy(cause, text, length);
    cause[length] = '\0';
    yajl_free_error(parser, text);
    return err_set(err, "%s: not the JSON of a profiler trace, after event "
                        "%llu: %s",
                   path, (unsigned long long)r->info->events, cause);
}

static int source_parse(struct reader *r, yajl_handle parser,
                        const struct source *source, kineto_progress *progress,
                        struct err *err)
{
    const char *path = source->name;
    unsigned char *bytes = malloc(READ_BYTES);
    int rc = bytes ? 0 : err_set(err, "%s: out of memory", path);

    while (rc == 0) {
        int n =
            source->read(source->from, bytes, READ_BYTES, &r->info->read_bytes);

        if (n < 0)
            r->info->truncated = true;
        if (n <= 0)
            break;
        r->quiet_bytes += (size_t)n;
        if (yajl_parse(parser, bytes, (size_t)n) != yajl_status_ok)
            rc = parse_failed(r, parser, path, bytes, n, err);
        else if (r->quiet_bytes > VALUE_BYTES)
            rc = err_set(err, "%s: a value is longer than %u MiB, after event "
                              "%llu: not a profiler trace",
                         path, VALUE_BYTES >> 20,
                         (unsigned long long)r->info->events);
        if (rc || r->stopped)
            break;
        if (progress)
            progress(r->context, r->info);
    }
    free(bytes);
    return rc;
}

/* Did the JSON end whole? yajl answers an unfinished one with an error. */
static void check_whole(struct reader *r, yajl_handle parser)
{
    if (!r->stopped && yajl_complete_parse(parser) != yajl_status_ok)
        r->info->truncated = true;
}

static int reader_run(struct reader *r, const struct source *source,
                      kineto_progress *progress, struct err *err)
{
    const char *path = source->name;
    yajl_handle parser = yajl_alloc(&callbacks, NULL, r);

    if (!parser)
        return err_set(err, "%s: out of memory", path);
    yajl_config(parser, yajl_dont_validate_strings, 1);
    int rc = source_parse(r, parser, source, progress, err);
    if (rc == 0)
        check_whole(r, parser);
    yajl_free(parser);
    if (rc == 0 && !r->seen_events)
        return err_set(err, "%s: no \"traceEvents\" in it: not a profiler "
                            "trace (torch.profiler's export_chrome_trace() "
                            "writes one)",
                       path);
    return rc;
}

static int source_read(const struct source *source, kineto_take *take,
                       void *context, kineto_progress *progress,
                       struct kineto_info *info, struct err *err)
{
    struct reader *r = calloc(1, sizeof *r);

    if (!r)
        return err_set(err, "%s: out of memory", source->name);
    r->take = take;
    r->context = context;
    r->info = info;
    int rc = reader_run(r, source, progress, err);
    free(r);
    return rc;
}

static void info_begin(struct kineto_info *info)
{
    memset(info, 0, sizeof *info);
    info->rank = info->world = KINETO_NONE;
}

/* A gzip file that ends early, or is none, is an error. */
static int read_zipped(void *from, unsigned char *bytes, unsigned size,
                       uint64_t *at)
{
    int n = gzread(from, bytes, size);

    *at = (uint64_t)gzoffset(from);
    return n;
}

int kineto_read(const char *path, kineto_take *take, void *context,
                kineto_progress *progress, struct kineto_info *info,
                struct err *err)
{
    info_begin(info);
    gzFile file = file_open(path, info, err);
    if (!file)
        return -1;
    const struct source source = {read_zipped, file, path};
    int rc = source_read(&source, take, context, progress, info, err);
    gzclose(file);
    return rc;
}

static int read_plain(void *from, unsigned char *bytes, unsigned size,
                      uint64_t *at)
{
    size_t n = fread(bytes, 1, size, from);

    *at += n;
    return n || !ferror(from) ? (int)n : -1;
}

int kineto_read_stream(FILE *file, const char *name, kineto_take *take,
                       void *context, struct kineto_info *info, struct err *err)
{
    const struct source source = {read_plain, file, name};

    info_begin(info);
    return source_read(&source, take, context, NULL, info, err);
}
