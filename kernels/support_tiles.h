// Tiles of query rows: the keys that they may attend to, and their scores.

#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "support_panels.h"
#include "support_problem.h"
#include "support_rows.h"

namespace {

// Codes of tiles that the backward pass computes again, from all scores or from lists.
constexpr int32_t ALL_SCORES = -1, LISTS = -2;
constexpr int64_t ROWS = 32;
// Keys after which a tile's support is estimated, and the share of them above which it keeps all scores.
constexpr int64_t ESTIMATED_FROM = 256;
constexpr double DENSE_SHARE = 0.7;
// Queries up to which it takes less time to read the keys as they are than to transpose them.
constexpr int64_t FEW_QUERIES = 4;
// Mean number of keys per row that a tile keeps for the backward pass.
constexpr int64_t MOST_KEPT = 256;

struct Segment {
    int64_t first, end, panel, column, columns;
    // Columns of padding before the first key.
    int64_t lead() const { return first - panel * PANEL; }
};

// Upper bound of the columns of a tile's segments.
inline int64_t most_columns(const Problem& p) {
    const int64_t all = (p.keys + PANEL - 1) / PANEL * PANEL;
    return p.counts ? p.list_width * ((p.k_block + PANEL - 1) / PANEL + 1) * PANEL : all;
}

// A thread's memory.
struct Scratch {
    int64_t row, list;
    std::vector<float> queries;
    float *scores, *products, *listed;
    int32_t* keys;
    Survivors survivors[ROWS];
    std::vector<Segment> segments;

    Scratch(const Problem& p, bool backward) : row((most_columns(p) + 63) / 64 * 64 + 16), queries(ROWS * p.width) {
        list = std::min(row, p.keys) + 4 * PANEL;
        scores = allocate<float>(ROWS * row + 4 * PANEL);
        products = backward ? allocate<float>(ROWS * row + 4 * PANEL) : nullptr;
        listed = allocate<float>(ROWS * list);
        keys = allocate<int32_t>(ROWS * list);
        for (int64_t r = 0; r < ROWS; ++r) survivors[r].x = listed + r * list, survivors[r].j = keys + r * list;
    }
    Scratch(const Scratch&) = delete;
    ~Scratch() {
        for (void* memory : {(void*)scores, (void*)products, (void*)listed, (void*)keys}) std::free(memory);
    }
    template <class T>
    static T* allocate(int64_t count) {
        return static_cast<T*>(std::malloc(count * sizeof(T)));
    }
};

// Up to ROWS rows of one query block of one head.
struct Tile {
    const Problem& p;
    int64_t b, h, g, block, first, rows;
    int64_t limit[ROWS], most_limit = 0;

    static int64_t per_block(const Problem& p) { return (p.q_block + ROWS - 1) / ROWS; }
    static int64_t per_head(const Problem& p) { return (p.queries + p.q_block - 1) / p.q_block * per_block(p); }

    Tile(const Problem& p, int64_t b, int64_t h, int64_t tile) : p(p), b(b), h(h), g(h / (p.heads / p.kv_heads)) {
        block = tile / per_block(p);
        first = block * p.q_block + tile % per_block(p) * ROWS;
        rows = std::max<int64_t>(0, std::min({ROWS, (block + 1) * p.q_block - first, p.queries - first}));
        const int64_t length = p.lengths ? std::max<int64_t>(0, std::min(p.lengths[b], p.keys)) : p.keys;
        for (int64_t r = 0; r < rows; ++r) {
            limit[r] = p.lengths && first + r >= length ? 0 : p.causal ? std::min(length, first + r + 1) : length;
            most_limit = std::max(most_limit, limit[r]);
        }
    }
    int64_t row(int64_t r) const { return (b * p.heads + h) * p.queries + first + r; }
    int64_t kv_head() const { return b * p.kv_heads + g; }
    static const float* at(const float* x, const Strides& s, int64_t b, int64_t h, int64_t row) {
        return x + b * s.batch + h * s.head + row * s.row;
    }
    const float* q() const { return at(p.q, p.q_strides, b, h, first); }
    const float* k() const { return at(p.k, p.k_strides, b, g, 0); }
    const float* v() const { return at(p.v, p.v_strides, b, g, 0); }
    const float* grad() const { return at(p.grad, p.grad_strides, b, h, first); }

    // Row of the mask, or a null pointer.
    const uint8_t* mask(int64_t r) const {
        const Strides& s = p.mask_strides;
        return p.mask ? p.mask + b * s.batch + h * s.head + (first + r) * s.row : nullptr;
    }

    // Call visit(first key, end) for each range of keys that some row may attend to.
    template <class Visit>
    void each_range(Visit visit) const {
        const auto visit_shown = [&](int64_t j, int64_t end) {
            if (p.mask) shrink(j, end);
            if (j < end) visit(j, end);
        };
        if (!p.counts) {
            for (int64_t j = 0; j < most_limit; j += ESTIMATED_FROM) visit_shown(j, std::min(j + ESTIMATED_FROM, most_limit));
            return;
        }
        const int64_t list = b * p.counts_batch + h * p.counts_head + block;
        const int32_t* blocks = p.indices + list * p.list_width;
        for (int64_t i = 0; i < p.counts[list]; ++i) {
            const int64_t j = int64_t(blocks[i]) * p.k_block, end = std::min(j + p.k_block, most_limit);
            visit_shown(j, end);
        }
    }

