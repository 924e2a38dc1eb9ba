/* SPDX-License-Identifier: Apache-2.0
 * The simulation of this process while it runs. It gets the records that order
 * a GPU's work as they are written, and computes the time of the program's
 * clock (clock.h). It is in a library of its own, which a process loads when it
 * first uses a GPU. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_LIVE_H
#define MEMSIM_CAPTURE_CORE_RUN_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/core/base/core.h"

#define LIVE_LIBRARY "libmemsim-clock.so"
#define LIVE_ENTRY   "memsim_live"

struct activity;
struct trace_put;

/* The host in the simulation: its time, and how long it has waited for the GPU
 * in all. */
struct live_now {
    uint64_t host_ns, waited_ns;
    uint64_t come_ns;   /* its time when it came to the record */
    uint64_t called_ns; /* the time after the last operation */
};

/* The library's functions. Not for several threads at once. */
struct live_ops {
    /* Readies a simulation with IMAGE, BYTES of a private mapping of
     * SESSION_CLOCK, in ARENA. Returns NULL, or what is wrong. */
    const char *(*open)(void *image, size_t bytes, void *arena,
                        size_t arena_bytes);
    /* Whether it needs the records of which steps are made. */
    bool (*counts_steps)(void);
    /* What a nanosecond of the host's is in the simulation: of CLOCK_ONE. */
    uint64_t (*factor)(void);
    /* Takes a record, which has TRACE_FIELDS_MAX fields: those behind its own
     * are 0. Returns 0 with *NOW, or -1: it has failed for good. */
    int (*take)(const struct trace_put *record, struct live_now *now);
    /* When EVENT was reached. Returns 0, or -1: not yet. */
    int (*event)(uint64_t event, uint64_t *ns);
    bool (*behind)(uint64_t event);
    /* From now on PUT (NULL: nobody) gets each call, and work when it ends, on
     * the simulation's clock. */
    void (*listen)(void (*put)(struct activity *a));
    /* Does what ends before the host's time now. Returns as `take`. */
    int (*settle)(void);
    uint64_t (*calls)(void); /* the number of the last one */
    /* Other ranks wait for this one (meeting.h): does what they wait for, as
     * far as that is known; WAITING: until the host's time now, else without
     * limit. Does not wait. Returns as `take`. */
    int (*offer)(bool waiting);
    /* Does all that is queued: the program ends. Returns as `take`. */
    int (*leave)(void);
};

/* Whether records are wanted; under LOCK_RECORD, as the functions below. */
extern bool live_is_on;

/* Set before the trace begins: gets each record as it is written, beside the
 * simulation or without one (capture/emulate). It has TRACE_FIELDS_MAX
 * fields. */
extern void (*live_watch)(const struct trace_put *record);

/* Loads the library and readies the simulation, where the run has one and this
 * process does not yet. With no lock of the core's held. */
void live_load(void);

/* The trace of this process begins. */
void live_start(void);

/* The trace ends: records the simulation's result in it. */
void live_conclude(void);

/* This process lacks something of other ranks, which may wait for it in turn,
 * in this machine's time: they learn of it. It has looked LOOKS times before.
 * Returns for how many milliseconds, MOST_MS at most, it is to sleep until it
 * looks again. With no lock of the core's held; meeting_has() ends it. */
CORE_API unsigned memsim_live_lacks(uint32_t looks, unsigned most_ms);

/* In a forked child, which holds all locks: it has no simulation yet. */
void live_after_fork(void);

/* Gives it a record that was written, with fields as for `take`. */
void live_take(const struct trace_put *record);

/* When EVENT, as it was recorded last, was reached, on the simulation's clock.
 * Returns 0; -1: not yet, or there is no simulation. Takes LOCK_RECORD. */
int live_event(uint64_t event, uint64_t *ns);

/* Whether EVENT, as it was recorded last, is later than the host is now, on the
 * simulation's clock. Takes LOCK_RECORD. */
bool live_is_behind(uint64_t event);

/* Who is told of calls and work, on the simulation's clock; then, in TIMED, of
 * its time 0 on the program's clock, which moves where the program was given a
 * later time than that of its last record. FORKED: in a forked child, which
 * does not listen any more. Under LOCK_RECORD, as the functions below. */
struct live_listener {
    void (*put)(struct activity *a);
    void (*timed)(uint64_t origin_ns);
    void (*forked)(void);
};

/* From now on LISTENER is told, where it is not NULL. */
void live_listen(const struct live_listener *listener);

/* Does what ends before now. */
void live_settle(void);

/* The number of the last call. */
uint64_t live_calls(void);

#endif
