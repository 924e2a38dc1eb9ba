/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/simulation_source.h"

enum simulation_keep simulation_keep_for(const struct simulation_sink *sink)
{
    return sink && sink->all_records ? SIMULATION_KEEP_ALL
                                     : SIMULATION_KEEP_WORK;
}

int simulation_source_open(struct simulation_source *source, const char *path,
                           const struct simulation_plan *plan,
                           const struct simulation_sink *sink,
                           struct err *err)
{
    *source = (struct simulation_source){.kept = NULL};
    if (plan->kept && plan->keep >= simulation_keep_for(sink)) {
        source->kept = plan->kept;
        return 0;
    }
    return trace_reader_open(&source->reader, path, err);
}

int simulation_source_next(struct simulation_source *source,
                           struct trace_item *item, struct err *err)
{
    if (source->kept)
        return trace_kept_next(source->kept, &source->at, item);
    return trace_reader_next(&source->reader, item, err);
}

void simulation_source_close(struct simulation_source *source)
{
    if (!source->kept)
        trace_reader_close(&source->reader);
}
