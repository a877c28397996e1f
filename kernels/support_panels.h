// Keys and values as panels of transposed rows, and whether all numbers are finite.

#pragma once

#include <algorithm>
#include <vector>

#include "support_vectors.h"

namespace {

// Panels of transposed rows: panel i has PANEL rows of `x`, as [width, PANEL].
struct Panels {
    std::vector<float> numbers;
    int64_t rows, width, panels;

    Panels(int64_t heads, int64_t rows, int64_t width)
        : numbers(heads * ((rows + PANEL - 1) / PANEL) * width * PANEL), rows(rows), width(width),
          panels((rows + PANEL - 1) / PANEL) {}
    float* of(int64_t head, int64_t panel) { return numbers.data() + (head * panels + panel) * width * PANEL; }

    void fill(int64_t head, int64_t panel, const float* x, int64_t row) {
        float* result = of(head, panel);
        const int64_t count = std::min<int64_t>(PANEL, rows - panel * PANEL);
        x += panel * PANEL * row;
        for (int64_t d = 0; d < width; ++d)
            for (int64_t i = 0; i < PANEL; ++i) result[d * PANEL + i] = i < count ? x[i * row + d] : 0.0f;
    }
};

inline bool is_finite(const float* x, int64_t rows, int64_t width, int64_t row) {
    Vector zeros = {};
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t d = 0; d < width; d += LANES) zeros += load(x + r * row + d) * 0.0f;
    return sum(zeros) == 0;
}

}  // namespace
