// Whether the target of a row is among its k largest predictions; a warp for each row. After block.cuh. Macro: INDEX: i32 or i64.

namespace gd {
struct add_counts { GD_DEVICE i64 operator()(i64 a, i64 b) const { return a + b; } };
}

GD_KERNEL(in_top_k)(const float* predictions, const INDEX* targets, bool* out, i64 rows, i64 classes, i64 k) {
  for (i64 base = blockIdx.x * static_cast<i64>(blockDim.x >> 5); base < rows; base += gridDim.x * static_cast<i64>(blockDim.x >> 5)) {
    const i64 row = base + warp_id();
    const i64 target = row < rows ? static_cast<i64>(targets[row]) : -1;
    const bool sure = target >= 0 && target < classes;
    const float* from = predictions + row * classes;
    i64 larger = 0;  // or beyond any k, when a prediction is not finite
    if (sure) {
      const float wanted = from[target];
      for (i64 i = lane_id(); i < classes; i += 32) {
        const float p = from[i];
        larger += fabs(p) < limits<float>::infinity() ? (p > wanted ? 1 : 0) : (1ll << 40);
      }
    }
    larger = warp_reduce(larger, add_counts());
    if (lane_id() == 0 && row < rows) out[row] = sure && larger < (1ll << 40) && larger < k;
  }
}
