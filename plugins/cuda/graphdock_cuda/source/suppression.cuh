// Non-maximum suppression: a block takes the best box that is left, strikes out what it overlaps (or lowers its score), and goes on.
// TYPE: of boxes and scores. Overlaps are float32 without fused operations: a threshold must not depend on the backend. After block.cuh.

typedef TYPE T;

// A problem is one class of one image: p = image * classes + class.
struct Problem {
  i64 boxes, classes, kinds;  // kinds of boxes per box: 1, or the classes
  int most, soft;
  float limit, least, scale;
};
struct Best {
  float score;
  i64 index;  // -1 where there is none
};
struct better {
  GD_DEVICE Best operator()(const Best& a, const Best& b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    return b.score > a.score || (b.score == a.score && b.index < a.index) ? b : a;
  }
};
struct Corners {
  float top, left, low, right;
};
GD_DEVICE Corners corners_of(const T* b) {
  const float y1 = load(b), x1 = load(b + 1), y2 = load(b + 2), x2 = load(b + 3);
  return {minimum(y1, y2), minimum(x1, x2), maximum(y1, y2), maximum(x1, x2)};
}
GD_DEVICE float area_of(const Corners& c) { return __fmul_rn(__fsub_rn(c.low, c.top), __fsub_rn(c.right, c.left)); }
GD_DEVICE float overlap_of(const Corners& a, const Corners& b) {
  const float first = area_of(a), second = area_of(b);
  if (!(first > 0.0f && second > 0.0f)) return 0.0f;
  const float height = __fsub_rn(minimum(a.low, b.low), maximum(a.top, b.top));
  const float width = __fsub_rn(minimum(a.right, b.right), maximum(a.left, b.left));
  const float shared = __fmul_rn(maximum(height, 0.0f), maximum(width, 0.0f));
  return __fdiv_rn(shared, __fsub_rn(__fadd_rn(first, second), shared));
}

// limit, least: a threshold each that lies on the GPU, or null where the problem has it; a limit that is no share is an error.
// left: [problems, boxes], the scores that are left. taken, kept: [problems, most]; counts: [problems]. overlaps: [boxes, boxes], or null.
GD_KERNEL(suppress)(const T* boxes, const T* scores, const float* overlaps, float* left, i32* taken, float* kept, i32* counts,
                    Problem p, const float* limit, const float* least, i64* words, i64 code) {
  if (limit) p.limit = *limit;
  if (least) p.least = *least;
  if (!(p.limit >= 0.0f && p.limit <= 1.0f)) {
    if (limit && blockIdx.x == 0 && threadIdx.x == 0) {
      words[0] = *reinterpret_cast<const i32*>(limit);
      __threadfence_system();
      words[2] = code;
    }
    p.most = 0;
  }
  const i64 image = blockIdx.x / p.classes, kind = blockIdx.x % p.classes, first = image * p.boxes;
  const auto box = [&](i64 i) { return boxes + ((first + i) * p.kinds + (p.kinds > 1 ? kind : 0)) * 4; };
  float* mine = left + blockIdx.x * p.boxes;
  const float none = -limits<float>::infinity();
  for (i64 i = threadIdx.x; i < p.boxes; i += blockDim.x) {
    const float score = load(scores + (first + i) * p.classes + kind);
    mine[i] = score > p.least ? score : none;
  }
  int count = 0;
  while (count < p.most) {
    Best best{none, -1};
    for (i64 i = threadIdx.x; i < p.boxes; i += blockDim.x)
      if (mine[i] > none) best = better()(best, Best{mine[i], i});
    best = block_reduce(best, better());
    if (best.index < 0) break;
    if (threadIdx.x == 0) {
      taken[static_cast<i64>(blockIdx.x) * p.most + count] = static_cast<i32>(best.index);
      kept[static_cast<i64>(blockIdx.x) * p.most + count] = best.score;
    }
    ++count;
    for (i64 i = threadIdx.x; i < p.boxes; i += blockDim.x) {
      if (!(mine[i] > none)) continue;
      const float overlap =
          overlaps ? overlaps[i * p.boxes + best.index] : overlap_of(corners_of(box(i)), corners_of(box(best.index)));
      if (p.soft) {
        const float score = __fmul_rn(mine[i], expf(__fmul_rn(__fmul_rn(p.scale, overlap), overlap)));
        mine[i] = score > p.least ? score : none;
      } else if (overlap > p.limit) {
        mine[i] = none;
      }
      if (i == best.index) mine[i] = none;
    }
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
GD_KERNEL(suppress_scores)(const float* kept, T* out, i64 n) { GD_GRID_LOOP(i64, i, n) store(out + i, kept[i]); }
