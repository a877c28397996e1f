// One attention, as sparselib.kernels.support passes it.

#pragma once

#include <cstdint>

namespace {

struct Strides {
    int64_t batch, head, row;
};

struct Problem {
    const float *q, *k, *v, *grad;
    Strides q_strides, k_strides, v_strides, grad_strides;
    int64_t batch, heads, kv_heads, queries, keys, width, value_width;
    // Visited key blocks of each query block; without lists, all.
    const int32_t *counts, *indices;
    int64_t counts_batch, counts_head, list_width, q_block, k_block;
    const int64_t* lengths;
    // Bytes [queries, keys] of each head, 1 where a query may attend; without mask, all.
    const uint8_t* mask;
    Strides mask_strides;
    int64_t causal, threads, parts, keep;
    float power, factor, scale;  // power is 1 / (alpha - 1), or 0 for softmax
    float *output, *tau, *rest;
    // Per row: the kept keys with weight, or one of the codes below. Per tile: memory with these keys and their u.
    int32_t* kept;
    void** memory;
    int32_t* kept_j;
    float* kept_u;
    float *dq, *dk, *dv;

    bool is_softmax() const { return power == 0; }
};

}  // namespace
