/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/text_clean.h"
#include "memsim/time/time_log.h"

void perfetto_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        size_t length = text_character(text);
        if (length > 1) {
            fwrite(text, 1, length, out);
            text += length - 1;
        } else if (!length)
            fputc('?', out);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void put_values(FILE *out, const struct perfetto_value *values,
                       size_t count)
{
    fputs(",\"args\":{", out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        perfetto_put_text(out, values[i].name);
        fprintf(out, ":%" PRIu64, values[i].value);
    }
    fputc('}', out);
}

/* All of an event but its end. NAME may be NULL. */
static void event_open(struct perfetto *p, char phase,
                       struct perfetto_track track, const char *name)
{
    fprintf(p->out, "%s{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
            p->comma ? ",\n" : "\n", phase, track.process, track.thread);
    p->comma = true;
    if (name) {
        fputs(",\"name\":", p->out);
        perfetto_put_text(p->out, name);
    }
}

/* In microseconds, as the format wants it. */
static void put_us(struct perfetto *p, const char *key, uint64_t ns)
{
    fprintf(p->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000,
            (unsigned)(ns % 1000));
}

static void event_time(struct perfetto *p, uint64_t time_ns)
{
    if (p->clock)
        time_ns = p->shift_ns + time_log_at(p->clock, time_ns);
    put_us(p, "ts", time_ns > p->origin_ns ? time_ns - p->origin_ns : 0);
}

static void event_close(struct perfetto *p)
{
    fputc('}', p->out);
}

void perfetto_begin(struct perfetto *p, FILE *out)
{
    *p = (struct perfetto){.out = out};
    fputs("{\"traceEvents\":[", out);
}

void perfetto_end(struct perfetto *p, const cJSON *metadata)
{
    char *text = cJSON_Print(metadata);

    if (text)
        text_make_utf8(text);
    fprintf(p->out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":%s}\n",
            text ? text : "{}");
    free(text);
}

static void name_write(struct perfetto *p, struct perfetto_track track,
                       const char *what, const char *name)
{
    event_open(p, 'M', track, what);
    fputs(",\"args\":{\"name\":", p->out);
    perfetto_put_text(p->out, name);
    fputc('}', p->out);
    event_close(p);
}

void perfetto_name_process(struct perfetto *p, struct perfetto_track track,
                           const char *name)
{
    name_write(p, track, "process_name", name);
}

void perfetto_name_thread(struct perfetto *p, struct perfetto_track track,
                          const char *name)
{
    name_write(p, track, "thread_name", name);
}

void perfetto_slice_begin(struct perfetto *p, struct perfetto_track track,
                          uint64_t time_ns, const char *name,
                          const struct perfetto_value *values, size_t count)
{
    event_open(p, 'B', track, name);
    event_time(p, time_ns);
    if (count)
        put_values(p->out, values, count);
    event_close(p);
}

void perfetto_slice_end(struct perfetto *p, struct perfetto_track track,
                        uint64_t time_ns)
{
    event_open(p, 'E', track, NULL);
    event_time(p, time_ns);
    event_close(p);
}

void perfetto_slice(struct perfetto *p, struct perfetto_track track,
                    uint64_t start_ns, uint64_t end_ns, const char *name,
                    const char *args)
{
    event_open(p, 'X', track, name);
    event_time(p, start_ns);
    put_us(p, "dur", end_ns > start_ns ? end_ns - start_ns : 0);
    fprintf(p->out, ",\"args\":{%s}", args);
    event_close(p);
}

void perfetto_flow(struct perfetto *p, struct perfetto_track track,
                   uint64_t time_ns, uint64_t id, bool begins)
{
    event_open(p, begins ? 's' : 'f', track, "launch");
    event_time(p, time_ns);
    fprintf(p->out, ",\"cat\":\"launch\",\"id\":%" PRIu64 "%s", id,
            begins ? "" : ",\"bp\":\"e\"");
    event_close(p);
}

void perfetto_instant(struct perfetto *p, struct perfetto_track track,
                      uint64_t time_ns, const char *name)
{
    event_open(p, 'i', track, name);
    event_time(p, time_ns);
    fputs(",\"s\":\"p\"", p->out); /* drawn across the process */
    event_close(p);
}

static void async_open(struct perfetto *p, char phase,
                       struct perfetto_track track, uint64_t time_ns,
                       const struct perfetto_async *async)
{
    event_open(p, phase, track, async->name);
    event_time(p, time_ns);
    fprintf(p->out, ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\"",
            async->category, async->id);
}

void perfetto_async_begin(struct perfetto *p, struct perfetto_track track,
                          uint64_t time_ns, const struct perfetto_async *async)
{
    async_open(p, 'b', track, time_ns, async);
}

void perfetto_async_close(struct perfetto *p)
{
    event_close(p);
}

void perfetto_async_end(struct perfetto *p, struct perfetto_track track,
                        uint64_t time_ns, const struct perfetto_async *async)
{
    async_open(p, 'e', track, time_ns, async);
    event_close(p);
}

void perfetto_counter(struct perfetto *p, struct perfetto_track track,
                      uint64_t time_ns, const char *name,
                      const struct perfetto_value *values, size_t count)
{
    event_open(p, 'C', track, name);
    event_time(p, time_ns);
    put_values(p->out, values, count);
    event_close(p);
}
