/* SPDX-License-Identifier: Apache-2.0
 * Finding a GPU's fit, and borrowing from its neighbours what it lacks. */
#include "fits/cost_fit.h"
#include "common/base/err.h"
#include "common/base/json_text.h"
#include "common/base/share.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_build.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As installed, and in the build tree, where share_path() gives data/. */
static const char *const places[] = {"fits/ops", "../fits/ops"};

/* A borrowed model's band is this much wider each way; see doc/costs.md. */
#define BORROWED_BAND 1.5

/* GPUs that differ more than this (see distance) have their kernels' shapes in
 * nothing but a roofline in common; data center GPUs since Ampere, whose
 * memories and caches are alike, less soon (`bench/cost_errors`). */
#define NEAR             1.0
#define NEAR_DATA_CENTER 3.0

/* So many neighbours are read, and any whose fit is SMALL: what counts is the
 * time to parse trees. */
#define NEIGHBOURS 4
#define SMALL      (64 << 10)

/* A roofline of fewer times is borrowed after the models of GPUs further away:
 * its floor is often that of the method that took them. */
#define FEW 40

/* One of a GPU's own whose band spans more than this factor knows less than
 * the neighbours' models: it is asked after them. */
#define LOOSE 4.0

struct neighbour {
    struct gpu gpu;
    double distance;
    off_t bytes;
    char path[PATH_MAX + 320];
};

static int read_path(const char *path, const struct cost_need *need,
                     struct cost_build *build, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = cost_read(text, length, path, need, build, err);
    free(text);
    return rc;
}

/* How much faster tensor cores are: 2 times on GeForce GPUs, which matrix
 * products saturate, 4 on workstations', 15 on those of data centers. */
static double tensor_ratio(const struct gpu *gpu)
{
    return fmax(gpu->fp16_tflops, gpu->fp32_tflops) / fmax(gpu->fp32_tflops, 1);
}

/* How unlike two GPUs are: their generations, how much they compute for each
 * byte that they move, and their tensor cores. */
static double gpu_distance(const struct gpu *a, const struct gpu *b)
{
    double generations =
        fabs((double)a->capability_major + a->capability_minor / 10.0 -
             b->capability_major - b->capability_minor / 10.0);
    double x = fmax(a->fp16_tflops, a->fp32_tflops) / fmax(a->memory_gbps, 1);
    double y = fmax(b->fp16_tflops, b->fp32_tflops) / fmax(b->memory_gbps, 1);

    return generations + 2 * fabs(log(x / y)) +
           2 * fabs(log(tensor_ratio(a) / tensor_ratio(b))) +
           0.2 * fabs(log(a->memory_gbps / fmax(b->memory_gbps, 1)));
}

static bool is_same(const struct gpu *a, const struct gpu *b)
{
    return !strcmp(a->name, b->name);
}

/* Watts for each TFLOP/s in fp32 below which a power limit keeps the clock far
 * below its boost under any load: an L4 has 2.4 and sustains 0.36 of its peak,
 * an RTX 4090 5.4 and an L40S 3.8. Such shares are nobody else's. */
#define FEW_WATTS 3.0

static bool is_power_bound(const struct gpu *gpu)
{
    return gpu->power_watts && gpu->power_watts < FEW_WATTS * gpu->fp32_tflops;
}

static bool is_near(const struct gpu *gpu, const struct neighbour *n)
{
    bool data_center = tensor_ratio(gpu) > 10 && tensor_ratio(&n->gpu) > 10;

    return n->distance <= (data_center ? NEAR_DATA_CENTER : NEAR);
}

/* Shepard's: the inverse square of the distance. A twin counts alone. */
static double blend_weight(const struct neighbour *n)
{
    return 1 / fmax(n->distance * n->distance, 1e-6);
}

static int find_place(char *directory, size_t size)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!share_path(places[i], directory, size, NULL) &&
            !access(directory, R_OK))
            return 0;
    return -1;
}

bool cost_fit_is_own(const struct gpu *gpu)
{
    char directory[PATH_MAX];

    if (find_place(directory, sizeof directory))
        return false;
    char *path = xasprintf("%s/%s.json", directory, gpu->name);
    bool own = !access(path, R_OK);
    free(path);
    return own;
}

static int compare_neighbours(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;

    return x->distance != y->distance
               ? (x->distance > y->distance) - (x->distance < y->distance)
               : strcmp(x->gpu.name, y->gpu.name);
}

/* The GPUs that have a fit, the nearest to GPU first; it itself before all,
 * also before one that is as alike. */
static size_t list_neighbours(const struct gpu *gpu, struct neighbour **list)
{
    char directory[PATH_MAX];
    struct dirent **files;
    size_t count = 0, capacity = 0;

    *list = NULL;
    if (find_place(directory, sizeof directory))
        return 0;
    int found = scandir(directory, &files, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char *dot = strrchr(files[i]->d_name, '.');
        struct neighbour n;

        snprintf(n.path, sizeof n.path, "%s/%s", directory, files[i]->d_name);
        if (dot && !strcmp(dot, ".json")) {
            *dot = '\0';
            if (!gpu_load(files[i]->d_name, &n.gpu, NULL)) {
                struct stat status = {.st_size = 0};

                n.distance =
                    is_same(gpu, &n.gpu) ? -1 : gpu_distance(gpu, &n.gpu);
                n.bytes = stat(n.path, &status) ? 0 : status.st_size;
                xgrow(list, count, &capacity, sizeof **list);
                (*list)[count++] = n;
            }
        }
        free(files[i]);
    }
    if (found >= 0)
        free(files);
    qsort(*list, count, sizeof **list, compare_neighbours);
    return count;
}

