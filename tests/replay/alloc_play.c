/* SPDX-License-Identifier: Apache-2.0
 * Plays a program of allocator calls, read from stdin, to the engine on a
 * modelled device and prints what happens, a line an event. The goldens of
 * tests/replay are such programs, and tests/torch/fuzz_alloc.py holds real
 * PyTorch against it. A line is a word and its numbers:
 *
 *   version V | conf TEXT | total BYTES | other BYTES    before all calls
 *   malloc ID BYTES STREAM | free ID | use ID STREAM     STREAM a small number
 *   done ID        the streams that used freed ID are done with it
 *   empty [POOL] | settings TEXT | fraction F
 *   ballast ID BYTES | drop ID                           memory of others
 *   pool P FLAGS | begin P [STREAM] | end P | release P  P a small number
 *   fork P STREAM                  STREAM's requests go to P, too, up to its
 * end capture | captured             a graph's capture begins, ends stats |
 * reset */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "memsim/replay/replay_model.h"

struct player {
    struct replay_config config;
    struct replay_model model;
    struct alloc *engine;
    struct map blocks;  /* struct alloc_block by ID + 1 */
    struct map keys;    /* the other way round */
    struct map tickets; /* struct ticket, by the block's ID + 1 */
    struct map scopes;  /* by pool: the streams it serves, as bits */
    unsigned line;
};

struct ticket { /* of all the events of one freed block */
    uint64_t key;
    unsigned count;
    bool done;
};

static void fail(const struct player *p, const char *cause)
{
    fprintf(stderr, "alloc_play: line %u: %s\n", p->line, cause);
    exit(2);
}

static struct ticket *ticket_get(struct player *p, uint64_t key)
{
    struct ticket *t = map_get(&p->tickets, key);

    if (t)
        return t;
    t = calloc(1, sizeof *t);
    t->key = key;
    map_put(&p->tickets, key, t);
    return t;
}

static uint64_t event_record(void *context, const struct alloc_block *block,
                             uint64_t stream)
{
    struct player *p = context;
    uint64_t key = (uintptr_t)map_get(&p->keys, (uintptr_t)block);
    struct ticket *t = ticket_get(p, key);

    (void)stream;
    t->count++;
    return (uintptr_t)t;
}

static void ticket_drop(struct player *p, struct ticket *t)
{
    if (--t->count)
        return;
    map_take(&p->tickets, t->key);
    free(t);
}

static bool event_query(void *context, uint64_t ticket)
{
    struct ticket *t = (struct ticket *)(uintptr_t)ticket;

    if (!t->done)
        return false;
    ticket_drop(context, t);
    return true;
}

static void event_wait(void *context, uint64_t ticket)
{
    ticket_drop(context, (struct ticket *)(uintptr_t)ticket);
}

static void listen(void *context, const struct alloc_event *e)
{
    const char *name = snapshot_action_name(e->action);

    (void)context;
    if (name)
        printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", name,
               e->address, e->bytes, e->stream, e->pool.second);
}

static void start(struct player *p)
{
    struct err err = {""};
    struct alloc_config config = {
        .rules = p->config.rules,
        .conf = p->config.conf,
        .total_bytes = p->config.total_bytes,
        .listener = listen,
    };

    if (p->engine)
        return;
    if (!p->config.rules || !p->config.total_bytes)
        fail(p, "version and total come first");
    if (replay_model_init(&p->model, &p->config, NULL, 0, "-", &err))
        fail(p, err.text);
    config.driver = replay_model_driver(&p->model);
    config.driver.event_context = p;
    config.driver.event_record = event_record;
    config.driver.event_query = event_query;
    config.driver.event_wait = event_wait;
    p->engine = alloc_create(&config);
}

static void set_conf(struct player *p, const char *text)
{
    struct err err = {""};

    if (!p->config.rules)
        fail(p, "version comes first");
    if (alloc_conf_parse(&p->config.conf, text, p->config.rules, &err))
        fail(p, err.text);
    if (p->engine)
        alloc_set_conf(p->engine, &p->config.conf);
}

static void set_version(struct player *p, const char *text)
{
    struct err err = {""};

    p->config.rules = alloc_rules_find(text, NULL, &err);
    if (!p->config.rules)
        fail(p, err.text);
    alloc_conf_init(&p->config.conf);
}

static void do_malloc(struct player *p, uint64_t id, uint64_t bytes,
                      uint64_t stream)
{
    struct alloc_block *b = alloc_malloc(p->engine, bytes, stream);

    if (!b)
        return;
    if (map_put(&p->blocks, id + 1, b))
        fail(p, "the block is there already");
    map_put(&p->keys, (uintptr_t)b, (void *)(uintptr_t)(id + 1));
}

static struct alloc_block *block_get(const struct player *p, uint64_t id)
{
    struct alloc_block *b = map_get(&p->blocks, id + 1);

    if (!b)
        fail(p, "no such block");
    return b;
}

static void do_free(struct player *p, uint64_t id)
{
    struct alloc_block *b = block_get(p, id);

    map_take(&p->blocks, id + 1);
    alloc_free(p->engine, b);
}

/* A graph's own pool has its number in the high half (graph_pool_handle). */
static struct alloc_pool_id pool_id(uint64_t number)
{
    return (struct alloc_pool_id){number >> 32, number & UINT32_MAX};
}

static bool selects(void *context, uint64_t stream)
{
    return *(const uint64_t *)context >> stream & 1;
}

