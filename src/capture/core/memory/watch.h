/* SPDX-License-Identifier: Apache-2.0
 * Listeners for memory events: folders above this one add themselves to the
 * list when the core is loaded (a constructor calls memory_watch_add). So this
 * folder calls no function above it by name. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_WATCH_H
#define MEMSIM_CAPTURE_CORE_MEMORY_WATCH_H

#include <stdint.h>

/* A function that is NULL is not called. */
struct memory_watch {
    /* of bugs of the program, which the call in progress refuses */
    void (*bad_device)(int device, int count); /* there are only COUNT */
    void (*bad_free)(uint64_t address);        /* starts no allocation */
    void (*bad_host_free)(uint64_t address);   /* likewise, of host memory */
    /* of what succeeded */
    void (*freed)(uint64_t address);
    void (*context_made)(int device);
    /* of PyTorch's allocator, or another caller that retries by itself */
    void (*taken)(uint64_t address, uint64_t bytes);
    void (*physical_asked)(void); /* cuMemCreate begins */
    struct memory_watch *next;
};

extern struct memory_watch *memory_watches;

/* WATCH must stay where it is. Not from several threads at once. */
void memory_watch_add(struct memory_watch *watch);

/* MEMORY_TELL(freed, address): calls that function of all. */
#define MEMORY_TELL(what, ...)                                                 \
    do {                                                                       \
        for (struct memory_watch *w_ = memory_watches; w_; w_ = w_->next)      \
            if (w_->what)                                                      \
                w_->what(__VA_ARGS__);                                         \
    } while (0)

#endif
