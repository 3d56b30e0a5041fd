// Products of matrices whose elements lie wherever an addressing says: tiles in shared memory, blocks of results in registers.
//
// An addressing A finds elements by row and column: row(i) and column(j) prepare, at(row, column) gives what the product takes. It
// is asked for rows below `rows` and columns below `columns` alone. Sums run over the inner dim in one order, whatever the grid.
// R: what is computed in. A tile has 16 * TILE rows and columns and DEPTH of the inner dim; 256 threads have TILE * TILE results each.

namespace gd {

constexpr int DEPTH = 16;

template <class R> GD_DEVICE R multiply_add(R sum, R a, R b) {
  if constexpr (is_floating<R>::value) return fma(a, b, sum);
  else if constexpr (is_complex<R>::value) return sum + a * b;
  else return wrap_add(sum, wrap_mul(a, b));
}

// Loads [16 * TILE, DEPTH] of an operand, TILE elements per thread, into registers and from there into shared memory.
// ALONG: whether neighbouring threads have neighbours of the inner dim, else of the outer one.
template <class R, int TILE, bool ALONG, class A> struct tile_loader {
  static constexpr int SIDE = 16 * TILE, LINES = 256 / SIDE;
  typename A::Row outer[ALONG ? TILE : 1];
  R held[TILE];
  const A& from;
  i64 first, end;
  GD_DEVICE tile_loader(const A& from, i64 first, i64 end) : from(from), first(first), end(end) {
    if constexpr (ALONG) {
#pragma unroll
      for (int i = 0; i < TILE; ++i) {
        const i64 at = first + threadIdx.x / DEPTH + i * 16;
        outer[i] = from.row(at < end ? at : 0);
      }
    } else {
      const i64 at = first + threadIdx.x % SIDE;
      outer[0] = from.row(at < end ? at : 0);
    }
  }
  GD_DEVICE void load(i64 k, i64 k_end) {
    if constexpr (ALONG) {
      const i64 at = k + threadIdx.x % DEPTH;
      const bool inside = at < k_end;
      const typename A::Column column = from.column(inside ? at : 0);
#pragma unroll
      for (int i = 0; i < TILE; ++i)
        held[i] = inside && first + threadIdx.x / DEPTH + i * 16 < end ? from.at(outer[i], column) : from_compute<R>(0);
    } else {
      const bool inside = first + threadIdx.x % SIDE < end;
#pragma unroll
      for (int i = 0; i < TILE; ++i) {
        const i64 at = k + threadIdx.x / SIDE + i * LINES;
        held[i] = inside && at < k_end ? from.at(outer[0], from.column(at)) : from_compute<R>(0);
      }
    }
  }
  GD_DEVICE void put(R (*shared)[SIDE + 4]) const {
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
      if constexpr (ALONG) shared[threadIdx.x % DEPTH][threadIdx.x / DEPTH + i * 16] = held[i];
      else shared[threadIdx.x / SIDE + i * LINES][threadIdx.x % SIDE] = held[i];
    }
  }
};

// Row and column of a thread's results within a tile: groups of four lie together.
template <int TILE> GD_DEVICE int result_at(int thread, int i) {
  if constexpr (TILE >= 4) return (i / 4) * 64 + thread * 4 + i % 4;
  else return thread * TILE + i;
}

// One tile of A B, of the inner dim from k to k_end. put(row, column, sum) takes each result.
template <class R, int TILE, bool A_ALONG, bool B_ALONG, class A, class B, class Put>
GD_DEVICE void product_tile(const A& a, const B& b, i64 m, i64 n, i64 row, i64 column, i64 k, i64 k_end, Put put) {
  __shared__ __align__(16) unsigned char bytes[2 * DEPTH * (16 * TILE + 4) * sizeof(R)];
  typedef R Line[16 * TILE + 4];
  Line* left = reinterpret_cast<Line*>(bytes);
  Line* right = left + DEPTH;
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  R sums[TILE][TILE];
#pragma unroll
  for (int i = 0; i < TILE; ++i)
#pragma unroll
    for (int j = 0; j < TILE; ++j) sums[i][j] = from_compute<R>(0);
  tile_loader<R, TILE, A_ALONG, A> of_a(a, row, m);
  tile_loader<R, TILE, B_ALONG, B> of_b(b, column, n);
  of_a.load(k, k_end);
  of_b.load(k, k_end);
  while (k < k_end) {
    __syncthreads();  // what the last round left there was read
    of_a.put(left);
    of_b.put(right);
    __syncthreads();
    k += DEPTH;
    if (k < k_end) {  // the next tile travels while this one is multiplied
      of_a.load(k, k_end);
      of_b.load(k, k_end);
    }
#pragma unroll
    for (int depth = 0; depth < DEPTH; ++depth) {
      R x[TILE], y[TILE];
#pragma unroll
      for (int i = 0; i < TILE; ++i) {
        x[i] = left[depth][result_at<TILE>(ty, i)];
        y[i] = right[depth][result_at<TILE>(tx, i)];
      }
#pragma unroll
      for (int i = 0; i < TILE; ++i)
#pragma unroll
        for (int j = 0; j < TILE; ++j) sums[i][j] = multiply_add(sums[i][j], x[i], y[j]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < TILE; ++i)
#pragma unroll
    for (int j = 0; j < TILE; ++j) {
      const i64 r = row + result_at<TILE>(ty, i), c = column + result_at<TILE>(tx, j);
      if (r < m && c < n) put(r, c, sums[i][j]);
    }
}

template <class R> GD_DEVICE R sum_of(R a, R b) {
  if constexpr (is_floating<R>::value || is_complex<R>::value) return a + b;
  else return wrap_add(a, b);
}
template <class R> GD_DEVICE R scaled(R x, double alpha) {
  if constexpr (is_floating<R>::value) return alpha == 1.0 ? x : x * static_cast<R>(alpha);
  else return x;
}

// What becomes of a sum: alpha, a bias per column, an activation.
enum { NONE = 0, RELU = 1, GELU = 2, RELU6 = 3, TANH = 4, SIGMOID = 5, GELU_ERF = 6 };
template <int ACTIVATION, class R> GD_DEVICE R activated(R x) {
  if constexpr (ACTIVATION == RELU) return x > R(0) || x != x ? x : R(0);
  else if constexpr (ACTIVATION == GELU) return R(0.5) * x * (R(1) + ::tanh(R(0.7978845608028654) * (x + R(0.044715) * x * x * x)));
  else if constexpr (ACTIVATION == RELU6) return x > R(6) ? R(6) : activated<RELU>(x);
  else if constexpr (ACTIVATION == TANH) return ::tanh(x);
  else if constexpr (ACTIVATION == SIGMOID) return R(1) / (R(1) + ::exp(-x));
  else if constexpr (ACTIVATION == GELU_ERF) return R(0.5) * x * (R(1) + ::erf(R(0.7071067811865476) * x));
  else return x;
}

// The part of the inner dim that one of the blocks along y has: whole tiles.
struct Part {
  i64 begin, end;
};
GD_DEVICE Part part_of(i64 k, int parts) {
  const i64 per = ceil_div<i64>(ceil_div<i64>(k, DEPTH), parts) * DEPTH, begin = per * blockIdx.y;
  return {begin < k ? begin : k, begin + per < k ? begin + per : k};
}

}  // namespace gd
