/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/store.h"

#include <string.h>

#include "capture/core/base/handle.h"
#include "capture/cudnn/arena.h"

struct descriptor *descriptor_create(cudnnBackendDescriptorType_t type)
{
    struct descriptor *descriptor = NULL;

    cudnn_object_create(CLASS_BACKEND, sizeof *descriptor, &descriptor);
    if (descriptor) {
        descriptor->type = type;
        descriptor->holders = 1;
    }
    return descriptor;
}

struct descriptor *descriptor_get(const void *handle)
{
    struct descriptor *descriptor = cudnn_object_get(CLASS_BACKEND, handle);

    return descriptor && !descriptor->destroyed ? descriptor : NULL;
}

#define TYPE_LAST 63u /* leaves room for types of newer versions */

/* Enums, 4 bytes each, are what is left; all newer types are taken for such. */
size_t attribute_element_bytes(cudnnBackendAttributeType_t type)
{
    switch ((int)type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
        return 8;
    case CUDNN_TYPE_FRACTION:
        return sizeof(cudnnFraction_t);
    default:
        return (unsigned)type <= TYPE_LAST ? 4 : 0;
    }
}

static struct attribute **attribute_place(struct descriptor *descriptor,
                                          cudnnBackendAttributeName_t name)
{
    struct attribute **place = &descriptor->first;

    while (*place && (*place)->name != (uint32_t)name)
        place = &(*place)->next;
    return place;
}

const struct attribute *descriptor_find(const struct descriptor *descriptor,
                                        cudnnBackendAttributeName_t name)
{
    if (!descriptor)
        return NULL;
    return *attribute_place((struct descriptor *)descriptor, name);
}

/* Gives back what the elements of ATTRIBUTE hold. */
static void attribute_empty(struct attribute *attribute)
{
    struct descriptor **held = (struct descriptor **)attribute->values;

    if (attribute->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++)
            descriptor_release(held[i]);
    attribute->count = 0;
}

static void attribute_destroy(struct attribute *attribute)
{
    attribute_empty(attribute);
    arena_give(attribute, attribute->capacity);
}

static void descriptor_clear(struct descriptor *descriptor)
{
    struct attribute *attribute = descriptor->first;

    descriptor->first = NULL;
    while (attribute) {
        struct attribute *next = attribute->next;

        attribute_destroy(attribute);
        attribute = next;
    }
}

void descriptor_release(struct descriptor *descriptor)
{
    if (!descriptor || --descriptor->holders)
        return;
    descriptor_clear(descriptor);
    if (descriptor->plan)
        arena_give(descriptor->plan, descriptor->plan_capacity);
    cudnn_object_destroy(CLASS_BACKEND, descriptor);
}

/* An attribute with room for BYTES at *PLACE, in the old one's stead. */
static struct attribute *attribute_renew(struct attribute **place, size_t bytes)
{
    struct attribute *old = *place, *next = old ? old->next : NULL;
    size_t capacity;

    if (old && old->capacity >= sizeof *old + bytes) {
        attribute_empty(old);
        return old;
    }
    struct attribute *new = arena_take(sizeof *new + bytes, &capacity);
    if (!new)
        return NULL;
    if (old)
        attribute_destroy(old);
    *new = (struct attribute){.next = next, .capacity = capacity};
    return *place = new;
}

static bool descriptors_live(struct descriptor *const *list, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!descriptor_get(list[i]))
            return false;
    return true;
}

/* Elements that are descriptors gain a holder before the old ones lose theirs:
 * they may be the same. */
static cudnnStatus_t attribute_put(struct descriptor *descriptor,
                                   cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type,
                                   int64_t count, const void *values)
{
    size_t bytes = attribute_element_bytes(type) * (size_t)count;
    struct descriptor *const *list = values;
    bool holds = type == CUDNN_TYPE_BACKEND_DESCRIPTOR;

    for (int64_t i = 0; holds && i < count; i++)
        list[i]->holders++;
    struct attribute *attribute =
        attribute_renew(attribute_place(descriptor, name), bytes);
    if (!attribute) {
        for (int64_t i = 0; holds && i < count; i++)
            descriptor_release(list[i]);
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    attribute->name = (uint32_t)name;
    attribute->type = type;
    attribute->count = count;
    if (bytes)
        memcpy(attribute->values, values, bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t descriptor_set(struct descriptor *descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count,
                             const void *values)
{
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
        !descriptors_live(values, count))
        return CUDNN_STATUS_BAD_PARAM;
    return attribute_put(descriptor, name, type, count, values);
}

cudnnStatus_t descriptor_copy(struct descriptor *to,
                              const struct descriptor *from)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    descriptor_clear(to);
    for (const struct attribute *a = from->first; a && !status; a = a->next)
        status = attribute_put(to, a->name, a->type, a->count, a->values);
    to->finalized = true;
    return status;
}

int64_t descriptor_number(const struct descriptor *descriptor,
                          cudnnBackendAttributeName_t name, int64_t fallback)
{
    const struct attribute *a = descriptor_find(descriptor, name);
    int32_t narrow;
    int64_t wide;

    if (!a || !a->count)
        return fallback;
    switch (attribute_element_bytes(a->type)) {
    case 1:
        return a->values[0];
    case 4:
        memcpy(&narrow, a->values, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, a->values, sizeof wide);
        return wide;
    }
}

double descriptor_real(const struct descriptor *descriptor,
                       cudnnBackendAttributeName_t name, double fallback)
{
    const struct attribute *a = descriptor_find(descriptor, name);
    float single;
    double real = fallback;

    if (!a || !a->count)
        return fallback;
    if (a->type == CUDNN_TYPE_FLOAT) {
        memcpy(&single, a->values, sizeof single);
        real = single;
    } else if (a->type == CUDNN_TYPE_DOUBLE) {
        memcpy(&real, a->values, sizeof real);
    }
    return real;
}

const struct descriptor *descriptor_child(const struct descriptor *descriptor,
                                          cudnnBackendAttributeName_t name,
                                          int64_t index)
{
    const struct attribute *a = descriptor_find(descriptor, name);

    if (!a || a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR || index >= a->count)
        return NULL;
    return ((struct descriptor *const *)a->values)[index];
}
