/* SPDX-License-Identifier: Apache-2.0
 * Recurrent networks: what an RNN descriptor and a data descriptor say, and
 * the layout of the weights. */
#ifndef MEMSIM_CAPTURE_CUDNN_RNN_H
#define MEMSIM_CAPTURE_CUDNN_RNN_H

#include "capture/cudnn/tensor.h"

struct rnn {
    uint32_t class; /* CLASS_RNN */
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t mode;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnRNNInputMode_t input_mode;
    cudnnDataType_t type, compute;
    cudnnMathType_t math;
    int32_t input, hidden, projection, layers; /* sizes */
    cudnnDropoutDescriptor_t dropout;
    uint32_t flags;
};

struct rnn_data {
    uint32_t class; /* CLASS_RNN_DATA */
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int length, batch, vector; /* length: of the longest sequence */
    int64_t tokens;            /* all the sequences' lengths together */
};

struct rnn *rnn_get(cudnnRNNDescriptor_t handle);
struct rnn_data *rnn_data_get(cudnnRNNDataDescriptor_t handle);

/* Products per cell: 4 for an LSTM, ... */
int rnn_gates(const struct rnn *rnn);
int rnn_directions(const struct rnn *rnn);

/* Elements of all weights and biases. */
int64_t rnn_weights(const struct rnn *rnn);

/* One matrix or bias: ROWS by COLUMNS at element OFFSET of the weights; 0 rows
 * where there is none. */
struct rnn_part {
    int64_t offset, rows, columns;
};

/* PSEUDO_LAYER counts directions singly; LINEAR as cudnnGetRNNWeightParams. */
struct rnn_part rnn_matrix(const struct rnn *rnn, int pseudo_layer, int linear);
struct rnn_part rnn_bias(const struct rnn *rnn, int pseudo_layer, int linear);

#endif
