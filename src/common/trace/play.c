/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/play.h"

void trace_conclude(const struct trace_listener *listeners, size_t count,
                    const struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (listeners[i].conclude)
            listeners[i].conclude(listeners[i].to, err);
}

int trace_play(struct trace_reader *reader,
               const struct trace_listener *listeners, size_t count,
               struct err *err)
{
    struct trace_names names = {{0}};
    struct trace_now now = {.names = &names};
    struct trace_item item;
    int more;

    for (; (more = trace_reader_next(reader, &item, err)) > 0; now.ordinal++) {
        if (!now.ordinal)
            now.first_ns = item.head.time_ns;
        trace_names_add(&names, &item);
        for (size_t i = 0; i < count; i++)
            listeners[i].take(listeners[i].context, &item, &now);
    }
    for (size_t i = 0; !more && i < count; i++)
        if (listeners[i].end)
            listeners[i].end(listeners[i].context, &now);
    trace_names_fini(&names);
    trace_conclude(listeners, count, more ? err : NULL);
    return more;
}

int trace_play_file(const char *path, const struct trace_listener *listener,
                    struct err *err)
{
    struct trace_reader reader;

    if (trace_reader_open(&reader, path, err)) {
        trace_conclude(listener, 1, err);
        return -1;
    }
    int rc = trace_play(&reader, listener, 1, err);
    trace_reader_close(&reader);
    return rc;
}
