/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/device_visible.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/device.h"
#include "capture/core/run/process.h"
#include "common/base/text_begins.h"

/* The GPU that an entry of CUDA_VISIBLE_DEVICES names, and its END. A UUID
 * names GPU i as NVML gives it here: its last digits are the number. */
static long visible_card(const char *entry, char **end)
{
    size_t length = strcspn(entry, ",");
    const char *dash = memrchr(entry, '-', length);

    if (text_begins(entry, "GPU-"))
        return strtol(dash + 1, end, 16);
    long card = strtol(entry, end, 10);
    return *end == entry ? -1 : card;
}

/* CUDA_VISIBLE_DEVICES: entries up to the first that names no GPU. A GPU
 * named twice leaves none (torch/cuda/__init__.py, _parse_visible_devices,
 * which says so of the driver). */
static int visible_parse(const char *text, int cards, int *visible)
{
    int n = 0;

    while (*text && n < SESSION_DEVICES) {
        char *end;
        long card = visible_card(text, &end);

        if (card < 0 || card >= cards)
            break;
        for (int i = 0; i < n; i++)
            if (visible[i] == card)
                return 0;
        visible[n++] = (int)card;
        text = *end == ',' ? end + 1 : "";
    }
    return n;
}

/* Whoever names no GPU at all, or -1, means it. */
void device_visible_note(int count)
{
    const struct session *session = memsim_session();
    const char *text = getenv("CUDA_VISIBLE_DEVICES");

    if (session && !count && text && *text && *text != '-')
        memsim_note("CUDA_VISIBLE_DEVICES=%s leaves no GPU: --gpus has them "
                    "from 0 to %u",
                    text, session->device_count - 1);
}

int memsim_node_card(int device)
{
    const struct session *session = memsim_session();

    if (!session->world_size)
        return device;
    const char *text = getenv("RANK");
    uint32_t rank = text ? (uint32_t)strtoul(text, NULL, 10) : 0;
    uint32_t wanted =
        rank - rank % session->local_world_size + (uint32_t)device;
    uint32_t own = session_card_of(session, wanted);
    uint32_t others = session_other_cards(session);

    if (own != UINT32_MAX || !others)
        return own != UINT32_MAX ? (int)own : 0;
    return (int)(session->rank_count + (uint32_t)device % others);
}

uint32_t memsim_node_devices(void)
{
    const struct session *session = memsim_session();

    return session->world_size ? session->local_world_size
                               : session->device_count;
}

static int visible_place(int count, int *visible)
{
    for (int i = 0; i < count; i++)
        visible[i] = memsim_node_card(visible[i]);
    return count;
}

int device_visible_find(int visible[SESSION_DEVICES])
{
    const struct session *session = memsim_session();
    const char *text = getenv("CUDA_VISIBLE_DEVICES");

    if (!session) {
        process_explain();
        return 0;
    }
    int cards = (int)memsim_node_devices();
    if (text)
        return visible_place(visible_parse(text, cards, visible), visible);
    for (int i = 0; i < cards; i++)
        visible[i] = i;
    return visible_place(cards, visible);
}
