// One pass of a reduction: x is [outer, reduced, inner], out is [outer, parts, inner], and each part is of so many elements of the
// reduced axis. The order in which elements are combined depends on shapes alone.
//
// Macros: TX, TY: types of elements of x and out; REDUCER; FIRST: x holds elements, else accumulators of an earlier pass; LAST: out
// gets elements, else accumulators for a later pass.

namespace gd {

template <class R, class T, class TO, bool IS_FIRST, bool IS_LAST> struct reduction {
  typedef typename R::acc acc;
  typedef typename choose<IS_FIRST, T, acc>::type In;
  typedef typename choose<IS_LAST, TO, acc>::type Out;

  static GD_DEVICE acc term(In value, i64 i) {
    if constexpr (IS_FIRST) return R::map(to_compute(value), i);
    else return value;
  }
  static GD_DEVICE void give(Out* to, acc value, i64 count) {
    if constexpr (IS_LAST) store(to, R::finish(value, count));
    else *to = value;
  }

  // inner is 1, parts is 1: 2^shift lanes of a warp for each row.
  static GD_DEVICE void by_lanes(const In* x, Out* out, i64 rows, i64 reduced, int shift, i64 count) {
    const int lanes = 1 << shift, lane = threadIdx.x & (lanes - 1), per_block = blockDim.x >> shift;
    const i64 step = static_cast<i64>(gridDim.x) * per_block;
    for (i64 base = static_cast<i64>(blockIdx.x) * per_block; base < rows; base += step) {
      const i64 row = base + (threadIdx.x >> shift);
      acc a = R::first();
      if (row < rows) {
        const In* from = x + row * reduced;
        for (i64 i = lane; i < reduced; i += lanes) a = R::combine(a, term(from[i], i));
      }
      for (int delta = 1; delta < lanes; delta *= 2) a = R::combine(a, shuffle_xor(a, delta));
      if (lane == 0 && row < rows) give(out + row, a, count);
    }
  }

  // inner is 1: a block for each part of a row. Elements are taken in packs, whether or not they lie aligned.
  static GD_DEVICE void by_blocks(const In* x, Out* out, i64 rows, i64 reduced, i64 parts, i64 part_size, i64 count) {
    constexpr int V = vector_width<In>::value;
    for (i64 block = blockIdx.x; block < rows * parts; block += gridDim.x) {
      const i64 row = block / parts, begin = (block - row * parts) * part_size;
      const i64 size = begin + part_size < reduced ? part_size : reduced - begin;
      const In* from = x + row * reduced + begin;
      const bool aligned = reinterpret_cast<u64>(from) % sizeof(pack<In>) == 0;
      acc many[V];
#pragma unroll
      for (int j = 0; j < V; ++j) many[j] = R::first();
      const i64 packs = size / V;
      for (i64 p = threadIdx.x; p < packs; p += blockDim.x) {
        pack<In> values;
        if (aligned) values = load_pack(from + p * V);
        else
          for (int j = 0; j < V; ++j) values.at[j] = from[p * V + j];
#pragma unroll
        for (int j = 0; j < V; ++j) many[j] = R::combine(many[j], term(values.at[j], begin + p * V + j));
      }
      for (i64 i = packs * V + threadIdx.x; i < size; i += blockDim.x) many[0] = R::combine(many[0], term(from[i], begin + i));
#pragma unroll
      for (int j = 1; j < V; ++j) many[0] = R::combine(many[0], many[j]);
      const acc a = block_reduce(many[0], combining<R>());
      if (threadIdx.x == 0) give(out + block, a, count);
    }
  }

  // 2^shift neighbouring columns for each block, whose other threads take every so manieth row.
  static GD_DEVICE void by_columns(const In* x, Out* out, i64 outer, i64 reduced, i64 inner, i64 parts, i64 part_size, int shift,
                                   i64 count) {
    __shared__ __align__(16) unsigned char bytes[256 * sizeof(acc)];
    acc* shared = reinterpret_cast<acc*>(bytes);
    const int width = 1 << shift, tx = threadIdx.x & (width - 1), ty = threadIdx.x >> shift, height = blockDim.x >> shift;
    const i64 tiles = ceil_div(inner, static_cast<i64>(width));
    for (i64 block = blockIdx.x; block < outer * parts * tiles; block += gridDim.x) {
      const i64 line = block / tiles, column = (block - line * tiles) * width + tx;
      const i64 above = line / parts, begin = (line - above * parts) * part_size;
      const i64 end = begin + part_size < reduced ? begin + part_size : reduced;
      acc a = R::first();
      if (column < inner) {
        const In* from = x + above * reduced * inner + column;
#pragma unroll 4
        for (i64 i = begin + ty; i < end; i += height) a = R::combine(a, term(from[i * inner], i));
      }
      __syncthreads();  // what the block before this one left there was read
      shared[threadIdx.x] = a;
      for (int half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (ty < half) shared[threadIdx.x] = R::combine(shared[threadIdx.x], shared[threadIdx.x + (half << shift)]);
      }
      if (ty == 0 && column < inner) give(out + line * inner + column, shared[threadIdx.x], count);
    }
  }
};

typedef reduction<REDUCER, TX, TY, FIRST, LAST> this_reduction;

}  // namespace gd

GD_KERNEL(by_lanes)(const this_reduction::In* x, this_reduction::Out* out, i64 rows, i64 reduced, int shift, i64 count) {
  this_reduction::by_lanes(x, out, rows, reduced, shift, count);
}
GD_KERNEL(by_blocks)(const this_reduction::In* x, this_reduction::Out* out, i64 rows, i64 reduced, i64 parts, i64 part_size, i64 count) {
  this_reduction::by_blocks(x, out, rows, reduced, parts, part_size, count);
}
GD_KERNEL(by_columns)(const this_reduction::In* x, this_reduction::Out* out, i64 outer, i64 reduced, i64 inner, i64 parts,
                      i64 part_size, int shift, i64 count) {
  this_reduction::by_columns(x, out, outer, reduced, inner, parts, part_size, shift, count);
}
