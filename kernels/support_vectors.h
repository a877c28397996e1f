// Vectors of the processor that this file is compiled for, small matrix products, and sums over lists of rows.

#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS_AT_ONCE = 8;
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS_AT_ONCE = 4;
#else
constexpr int LANES = 4, ROWS_AT_ONCE = 4;
#endif
// Columns of one small product, and keys of one panel of transposed keys.
constexpr int PANEL = 2 * LANES;

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

inline Vector load(const float* x) { return *reinterpret_cast<const Vector*>(x); }
inline void store(float* x, Vector value) { *reinterpret_cast<Vector*>(x) = value; }
inline Vector positive_part(Vector x) { return x <= 0 ? Vector{} : x; }  // NaN stays

inline float sum(Vector x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(reinterpret_cast<__m512&>(x));
#else
    float total = 0;
    for (int i = 0; i < LANES; ++i) total += x[i];
    return total;
#endif
}

// Bits of the lanes that are above a bound, or NaN.
inline unsigned above(const float* x, float bound) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(bound), _CMP_NLE_UQ);
#elif defined(__AVX2__)
    return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(bound), _CMP_NLE_UQ));
#else
    unsigned bits = 0;
    for (int i = 0; i < LANES; ++i) bits |= unsigned(!(x[i] <= bound)) << i;
    return bits;
#endif
}

// c [M, N * LANES] = or += a [M, depth] @ b [depth, N * LANES]; a is read with two strides.
template <int M, int N>
inline void product_at_once(int64_t depth, const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                            float* c, int64_t c_row, bool add) {
    Vector sums[M][N] = {};
    for (int64_t d = 0; d < depth; ++d) {
        Vector right[N];
#pragma GCC unroll 2
        for (int n = 0; n < N; ++n) right[n] = load(b + d * b_row + n * LANES);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const float left = a[m * a_row + d * a_column];
#pragma GCC unroll 2
            for (int n = 0; n < N; ++n) sums[m][n] += left * right[n];
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
        for (int n = 0; n < N; ++n) {
            float* place = c + m * c_row + n * LANES;
            store(place, add ? load(place) + sums[m][n] : sums[m][n]);
        }
}

template <int N>
inline void product_of_rows(int64_t rows, int64_t depth, const float* a, int64_t a_row, int64_t a_column, const float* b,
                            int64_t b_row, float* c, int64_t c_row, bool add) {
    int64_t r = 0;
    for (; r + ROWS_AT_ONCE <= rows; r += ROWS_AT_ONCE)
        product_at_once<ROWS_AT_ONCE, N>(depth, a + r * a_row, a_row, a_column, b, b_row, c + r * c_row, c_row, add);
    for (; r < rows; ++r) product_at_once<1, N>(depth, a + r * a_row, a_row, a_column, b, b_row, c + r * c_row, c_row, add);
}

// c [rows, columns] = or += a [rows, depth] @ b [depth, columns], for a multiple of LANES columns.
inline void product(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_row, int64_t a_column,
                    const float* b, int64_t b_row, float* c, int64_t c_row, bool add) {
    int64_t column = 0;
    for (; column + PANEL <= columns; column += PANEL)
        product_of_rows<2>(rows, depth, a, a_row, a_column, b + column, b_row, c + column, c_row, add);
    for (; column < columns; column += LANES)
        product_of_rows<1>(rows, depth, a, a_row, a_column, b + column, b_row, c + column, c_row, add);
}

// Vectors of N * LANES numbers of a matrix's rows j[0], ..., j[count - 1].
template <int N>
struct Listed {
    // dots[i] += <x, matrix[j[i]]>
    static void dots(int64_t count, const int32_t* j, const float* x, const float* matrix, int64_t row, float* dots) {
        Vector left[N];
        for (int n = 0; n < N; ++n) left[n] = load(x + n * LANES);
        for (int64_t i = 0; i < count; ++i) {
            const float* right = matrix + j[i] * row;
            Vector total = left[0] * load(right);
            for (int n = 1; n < N; ++n) total += left[n] * load(right + n * LANES);
            dots[i] += sum(total);
        }
    }
    // result = sum of factor[i] * matrix[j[i]]
    static void combine(int64_t count, const int32_t* j, const float* factor, const float* matrix, int64_t row, float* result) {
        Vector total[N] = {};
        for (int64_t i = 0; i < count; ++i)
            for (int n = 0; n < N; ++n) total[n] += factor[i] * load(matrix + j[i] * row + n * LANES);
        for (int n = 0; n < N; ++n) store(result + n * LANES, total[n]);
    }
    // matrix[j[i]] += factor[i] * x
    static void scatter(int64_t count, const int32_t* j, const float* factor, const float* x, float* matrix, int64_t row) {
        Vector left[N];
        for (int n = 0; n < N; ++n) left[n] = load(x + n * LANES);
        for (int64_t i = 0; i < count; ++i)
            for (int n = 0; n < N; ++n) {
                float* place = matrix + j[i] * row + n * LANES;
                store(place, load(place) + factor[i] * left[n]);
            }
    }
};

// Call run(Listed<N>(), first) for slabs of four vectors and then of one, until all `width` numbers are covered.
template <class Run>
inline void in_slabs(int64_t width, Run run) {
    int64_t first = 0;
    for (; first + 4 * LANES <= width; first += 4 * LANES) run(Listed<4>(), first);
    for (; first < width; first += LANES) run(Listed<1>(), first);
}

}  // namespace
