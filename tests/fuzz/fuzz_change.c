/* SPDX-License-Identifier: Apache-2.0
 * The changes of a job on the command line, and the laws of their sizes: what
 * is refused must say why, a text must end where its length says. */
#include <stdlib.h>
#include <string.h>

#include "memsim/change/size_law.h"
#include "memsim/time/job_change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void parse(const uint8_t *data, size_t size)
{
    struct job_changes changes;
    struct err err = {""};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (job_changes_parse(text, &changes, &err))
        demand(err.text[0] != '\0');
    else
        demand(changes.count <= CHANGES_MAX);
    job_changes_fini(&changes);
    free(text);
}

/* Two halves of a text at three sizes. */
static void change_text(const uint8_t *data, size_t size)
{
    struct size_points p = {.tensors = data[3] % 4};
    struct size_text t = {.first = (const char *)data + 4, .room = 40};
    char *room = malloc(t.room);

    p.first = 1 + data[0];
    p.second = p.first + 1 + data[1];
    p.wanted = p.second + 1 + data[2];
    for (size_t i = 0; i < 3; i++)
        p.chunks[i] = 1 + data[i] % 3;
    t.first_bytes = (size - 4) / 2;
    t.second = t.first + t.first_bytes;
    t.second_bytes = size - 4 - t.first_bytes;
    t.wanted = room;
    size_t length = size_law_text(&p, &t);
    demand(t.law != SIZE_SAME || length <= t.first_bytes);
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    if (size >= 4)
        change_text(data, size);
    return 0;
}
