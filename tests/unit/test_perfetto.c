/* SPDX-License-Identifier: Apache-2.0
 * What a Perfetto trace keeps of a long run, and names of any characters. What
 * Perfetto makes of it all is tests/cli/perfetto's. */
#include "memsim/report/perfetto_trace.h"

#include "check.h"
#include "common/trace/trace_write.h"

static char folder[] = "/tmp/memsim-perfetto.XXXXXX";
static char path[64];

/* CALLS calls of module 1, each of GAP_NS. */
static void trace_make(uint64_t calls, uint64_t gap_ns, const char *name)
{
    struct trace_writer w = TRACE_WRITER_INIT;

    if (!mkdtemp(folder))
        exit(1);
    snprintf(path, sizeof path, "%s/t", folder);
    CHECK(!trace_writer_open(&w, path, UINT64_MAX, NULL));
    TRACE_PUT_TEXT(&w, NAME, 0, 1, name, .name = 1);
    TRACE_PUT(&w, MODULE, 0, 1, .module = 1, .root = 1, .name = 1);
    for (uint64_t i = 0; i < calls; i++) {
        TRACE_PUT(&w, MODULE_ENTER, 0, 2 + i * gap_ns, .module = 1);
        TRACE_PUT(&w, MODULE_LEAVE, 0, 3 + i * gap_ns, .module = 1);
    }
    trace_writer_close(&w, TRACE_END_EXIT, 0, 4 + calls * gap_ns);
}

/* How the trace reads as events; free() it. */
static char *events_write(struct perfetto_process *process)
{
    struct perfetto to;
    struct err err = {""};
    size_t size;
    char *text;
    FILE *out = open_memstream(&text, &size);
    cJSON *nothing = cJSON_CreateObject();

    process->to = &to;
    process->track = perfetto_track_of(3, 1);
    perfetto_begin(&to, out);
    if (perfetto_trace_write(process, path, &err))
        CHECK_FAIL("%s", err.text);
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
    struct perfetto_process p = {.peak_ns = UINT64_C(900000) * MILLION};

    trace_make(MILLION, MILLION, "m"); /* a call each millisecond: 17 minutes */
    char *text = events_write(&p);
    CHECK_UINT(p.calls, MILLION);
    /* A second before and after the peak. */
    CHECK_UINT(p.calls_told, PERFETTO_CALLS + 2000);
    CHECK_UINT(count(text, "\"ph\":\"B\""), p.calls_told);
    CHECK_UINT(count(text, "\"ph\":\"E\""), p.calls_told);
    free(text);
}

TEST(there_is_an_end_to_what_is_about_the_peak)
{
    struct perfetto_process p = {.peak_ns = UINT64_C(400000) * 1000};

    trace_make(MILLION, 1000, "m");
    free(events_write(&p));
    CHECK_UINT(p.calls_told, PERFETTO_CALLS + PERFETTO_CALLS_PEAK);
}

TEST(names_may_be_anything)
{
    struct perfetto_process p = {.peak_ns = 0};

    trace_make(1, 1, "a\"b\\c\nd\033e\x7f\u2603");
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
