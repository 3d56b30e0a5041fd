// Products of matrices, batched. TYPE: of the elements; RESULT: of the results; GD_TILE, GD_A_ALONG, GD_B_ALONG: see gemm.cuh;
// BIAS, ACTIVATION: of the results; ADDS: whether they are added to what is there.
// Blocks: tiles along x, parts of the inner dim along y, batches along z. After complex.cuh and gemm.cuh.

typedef TYPE T;
typedef RESULT D;
typedef compute_t<T> R;

struct Matrix {
  const T* elements;
  i64 by_row, by_column;
  struct Row { i64 at; };
  struct Column { i64 at; };
  GD_DEVICE Row row(i64 i) const { return {i * by_row}; }
  GD_DEVICE Column column(i64 j) const { return {j * by_column}; }
  GD_DEVICE R at(Row i, Column j) const { return load(elements + i.at + j.at); }
};

// Sizes, the steps of both operands, and where each batch has them.
struct Product {
  i64 m, n, k, a_row, a_column, b_row, b_column, batches;
  i64 dims[MAX_RANK], a_strides[MAX_RANK], b_strides[MAX_RANK];
  double alpha;
  int rank, parts;
};

GD_DEVICE R finished(R sum, const T* bias, i64 column, const Product& p) {
#if BIAS
  return activated<ACTIVATION>(sum_of(scaled(sum, p.alpha), load(bias + column)));
#else
  return activated<ACTIVATION>(scaled(sum, p.alpha));
#endif
}

GD_DEVICE void put(D* to, R result) {
#if ADDS
  store(to, sum_of(load(to), result));
#else
  store(to, result);
#endif
}

GD_KERNEL(matmul)(const T* a, const T* b, D* d, const T* bias, R* sums, Product p) {
  const i64 across = ceil_div<i64>(p.n, 16 * GD_TILE);
  const i64 row = blockIdx.x / across * (16 * GD_TILE), column = blockIdx.x % across * (16 * GD_TILE);
  const Part part = part_of(p.k, p.parts);
  for (i64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    const Matrix left{a + offset_of(batch, p.dims, p.a_strides, p.rank), p.a_row, p.a_column};
    const Matrix right{b + offset_of(batch, p.dims, p.b_strides, p.rank), p.b_column, p.b_row};
    const i64 first = batch * p.m * p.n;
    R* mine = sums + blockIdx.y * p.batches * p.m * p.n + first;
    product_tile<R, GD_TILE, GD_A_ALONG, GD_B_ALONG>(left, right, p.m, p.n, row, column, part.begin, part.end, [&](i64 i, i64 j, R sum) {
      if (p.parts == 1) put(d + first + i * p.n + j, finished(sum, bias, j, p));
      else mine[i * p.n + j] = sum;
    });
  }
}

// The sums of all parts, in order.
GD_KERNEL(matmul_join)(const R* sums, D* d, const T* bias, Product p) {
  const i64 count = p.batches * p.m * p.n;
  GD_GRID_LOOP(i64, i, count) {
    R sum = sums[i];
    for (int part = 1; part < p.parts; ++part) sum = sum_of(sum, sums[part * count + i]);
    put(d + i, finished(sum, bias, i % p.n, p));
  }
}
