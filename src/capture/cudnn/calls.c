/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/calls.h"

uint32_t norm_name(enum norm_kind kind)
{
    switch (kind) {
    case NORM_INFERENCE:
        return NAME_OF("batch norm inference");
    case NORM_TRAINING:
        return NAME_OF("batch norm training");
    default:
        return NAME_OF("batch norm backward");
    }
}

void norm_call_fill(struct cudnn_call *call, enum norm_kind kind,
                    const struct shape *x, unsigned mode, unsigned ops)
{
    /* How often each reads and writes tensors of x's size: training needs the
     * statistics before it can normalize, and backward likewise. */
    static const uint64_t passes[][2] = {[NORM_INFERENCE] = {1, 1},
                                         [NORM_TRAINING] = {2, 1},
                                         [NORM_BACKWARD] = {4, 1}};

    call->name = norm_name(kind);
    call->values[0] = passes[kind][0] * shape_bytes(x);
    call->values[1] = passes[kind][1] * shape_bytes(x);
    call->values[2] = mode;
    call->values[3] = ops;
    shape_describe(&call->detail, "x", x);
}

void pooling_call_fill(struct cudnn_call *call, const struct shape *x,
                       const struct shape *y, const int64_t window[2])
{
    call->name = NAME_OF("pooling forward");
    call->values[0] = shape_bytes(x);
    call->values[1] = shape_bytes(y);
    shape_describe(&call->detail, "x", x);
    shape_describe(&call->detail, "y", y);
    text_add_numbers(&call->detail, "window", window, 2);
}

static void rnn_describe(const struct rnn *rnn, const struct rnn_data *x,
                         struct text *text)
{
    static const char *const modes[] = {
        [CUDNN_RNN_RELU] = "relu",
        [CUDNN_RNN_TANH] = "tanh",
        [CUDNN_LSTM] = "lstm",
        [CUDNN_GRU] = "gru",
    };

    text_add(text,
             "mode=%s type=%s input=%d hidden=%d projection=%d layers=%d "
             "directions=%d length=%d batch=%d tokens=%lld math=%s%s",
             modes[rnn->mode], cudnn_type_name(rnn->type), rnn->input,
             rnn->hidden, rnn->projection, rnn->layers, rnn_directions(rnn),
             x->length, x->batch, (long long)x->tokens,
             rnn->math == CUDNN_FMA_MATH ? "plain" : "tensor",
             rnn->algorithm == CUDNN_RNN_ALGO_STANDARD ? ""
                                                       : " kernel=persistent");
}

void rnn_call_fill(struct cudnn_call *call, const struct rnn *rnn,
                   const struct rnn_data *x)
{
    const uint64_t values[] = {
        (uint64_t)x->tokens,    (uint64_t)rnn->input,
        (uint64_t)rnn->hidden,  (uint64_t)rnn->layers,
        (uint64_t)rnn_directions(rnn), (uint64_t)rnn_gates(rnn)};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        call->values[i] = values[i];
    rnn_describe(rnn, x, &call->detail);
}

uint32_t rnn_forward_name(cudnnForwardMode_t mode)
{
    return mode == CUDNN_FWD_MODE_TRAINING ? NAME_OF("rnn forward training")
                                           : NAME_OF("rnn forward inference");
}
