/* SPDX-License-Identifier: Apache-2.0
 * The weight space: first each pseudo-layer's matrices, then each one's
 * biases, without gaps. torch checks as much of it as it relies on
 * (aten/src/ATen/native/cudnn/RNN.cpp, get_parameters).
 *
 *   [W R P][W R P]...[bW bR][bW bR]...     W: gates matrices for the input, R:
 *                                          for the recurrence; P: an LSTM's
 *                                          projection */
#include "capture/cudnn/rnn.h"

int rnn_gates(const struct rnn *rnn)
{
    switch (rnn->mode) {
    case CUDNN_LSTM:
        return 4;
    case CUDNN_GRU:
        return 3;
    default:
        return 1;
    }
}

int rnn_directions(const struct rnn *rnn)
{
    return rnn->direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
}

static bool is_projected(const struct rnn *rnn)
{
    return rnn->mode == CUDNN_LSTM && rnn->projection > 0 &&
           rnn->projection < rnn->hidden;
}

static int64_t output_size(const struct rnn *rnn)
{
    return is_projected(rnn) ? rnn->projection : rnn->hidden;
}

/* 0 where the input is taken as it is. */
static int64_t input_size(const struct rnn *rnn, int pseudo_layer)
{
    if (pseudo_layer >= rnn_directions(rnn))
        return output_size(rnn) * rnn_directions(rnn);
    return rnn->input_mode == CUDNN_SKIP_INPUT ? 0 : rnn->input;
}

static int64_t matrices_size(const struct rnn *rnn, int pseudo_layer)
{
    int64_t columns = input_size(rnn, pseudo_layer) + output_size(rnn);
    int64_t projection =
        is_projected(rnn) ? (int64_t)rnn->projection * rnn->hidden : 0;

    return rnn_gates(rnn) * rnn->hidden * columns + projection;
}

static int bias_sets(const struct rnn *rnn)
{
    switch (rnn->bias) {
    case CUDNN_RNN_NO_BIAS:
        return 0;
    case CUDNN_RNN_DOUBLE_BIAS:
        return 2;
    default:
        return 1;
    }
}

/* Elements of all matrices before PSEUDO_LAYER's. */
static int64_t matrices_before(const struct rnn *rnn, int pseudo_layer)
{
    int64_t elements = 0;

    for (int i = 0; i < pseudo_layer; i++)
        elements += matrices_size(rnn, i);
    return elements;
}

static int64_t biases_before(const struct rnn *rnn, int pseudo_layer)
{
    return (int64_t)pseudo_layer * bias_sets(rnn) * rnn_gates(rnn) *
           rnn->hidden;
}

int64_t rnn_weights(const struct rnn *rnn)
{
    int pseudo_layers = rnn->layers * rnn_directions(rnn);

    return matrices_before(rnn, pseudo_layers) +
           biases_before(rnn, pseudo_layers);
}

struct rnn_part rnn_matrix(const struct rnn *rnn, int pseudo_layer, int linear)
{
    const int gates = rnn_gates(rnn);
    const int64_t input = input_size(rnn, pseudo_layer), hidden = rnn->hidden;
    struct rnn_part part = {matrices_before(rnn, pseudo_layer), hidden, input};

    if (linear < gates) {
        part.offset += linear * hidden * input;
    } else if (linear < 2 * gates) {
        part.columns = output_size(rnn);
        part.offset +=
            gates * hidden * input + (linear - gates) * hidden * part.columns;
    } else {
        part.rows = is_projected(rnn) ? rnn->projection : 0;
        part.columns = hidden;
        part.offset += gates * hidden * (input + output_size(rnn));
    }
    if (!part.columns)
        part.rows = 0;
    return part;
}

struct rnn_part rnn_bias(const struct rnn *rnn, int pseudo_layer, int linear)
{
    const int gates = rnn_gates(rnn);
    const int64_t hidden = rnn->hidden;
    struct rnn_part part = {
        matrices_before(rnn, rnn->layers * rnn_directions(rnn)) +
            biases_before(rnn, pseudo_layer) + linear * hidden,
        hidden, 1};
    bool recurrent = linear >= gates;

    if (linear >= 2 * gates || rnn->bias == CUDNN_RNN_NO_BIAS ||
        (recurrent && rnn->bias == CUDNN_RNN_SINGLE_INP_BIAS) ||
        (!recurrent && rnn->bias == CUDNN_RNN_SINGLE_REC_BIAS))
        part.rows = 0;
    if (rnn->bias == CUDNN_RNN_SINGLE_REC_BIAS)
        part.offset -= gates * hidden;
    return part;
}
