/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/watch.h"

#include <stddef.h>

struct memory_watch *memory_watches;

void memory_watch_add(struct memory_watch *watch)
{
    watch->next = memory_watches;
    memory_watches = watch;
}
