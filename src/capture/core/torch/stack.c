/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/stack.h"

#include <stdbool.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/kept.h"
#include "capture/core/torch/python_line.h"
#include "common/trace/session.h"

#define STACK_BYTES 4096
#define LARGE_BYTES (UINT64_C(1) << 20)

static _Thread_local uint32_t stack;
static _Atomic bool history; /* the program wants it recorded */

void memsim_torch_history(int on)
{
    history = on;
}

static bool is_wanted(uint64_t bytes)
{
    const struct session *s = memsim_session();

    if (!s || history)
        return s;
    switch ((enum session_stacks)s->stacks) {
    case SESSION_STACKS_KEPT:
        return kept_wanted();
    case SESSION_STACKS_LARGE:
        return bytes >= LARGE_BYTES;
    case SESSION_STACKS_ALL:
        return true;
    case SESSION_STACKS_NONE:
        break;
    }
    return false;
}

uint32_t memsim_stack_here(void)
{
    char text[STACK_BYTES];

    if (!memsim_session())
        return 0;
    uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    python_stack(text, sizeof text);
    uint32_t id = text[0] ? memsim_name(text) : 0;
    if (id)
        record_skip(start_ns);
    return id;
}

void stack_begin(uint64_t bytes)
{
    stack = is_wanted(bytes) ? memsim_stack_here() : 0;
}

uint32_t stack_take(void)
{
    uint32_t id = stack;

    stack = 0;
    return id;
}
