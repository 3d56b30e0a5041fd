// After suppression.cuh: the best of all classes of an image, a block per image. Scores that were merged are struck out of kept.

GD_KERNEL(suppress_merge)(const T* boxes, const i32* taken, float* kept, const i32* counts, float* out_boxes, float* out_scores,
                          float* out_classes, i32* out_counts, i64 rows, int clip, Problem p) {
  const i64 image = blockIdx.x, all = p.classes * p.most;
  const float none = -limits<float>::infinity();
  for (i64 i = threadIdx.x; i < all; i += blockDim.x)
    if (i % p.most >= counts[image * p.classes + i / p.most]) kept[image * all + i] = none;
  i64 row = 0;
  for (; row < rows; ++row) {
    Best best{none, -1};
    for (i64 i = threadIdx.x; i < all; i += blockDim.x)
      if (kept[image * all + i] > none) best = better()(best, Best{kept[image * all + i], i});
    best = block_reduce(best, better());
    if (best.index < 0) break;
    const i64 kind = best.index / p.most, index = taken[image * all + best.index];
    if (best.index % blockDim.x == threadIdx.x) kept[image * all + best.index] = none;
    if (threadIdx.x < 4) {
      const float x = load(boxes + ((image * p.boxes + index) * p.kinds + (p.kinds > 1 ? kind : 0)) * 4 + threadIdx.x);
      out_boxes[(image * rows + row) * 4 + threadIdx.x] = clip ? (x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x) : x;
    } else if (threadIdx.x == 4) {
      out_scores[image * rows + row] = best.score;
      out_classes[image * rows + row] = static_cast<float>(kind);
    }
  }
  if (threadIdx.x == 0) out_counts[image] = static_cast<i32>(row);
}
