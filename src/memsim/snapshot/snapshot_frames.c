/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/snapshot/snapshot_frames.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

uint32_t snapshot_frames_text(struct snapshot_frames *f, const char *text,
                              size_t length)
{
    xgrow(&f->texts, f->text_count, &f->text_capacity, sizeof *f->texts);
    f->texts[f->text_count] = xasprintf("%.*s", (int)length, text);
    text_make_utf8(f->texts[f->text_count]);
    return (uint32_t)f->text_count++;
}

void snapshot_frames_add(struct snapshot_frames *f, uint32_t file,
                         uint32_t name, uint32_t line)
{
    xgrow(&f->frames, f->frame_count, &f->frame_capacity, sizeof *f->frames);
    f->frames[f->frame_count++] = (struct snapshot_frame){file, name, line};
}

uint32_t snapshot_frames_close(struct snapshot_frames *f)
{
    const struct snapshot_stack *last =
        f->stack_count ? &f->stacks[f->stack_count - 1] : NULL;
    size_t first = last ? last->first + last->count : 0;

    if (first == f->frame_count)
        return 0;
    xgrow(&f->stacks, f->stack_count, &f->stack_capacity, sizeof *f->stacks);
    f->stacks[f->stack_count] =
        (struct snapshot_stack){first, f->frame_count - first};
    return (uint32_t)++f->stack_count;
}

const char *snapshot_text(const struct snapshot_frames *f, uint32_t place)
{
    return place < f->text_count ? f->texts[place] : "";
}

bool snapshot_is_python(const struct snapshot_frames *f,
                        const struct snapshot_frame *frame)
{
    const char *file = snapshot_text(f, frame->file);
    size_t length = strlen(file);

    return length > 3 && !strcmp(file + length - 3, ".py");
}

void snapshot_frames_fini(struct snapshot_frames *f)
{
    for (size_t i = 0; i < f->text_count; i++)
        free(f->texts[i]);
    free(f->texts);
    free(f->frames);
    free(f->stacks);
    *f = (struct snapshot_frames){0};
}
