/* SPDX-License-Identifier: Apache-2.0
 * Writes Chrome's trace events, which Perfetto opens, as they come. The format
 * is told in "Trace Event Format" (Google, 2016). */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

struct time_log;

struct perfetto {
    FILE *out;
    uint64_t origin_ns; /* the trace's 0; no time lies before it */
    bool comma;         /* something was written */
    /* Where it is not NULL, times are given on the clock of its recording, and
     * written on the predicted one, whose 0 is at SHIFT_NS. */
    const struct time_log *clock;
    uint64_t shift_ns;
};

/* TEXT as JSON, with its quotes. */
void perfetto_put_text(FILE *out, const char *text);

/* A process or one of its threads, by numbers that nothing else has. */
struct perfetto_track {
    uint32_t process, thread;
};

struct perfetto_value {
    const char *name;
    uint64_t value;
};

/* Any number of events lies between begin and end. */
void perfetto_begin(struct perfetto *p, FILE *out);
/* METADATA is not needed to show the trace; it stays the caller's. */
void perfetto_end(struct perfetto *p, const cJSON *metadata);

void perfetto_name_process(struct perfetto *p, struct perfetto_track track,
                           const char *name);
void perfetto_name_thread(struct perfetto *p, struct perfetto_track track,
                          const char *name);

/* Slices of a thread lie within each other, and its times never decrease. */
void perfetto_slice_begin(struct perfetto *p, struct perfetto_track track,
                          uint64_t time_ns, const char *name,
                          const struct perfetto_value *values, size_t count);
void perfetto_slice_end(struct perfetto *p, struct perfetto_track track,
                        uint64_t time_ns);

/* The same in one piece; ARGS: members of the slice's arguments as JSON. */
void perfetto_slice(struct perfetto *p, struct perfetto_track track,
                    uint64_t start_ns, uint64_t end_ns, const char *name,
                    const char *args);

/* One end of the arrow ID, which binds to the slice of TRACK at TIME_NS. */
void perfetto_flow(struct perfetto *p, struct perfetto_track track,
                   uint64_t time_ns, uint64_t id, bool begins);

/* Something of no duration. */
void perfetto_instant(struct perfetto *p, struct perfetto_track track,
                      uint64_t time_ns, const char *name);

/* A slice that may overlap others; all of a process whose NAME is the same are
 * drawn together. */
struct perfetto_async {
    const char *category, *name;
    uint64_t id; /* that no other of its category has */
};

/* begin leaves the event open, for members to be written to P->out, until
 * close. */
void perfetto_async_begin(struct perfetto *p, struct perfetto_track track,
                          uint64_t time_ns,
                          const struct perfetto_async *async);
void perfetto_async_close(struct perfetto *p);
void perfetto_async_end(struct perfetto *p, struct perfetto_track track,
                        uint64_t time_ns, const struct perfetto_async *async);

/* What the process's counters called NAME stand at. */
void perfetto_counter(struct perfetto *p, struct perfetto_track track,
                      uint64_t time_ns, const char *name,
                      const struct perfetto_value *values, size_t count);

#endif
