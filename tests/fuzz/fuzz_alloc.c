/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the allocator engine: any calls in any order under any settings
 * keep its books in order. The input: a line of settings, then four bytes a
 * call. */
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "memsim/replay/replay_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCKS = 32 };

struct fuzzer {
    struct replay_model model;
    struct alloc *engine;
    struct alloc_block *blocks[BLOCKS];
    uint64_t ready; /* tickets below it are done */
    uint64_t tickets;
    uint64_t events;
};

static void demand(int condition)
{
    if (!condition)
        abort();
}

static uint64_t event_record(void *context, const struct alloc_block *block,
                             uint64_t stream)
{
    struct fuzzer *f = context;

    demand(stream != alloc_block_stream(block));
    return f->tickets++;
}

static bool event_query(void *context, uint64_t ticket)
{
    const struct fuzzer *f = context;

    return ticket < f->ready;
}

static void event_wait(void *context, uint64_t ticket)
{
    const struct fuzzer *f = context;

    demand(ticket < f->tickets);
}

static void listen(void *context, const struct alloc_event *event)
{
    struct fuzzer *f = context;

    demand(event->action < ALLOC_ACTIONS);
    f->events++;
}

static bool selects(void *context, uint64_t stream)
{
    (void)context;
    return stream == 1;
}

static uint64_t size_of(uint8_t code, uint8_t more)
{
    return ((uint64_t)more + 1) << (code % 20);
}

static void call(struct fuzzer *f, const uint8_t *d)
{
    struct alloc_block **b = &f->blocks[d[1] % BLOCKS];
    struct alloc_pool_id id = {0, d[1] % 3};

    switch (d[0] % 12) {
    case 0:
        alloc_empty_cache(f->engine, id);
        break;
    case 1:
        alloc_set_memory_fraction(f->engine, d[1] / 255.0);
        break;
    case 2:
        alloc_pool_begin(f->engine, id, d[2] % 2 ? selects : NULL, NULL);
        break;
    case 3:
        alloc_pool_end(f->engine, id);
        break;
    case 4:
        alloc_pool_create(f->engine, id, d[2] % 8);
        break;
    case 5:
        alloc_pool_release(f->engine, id);
        break;
    case 6:
        f->ready = f->tickets;
        break;
    case 7:
        if (*b)
            alloc_record_stream(f->engine, *b, d[2] % 4);
        break;
    default:
        if (*b)
            alloc_free(f->engine, *b), *b = NULL;
        else if (d[0] % 12 == 8)
            *b = alloc_malloc_from(f->engine, id, size_of(d[2], d[3]),
                                   d[1] / 64);
        else
            *b = alloc_malloc(f->engine, size_of(d[2], d[3]), d[1] / 64);
    }
}

static int start(struct fuzzer *f, const char *settings)
{
    static const char *const versions[] = {"2.5", "2.6",  "2.7", "2.8",
                                           "2.9", "2.10", "2.11"};
    struct err err = {""};
    struct replay_config model = {.total_bytes = 256 * MIB};
    struct alloc_config config = {.total_bytes = model.total_bytes,
                                  .listener = listen,
                                  .listener_context = f};
    size_t version = (size_t)(settings[0] & 7) % 7;

    config.rules = alloc_rules_find(versions[version], NULL, &err);
    alloc_conf_init(&config.conf);
    if (settings[0] &&
        alloc_conf_parse(&config.conf, settings + 1, config.rules, &err)) {
        demand(err.text[0] != '\0');
        return -1;
    }
    demand(replay_model_init(&f->model, &model, NULL, 0, "fuzz", &err) == 0);
    config.driver = replay_model_driver(&f->model);
    config.driver.event_context = f;
    config.driver.event_record = event_record;
    config.driver.event_query = event_query;
    config.driver.event_wait = event_wait;
    f->engine = alloc_create(&config);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzzer f = {.events = 0};
    char settings[256] = "";
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) : 0;

    if (!end || length >= sizeof settings)
        return 0;
    memcpy(settings, data, length);
    if (start(&f, settings))
        return 0;
    for (size_t at = length + 1; at + 4 <= size; at += 4)
        call(&f, data + at);
    demand(alloc_check(f.engine));
    demand(vaspace_check(&f.model.space));
    /* A segment of an odd number of MiB takes one more of the card. */
    demand(alloc_reserved_bytes(f.engine) <= replay_model_used(&f.model));
    alloc_destroy(f.engine);
    replay_model_fini(&f.model);
    return 0;
}