static uint64_t *scope_get(struct player *p, uint64_t pool)
{
    uint64_t *streams = map_get(&p->scopes, pool);

    if (!streams) {
        streams = calloc(1, sizeof *streams);
        map_put(&p->scopes, pool, streams);
    }
    return streams;
}

/* COUNT 1: for every stream. */
static int begin(struct player *p, uint64_t pool, uint64_t stream, int count)
{
    uint64_t *streams = scope_get(p, pool);

    *streams = UINT64_C(1) << stream;
    return alloc_pool_begin(p->engine, pool_id(pool),
                            count > 1 ? selects : NULL, streams);
}

static void check(const struct player *p, int rc)
{
    if (rc)
        fail(p, "PyTorch would have raised an error");
}

static void print_stat(const char *name, const char *part,
                       const struct alloc_stat *s)
{
    printf("stat %s.%scurrent %" PRId64 "\nstat %s.%speak %" PRId64
           "\nstat %s.%sallocated %" PRId64 "\nstat %s.%sfreed %" PRId64 "\n",
           name, part, s->current, name, part, s->peak, name, part,
           s->allocated, name, part, s->freed);
}

static void print_array(const char *name, const struct alloc_stat *s)
{
    print_stat(name, "all.", &s[ALLOC_ALL]);
    print_stat(name, "small_pool.", &s[ALLOC_SMALL]);
    print_stat(name, "large_pool.", &s[ALLOC_LARGE]);
}

static void print_stats(const struct alloc_stats *s)
{
    print_array("allocation", s->allocation);
    print_array("segment", s->segment);
    print_array("active", s->active);
    print_array("inactive_split", s->inactive_split);
    print_array("allocated_bytes", s->allocated_bytes);
    print_array("reserved_bytes", s->reserved_bytes);
    print_array("active_bytes", s->active_bytes);
    print_array("inactive_split_bytes", s->inactive_split_bytes);
    print_array("requested_bytes", s->requested_bytes);
    print_stat("oversize_allocations", "", &s->oversize_allocations);
    print_stat("oversize_segments", "", &s->oversize_segments);
    printf("stat num_alloc_retries %" PRId64 "\nstat num_ooms %" PRId64
           "\nstat num_sync_all_streams %" PRId64
           "\nstat num_device_alloc %" PRId64 "\nstat num_device_free %" PRId64
           "\n",
           s->num_alloc_retries, s->num_ooms, s->num_sync_all_streams,
           s->num_device_alloc, s->num_device_free);
}

static void reset(struct player *p)
{
    alloc_reset_peak_stats(p->engine);
    alloc_reset_accumulated_stats(p->engine);
}

static void call(struct player *p, const char *word, const uint64_t *n,
                 int count)
{
    struct alloc *a = p->engine;

    if (!strcmp(word, "malloc"))
        do_malloc(p, n[0], n[1], n[2]);
    else if (!strcmp(word, "free"))
        do_free(p, n[0]);
    else if (!strcmp(word, "use"))
        alloc_record_stream(a, block_get(p, n[0]), n[1]);
    else if (!strcmp(word, "done"))
        ticket_get(p, n[0] + 1)->done = true;
    else if (!strcmp(word, "empty"))
        alloc_empty_cache(a, pool_id(n[0]));
    else if (!strcmp(word, "ballast"))
        replay_model_other_alloc(&p->model, n[0] + 1, n[1]);
    else if (!strcmp(word, "drop"))
        replay_model_other_free(&p->model, n[0] + 1);
    else if (!strcmp(word, "pool"))
        check(p, alloc_pool_create(a, pool_id(n[0]), (unsigned)n[1]));
    else if (!strcmp(word, "begin"))
        check(p, begin(p, n[0], n[1], count));
    else if (!strcmp(word, "fork"))
        *scope_get(p, n[0]) |= UINT64_C(1) << n[1];
    else if (!strcmp(word, "capture"))
        alloc_capture_begin(a);
    else if (!strcmp(word, "captured"))
        check(p, alloc_capture_end(a));
    else if (!strcmp(word, "end"))
        check(p, alloc_pool_end(a, pool_id(n[0])));
    else if (!strcmp(word, "release"))
        check(p, alloc_pool_release(a, pool_id(n[0])));
    else if (!strcmp(word, "stats"))
        print_stats(alloc_stats(a));
    else if (!strcmp(word, "reset"))
        reset(p);
    else
        fail(p, "unknown word");
}

static void read_line(struct player *p, char *line)
{
    char word[16] = "", *rest = line + strcspn(line, " \n");
    uint64_t n[3] = {0};

    line[strcspn(line, "\n")] = '\0';
    sscanf(line, "%15s", word);
    rest += *rest == ' ';
    int count =
        sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64, &n[0], &n[1], &n[2]);
    if (!word[0] || word[0] == '#')
        return;
    if (!strcmp(word, "version")) {
        set_version(p, rest);
    } else if (!strcmp(word, "conf") || !strcmp(word, "settings")) {
        set_conf(p, rest);
    } else if (!strcmp(word, "total")) {
        p->config.total_bytes = n[0];
    } else if (!strcmp(word, "other")) {
        p->config.other_bytes = n[0];
    } else if (!strcmp(word, "fraction")) {
        start(p);
        alloc_set_memory_fraction(p->engine, strtod(rest, NULL));
    } else {
        start(p);
        call(p, word, n, count);
        if (!alloc_check(p->engine))
            fail(p, "the books do not agree");
    }
}

int main(void)
{
    static struct player p;
    char line[4096];

    while (fgets(line, sizeof line, stdin)) {
        p.line++;
        read_line(&p, line);
    }
    return 0;
}
