/* SPDX-License-Identifier: Apache-2.0
 * The options of a simulation as a file: what comes out is what went in, and a
 * broken file is an error. */
#include "playback/image.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "common/base/xmalloc.h"
#include "fits/placement.h"
#include "fits/cost_fit.h"
#include "runtime/cost/cost_image.h"

static struct gpu gpu;
static struct cluster cluster;
static struct cost_image *cost;

static const struct delays table = {
    .all = {{.name = "nccl", .ns = 7, .every = 2}}, .count = 1, .library = "l"};
static const struct simulation_delays delays = {.table = &table};
static uint32_t nodes[] = {1, 0, 1}, gpus[] = {0, 0, 1};
static const struct placement placement = {2, 3, nodes, gpus};

/* The image of an H100 on a cluster, with delays and a placement. */
static char *image_make(size_t *bytes)
{
    struct simulation_options options = {.host_factor = 0.5};
    struct err err = {""};

    CHECK(!gpu_load("h100-sxm-80gb", &gpu, &err));
    CHECK(!cluster_load("abci-v100", &cluster, &err));
    cost = cost_fit_load(&gpu, NULL, &err);
    CHECK(cost);
    options.price = (struct price_options){
        .gpu = &gpu, .image = cost, .cluster = &cluster, .scale = {[3] = 2}};
    options.stragglers = (struct stragglers){.spread = 0.25, .seed = 3};
    options.delays = &delays;
    options.placement = &placement;
    return playback_image_make(&options, bytes);
}

static void sources_free(void)
{
    cluster_fini(&cluster);
    free(cost);
}

TEST(what_is_opened_is_what_was_made)
{
    struct simulation_options options;
    struct err err = {""};
    size_t bytes;
    char *image = image_make(&bytes);

    CHECK(!playback_image_open(image, bytes, &options, &err));
    CHECK(options.host_factor == 0.5 && options.price.scale[3] == 2);
    CHECK(options.host_as_recorded);
    CHECK(!memcmp(options.price.gpu, &gpu, sizeof gpu));
    CHECK(!memcmp(options.price.image, cost, cost->bytes));
    CHECK(options.stragglers.spread == 0.25 && options.stragglers.seed == 3);
    CHECK(!memcmp(options.delays->table, &table, sizeof table));
    CHECK_UINT(options.placement->ranks, 3);
    CHECK(!memcmp(options.placement->node, nodes, sizeof nodes) &&
          !memcmp(options.placement->gpu, gpus, sizeof gpus));
    const struct fit *a = &options.price.cluster->fit, *b = &cluster.fit;
    CHECK_UINT(a->family_count, b->family_count);
    CHECK(a->family_count > 0 && a->families != b->families);
    for (uint32_t i = 0; i < a->family_count; i++)
        for (uint32_t j = 0; j < a->families[i].curve_count; j++) {
            const struct fit_curve *x = &a->families[i].curves[j];
            const struct fit_curve *y = &b->families[i].curves[j];
            CHECK_UINT(x->knot_count, y->knot_count);
            CHECK(!x->knot_count || !memcmp(x->knots, y->knots,
                                            x->knot_count * sizeof *x->knots));
        }
    xfree(image);
    sources_free();
}

TEST(a_cut_image_is_an_error)
{
    struct simulation_options options;
    size_t bytes;
    char *image = image_make(&bytes);

    for (size_t cut = 0; cut < bytes; cut += cut < 4096 ? 64 : 9973) {
        struct err err = {""};
        char *part = malloc(cut + 1);
        memcpy(part, image, cut);
        CHECK(playback_image_open(part, cut, &options, &err));
        CHECK(err.text[0]);
        free(part);
    }
    xfree(image);
    sources_free();
}

/* Whatever its words say, nothing is read outside of it (asan). */
TEST(a_damaged_image_does_no_harm)
{
    struct simulation_options options;
    size_t bytes;
    char *image = image_make(&bytes);
    char *copy = malloc(bytes);
    unsigned refused = 0;

    for (size_t at = 0; at + 8 <= bytes; at += at < 1024 ? 8 : 4099 * 8) {
        struct err err = {""};
        memcpy(copy, image, bytes);
        memset(copy + at, 0xa5, 8);
        refused += playback_image_open(copy, bytes, &options, &err) != 0;
    }
    CHECK(refused > 3);
    free(copy);
    xfree(image);
    sources_free();
}
