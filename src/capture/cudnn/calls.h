/* SPDX-License-Identifier: Apache-2.0
 * What a call of the classic API that is no convolution is as a record: norms,
 * pooling, recurrent networks. A real card's calls have the same
 * (capture/real). */
#ifndef MEMSIM_CAPTURE_CUDNN_CALLS_H
#define MEMSIM_CAPTURE_CUDNN_CALLS_H

#include "capture/cudnn/rnn.h"

enum norm_kind {
    NORM_INFERENCE,
    NORM_TRAINING,
    NORM_BACKWARD,
};

/* A norm, as a name of the trace. */
uint32_t norm_name(enum norm_kind kind);

/* Each fills CALL, which is empty. Of a norm of X; values: bytes read, bytes
 * written, MODE, OPS. */
void norm_call_fill(struct cudnn_call *call, enum norm_kind kind,
                    const struct shape *x, unsigned mode, unsigned ops);

/* Of pooling X to Y by a window; values: bytes read, bytes written. */
void pooling_call_fill(struct cudnn_call *call, const struct shape *x,
                       const struct shape *y, const int64_t window[2]);

/* Of RNN on X; values: tokens, input, hidden, layers, directions, gates. */
void rnn_call_fill(struct cudnn_call *call, const struct rnn *rnn,
                   const struct rnn_data *x);

/* "rnn forward training", or inference, as a name of the trace. */
uint32_t rnn_forward_name(cudnnForwardMode_t mode);

#endif
