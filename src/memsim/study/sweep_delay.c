/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/sweep_delay.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "playback/delay.h"

#define PLACE     "{" SWEEP_DELAY "}"
#define EVERY     "nccl=" PLACE /* where --delay is not given */
#define STEPS     10            /* of a range without a step */
#define STEPS_MAX 1000

/* TEXT is an amount of --delay, and a time. */
static int value_ns(const char *text, uint64_t *ns, struct err *err)
{
    struct delays d = {.count = 0};
    struct err ignored = {""};
    char *entry = xasprintf("x=%s", text);
    int rc = strpbrk(text, ",;") || delays_parse(entry, &d, &ignored) ||
             d.all[0].factor > 0;

    free(entry);
    *ns = d.all[0].ns;
    return rc ? err_set(err,
                        "delay=%s: not a time such as 2ms (ns, us, ms or s), "
                        "nor a range such as 0..5ms or 0..5ms:0.5ms",
                        text)
              : 0;
}

static void value_add(struct sweep_axis *axis, char *value)
{
    axis->values =
        xreallocarray(axis->values, axis->count + 1, sizeof *axis->values);
    axis->values[axis->count++] = value;
}

/* "0..5ms:0.5ms" in parts; a 0 needs no unit. */
static int range_read(const char *text, const char *dots, uint64_t range[3],
                      struct err *err)
{
    const char *colon = strchr(dots, ':');
    char *from = xasprintf("%.*s", (int)(dots - text), text);
    char *to = colon ? xasprintf("%.*s", (int)(colon - dots) - 2, dots + 2)
                     : xstrdup(dots + 2);
    bool zero = !strcmp(from, "0");
    int rc = value_ns(zero ? "0ns" : from, &range[0], err) ||
             value_ns(to, &range[1], err) ||
             (colon && value_ns(colon + 1, &range[2], err));

    free(from);
    free(to);
    if (!rc && !colon)
        range[2] = (range[1] - range[0]) / STEPS;
    if (rc || (range[1] > range[0] && range[2] &&
               (range[1] - range[0]) / range[2] <= STEPS_MAX))
        return rc ? -1 : 0;
    return err_set(err,
                   "delay=%s: a range goes from less to more, in at most %d "
                   "steps, as 0..5ms:0.5ms",
                   text, STEPS_MAX);
}

/* Adds the values that TEXT stands for. */
static int values_add(struct sweep_axis *axis, const char *text,
                      struct err *err)
{
    const char *dots = strstr(text, "..");
    uint64_t range[3], ns;

    if (!dots && !strcmp(text, "0"))
        text = "0ms";
    if (!dots && value_ns(text, &ns, err))
        return -1;
    if (!dots) {
        value_add(axis, xstrdup(text));
        return 0;
    }
    if (range_read(text, dots, range, err))
        return -1;
    for (ns = range[0]; ns <= range[1]; ns += range[2])
        value_add(axis, xasprintf("%.6gms", (double)ns / 1e6));
    return 0;
}

static int axis_expand(struct sweep *s, struct sweep_axis *axis,
                       struct err *err)
{
    struct sweep_axis old = *axis;
    int rc = 0;

    axis->values = NULL;
    axis->count = 0;
    for (size_t i = 0; i < old.count; i++) {
        rc = rc || values_add(axis, old.values[i], err);
        free(old.values[i]);
    }
    free(old.values);
    return rc ? -1 : sweep_count(s, err);
}

static bool has_place(char *const *command)
{
    for (; *command; command++)
        if (strstr(*command, PLACE))
            return true;
    return false;
}

int sweep_delay_find(struct sweep_delay *d, struct sweep *s, size_t *nodes,
                     char *const *command, const char *template,
                     struct err *err)
{
    size_t at = 0, last = s->axis_count - 1;

    *d = (struct sweep_delay){.count = 1, .template = template};
    while (at <= last && strcmp(s->axes[at].name, SWEEP_DELAY) != 0)
        at++;
    d->given = at <= last && !has_place(command);
    if (!d->given)
        return template && strstr(template, PLACE)
                   ? err_set(err, "--delay has " PLACE ": give its values, as "
                                  "delay=0..5ms")
                   : 0;
    if (template && !strstr(template, PLACE))
        return err_set(err, "--delay %s: no " PLACE " where the values of "
                            "delay=... go, as in ncclAllReduce=" PLACE,
                       template);
    const struct sweep_axis axis = s->axes[at];
    memmove(&s->axes[at], &s->axes[at + 1], (last - at) * sizeof *s->axes);
    s->axes[last] = axis;
    *nodes -= *nodes > at;
    d->axis = last;
    if (axis_expand(s, &s->axes[last], err))
        return -1;
    d->count = s->axes[last].count;
    for (size_t i = 0; i < d->count; i++) {
        struct delays ignored = {.count = 0};
        char *text = sweep_delay_text(d, s, i);
        int rc = delays_parse(text, &ignored, err);
        free(text);
        if (rc)
            return -1;
    }
    return 0;
}

char *sweep_delay_text(const struct sweep_delay *d, const struct sweep *s,
                       size_t at)
{
    const char *rest = d->template ? d->template : EVERY;
    char *made = xstrdup("");

    if (!d->given) {
        free(made);
        return d->template ? xstrdup(d->template) : NULL;
    }
    for (const char *place; (place = strstr(rest, PLACE));) {
        char *longer = xasprintf("%s%.*s%s", made, (int)(place - rest), rest,
                                 sweep_value(s, at, d->axis));
        free(made);
        made = longer;
        rest = place + strlen(PLACE);
    }
    char *whole = xasprintf("%s%s", made, rest);
    free(made);
    return whole;
}

uint64_t sweep_delay_ns(const struct sweep_delay *d, const struct sweep *s,
                        size_t at)
{
    struct err ignored = {""};
    uint64_t ns;

    value_ns(sweep_value(s, at, d->axis), &ns, &ignored);
    return ns;
}
