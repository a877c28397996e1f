// One row of scores: the keys above a bound, the threshold of alpha-entmax, and weights. Scores are multiplied by alpha - 1.
//
// With a = 1 / (alpha - 1), weights are (x - tau)_+ ** a. The norm ||(x - tau)_+||_a is decreasing and convex in tau, so that
// Newton's iteration from a lower bound converges to the root from below. More keys only raise the root. The threshold of some
// keys is therefore a lower bound for all keys, and so is the largest score less 1. Softmax has a = 0 here, and the weights
// exp(x - tau) of all keys.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "support_vectors.h"

namespace {

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr int MOST_STEPS = 60;
// Newton's iteration squares its error, so that a smaller step than this one is the last where the second derivative exists.
constexpr float LAST_STEP = 3e-5f, LAST_LINEAR_STEP = 1e-7f;
// New keys of a row after which its bound is raised.
constexpr int64_t FRESH = 96;

// u ** power for u >= 0; 0 where u is 0, for any power.
inline Vector power_of(Vector u, float power) {
    if (power == 1) return u;
    if (power == 2) return u * u;
    Vector result = {};
    for (int i = 0; i < LANES; ++i)
        if (!(u[i] <= 0)) result[i] = power == 0 ? 1.0f : std::pow(u[i], power);
    return result;
}

typedef int32_t Integers __attribute__((vector_size(LANES * sizeof(int32_t))));

// exp(x) for x <= 0: 2 ** k * exp(rest) with |rest| <= log(2) / 2, whose polynomial has a relative error of 5e-9.
inline Vector exponential(Vector x) {
    constexpr float SHIFT = 12582912.0f;  // adding it rounds to an integer, which is in the lowest bits
    const Vector bounded = x < -87.0f ? Vector{} - 87.0f : x, shifted = bounded * 1.44269504f + SHIFT, k = shifted - SHIFT;
    const Vector rest = bounded - k * 0.693359375f + k * 2.12194440e-4f;
    Vector sum = Vector{} + 1.0f / 5040;
    for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) sum = sum * rest + factor;
    const Integers power = ((Integers)shifted << 23) + (127 << 23);
    return x < -87.0f ? Vector{} : sum * (Vector)power;
}

inline float largest(const float* x, int64_t count) {
    float result = -INFINITE;
    int64_t i = 0;
    if (count >= LANES) {
        Vector most = load(x);
        for (; i + LANES <= count; i += LANES) {
            const Vector some = load(x + i);
            most = some > most ? some : most;
        }
        for (int lane = 0; lane < LANES; ++lane) result = std::max(result, most[lane]);
    }
    for (; i < count; ++i) result = std::max(result, x[i]);
    return result;
}

// Newton's iteration from tau, for x [count] less `most`; count is a multiple of PANEL. POWER is `power` if it is 1 or 2, or 0.
template <int POWER>
inline float iterate(const float* x, int64_t count, float most, float power, float tau, int steps) {
    for (int step = 0; step < steps; ++step) {
        Vector below[2] = {}, total[2] = {};
        for (int64_t i = 0; i < count; i += PANEL)
            for (int n = 0; n < 2; ++n) {
                const Vector u = positive_part(load(x + i + n * LANES) - most - tau);
                const Vector lower = power_of(u, POWER ? POWER - 1 : power - 1);
                below[n] += lower;
                total[n] += lower * u;
            }
        const float all = sum(total[0] + total[1]), slope = sum(below[0] + below[1]);
        const float change = POWER == 2 ? (all - std::sqrt(all)) / slope
                                        : (all - (POWER == 1 ? 1.0f : std::pow(all, 1 - 1 / power))) / slope;
        tau += change;
        if (!(std::fabs(change) > (POWER == 2 ? LAST_STEP : LAST_LINEAR_STEP))) break;
    }
    return tau;
}

