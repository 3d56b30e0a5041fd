// Slices of params[outer, size, inner], chosen by index tuples into the dims that `size` is the product of: out[outer, n, inner].
//
// Macros: INDEX: i32 or i64; WORD: a word as wide as an element.

namespace gd {

struct Dims { i64 at[MAX_RANK]; };

template <class U, class N> GD_DEVICE void gather_units(const U* params, const INDEX* indices, U* out, N outer, N n, N inner, N size, int depth,
                                                        const Dims& dims, i64* words, i64 code) {
  GD_GRID_LOOP(N, unit, outer * n * inner) {
    const N line = unit / inner, above = line / n, tuple = line - above * n;
    i64 row = 0;
    bool inside = true;
    for (int axis = 0; axis < depth; ++axis) {
      const i64 at = indices[static_cast<i64>(tuple) * depth + axis];
      if (inside && (at < 0 || at >= dims.at[axis])) {
        report(words, code, axis * static_cast<i64>(n) + tuple, at);
        inside = false;
      }
      row = row * dims.at[axis] + at;
    }
    if (inside) out[unit] = params[(static_cast<i64>(above) * size + row) * inner + (unit - line * inner)];
  }
}

template <class U> GD_DEVICE void gather_all(const void* params, const INDEX* indices, void* out, i64 outer, i64 n, i64 inner, i64 size,
                                             int depth, const Dims& dims, i64* words, i64 code) {
  const U* from = static_cast<const U*>(params);
  U* to = static_cast<U*>(out);
  if (outer * n * inner < (1ll << 31)) gather_units<U, u32>(from, indices, to, outer, n, inner, size, depth, dims, words, code);
  else gather_units<U, i64>(from, indices, to, outer, n, inner, size, depth, dims, words, code);
}

}  // namespace gd

GD_KERNEL(gather)(const WORD* params, const INDEX* indices, WORD* out, i64 outer, i64 n, i64 inner, i64 size, int depth, Dims dims, i64* words,
                  i64 code) {
  constexpr int V = vector_width<WORD>::value;
  if (inner % V == 0 && ((reinterpret_cast<u64>(params) | reinterpret_cast<u64>(out)) & 15) == 0)
    gather_all<pack<u64, 2>>(params, indices, out, outer, n, inner / V, size, depth, dims, words, code);
  else
    gather_all<WORD>(params, indices, out, outer, n, inner, size, depth, dims, words, code);
}
