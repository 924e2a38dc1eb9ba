/* SPDX-License-Identifier: Apache-2.0
 * The user clock of the past, for profilers that ask afterwards when something
 * was. It is kept only between a begin and its end. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_LOG_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* So many times are kept at which the clock jumped; of more, every second one.
 * Then what was between those that are left may be shown too early. */
#define CLOCK_LOG_LINES (1u << 20)

/* A longer one between records is looked into: what the program did is not
 * known of it (clock_gap.h). */
#define CLOCK_GAP_NS 500000

/* A line on which the user clock is: USER_NS at HOST_NS, FACTOR from there, in
 * units of 2^-CLOCK_FACTOR_BITS. */
#define CLOCK_FACTOR_BITS 32
struct clock_line {
    uint64_t host_ns, user_ns;
    uint64_t come_ns; /* before it jumped to USER_NS */
    uint64_t lead_ns; /* what the clock shows more at HOST_NS: a thread was
                         given that time. From there on the clock runs slower,
                         until the line has come up with it */
    uint64_t factor;
};

/* What the clock loses of its lead while the line goes on by NS: so little that
 * a step which the program times looks at most an eighth shorter. */
static inline uint64_t clock_lead_after(uint64_t lead_ns, uint64_t ns)
{
    return lead_ns > ns / 8 ? lead_ns - ns / 8 : 0;
}

static inline uint64_t clock_line_at(const struct clock_line *l,
                                     uint64_t host_ns)
{
    uint64_t passed = host_ns > l->host_ns ? host_ns - l->host_ns : 0;

    return l->user_ns + (uint64_t)(((unsigned __int128)passed * l->factor) >>
                                   CLOCK_FACTOR_BITS);
}

static inline uint64_t clock_line_shown(const struct clock_line *l,
                                        uint64_t host_ns)
{
    uint64_t user_ns = clock_line_at(l, host_ns);

    return user_ns + clock_lead_after(l->lead_ns, user_ns - l->user_ns);
}

/* The first begin forgets what was kept before; NOW is the line that the clock
 * is on. Ends may be fewer. */
void clock_log_begin(const struct clock_line *now);
void clock_log_end(void);

/* The user clock when the host's monotonic one was HOST_NS. Returns false where
 * nothing was kept. */
bool clock_log_user(uint64_t host_ns, uint64_t *user_ns);

/* For clock.c, under LOCK_RECORD: the user clock is on LINE from now on. */
extern bool clock_log_is_on;
void clock_log_put(const struct clock_line *line);

/* In a forked child. */
void clock_log_after_fork(void);

#endif
