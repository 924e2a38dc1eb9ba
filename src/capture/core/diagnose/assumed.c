/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/diagnose/assumed.h"

#include <stddef.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/process.h"
#include "capture/core/torch/python_line.h"
#include "common/trace/session.h"

#define STACK_BYTES 8192

/* The entry for a line of a stack, "/home/me/model.py:12 forward". */
static struct session_assume *entry_of(struct session *s, const char *line,
                                       size_t length)
{
    for (uint32_t i = 0; i < s->assume_count; i++) {
        struct session_assume *a = &s->assumes[i];
        size_t n = strlen(a->where);

        if (n < length && line[n] == ' ' && !memcmp(line, a->where, n))
            return a;
    }
    return NULL;
}

static const char *base_name(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length), *base = line;

    for (const char *at = line; space && at < space; at++)
        if (*at == '/')
            base = at + 1;
    return base;
}

bool assumed_any(void)
{
    const struct session *s = memsim_session();

    return s && s->assume_count;
}

/* The entry that holds here, and how often it was used before; or NULL. */
static const struct session_assume *entry_here(uint64_t *before)
{
    static _Thread_local char stack[STACK_BYTES];
    struct session *s = memsim_session();

    if (!s || !s->assume_count)
        return NULL;
    python_stack(stack, sizeof stack);
    for (const char *line = stack; *line;) {
        size_t length = strcspn(line, "\n");
        const char *base = base_name(line, length);
        struct session_assume *a =
            entry_of(s, base, length - (size_t)(base - line));

        if (a) {
            *before = atomic_fetch_add(&a->times, 1);
            return a;
        }
        line += length + (line[length] == '\n');
    }
    return NULL;
}

bool assumed_here(double *value)
{
    uint64_t before;
    const struct session_assume *a = entry_here(&before);

    if (a)
        *value = a->value;
    return a;
}

/* How many of COUNT reads are false where SHARE of them are. */
static uint64_t false_reads(uint64_t count, double share)
{
    return (uint64_t)((double)count * share + 1e-9);
}

bool assumed_flag_here(double *value)
{
    uint64_t before;
    const struct session_assume *a = entry_here(&before);

    if (!a)
        return false;
    *value = a->value;
    if (a->value > 0 && a->value < 1)
        *value = false_reads(before + 1, 1 - a->value) ==
                 false_reads(before, 1 - a->value);
    return true;
}

double assumed_fraction(void)
{
    const struct session *s = memsim_session();
    double value;

    if (assumed_here(&value))
        return value < 0 ? 0 : value > 1 ? 1 : value;
    return s ? s->selected_fraction : 0.5;
}

/* Lines that read flags, the last ones. */
#define LINES 16

static struct line {
    char where[SESSION_NAME_BYTES];
    bool flag;
    uint32_t count; /* in a row */
} lines[LINES];
static uint32_t lines_next;

static struct line *line_find(const char *where)
{
    for (uint32_t i = 0; i < LINES; i++)
        if (!strcmp(lines[i].where, where))
            return &lines[i];
    struct line *line = &lines[lines_next++ % LINES];
    *line = (struct line){.count = 0};
    memcpy(line->where, where, strnlen(where, sizeof line->where - 1));
    return line;
}

bool assumed_flag(bool flag)
{
    char where[SESSION_NAME_BYTES];
    bool turns;

    python_line(where, sizeof where);
    if (!*where)
        return flag;
    core_lock(LOCK_NAME);
    struct line *line = line_find(where);
    line->count = line->flag == flag ? line->count + 1 : 1;
    line->flag = flag;
    turns = line->count == ASSUMED_READS;
    if (turns)
        line->count = 0;
    core_unlock(LOCK_NAME);
    if (!turns)
        return flag;
    memsim_note("%s read the same flag %u times in a row, which follows from "
                "values that memsim does not compute: it then got the other "
                "answer, so that a loop ends; --assume %s=0.9 gives each nine "
                "rounds",
                where, ASSUMED_READS, where);
    return !flag;
}
