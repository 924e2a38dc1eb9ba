/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/recorded.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

void recorded_init(struct recorded *r, uint32_t process, const char *path,
                   bool frames)
{
    *r = (struct recorded){.process = process, .path = xstrdup(path)};
    r->trace = replay_trace_create(r->path, REPLAY_STEPS, &r->info);
    r->notes = tape_notes_create(TAPE_ITEMS);
    if (frames)
        r->frames = recording_frames_create();
}

size_t recorded_listen(struct recorded *r,
                       struct trace_listener to[RECORDED_LISTENERS])
{
    to[0] = replay_trace_listener(r->trace);
    to[1] = tape_notes_listener(r->notes);
    if (r->frames)
        to[2] = recording_frames_listener(r->frames);
    return r->frames ? 3 : 2;
}

void recorded_fini(struct recorded *r)
{
    replay_trace_close(r->trace);
    tape_notes_destroy(r->notes);
    recording_frames_destroy(r->frames);
    free(r->path);
}

size_t recorded_steps(const struct recorded *r)
{
    size_t count;

    return replay_trace_steps(r->trace, &count) ? count : 0;
}

struct recorded *recorded_find(const struct recorded_list *list,
                               uint32_t process)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (list->all[i]->process == process)
            return list->all[i];
    return NULL;
}

int recorded_open(struct recording *recording, const struct recorded_list *list,
                  uint32_t process, const char *path,
                  const struct recording_options *options, struct err *err)
{
    const struct recorded *r = recorded_find(list, process);

    if (!r)
        return recording_open(recording, path, options, err);
    if (recording_open_trace(recording, r->path, r->trace, &r->info, options,
                             err))
        return -1;
    recording->frames = r->frames;
    return 0;
}
