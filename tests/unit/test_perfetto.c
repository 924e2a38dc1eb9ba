/* SPDX-License-Identifier: Apache-2.0
 * What a Perfetto trace keeps of a long run, and names of any characters. What
 * Perfetto makes of it all is tests/cli/perfetto's. */
#include "memsim/report/export/perfetto_trace.h"

#include "check.h"
#include "common/trace/trace_write.h"

static char folder[] = "/tmp/memsim-perfetto.XXXXXX";
static char path[64];

/* CALLS calls of module 1, one each GAP_NS, and the most allocated at the one
 * numbered PEAK, after a lower peak at the start. */
static void trace_make(uint64_t calls, uint64_t gap_ns, uint64_t peak,
                       const char *name)
{
    struct trace_writer w = TRACE_WRITER_INIT;

    if (!mkdtemp(folder))
        exit(1);
    snprintf(path, sizeof path, "%s/t", folder);
    CHECK(!trace_writer_open(&w, path, UINT64_MAX, NULL));
    TRACE_PUT_TEXT(&w, NAME, 0, 1, name, .name = 1);
    TRACE_PUT(&w, MODULE, 0, 1, .module = 1, .root = 1, .name = 1);
    TRACE_PUT(&w, BLOCK_ALLOC, 0, 2, .address = 1, .allocated_bytes = 1);
    for (uint64_t i = 0; i < calls; i++) {
        if (i == peak)
            TRACE_PUT(&w, BLOCK_ALLOC, 0, 2 + i * gap_ns, .address = 2,
                      .allocated_bytes = 2);
        TRACE_PUT(&w, MODULE_ENTER, 0, 2 + i * gap_ns, .module = 1);
        TRACE_PUT(&w, MODULE_LEAVE, 0, 3 + i * gap_ns, .module = 1);
    }
    trace_writer_close(&w, TRACE_END_EXIT, 0, 4 + calls * gap_ns);
}

/* How the trace reads as events; free() it. */
static char *events_write(struct perfetto_process *process)
{
    struct perfetto_log *log;
    struct perfetto to;
    struct err err = {""};
    size_t size;
    char *text;
    FILE *out = open_memstream(&text, &size);
    cJSON *nothing = cJSON_CreateObject();

    process->to = &to;
    process->track = perfetto_track_of(3, 1);
    perfetto_begin(&to, out);
    log = perfetto_trace_read(path, 0, &err);
    CHECK_STR(err.text, "");
    perfetto_log_write(log, process);
    perfetto_log_destroy(log);
    perfetto_end(&to, nothing);
    cJSON_Delete(nothing);
    fclose(out);
    unlink(path);
    rmdir(folder);
    return text;
}

/* Not by strstr, of which ASan measures all the text that is left. */
static uint64_t count(const char *text, const char *what)
{
    uint64_t n = 0;

    for (; (text = strchr(text, *what)); text++)
        n += !strncmp(text, what, strlen(what));
    return n;
}

#define MILLION 1000000

TEST(a_long_run_is_told_from_its_start_and_about_its_peak)
{
    struct perfetto_process p = {.calls = 0};

    /* A call each millisecond: 17 minutes. */
    trace_make(MILLION, MILLION, 900000, "m");
    char *text = events_write(&p);
    CHECK_UINT(p.calls, MILLION);
    /* A second before and after the peak. */
    CHECK_UINT(p.calls_told, PERFETTO_CALLS + 2001);
    CHECK_UINT(count(text, "\"ph\":\"B\""), p.calls_told);
    CHECK_UINT(count(text, "\"ph\":\"E\""), p.calls_told);
    free(text);
}

TEST(there_is_an_end_to_what_is_about_the_peak)
{
    struct perfetto_process p = {.calls = 0};

    trace_make(MILLION, 1000, 400000, "m");
    free(events_write(&p));
    CHECK_UINT(p.calls_told, PERFETTO_CALLS + PERFETTO_CALLS_PEAK);
}

TEST(names_may_be_anything)
{
    struct perfetto_process p = {.calls = 0};

    trace_make(1, 1, 1, "a\"b\\c\nd\033e\x7f\u2603");
    char *text = events_write(&p);
    cJSON *root = cJSON_Parse(text);
    const cJSON *begin =
        cJSON_GetArrayItem(cJSON_GetObjectItem(root, "traceEvents"), 1);
    CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(begin, "name")),
              "a\"b\\c\nd\033e\x7f\u2603");
    CHECK_UINT((uint64_t)cJSON_GetObjectItem(begin, "pid")->valueint, 4);
    cJSON_Delete(root);
    free(text);
}
