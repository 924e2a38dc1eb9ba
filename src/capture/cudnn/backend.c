/* SPDX-License-Identifier: Apache-2.0
 * The backend API: descriptors that are set, finalized, asked and executed. */
#include <string.h>

#include "capture/cudnn/arena.h"
#include "capture/cudnn/plan.h"

/* Newer versions have types that these headers do not: they are kept and told
 * like any other. */
#define TYPE_LAST 255u

/* What a descriptor cannot be finalized without. */
static const struct required {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t name;
} required[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS},
};

/* Attributes that are arrays, and so may hold nothing. The others hold one
 * element even where nothing was set. */
static const cudnnBackendAttributeName_t arrays[] = {
    CUDNN_ATTR_ENGINE_KNOB_INFO,
    CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
    CUDNN_ATTR_ENGINE_LAYOUT_INFO,
    CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
    CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
    CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO,
    CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS,
    CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS,
    CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
    CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
    CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
};

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *handle)
{
    if (!handle)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if ((unsigned)type > TYPE_LAST)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *handle = descriptor_create(type);
    return *handle ? CUDNN_STATUS_SUCCESS
                   : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle)
{
    struct descriptor *descriptor = descriptor_get(handle);

    if (!descriptor)
        return CUDNN_STATUS_BAD_PARAM;
    descriptor->destroyed = true;
    descriptor_release(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

/* Creating a descriptor initializes it. */
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t handle)
{
    return descriptor_get(handle) ? CUDNN_STATUS_SUCCESS
                                  : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *values)
{
    struct descriptor *descriptor = descriptor_get(handle);

    if (!descriptor || count < 0 || count > INT32_MAX || (count && !values))
        return CUDNN_STATUS_BAD_PARAM;
    if (descriptor->finalized)
        return CUDNN_STATUS_NOT_INITIALIZED; /* as cuDNN's reference has it */
    if (!attribute_element_bytes(type))
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    return descriptor_set(descriptor, name, type, count, values);
}

static const struct descriptor *
plan_engine(const struct descriptor *configuration)
{
    return descriptor_child(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, 0);
}

/* What CONFIGURATION's engine makes of its graph. */
static cudnnStatus_t configuration_read(const struct descriptor *configuration,
                                        struct plan *plan)
{
    const struct descriptor *engine = plan_engine(configuration);
    const struct descriptor *graph =
        descriptor_child(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0);

    if (!graph)
        return CUDNN_STATUS_BAD_PARAM;
    plan_read(graph,
              descriptor_number(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0),
              plan);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t plan_finalize(struct descriptor *descriptor)
{
    const struct descriptor *configuration = descriptor_child(
        descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
    struct plan *plan = arena_take(sizeof *plan, &descriptor->plan_capacity);

    if (!plan)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    cudnnStatus_t status = configuration_read(configuration, plan);
    if (status)
        arena_give(plan, descriptor->plan_capacity);
    else
        descriptor->plan = plan;
    return status;
}

static bool is_complete(const struct descriptor *descriptor)
{
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (required[i].type == descriptor->type &&
            !descriptor_find(descriptor, required[i].name))
            return false;
    return true;
}

static bool are_parts_finalized(const struct descriptor *descriptor)
{
    const struct descriptor *part;

    for (const struct attribute *a = descriptor->first; a; a = a->next)
        for (int64_t i = 0;
             (part = descriptor_child(descriptor,
                                      (cudnnBackendAttributeName_t)a->name, i));
             i++)
            if (!part->finalized)
                return false;
    return true;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle)
{
    struct descriptor *descriptor = descriptor_get(handle);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    if (!descriptor || !is_complete(descriptor))
        return CUDNN_STATUS_BAD_PARAM;
    if (!are_parts_finalized(descriptor))
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        !descriptor->plan)
        status = plan_finalize(descriptor);
    if (!status)
        descriptor->finalized = true;
    return status;
}

/* An answer that is being written into the caller's array. */
struct answer {
    cudnnBackendAttributeType_t type;
    int64_t requested; /* elements the array has room for */
    int64_t *count;    /* may be NULL */
    void *values;
};

static cudnnStatus_t answer_array(const struct answer *answer, int64_t count,
                                  const void *values)
{
    int64_t n = count < answer->requested ? count : answer->requested;

    if (answer->count)
        *answer->count = count;
    if (answer->values && n > 0)
        memcpy(answer->values, values,
               attribute_element_bytes(answer->type) * (size_t)n);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t answer_int64(const struct answer *answer, int64_t value)
{
    if (answer->type != CUDNN_TYPE_INT64)
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    return answer_array(answer, 1, &value);
}

/* The engine of GRAPH numbered INDEX, into the descriptor *ENGINE. */
static cudnnStatus_t engine_make(const struct descriptor *graph, int64_t index,
                                 struct descriptor *engine)
{
    cudnnStatus_t status =
        descriptor_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);

    if (!status)
        status = descriptor_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                CUDNN_TYPE_INT64, 1, &index);
    engine->finalized = true;
    return status;
}

/* Makes CONFIGURATION, which the program created, one of engine INDEX. */
static cudnnStatus_t configuration_make(const struct descriptor *graph,
                                        int64_t index,
                                        struct descriptor *configuration)
{
    struct descriptor *engine =
        descriptor_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);

    if (!engine)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    cudnnStatus_t status = engine_make(graph, index, engine);
    if (!status)
        status = descriptor_set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    configuration->finalized = !status;
    descriptor_release(engine);
    return status;
}