// Threshold, relative to `most`, of x [count], whose largest entry is `most`, after some steps from a lower bound.
inline float threshold(const float* x, int64_t count, float most, float power, float start, int steps = MOST_STEPS) {
    const float tau = std::max(start, -1.0f);
    if (power == 2) return iterate<2>(x, count, most, power, tau, steps);
    if (power == 1) return iterate<1>(x, count, most, power, tau, steps);
    return iterate<0>(x, count, most, power, tau, steps);
}

// Keys of one row whose scores are above a lower bound of its threshold, and room for PANEL more.
struct Survivors {
    float* x;
    int32_t* j;
    int64_t count, fresh;
    float bound;

    void start(float lower_bound) { count = fresh = 0, bound = lower_bound; }

    // Append those of scores [more] of the keys first, first + 1, ... that are above the bound; reads up to LANES behind the end.
    void append(const float* scores, int64_t more, int64_t first) {
        const int64_t before = count;
        for (int64_t i = 0; i < more; i += 4 * LANES) {
            unsigned bits[4], any = 0;
            for (int n = 0; n < 4; ++n) {
                const int64_t left = more - i - n * LANES;
                bits[n] = left > 0 ? above(scores + i + n * LANES, bound) : 0;
                if (left < LANES && left > 0) bits[n] &= (1u << left) - 1;
                any |= bits[n];
            }
            if (!any) continue;
            for (int n = 0; n < 4; ++n) keep(scores + i + n * LANES, bits[n], int32_t(first + i + n * LANES));
        }
        fresh += count - before;
    }

    // Raise the bound to the threshold of the keys so far, less a margin for rounding errors, and drop the keys below it.
    void tighten(float power) {
        const float most = pad();
        const float tau = threshold(x, padded(), most, power, bound - most, 4);
        fresh = 0;
        const float raised = most + tau - 2e-6f - 1e-6f * std::fabs(most);
        if (!(raised > bound)) return;
        bound = raised;
        drop(bound);
    }

    // Fill up to a multiple of PANEL, and return the largest score.
    float pad() {
        for (int64_t i = count; i < padded(); ++i) x[i] = -INFINITE;
        return largest(x, count);
    }
    int64_t padded() const { return (count + PANEL - 1) / PANEL * PANEL; }

    void drop(float lower_bound) {
        const int64_t before = count, all = padded();
        count = 0;
        for (int64_t i = 0; i < all; i += LANES) {
            const unsigned bits = above(x + i, lower_bound);
            if (!bits) continue;
            // Lanes are read before their places are overwritten, since kept entries only move to the front.
#if defined(__AVX512F__)
            const __m512 some = _mm512_maskz_compress_ps(bits, _mm512_loadu_ps(x + i));
            const __m512i keys = _mm512_maskz_compress_epi32(bits, _mm512_loadu_si512(j + i));
            _mm512_storeu_ps(x + count, some);
            _mm512_storeu_si512(j + count, keys);
            count += __builtin_popcount(bits);
#else
            for (unsigned rest = bits; rest; rest &= rest - 1) {
                const int64_t place = i + __builtin_ctz(rest);
                x[count] = x[place], j[count++] = j[place];
            }
#endif
        }
        count = std::min(count, before);  // in a row of NaN, the padding is NaN, too
    }

private:
    void keep(const float* scores, unsigned bits, int32_t first) {
#if defined(__AVX512F__)
        if (!bits) return;
        const __m512i keys = _mm512_add_epi32(
            _mm512_set1_epi32(first), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm512_storeu_ps(x + count, _mm512_maskz_compress_ps(bits, _mm512_loadu_ps(scores)));
        _mm512_storeu_si512(j + count, _mm512_maskz_compress_epi32(bits, keys));
        count += __builtin_popcount(bits);
#else
        for (; bits; bits &= bits - 1) {
            const int lane = __builtin_ctz(bits);
            x[count] = scores[lane], j[count++] = first + lane;
        }
#endif
    }
};

}  // namespace
