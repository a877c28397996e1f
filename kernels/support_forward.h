// The forward pass of one tile: thresholds, weights and output from all scores or from lists, and what is kept of them.

#pragma once

#include "support_tiles.h"

namespace {

void set_threshold(const Tile& tile, int64_t r, bool empty, float most, float tau) {
    const float rounded = most + tau;
    tile.p.tau[tile.row(r)] = empty ? INFINITE : rounded;
    tile.p.rest[tile.row(r)] = empty ? 0.0f : tau - (rounded - most);
}

// Turn scores [columns] into weights.
void softmax(const Tile& tile, int64_t r, float* x, int64_t columns, float most, bool empty) {
    Vector totals = {};
    for (int64_t i = 0; i < columns; i += LANES) {
        const Vector weight = exponential(load(x + i) - most);
        store(x + i, weight), totals += weight;
    }
    const float total = empty ? 1 : sum(totals);
    set_threshold(tile, r, empty, most, std::log(total));
    for (int64_t i = 0; i < columns; i += LANES) store(x + i, load(x + i) * (1 / total));
}

bool finish_scores(const Tile& tile, Scratch& scratch) {
    const Problem& p = tile.p;
    const int64_t columns = tile.columns(scratch);
    bool finite = true;
    for (int64_t r = 0; r < tile.rows; ++r) {
        float* x = scratch.scores + r * scratch.row;
        const float most = largest(x, columns);
        finite &= most < INFINITE;
        const bool empty = most == -INFINITE && std::none_of(x, x + columns, [](float score) { return std::isnan(score); });
        const float shift = empty ? 0 : most;
        if (p.is_softmax()) {
            softmax(tile, r, x, columns, shift, empty);
            continue;
        }
        const float tau = empty ? 0 : threshold(x, columns, most, p.power, scratch.survivors[r].bound - most);
        set_threshold(tile, r, empty, most, tau);
        for (int64_t i = 0; i < columns; i += LANES)
            store(x + i, power_of(positive_part(load(x + i) - shift - tau), p.power));
    }
    float* output = p.output + tile.row(0) * p.value_width;
    bool add = false;
    if (scratch.segments.empty()) std::fill(output, output + tile.rows * p.value_width, 0.0f);
    for (const Segment& s : scratch.segments) {
        product(tile.rows, p.value_width, s.end - s.first, scratch.scores + s.column + s.lead(), scratch.row, 1,
                tile.v() + s.first * p.v_strides.row, p.v_strides.row, output, p.value_width, add);
        add = true;
    }
    return finite;
}

bool finish_lists(const Tile& tile, Scratch& scratch) {
    const Problem& p = tile.p;
    bool finite = true;
    for (int64_t r = 0; r < tile.rows; ++r) {
        Survivors& some = scratch.survivors[r];
        const float most = some.pad();
        finite &= most < INFINITE;
        const bool empty = some.count == 0;
        float tau = 0;
        if (!empty) {
            tau = threshold(some.x, some.padded(), most, p.power, some.bound - most);
            for (int64_t i = 0; i < some.padded(); i += LANES) store(some.x + i, load(some.x + i) - most - tau);
            some.drop(0.0f);
        }
        set_threshold(tile, r, empty, most, tau);
        float* weights = scratch.scores;
        for (int64_t i = 0; i < some.count; i += LANES) store(weights + i, power_of(load(some.x + i), p.power));
        in_slabs(p.value_width, [&](auto slab, int64_t first) {
            slab.combine(some.count, some.j, weights, tile.v() + first, p.v_strides.row,
                         p.output + tile.row(r) * p.value_width + first);
        });
    }
    return finite;
}

// Keep the lists of a tile for the backward pass, or a code.
void keep(const Tile& tile, const Scratch& scratch, bool dense, void** memory) {
    int32_t* kept = tile.p.kept + tile.row(0);
    int64_t total = 0;
    for (int64_t r = 0; r < tile.rows; ++r) total += kept[r] = int32_t(scratch.survivors[r].count);
    if (dense || total > MOST_KEPT * tile.rows) {
        std::fill(kept, kept + tile.rows, dense ? ALL_SCORES : LISTS);
        return;
    }
    *memory = std::malloc(std::max<int64_t>(1, total) * (sizeof(int32_t) + sizeof(float)));
    int32_t* j = static_cast<int32_t*>(*memory);
    float* u = reinterpret_cast<float*>(j + total);
    for (int64_t r = 0; r < tile.rows; ++r) {
        const Survivors& some = scratch.survivors[r];
        j = std::copy(some.j, some.j + some.count, j), u = std::copy(some.x, some.x + some.count, u);
    }
}

}  // namespace
