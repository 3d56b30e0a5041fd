// Systems of linear equations by elimination, with rows exchanged. After complex.cuh, block.cuh and matrix.cuh; ELEMENT is the
// matrices' type, INDEX that of permutations. Batches go with the blocks.

// Load a matrix, or its adjoint.
template <class T> GD_DEVICE void load_matrix(T* to, const T* from, int n, bool adjoint) {
  for (int i = warp_id(); i < n; i += warps())
    for (int j = lane_id(); j < n; j += 32) {
      const T value = from[static_cast<i64>(i) * n + j];
      if (adjoint) to[static_cast<i64>(j) * n + i] = conjugated(value);
      else to[static_cast<i64>(i) * n + j] = value;
    }
  __syncthreads();
}

// Factors and the order of rows. in_shared: where it works, else in lu itself.
GD_KERNEL(lu_factor)(const ELEMENT* input, ELEMENT* lu, INDEX* order, int n, int in_shared, int adjoint, i64* words, i64 code) {
  const i64 size = static_cast<i64>(n) * n, at = blockIdx.x * size;
  ELEMENT* const a = workspace(lu, in_shared ? 0 : size);
  INDEX* const rows = order + static_cast<i64>(blockIdx.x) * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) rows[i] = static_cast<INDEX>(i);
  load_matrix(a, input + at, n, adjoint);
  if (eliminate(a, n, rows, true) == 0) {
    if (threadIdx.x == 0) refuse(words, code, blockIdx.x);
    return;
  }
  if (in_shared)
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) lu[at + i] = a[i];
}

// Solutions by those factors, 32 columns of the right-hand sides per block; of the identity where rhs is null.
GD_KERNEL(lu_solve)(const ELEMENT* lu, const INDEX* order, const ELEMENT* rhs, ELEMENT* y, int n, i64 width, int chunks, int identity) {
  const i64 matrix = blockIdx.x / chunks, column = static_cast<i64>(blockIdx.x % chunks) * 32 + lane_id();
  const INDEX* const rows = order + matrix * n;
  const ELEMENT* const from = rhs + (identity ? 0 : matrix * n * width);
  ELEMENT* const to = y + matrix * n * width;
  if (column < width)
    for (int i = warp_id(); i < n; i += warps())
      to[i * width + column] = identity ? of_part<ELEMENT>(rows[i] == column ? 1 : 0) : from[rows[i] * width + column];
  __syncthreads();
  const entries<ELEMENT> a{lu + matrix * n * n, n, false};
  substitute(a, true, true, to, width, column);
  substitute(a, false, false, to, width, column);
}

// Solutions of triangular systems. A zero on the diagonal is refused.
GD_KERNEL(triangular_solve)(const ELEMENT* matrices, const ELEMENT* rhs, ELEMENT* y, int n, i64 width, int chunks, int lower, int adjoint, i64* words, i64 code) {
  const i64 matrix = blockIdx.x / chunks, column = static_cast<i64>(blockIdx.x % chunks) * 32 + lane_id();
  const entries<ELEMENT> a{matrices + matrix * n * n, n, adjoint != 0};
  bool zero = false;
  for (int i = threadIdx.x; i < n; i += blockDim.x) zero |= is_zero(a(i, i));
  if (__syncthreads_or(zero)) {
    if (threadIdx.x == 0) refuse(words, code, matrix);
    return;
  }
  ELEMENT* const to = y + matrix * n * width;
  if (column < width)
    for (int i = warp_id(); i < n; i += warps()) to[i * width + column] = rhs[(matrix * n + i) * width + column];
  __syncthreads();
  substitute(a, (lower != 0) != (adjoint != 0), false, to, width, column);
}

// Determinants, or their signs and the logarithms of their sizes.
GD_KERNEL(determinant)(const ELEMENT* input, ELEMENT* sign, ELEMENT* size, ELEMENT* buffer, i64 each, i32* order, int n, int logarithm) {
  ELEMENT* const a = workspace(buffer, each);
  i32* const rows = order + static_cast<i64>(blockIdx.x) * n;
  load_matrix(a, input + static_cast<i64>(blockIdx.x) * n * n, n, false);
  const int parity = eliminate(a, n, rows, false);
  __syncthreads();
  if (threadIdx.x != 0) return;
  typedef part_t<ELEMENT> P;
  ELEMENT product = of_part<ELEMENT>(P(parity));
  P total = P(0);
  for (int i = 0; i < n; ++i) {
    const ELEMENT value = a[static_cast<i64>(i) * n + i];
    if (logarithm) {
      const P own = magnitude(value);
      total += log(own);
      product = own == P(0) ? ELEMENT{} : product * (value / of_part<ELEMENT>(own));
    } else {
      product = product * value;
    }
  }
  if (logarithm) size[blockIdx.x] = of_part<ELEMENT>(is_zero(product) ? -limits<P>::infinity() : total);
  sign[blockIdx.x] = product;
}

// Lower triangular roots. in_shared: where it works, else in the output itself.
GD_KERNEL(cholesky)(const ELEMENT* input, ELEMENT* y, int n, int in_shared, i64* words, i64 code) {
  const i64 size = static_cast<i64>(n) * n, at = blockIdx.x * size;
  ELEMENT* const a = workspace(y, in_shared ? 0 : size);
  load_matrix(a, input + at, n, false);
  if (!take_root(a, n)) {
    if (threadIdx.x == 0) refuse(words, code, blockIdx.x);
    return;
  }
  for (int i = warp_id(); i < n; i += warps())
    for (int j = lane_id(); j < n; j += 32) y[at + static_cast<i64>(i) * n + j] = j <= i ? a[static_cast<i64>(i) * n + j] : ELEMENT{};
}

// Solutions by lower triangular roots.
GD_KERNEL(root_solve)(const ELEMENT* roots, const ELEMENT* rhs, ELEMENT* y, int n, i64 width, int chunks) {
  const i64 matrix = blockIdx.x / chunks, column = static_cast<i64>(blockIdx.x % chunks) * 32 + lane_id();
  ELEMENT* const to = y + matrix * n * width;
  if (column < width)
    for (int i = warp_id(); i < n; i += warps()) to[i * width + column] = rhs[(matrix * n + i) * width + column];
  __syncthreads();
  substitute(entries<ELEMENT>{roots + matrix * n * n, n, false}, true, false, to, width, column);
  substitute(entries<ELEMENT>{roots + matrix * n * n, n, true}, false, false, to, width, column);
}
