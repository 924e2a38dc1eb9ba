/* SPDX-License-Identifier: Apache-2.0
 * The stacks of a snapshot's events and blocks, each kept once. */
#ifndef MEMSIM_MEMSIM_SNAPSHOT_SNAPSHOT_FRAMES_H
#define MEMSIM_MEMSIM_SNAPSHOT_SNAPSHOT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FILE and NAME are places in the texts. */
struct snapshot_frame {
    uint32_t file, name, line;
};

/* The innermost frame first. */
struct snapshot_stack {
    size_t first, count; /* in the frames */
};

/* Zeroed, it is empty. A stack's number is 1 + its place; 0: no stack. */
struct snapshot_frames {
    char **texts;
    size_t text_count, text_capacity;
    struct snapshot_frame *frames;
    size_t frame_count, frame_capacity;
    struct snapshot_stack *stacks;
    size_t stack_count, stack_capacity;
};

/* Adds LENGTH bytes of TEXT; returns their place. */
uint32_t snapshot_frames_text(struct snapshot_frames *f, const char *text,
                              size_t length);

/* Adds a frame to the stack that the next call of ..._close() ends. */
void snapshot_frames_add(struct snapshot_frames *f, uint32_t file,
                         uint32_t name, uint32_t line);

/* Returns the number of the stack of the frames added since the last call; 0:
 * there were none. */
uint32_t snapshot_frames_close(struct snapshot_frames *f);

/* The text at PLACE; "" where there is none. */
const char *snapshot_text(const struct snapshot_frames *f, uint32_t place);

/* Is FRAME a line of Python, of a file that ends in ".py"? */
bool snapshot_is_python(const struct snapshot_frames *f,
                        const struct snapshot_frame *frame);

void snapshot_frames_fini(struct snapshot_frames *f);

#endif
