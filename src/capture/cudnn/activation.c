/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/cudnn.h"

struct activation {
    uint32_t class; /* CLASS_ACTIVATION */
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coefficient;
};

cudnnStatus_t
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_ACTIVATION, sizeof(struct activation),
                               handle);
}

cudnnStatus_t
cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_ACTIVATION, handle);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t handle,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan,
                                           double coefficient)
{
    struct activation *a = cudnn_object_get(CLASS_ACTIVATION, handle);

    if (!a || (unsigned)mode > CUDNN_ACTIVATION_SWISH)
        return CUDNN_STATUS_BAD_PARAM;
    a->mode = mode;
    a->nan = nan;
    a->coefficient = coefficient;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t handle,
                             cudnnActivationMode_t *mode,
                             cudnnNanPropagation_t *nan, double *coefficient)
{
    const struct activation *a = cudnn_object_get(CLASS_ACTIVATION, handle);

    if (!a || !mode || !nan || !coefficient)
        return CUDNN_STATUS_BAD_PARAM;
    *mode = a->mode;
    *nan = a->nan;
    *coefficient = a->coefficient;
    return CUDNN_STATUS_SUCCESS;
}
