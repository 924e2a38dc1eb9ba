/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_log.h"

#include <stddef.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "common/base/bisect.h"

bool clock_log_is_on;

/* Under LOCK_RECORD. */
static struct clock_line *lines;
static size_t count, users;
static uint64_t apart_ns; /* so far apart at least are lines that are kept */

static void lines_thin(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i += 2)
        lines[kept++] = lines[i];
    count = kept;
    apart_ns = (lines[kept - 1].host_ns - lines[0].host_ns) / kept;
}

/* The clock never goes back: where it was set back, because the program had no
 * CPU for a while, the lines before had come too far. */
void clock_log_put(const struct clock_line *line)
{
    for (size_t i = count; i && lines[i - 1].user_ns > line->come_ns; i--) {
        lines[i - 1].user_ns = line->come_ns;
        if (lines[i - 1].come_ns > line->come_ns)
            lines[i - 1].come_ns = line->come_ns;
    }
    if (count && line->host_ns < lines[count - 1].host_ns + apart_ns)
        return;
    if (count == CLOCK_LOG_LINES)
        lines_thin();
    lines[count++] = *line;
}

void clock_log_begin(const struct clock_line *now)
{
    core_lock(LOCK_RECORD);
    if (!lines)
        lines = memsim_pages_reserve(0, CLOCK_LOG_LINES * sizeof *lines);
    if (lines && !users++) {
        count = apart_ns = 0;
        clock_log_put(now);
        clock_log_is_on = true;
    }
    core_unlock(LOCK_RECORD);
}

void clock_log_end(void)
{
    core_lock(LOCK_RECORD);
    if (users && !--users)
        clock_log_is_on = false;
    core_unlock(LOCK_RECORD);
}

/* The last line that begins at HOST_NS or before, else the first. */
static size_t line_find(uint64_t host_ns)
{
    size_t after = BISECT(i, count, lines[i].host_ns <= host_ns);

    return after ? after - 1 : 0;
}

/* At HOST_NS on the line L. Where the NEXT line begins before the end of L,
 * memsim worked at that end; or the program had no CPU in a gap, nobody knows
 * when. */
static uint64_t bend_time(const struct clock_line *l,
                          const struct clock_line *next, uint64_t host_ns)
{
    uint64_t user_ns = clock_line_at(l, host_ns);
    uint64_t span_ns = next->host_ns - l->host_ns;

    if (clock_line_at(l, next->host_ns) > next->come_ns &&
        span_ns > CLOCK_GAP_NS)
        user_ns = l->user_ns +
                  (uint64_t)((unsigned __int128)(host_ns - l->host_ns) *
                             (next->come_ns - l->user_ns) / span_ns);
    return user_ns < next->come_ns ? user_ns : next->come_ns;
}

static uint64_t logged_at(uint64_t host_ns)
{
    size_t i = line_find(host_ns);
    const struct clock_line *l = &lines[i];

    if (host_ns < l->host_ns)
        return l->user_ns - (l->host_ns - host_ns);
    return i + 1 < count ? bend_time(l, l + 1, host_ns)
                         : clock_line_at(l, host_ns);
}

bool clock_log_user(uint64_t host_ns, uint64_t *user_ns)
{
    core_lock(LOCK_RECORD);
    bool found = count;
    if (found)
        *user_ns = logged_at(host_ns);
    core_unlock(LOCK_RECORD);
    return found;
}

void clock_log_after_fork(void)
{
    clock_log_is_on = false;
    users = count = 0;
}
