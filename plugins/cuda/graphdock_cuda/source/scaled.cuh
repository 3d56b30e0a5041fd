// Tensors times one number, one tensor or many of them. TYPE: of the elements; MOST: rows of a table. After tables.cuh.

typedef TYPE T;
typedef compute_t<T> R;

// Every element; 16 bytes at a time where both begin at a multiple of that. The thread is number `first` of `step`.
GD_DEVICE void scale(const T* x, T* y, R factor, i64 n, i64 first, i64 step) {
  constexpr int V = vector_width<T>::value;
  const i64 packs = (reinterpret_cast<u64>(x) | reinterpret_cast<u64>(y)) % (V * sizeof(T)) == 0 ? n / V : 0;
  for (i64 i = first; i < packs; i += step) {
    pack<T> values = load_pack(x + i * V);
#pragma unroll
    for (int j = 0; j < V; ++j) values.at[j] = from_compute<T>(to_compute(values.at[j]) * factor);
    store_pack(y + i * V, values);
  }
  for (i64 i = packs * V + first; i < n; i += step) store(y + i, load(x + i) * factor);
}
GD_KERNEL(scaled)(const T* x, T* y, const T* factor, i64 n) {
  scale(x, y, load(factor), n, blockIdx.x * static_cast<i64>(blockDim.x) + threadIdx.x, gridDim.x * static_cast<i64>(blockDim.x));
}

struct Row {
  const T* x;
  T* y;
  i64 n;
  u64 begin;
};
struct Rows {
  Row each[MOST];
};
GD_KERNEL(scaled_many)(Rows rows, const T* factor, i64 count) {
  const i64 at = row_of_block(count, [&](i64 i) { return rows.each[i].begin; });
  const Row& row = rows.each[at];
  const i64 width = blockDim.x, end = at + 1 < count ? rows.each[at + 1].begin : gridDim.x;
  scale(row.x, row.y, load(factor), row.n, (blockIdx.x - row.begin) * width + threadIdx.x, (end - row.begin) * width);
}