/* Where memory bounds the time, it scales with the memories' rates. */
static void scale_segments(struct cost_segments *s, double ratio)
{
    s->y2 = fmax(s->y1, s->y2 + log(ratio));
}

/* The lender's times were mostly of tensors beyond its own cache. */
static void set_near(struct cost_part *part)
{
    struct cost_roofline *line = part->state;

    line->near = cost_roofline_near(part->model.family);
}

/* Hopper's and later data center GPUs have tensor instructions that kernels of
 * before cannot use: flash attention 2 reaches half the share of an H100's peak
 * that it reaches of an A100's. */
static bool has_new_tensor_cores(const struct gpu *gpu)
{
    return gpu->capability_major == 9 || gpu->capability_major == 10;
}

/* Attention on one side of that says nothing about the other side. */
static bool is_foreign(const struct cost_model *model, const struct gpu *from,
                       const struct gpu *to)
{
    bool attention = model->family == WORK_ATTENTION_FORWARD ||
                     model->family == WORK_ATTENTION_BACKWARD;

    return attention && has_new_tensor_cores(from) != has_new_tensor_cores(to);
}

static bool is_weak(const struct cost_part *part)
{
    return part->model.kind == COST_LINE && part->times < FEW;
}

/* Moves FROM's models, measured on another GPU, behind those of BUILD;
 * weak ones behind those of LATE, for what no other GPU answers. */
static void borrow_models(struct cost_build *build, struct cost_build *late,
                          struct cost_build *from, const struct neighbour *n,
                          const struct gpu *gpu)
{
    for (size_t i = 0; i < from->count; i++) {
        struct cost_part *part = &from->parts[i];

        if (is_foreign(&part->model, &n->gpu, gpu)) {
            free(part->state);
            continue;
        }
        if (part->model.basis != COST_ESTIMATED)
            part->model.basis = COST_BORROWED;
        part->model.low /= BORROWED_BAND;
        part->model.high *= BORROWED_BAND;
        if (part->model.kind == COST_LINE)
            set_near(part);
        if (part->model.kind == COST_SEGMENTS)
            scale_segments(part->state,
                           n->gpu.memory_gbps / fmax(gpu->memory_gbps, 1));
        cost_build_add(is_weak(part) ? late : build, part);
    }
    from->count = 0;
}

/* Moves BUILD's rooflines that say little of their own times to LATE. */
static void put_off_loose(struct cost_build *build, struct cost_build *late)
{
    size_t kept = 0;

    for (size_t i = 0; i < build->count; i++) {
        struct cost_part *part = &build->parts[i];

        if (is_weak(part) && part->model.high > LOOSE * part->model.low)
            cost_build_add(late, part);
        else
            build->parts[kept++] = *part;
    }
    build->count = kept;
}

static void move_models(struct cost_build *to, struct cost_build *from)
{
    for (size_t i = 0; i < from->count; i++)
        cost_build_add(to, &from->parts[i]);
    from->count = 0;
    cost_build_fini(from);
}

static int read_neighbours(const struct gpu *gpu, bool own,
                           struct cost_build *build, struct err *err)
{
    struct cost_build late = {.gpu = ""};
    struct neighbour *list;
    size_t count = list_neighbours(gpu, &list);
    int rc = 0;

    for (size_t i = 0, read = 0; !rc && i < count; i++) {
        struct cost_build from = {.gpu = ""};
        bool same = is_same(gpu, &list[i].gpu);

        if ((same && own) || (!same && is_power_bound(&list[i].gpu)) ||
            (read >= NEIGHBOURS && list[i].bytes > SMALL))
            continue;
        read++;
        bool near = is_near(gpu, &list[i]);
        const struct cost_need need = {build, !near,
                                       near ? blend_weight(&list[i]) : 0};
        rc = same ? read_path(list[i].path, NULL, build, err)
                  : read_path(list[i].path, &need, &from, err);
        if (same)
            put_off_loose(build, &late);
        borrow_models(build, &late, &from, &list[i], gpu);
        cost_build_fini(&from);
    }
    move_models(build, &late);
    free(list);
    return rc;
}

struct cost_image *cost_fit_load(const struct gpu *gpu, const char *path,
                                 struct err *err)
{
    struct cost_build build = {.gpu = ""};
    struct cost_image *image = NULL;

    int rc = path ? read_path(path, NULL, &build, err) : 0;
    if (!rc && path && strcmp(build.gpu, gpu->name))
        rc = err_set(err,
                     "%s: fitted for %s, not for %s; fit that GPU's own "
                     "times, or leave --fit away to borrow",
                     path, build.gpu, gpu->name);
    if (!rc)
        rc = read_neighbours(gpu, build.count > 0, &build, err);
    snprintf(build.gpu, sizeof build.gpu, "%s", gpu->name);
    if (!rc)
        image = cost_build_image(&build, path ? path : "fits/ops", err);
    cost_build_fini(&build);
    return image;
}

struct cost_image *cost_fit_borrow(const struct gpu *gpu, struct err *err)
{
    struct cost_build build = {.gpu = ""};
    struct cost_image *image = NULL;

    if (!read_neighbours(gpu, true, &build, err)) {
        snprintf(build.gpu, sizeof build.gpu, "%s", gpu->name);
        image = cost_build_image(&build, "fits/ops", err);
    }
    cost_build_fini(&build);
    return image;
}

struct cost_image *cost_fit_load_text(const char *json, size_t length,
                                      const char *origin, struct err *err)
{
    struct cost_build build = {.gpu = ""};
    struct cost_image *image = NULL;

    if (!cost_read(json, length, origin, NULL, &build, err))
        image = cost_build_image(&build, origin, err);
    cost_build_fini(&build);
    return image;
}
