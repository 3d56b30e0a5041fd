// What is not zero, and places as coordinates. Macro: TX: type of elements.

GD_KERNEL(set_flags)(const TX* x, u8* flags, i64 n) {
  GD_GRID_LOOP(i64, i, n) flags[i] = x[i] != TX(0);
}

namespace gd {
struct Dims { i64 at[MAX_RANK]; };
}

GD_KERNEL(coordinates)(const i64* places, i64* out, i64 n, int rank, Dims dims) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = places[i];
    for (int axis = rank - 1; axis >= 0; --axis) {
      const i64 above = left / dims.at[axis];
      out[i * rank + axis] = left - above * dims.at[axis];
      left = above;
    }
  }
}
