// Exact alpha-entmax attention on its support, on a CPU: keys are compared once with a lower bound of their row's threshold,
// and everything after the scores runs over the few keys that are above it. Tiles of rows with a wide support keep all scores.
//
// Plain C++ behind a C interface, which sparselib.kernels.support calls: neither Python nor PyTorch is needed to compile it, and
// a compiled file serves every version of them. It is compiled once for each kind of processor.

#include <atomic>

#include "support_tiles.h"

namespace {

enum Status { DONE = 0, NOT_FINITE = 1 };

void set_threshold(const Tile& tile, int64_t r, bool empty, float most, float tau) {
    const float rounded = most + tau;
    tile.p.tau[tile.row(r)] = empty ? INFINITE : rounded;
    tile.p.rest[tile.row(r)] = empty ? 0.0f : tau - (rounded - most);
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
        const float tau = empty ? 0 : threshold(x, columns, most, p.power, scratch.survivors[r].bound - most);
        set_threshold(tile, r, empty, most, tau);
        const float shift = empty ? 0 : most;
        for (int64_t i = 0; i < columns; i += LANES)
            store(x + i, power_of(positive_part(load(x + i) - shift - tau), p.power));
    }
    float* output = p.output + tile.row(0) * p.value_width;
    bool add = false;
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

struct Workspace {
    std::vector<float> numbers;
    float *weights, *slopes, *dots;
    explicit Workspace(int64_t list) : numbers(3 * list) {
        weights = numbers.data(), slopes = weights + list, dots = slopes + list;
    }
};

// Turn u [count] into weights, and products dP [count] into scale * dS; entries behind the end must be 0 up to LANES.
void gradient_of_scores(const Problem& p, int64_t count, const float* u, float* weights, float* slopes, float* dots) {
    Vector below = {}, total = {};
    for (int64_t i = 0; i < count; i += LANES) {
        const Vector positive = load(u + i), slope = power_of(positive, p.power - 1);
        store(slopes + i, slope), store(weights + i, slope * positive);
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
        tile.multiply(scratch.queries.data(), p.width, keys, s, scratch.scores, scratch.row);
        tile.multiply(tile.grad(), p.grad_strides.row, values, s, scratch.products, scratch.row);
        tile.hide(s, scratch.scores, scratch.row);
        scratch.segments.push_back(s), columns += s.columns;
    });
    for (int64_t r = 0; r < tile.rows; ++r) {
        float* x = scratch.scores + r * scratch.row;
        const float tau = p.tau[tile.row(r)], rest = p.rest[tile.row(r)];
        for (int64_t i = 0; i < columns; i += LANES) store(x + i, positive_part(load(x + i) - tau - rest));
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

extern "C" {

int64_t support_size() { return sizeof(Problem); }

int64_t support_tiles(const Problem* problem) { return problem->batch * problem->heads * Tile::per_head(*problem); }

// Return a Status; output, tau and rest are set if it is DONE.
int support_forward(const Problem* problem) {
    const Problem& p = *problem;
    Panels keys(p.batch * p.kv_heads, p.keys, p.width);
    const int64_t tiles = Tile::per_head(p), panels = p.batch * p.kv_heads * keys.panels;
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
