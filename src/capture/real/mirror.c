/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/mirror.h"

#include "capture/core/base/lock.h"
#include "capture/core/base/ranges.h"
#include "capture/cudnn/arena.h"

#define MIRRORS (1u << 18)
#define MOST    256 /* descriptors in one attribute */

/* By the real one's address; BYTES is the mirror's. */
static struct ranges mirrors = {.places = MIRRORS};

struct descriptor *mirror_of(cudnnBackendDescriptor_t handle)
{
    struct range found;

    core_lock(LOCK_HANDLE);
    bool known = ranges_find(&mirrors, (uint64_t)handle, &found);
    core_unlock(LOCK_HANDLE);
    return known ? (struct descriptor *)found.bytes : NULL;
}

void mirror_create(cudnnBackendDescriptor_t handle,
                   cudnnBackendDescriptorType_t type)
{
    struct descriptor *d = descriptor_create(type);
    const struct range range = {.address = (uint64_t)handle,
                                .bytes = (uint64_t)d};

    if (!d)
        return;
    core_lock(LOCK_HANDLE);
    bool added = ranges_add(&mirrors, &range);
    core_unlock(LOCK_HANDLE);
    if (!added)
        descriptor_release(d);
}

void mirror_destroy(cudnnBackendDescriptor_t handle)
{
    struct range old;

    core_lock(LOCK_HANDLE);
    bool known = ranges_remove(&mirrors, (uint64_t)handle, &old);
    core_unlock(LOCK_HANDLE);
    if (known)
        descriptor_release((struct descriptor *)old.bytes);
}

/* The same attribute of mirrors; of none where one is not known. */
static void set_children(struct descriptor *d, cudnnBackendAttributeName_t name,
                         int64_t count, const void *values)
{
    const cudnnBackendDescriptor_t *handles = values;
    struct descriptor *children[MOST];

    if (count > MOST)
        return;
    for (int64_t i = 0; i < count; i++)
        if (!(children[i] = mirror_of(handles[i])))
            return;
    descriptor_set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, children);
}

void mirror_set(cudnnBackendDescriptor_t handle,
                cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count,
                const void *values)
{
    struct descriptor *d = mirror_of(handle);

    if (!d || count < 0 || (count && !values))
        return;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        set_children(d, name, count, values);
    else if (attribute_element_bytes(type))
        descriptor_set(d, name, type, count, values);
}

void mirror_results(cudnnBackendDescriptor_t handle, int64_t count,
                    const cudnnBackendDescriptor_t *configurations)
{
    const struct descriptor *heuristics = mirror_of(handle);
    const struct descriptor *graph = descriptor_child(
        heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
    struct descriptor *engine =
        graph ? descriptor_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR) : NULL;

    if (!engine)
        return;
    descriptor_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    for (int64_t i = 0; i < count; i++) {
        struct descriptor *c = mirror_of(configurations[i]);
        if (c)
            descriptor_set(c, CUDNN_ATTR_ENGINECFG_ENGINE,
                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    }
    descriptor_release(engine);
}

void mirror_plan(cudnnBackendDescriptor_t handle, uint64_t workspace_bytes)
{
    struct descriptor *d = mirror_of(handle);
    const struct descriptor *graph = descriptor_child(
        descriptor_child(
            descriptor_child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0),
            CUDNN_ATTR_ENGINECFG_ENGINE, 0),
        CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0);

    if (!d || d->plan || !graph)
        return;
    struct plan *plan = arena_take(sizeof *plan, &d->plan_capacity);
    if (!plan)
        return;
    plan_read(graph, descriptor_number(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0),
              plan);
    plan->workspace_bytes = plan->workspace_most = workspace_bytes;
    d->plan = plan;
}

/* The real cuDNN says how much a convolution asks for: its plan or its call. */
struct workspace convolution_workspace(const struct convolution *convolution)
{
    (void)convolution;
    return (struct workspace){0};
}
