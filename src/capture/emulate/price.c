/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/emulate/price.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/clock/arena.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/emulate/delays.h"
#include "common/trace/session.h"
#include "fits/spread.h"
#include "playback/image.h"
#include "playback/price.h"

#define ARENA_BYTES (UINT64_C(1) << 30) /* of addresses, hardly touched */

static struct simulation_options options;
static struct pricer *pricer;
static jmp_buf no_memory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of it */

static void on_full(void)
{
    _longjmp(no_memory, 1);
}

/* --- the models ----------------------------------------------------------- */

static void *image_map(size_t *bytes)
{
    struct stat st;
    int fd = process_file(SESSION_CLOCK);
    void *image = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && st.st_size > 0) {
        *bytes = (size_t)st.st_size;
        image = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return image == MAP_FAILED ? NULL : image;
}

static const char *models_open(void)
{
    static struct err err;
    size_t bytes = 0;
    void *image = image_map(&bytes);
    void *arena = image ? memsim_pages_reserve(0, ARENA_BYTES) : NULL;

    if (!image)
        return "its file of costs is missing";
    if (!arena)
        return "there is no address space for them";
    arena_start(arena, ARENA_BYTES, on_full);
    if (_setjmp(no_memory))
        return "there is no memory for them";
    if (playback_image_open(image, bytes, &options, &err))
        return err.text;
    const char *wrong = emulated_delays_open(&options);
    pricer = wrong ? NULL : pricer_create(&options.price);
    return wrong;
}

/* With LOCK. */
static bool has_models(void)
{
    static bool tried;

    if (tried)
        return pricer;
    tried = true;
    const char *wrong = models_open();
    if (wrong)
        memsim_note("collectives take no time: there are no models of them: %s",
                    wrong);
    return pricer;
}

/* --- where the ranks are -------------------------------------------------- */

static struct placement block_placement(void)
{
    const struct session *session = memsim_session();
    const struct cluster *cluster = options.price.cluster;
    uint32_t local = session ? session->local_world_size : 0;

    return (struct placement){.width =
                                  cluster ? cluster_width(cluster, local) : 1};
}

static bool is_message(const struct nccl_call *call)
{
    return call->exchange.shape == SHAPE_SEND ||
           call->exchange.shape == SHAPE_RECEIVE;
}

/* A message goes to one node or two, whose other GPUs send too. */
static struct price_place message_place(const struct communicator *c,
                                        const struct placement *at, int peer)
{
    uint32_t world = memsim_session()->world_size;
    bool leaves = placement_node(at, c->places[peer]) !=
                  placement_node(at, c->places[c->rank]);

    return (struct price_place){
        .nodes = leaves ? 2 : 1,
        .gpus_per_node = world && world < at->width ? world : at->width,
        .users = 1};
}

static struct price_place place_of(const struct communicator *c,
                                   const struct nccl_call *call)
{
    const struct placement at = block_placement();
    const struct session *session = memsim_session();
    struct spread s;

    if (!c->places || !options.price.cluster)
        return (struct price_place){.nodes = 0};
    if (is_message(call))
        return message_place(c, &at, call->exchange.root);
    spread_find(&s, c->places, (uint32_t)c->ranks, &at, session->world_size);
    return (struct price_place){.nodes = s.nodes,
                                .gpus_per_node = s.gpus_per_node,
                                .users = s.users};
}

/* --- from outside --------------------------------------------------------- */

static uint64_t late_ns(const struct nccl_call *call, const struct price *price)
{
    struct delay_call c = {.name = call->exchange.name,
                           .kind = OP_COLLECTIVE,
                           .engine = price->engine,
                           .link = price->link,
                           .duration_ns = price->answer.ns,
                           .bytes = call->record.bytes,
                           .ranks = (uint32_t)call->record.ranks};

    return emulated_delays_late(&c);
}

static void price_make(const struct communicator *c,
                       const struct nccl_call *call, struct emulated_price *p)
{
    const struct price_place place = place_of(c, call);
    struct price price;

    pricer_collective(pricer, call->exchange.name, &call->record,
                      options.price.cluster ? &place : NULL, &price);
    p->ns = price.answer.ns + late_ns(call, &price);
    p->nodes = price.link == SIM_LINK_NODES ? 2 : 1;
    p->lag = emulated_delays_lag();
    if (options.price.slow - 1 > p->lag)
        p->lag = options.price.slow - 1;
}

bool emulated_price(const struct communicator *c, const struct nccl_call *call,
                    struct emulated_price *p)
{
    *p = (struct emulated_price){.nodes = 1};
    pthread_mutex_lock(&lock);
    bool known = has_models() && !_setjmp(no_memory);
    if (known)
        price_make(c, call, p);
    pthread_mutex_unlock(&lock);
    return known;
}

void emulated_price_step(uint32_t step, struct emulated_step *s)
{
    *s = (struct emulated_step){.dead = DELAY_ANY};
    pthread_mutex_lock(&lock);
    if (has_models() && !_setjmp(no_memory))
        emulated_delays_step(step, s);
    pthread_mutex_unlock(&lock);
}

struct delay_effect emulated_price_work(const char *name)
{
    struct delay_effect effect = {.factor = 1};

    pthread_mutex_lock(&lock);
    if (has_models() && !_setjmp(no_memory))
        effect = emulated_delays_work(name);
    pthread_mutex_unlock(&lock);
    return effect;
}
