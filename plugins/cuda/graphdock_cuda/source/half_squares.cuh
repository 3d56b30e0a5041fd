// Half the sum of the squares of several tensors. TYPE: of the elements; MOST: tensors of a launch; PART: elements of a block, a
// multiple of 16. Each block leaves the sum of its part, and half_total adds these in order. After block.cuh and tables.cuh.

typedef TYPE T;
typedef compute_t<T> R;

struct Tensors {
  const T* at[MOST];
};
// Elements of each tensor, and its first block.
struct Sizes {
  i64 n[MOST];
  u64 begin[MOST];
};
struct Plus {
  GD_DEVICE R operator()(R a, R b) const { return a + b; }
};

GD_KERNEL(square_parts)(Tensors tensors, Sizes sizes, R* parts, i64 count) {
  constexpr int V = vector_width<T>::value;
  const i64 row = row_of_block(count, [&](i64 i) { return sizes.begin[i]; });
  const i64 from = static_cast<i64>(blockIdx.x - sizes.begin[row]) * PART, rest = sizes.n[row] - from;
  const i64 n = rest < PART ? rest : PART;
  const T* x = tensors.at[row] + from;
  const i64 packs = reinterpret_cast<u64>(x) % (V * sizeof(T)) == 0 ? n / V : 0;
  R sum = R(0);
  for (i64 i = threadIdx.x; i < packs; i += blockDim.x) {
    const pack<T> values = load_pack(x + i * V);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += to_compute(values.at[j]) * to_compute(values.at[j]);
  }
  for (i64 i = packs * V + threadIdx.x; i < n; i += blockDim.x) sum += load(x + i) * load(x + i);
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
GD_KERNEL(half_total)(const R* parts, T* out, i64 count) {
  R sum = R(0);
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0) store(out, sum * R(0.5));
}