static cudnnStatus_t get_results(const struct descriptor *heuristics,
                                 const struct answer *answer)
{
    const struct descriptor *graph =
        descriptor_child(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
    void *const *handles = answer->values;
    int64_t engines[ENGINE_COUNT];
    bool fallback = descriptor_number(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE,
                                      0) == CUDNN_HEUR_MODE_FALLBACK;
    int count = plan_engines(graph, fallback, engines);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    if (answer->requested && handles && count > answer->requested)
        count = (int)answer->requested;
    for (int i = 0; handles && i < count && answer->requested && !status; i++) {
        struct descriptor *configuration = descriptor_get(handles[i]);

        status = configuration
                     ? configuration_make(graph, engines[i], configuration)
                     : CUDNN_STATUS_BAD_PARAM;
    }
    if (!status && answer->count)
        *answer->count = count;
    return status;
}

static cudnnStatus_t get_engine_count(const struct descriptor *graph,
                                      const struct answer *answer)
{
    (void)graph;
    return answer_int64(answer, ENGINE_COUNT);
}

static cudnnStatus_t get_notes(const struct descriptor *engine,
                               const struct answer *answer)
{
    const cudnnBackendNumericalNote_t note = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    int64_t index =
        descriptor_number(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);

    return answer_array(answer, index == ENGINE_TENSOR_CORE, &note);
}

static cudnnStatus_t get_plan_workspace(const struct descriptor *descriptor,
                                        const struct answer *answer)
{
    return answer_int64(answer, (int64_t)descriptor->plan->workspace_bytes);
}

static cudnnStatus_t
get_configuration_workspace(const struct descriptor *configuration,
                            const struct answer *answer)
{
    struct plan plan;
    cudnnStatus_t status = configuration_read(configuration, &plan);

    return status ? status
                  : answer_int64(answer, (int64_t)plan.workspace_bytes);
}

/* What is computed, not stored. */
static const struct computed {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t name;
    cudnnStatus_t (*get)(const struct descriptor *, const struct answer *);
} computed[] = {
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS,
     get_results},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, get_engine_count},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
     get_notes},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, get_plan_workspace},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
     get_configuration_workspace},
};

/* Descriptors are told by filling in those that the caller created. */
static cudnnStatus_t get_descriptors(const struct attribute *a,
                                     const struct answer *answer)
{
    struct descriptor *const *held = (struct descriptor *const *)a->values;
    void *const *handles = answer->values;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    for (int64_t i = 0; handles && i < a->count && i < answer->requested; i++) {
        struct descriptor *to = descriptor_get(handles[i]);

        if (!to || to->type != held[i]->type)
            return CUDNN_STATUS_BAD_PARAM;
        if (to != held[i])
            status = descriptor_copy(to, held[i]);
        if (status)
            return status;
    }
    if (answer->count)
        *answer->count = a->count;
    return status;
}

static cudnnStatus_t get_unset(cudnnBackendAttributeName_t name,
                               const struct answer *answer)
{
    static const unsigned char zero[16];

    if (answer->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return answer_array(answer, 0, zero);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i] == name)
            return answer_array(answer, 0, zero);
    return answer_array(answer, 1, zero);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t requested, int64_t *count,
                                       void *values)
{
    const struct descriptor *descriptor = descriptor_get(handle);
    const struct answer answer = {type, requested, count, values};

    if (!descriptor || requested < 0 || !attribute_element_bytes(type))
        return CUDNN_STATUS_BAD_PARAM;
    if (!descriptor->finalized)
        return CUDNN_STATUS_NOT_INITIALIZED; /* as cuDNN's reference has it */
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (computed[i].type == descriptor->type && computed[i].name == name)
            return computed[i].get(descriptor, &answer);
    const struct attribute *a = descriptor_find(descriptor, name);
    if (!a)
        return get_unset(name, &answer);
    if (a->type != type)
        return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return get_descriptors(a, &answer);
    return answer_array(&answer, a->count, a->values);
}

/* How fast ENGINE is, compared with the others; above 0. The program may have
 * given any number. */
static int speed_of(int64_t engine)
{
    return engine == ENGINE_TENSOR_CORE ? 3 : engine == ENGINE_SMALL ? 1 : 2;
}

/* Benchmarking (cudnn_frontend's time_sorted_plan) runs each plan with the same
 * variant pack, skips those that fail, and takes the fastest by its events.
 * There are no measured times for each engine here, so once a pack has run with
 * an engine, plans of slower ones fail. Work that is not tried out has a pack
 * of its own. */
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t pack_handle)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    const struct descriptor *plan = descriptor_get(plan_handle);
    struct descriptor *pack = descriptor_get(pack_handle);

    if (!cudnn || !plan || !pack)
        return CUDNN_STATUS_BAD_PARAM;
    if (plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    if (!plan->plan || !pack->finalized)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (plan->plan->workspace_bytes &&
        !descriptor_number(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0))
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    int speed = speed_of(plan->plan->engine);
    if (speed < pack->tried)
        return CUDNN_STATUS_NOT_SUPPORTED;
    pack->tried = speed;
    plan_record(cudnn, plan->plan);
    return CUDNN_STATUS_SUCCESS;
}