    // Shrink a range of keys to those between the first and the last that the mask shows to some row.
    void shrink(int64_t& j, int64_t& end) const {
        int64_t low = end, high = j;
        for (int64_t r = 0; r < rows; ++r) {
            const uint8_t* shown = mask(r);
            if (const void* found = low > j ? std::memchr(shown + j, 1, low - j) : nullptr)
                low = static_cast<const uint8_t*>(found) - shown;
            if (const void* found = high < end ? memrchr(shown + high, 1, end - high) : nullptr)
                high = static_cast<const uint8_t*>(found) - shown + 1;
        }
        j = low, end = high;
    }

    void scale_queries(float* scaled) const {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t d = 0; d < p.width; ++d) scaled[r * p.width + d] = q()[r * p.q_strides.row + d] * p.factor;
    }

    Segment segment(int64_t j, int64_t end, int64_t column) const {
        const int64_t panel = j / PANEL;
        return {j, end, panel, column, ((end + PANEL - 1) / PANEL - panel) * PANEL};
    }

    // result[:, column of the segment] = left @ rows of the segment.T
    void multiply(const float* left, int64_t left_row, Panels& right, const Segment& s, float* result, int64_t row) const {
        for (int64_t i = 0; i < s.columns / PANEL; ++i)
            product(rows, PANEL, right.width, left, left_row, 1, right.of(kv_head(), s.panel + i), PANEL,
                    result + s.column + i * PANEL, row, false);
    }

    // Compute the scores of a segment.
    void score(Scratch& scratch, Panels& keys, const Segment& s) const {
        if (p.queries > FEW_QUERIES) {
            multiply(scratch.queries.data(), p.width, keys, s, scratch.scores, scratch.row);
            return;
        }
        for (int64_t j = s.first; j < s.end; ++j)
            for (int64_t r = 0; r < rows; ++r) {
                const float *left = scratch.queries.data() + r * p.width, *right = k() + j * p.k_strides.row;
                Vector total = {};
                for (int64_t d = 0; d < p.width; d += LANES) total += load(left + d) * load(right + d);
                scratch.scores[r * scratch.row + s.column + s.lead() + j - s.first] = sum(total);
            }
    }

    int64_t visible(int64_t r, const Segment& s) const { return std::max<int64_t>(0, std::min(s.end, limit[r]) - s.first); }

    // Hide what the mask hides from a row in scores [count] of the keys first, first + 1, ...
    void hide_masked(int64_t r, float* x, int64_t first_key, int64_t count) const {
        if (!p.mask) return;
        const uint8_t* shown = mask(r) + first_key;
        for (int64_t i = 0; i < count; ++i) x[i] = shown[i] ? x[i] : -INFINITE;
    }

    void hide(const Segment& s, float* scores, int64_t row) const {
        for (int64_t r = 0; r < rows; ++r) {
            float* x = scores + r * row + s.column;
            hide_masked(r, x + s.lead(), s.first, visible(r, s));
            std::fill(x, x + s.lead(), -INFINITE);
            std::fill(x + s.lead() + visible(r, s), x + s.columns, -INFINITE);
        }
    }

    // Collect the keys above each row's bound, raised on the way unless it is fixed. Return whether the tile has all scores
    // instead, because many keys are above.
    bool collect(Scratch& scratch, Panels& keys, bool fixed) const {
        bool dense = p.is_softmax(), decided = fixed || dense;
        int64_t column = 0, seen = 0, pairs = 0;
        scratch.segments.clear();
        each_range([&](int64_t j, int64_t end) {
            const Segment s = segment(j, end, decided && !dense ? 0 : column);
            score(scratch, keys, s);
            if (!decided || dense) scratch.segments.push_back(s), column += s.columns;
            if (dense) return;
            for (int64_t r = 0; r < rows; ++r) {
                float* x = scratch.scores + r * scratch.row + s.column + s.lead();
                Survivors& some = scratch.survivors[r];
                const int64_t count = visible(r, s);
                hide_masked(r, x, s.first, count);
                if (some.bound == -INFINITE && count) {
                    const float most = std::min(largest(x, count), std::numeric_limits<float>::max());
                    some.bound = most - 1 - 1e-6f * std::fabs(most);
                }
                some.append(x, count, j);
                if (!fixed && some.fresh >= FRESH) some.tighten(p.power);
                pairs += count;
            }
            seen += end - j;
            if (decided || seen < std::min(ESTIMATED_FROM, most_limit)) return;
            decided = true, dense = is_wide(scratch, pairs);
        });
        if (!decided) dense = is_wide(scratch, pairs);
        if (dense)
            for (const Segment& s : scratch.segments) hide(s, scratch.scores, scratch.row);
        return dense;
    }

    bool is_wide(Scratch& scratch, int64_t pairs) const {
        int64_t count = 0;
        for (int64_t r = 0; r < rows; ++r) count += scratch.survivors[r].count;
        return count > DENSE_SHARE * pairs;
    }

    int64_t columns(const Scratch& scratch) const {
        return scratch.segments.empty() ? 0 : scratch.segments.back().column + scratch.segments.back().columns;
    }
};

}  // namespace
