// The backward pass of one tile, over kept lists, lists that are collected again, or all scores.

#pragma once

#include "support_tiles.h"

namespace {

struct Workspace {
    std::vector<float> numbers;
    float *weights, *slopes, *dots;
    explicit Workspace(int64_t list) : numbers(3 * list) {
        weights = numbers.data(), slopes = weights + list, dots = slopes + list;
    }
};

// Turn u [count], or the weights of softmax, into weights, and products dP [count] into scale * dS; entries behind the end must be 0 up to LANES.
void gradient_of_scores(const Problem& p, int64_t count, const float* u, float* weights, float* slopes, float* dots) {
    Vector below = {}, total = {};
    for (int64_t i = 0; i < count; i += LANES) {
        const Vector positive = load(u + i), slope = p.is_softmax() ? positive : power_of(positive, p.power - 1);
        store(slopes + i, slope), store(weights + i, p.is_softmax() ? slope : slope * positive);
        below += slope, total += slope * load(dots + i);
    }
    const float mean = sum(total) / std::max(sum(below), std::numeric_limits<float>::min());
    for (int64_t i = 0; i < count; i += LANES) store(dots + i, load(slopes + i) * (load(dots + i) - mean) * p.scale);
}

void backward_of_list(const Tile& tile, int64_t r, int64_t count, const int32_t* j, const float* u, float* dk, float* dv,
                      Workspace& work) {
    const Problem& p = tile.p;
    const float *q = tile.q() + r * p.q_strides.row, *grad = tile.grad() + r * p.grad_strides.row;
    // Numbers behind the end of a list are those of the next one, so copy it.
    std::copy(u, u + count, work.weights);
    std::fill(work.weights + count, work.weights + (count + LANES - 1) / LANES * LANES, 0.0f);
    std::fill(work.dots, work.dots + count + LANES, 0.0f);
    in_slabs(p.value_width, [&](auto slab, int64_t first) {
        slab.dots(count, j, grad + first, tile.v() + first, p.v_strides.row, work.dots);
    });
    gradient_of_scores(p, count, work.weights, work.weights, work.slopes, work.dots);
    in_slabs(p.width, [&](auto slab, int64_t first) {
        slab.combine(count, j, work.dots, tile.k() + first, p.k_strides.row, p.dq + tile.row(r) * p.width + first);
        slab.scatter(count, j, work.dots, q + first, dk + first, p.width);
    });
    in_slabs(p.value_width, [&](auto slab, int64_t first) {
        slab.scatter(count, j, work.weights, grad + first, dv + first, p.value_width);
    });
}

void backward_of_scores(const Tile& tile, Scratch& scratch, Panels& keys, Panels& values, float* dk, float* dv,
                        Workspace& work) {
    const Problem& p = tile.p;
    int64_t columns = 0;
    scratch.segments.clear();
    tile.each_range([&](int64_t j, int64_t end) {
        const Segment s = tile.segment(j, end, columns);
        tile.score(scratch, keys, s);
        tile.multiply(tile.grad(), p.grad_strides.row, values, s, scratch.products, scratch.row);
        tile.hide(s, scratch.scores, scratch.row);
        scratch.segments.push_back(s), columns += s.columns;
    });
    for (int64_t r = 0; r < tile.rows; ++r) {
        float* x = scratch.scores + r * scratch.row;
        const float tau = p.tau[tile.row(r)], rest = p.rest[tile.row(r)];
        for (int64_t i = 0; i < columns; i += LANES) {
            const Vector above = load(x + i) - tau - rest;
            store(x + i, p.is_softmax() ? exponential(above) : positive_part(above));
        }
        gradient_of_scores(p, columns, x, x, work.slopes, scratch.products + r * scratch.row);
    }
    float* dq = p.dq + tile.row(0) * p.width;
    std::fill(dq, dq + tile.rows * p.width, 0.0f);
    for (const Segment& s : scratch.segments) {
        const int64_t column = s.column + s.lead(), count = s.end - s.first;
        const float *ds = scratch.products + column, *weights = scratch.scores + column;
        product(tile.rows, p.width, count, ds, scratch.row, 1, tile.k() + s.first * p.k_strides.row, p.k_strides.row, dq,
                p.width, true);
        product(count, p.width, tile.rows, ds, 1, scratch.row, tile.q(), p.q_strides.row, dk + s.first * p.width, p.width, true);
        product(count, p.value_width, tile.rows, weights, 1, scratch.row, tile.grad(), p.grad_strides.row,
                dv + s.first * p.value_width, p.value_width, true);
    }
}

// Collect the rows' lists again, now with known thresholds.
void collect_again(const Tile& tile, Scratch& scratch, Panels& keys) {
    for (int64_t r = 0; r < tile.rows; ++r) {
        const float tau = tile.p.tau[tile.row(r)];
        scratch.survivors[r].start(tau - 2e-6f - 1e-6f * std::fabs(tau));
        if (tau == INFINITE) scratch.survivors[r].start(INFINITE);
    }
    tile.collect(scratch, keys, true);
    for (int64_t r = 0; r < tile.rows; ++r) {
        Survivors& some = scratch.survivors[r];
        some.pad();
        const float tau = tile.p.tau[tile.row(r)], rest = tile.p.rest[tile.row(r)];
        for (int64_t i = 0; i < some.padded(); i += LANES) store(some.x + i, load(some.x + i) - tau - rest);
        some.drop(0.0f);
    }
}

}  // namespace
