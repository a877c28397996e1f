// Exact alpha-entmax attention on its support, on a CPU: keys are compared once with a lower bound of their row's threshold,
// and everything after the scores runs over the few keys that are above it. Tiles of rows with a wide support keep all scores.
//
// Plain C++ behind a C interface, which sparselib.kernels.support calls: neither Python nor PyTorch is needed to compile it, and
// a compiled file serves every version of them. It is compiled once for each kind of processor.

#include <atomic>

#include "support_backward.h"
#include "support_forward.h"

namespace {

enum Status { DONE = 0, NOT_FINITE = 1 };

}  // namespace

extern "C" {

int64_t support_size() { return sizeof(Problem); }

int64_t support_tiles(const Problem* problem) { return problem->batch * problem->heads * Tile::per_head(*problem); }

// Return a Status; output, tau and rest are set if it is DONE.
int support_forward(const Problem* problem) {
    const Problem& p = *problem;
    // Values without weight are read only to find infinite and NaN entries, and not at all for a few queries.
    const bool few = p.queries <= FEW_QUERIES;
    Panels keys(few ? 0 : p.batch * p.kv_heads, p.keys, p.width);
    const int64_t tiles = Tile::per_head(p), panels = few ? 0 : p.batch * p.kv_heads * keys.panels;
    std::atomic<bool> finite{true};
#pragma omp parallel num_threads(int(p.threads))
    {
        Scratch scratch(p, false);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < panels; ++i) {
            const int64_t head = i / keys.panels, b = head / p.kv_heads, g = head % p.kv_heads, first = i % keys.panels * PANEL;
            keys.fill(head, i % keys.panels, Tile::at(p.k, p.k_strides, b, g, 0), p.k_strides.row);
            const bool all = is_finite(keys.of(head, i % keys.panels), p.width, PANEL, PANEL) &&
                             is_finite(Tile::at(p.v, p.v_strides, b, g, first), std::min<int64_t>(PANEL, p.keys - first),
                                       p.value_width, p.v_strides.row);
            if (!all) finite = false;
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = 0; i < p.batch * p.heads * tiles; ++i) {
            const Tile tile(p, i / tiles / p.heads, i / tiles % p.heads, i % tiles);
            if (tile.rows == 0) continue;
            if (!finite) continue;
            tile.scale_queries(scratch.queries.data());
            for (Survivors& some : scratch.survivors) some.start(-INFINITE);
            const bool dense = tile.collect(scratch, keys, false);
            if (!(dense ? finish_scores(tile, scratch) : finish_lists(tile, scratch))) finite = false;
            if (p.keep) keep(tile, scratch, dense, p.memory + i);
        }
    }
    return finite ? DONE : NOT_FINITE;
}

// Free the memory of a forward pass that did not finish.
void support_free(const Problem* problem) {
    if (!problem->keep) return;
    for (int64_t i = 0; i < support_tiles(problem); ++i) std::free(problem->memory[i]);
}

// Move the kept lists into `kept_j` and `kept_u`, tile by tile, and free their memory.
void support_collect(const Problem* problem) {
    const Problem& p = *problem;
    int32_t* j = p.kept_j;
    float* u = p.kept_u;
    const int64_t tiles = Tile::per_head(p);
    for (int64_t i = 0; i < p.batch * p.heads * tiles; ++i) {
        if (!p.memory[i]) continue;
        const Tile tile(p, i / tiles / p.heads, i / tiles % p.heads, i % tiles);
        int64_t total = 0;
        for (int64_t r = 0; r < tile.rows; ++r) total += p.kept[tile.row(r)];
        const int32_t* from = static_cast<const int32_t*>(p.memory[i]);
        j = std::copy(from, from + total, j);
        u = std::copy(reinterpret_cast<const float*>(from + total), reinterpret_cast<const float*>(from + total) + total, u);
        std::free(p.memory[i]);
    }
}

// Set dq, and add to dk and dv [parts, B, G, K, *]. The result depends on the number of parts, and not on that of threads.
int support_backward(const Problem* problem) {
    const Problem& p = *problem;
    const int64_t tiles = Tile::per_head(p), kv_heads = p.batch * p.kv_heads, group = p.heads / p.kv_heads;
    std::vector<int64_t> start(p.batch * p.heads * tiles);
    int64_t total = 0;
    bool again = false, dense = false;
    for (int64_t i = 0; i < p.batch * p.heads * tiles; ++i) {
        const Tile tile(p, i / tiles / p.heads, i / tiles % p.heads, i % tiles);
        start[i] = total;
        for (int64_t r = 0; r < tile.rows; ++r) {
            const int32_t kept = p.kept[tile.row(r)];
            total += std::max(kept, 0), again |= kept < 0, dense |= kept == ALL_SCORES;
        }
    }
    Panels keys(again ? kv_heads : 0, p.keys, p.width), values(dense ? kv_heads : 0, p.keys, p.value_width);
    std::atomic<bool> finite{true};
#pragma omp parallel num_threads(int(p.threads))
    {
        Scratch scratch(p, dense);
        Workspace work(std::max(scratch.list, scratch.row) + LANES);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < kv_heads * keys.panels; ++i) {
            const int64_t head = i / keys.panels, b = head / p.kv_heads, g = head % p.kv_heads;
            if (again) keys.fill(head, i % keys.panels, Tile::at(p.k, p.k_strides, b, g, 0), p.k_strides.row);
            if (dense) values.fill(head, i % keys.panels, Tile::at(p.v, p.v_strides, b, g, 0), p.v_strides.row);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < kv_heads * p.parts; ++i) {
            const int64_t head = i / p.parts, part = i % p.parts, place = part * kv_heads + head;
            float *dk = p.dk + place * p.keys * p.width, *dv = p.dv + place * p.keys * p.value_width;
            for (int64_t t = part; t < group * tiles; t += p.parts) {
                const int64_t h = head % p.kv_heads * group + t / tiles;
                const Tile tile(p, head / p.kv_heads, h, t % tiles);
                if (tile.rows == 0) continue;
                if (!is_finite(tile.grad(), tile.rows, p.value_width, p.grad_strides.row)) finite = false;
                if (!finite) continue;
                const int32_t* kept = p.kept + tile.row(0);
                if (kept[0] < 0) tile.scale_queries(scratch.queries.data());
                if (kept[0] == ALL_SCORES) {
                    backward_of_scores(tile, scratch, keys, values, dk, dv, work);
                    continue;
                }
                if (kept[0] == LISTS) collect_again(tile, scratch, keys);
                int64_t place_in_lists = start[(head / p.kv_heads * p.heads + h) * tiles + t % tiles];
                for (int64_t r = 0; r < tile.rows; ++r) {
                    if (kept[0] == LISTS) {
                        const Survivors& some = scratch.survivors[r];
                        backward_of_list(tile, r, some.count, some.j, some.x, dk, dv, work);
                        continue;
                    }
                    backward_of_list(tile, r, kept[r], p.kept_j + place_in_lists, p.kept_u + place_in_lists, dk, dv, work);
                    place_in_lists += kept[r];
                }
            }
        }
    }
    return finite ? DONE : NOT_FINITE;
}
}
