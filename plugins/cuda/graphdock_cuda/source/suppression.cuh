// The best of boxes that overlap, taken one after the other. After block.cuh; BOX and LIMIT are the types of boxes and thresholds.
//
// A block has the boxes of one image and class. It keeps the score of each, minus infinity where it is out, takes the best one, and
// puts out or lowers what that overlaps.

namespace gd {

struct Best {
  float score;
  int at;
};
struct better_score {
  GD_DEVICE Best operator()(Best a, Best b) const {
    return b.score > a.score || (b.score == a.score && b.at < a.at) ? b : a;
  }
};

struct Box {
  float top, left, low, right, area;
};
GD_DEVICE Box box_of(const BOX* at) {
  const float y1 = load(at), x1 = load(at + 1), y2 = load(at + 2), x2 = load(at + 3);
  Box box{minimum(y1, y2), minimum(x1, x2), maximum(y1, y2), maximum(x1, x2), 0};
  box.area = __fmul_rn(box.low - box.top, box.right - box.left);
  return box;
}
// Intersection over union, rounded as NumPy rounds: no step is fused with another.
GD_DEVICE float overlap_of(const Box& a, const Box& b) {
  if (!(a.area > 0) || !(b.area > 0)) return 0;
  const float height = maximum(minimum(a.low, b.low) - maximum(a.top, b.top), 0.0f);
  const float width = maximum(minimum(a.right, b.right) - maximum(a.left, b.left), 0.0f);
  const float shared = __fmul_rn(height, width);
  return shared / (a.area + b.area - shared);
}

}  // namespace gd

// Thresholds that are none: a number in [0, 1] that is not, and a sigma below 0. One thread. usable: 1, or 0 after an error.
GD_KERNEL(check_thresholds)(const LIMIT* limit, const LIMIT* sigma, u32* usable, i64* words, i64 code, i64* sigma_words, i64 sigma_code) {
  const float most = load(limit), spread = sigma == nullptr ? 0.0f : load(sigma);
  const bool bad = !(most >= 0 && most <= 1), bad_sigma = !(spread >= 0);
  *usable = !bad && !bad_sigma;
  if (*usable) return;
  i64* const to = bad ? words : sigma_words;
  to[0] = static_cast<i64>(bits_as<u64>(static_cast<double>(bad ? most : spread)));
  to[1] = 0;
  __threadfence_system();
  to[2] = bad ? code : sigma_code;
}

// taken and kept: places and scores of those taken, `most` per block; counts: how many. left: room for n scores per block.
// overlaps: of all with all, where those are given instead of boxes; kinds of boxes are 1 or as many as there are classes.
GD_KERNEL(suppress)(const BOX* boxes, const float* overlaps, const BOX* scores, const LIMIT* limit, const LIMIT* least, const LIMIT* sigma, const u32* usable, float* left,
                    i32* taken, float* kept, i32* counts, int n, int most, int classes, int kinds) {
  const int image = blockIdx.x / classes, label = blockIdx.x % classes, kind = kinds == 1 ? 0 : label;
  const i64 block = blockIdx.x;
  float* const mine = left + block * n;
  const BOX* const first = boxes + (static_cast<i64>(image) * n * kinds + kind) * 4;
  const float out = -limits<float>::infinity();
  const float floor = least == nullptr ? out : load(least), bound = load(limit), spread = sigma == nullptr ? 0.0f : load(sigma);
  const float scale = spread > 0 ? static_cast<float>(-0.5 / spread) : 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float score = load(scores + (static_cast<i64>(image) * n + i) * classes + label);
    mine[i] = score > floor ? score : out;
  }
  int count = 0;
  const int wanted = usable == nullptr || *usable != 0 ? most : 0;
  for (; count < wanted; ++count) {
    __syncthreads();
    Best best{out, n};
    for (int i = threadIdx.x; i < n; i += blockDim.x) best = better_score()(best, Best{mine[i], i});
    best = block_reduce(best, better_score());
    if (best.score == out) break;
    if (threadIdx.x == 0) {
      taken[block * most + count] = best.at;
      kept[block * most + count] = best.score;
      mine[best.at] = out;
    }
    const Box chosen = overlaps == nullptr ? box_of(first + static_cast<i64>(best.at) * kinds * 4) : Box{};
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      if (i == best.at || mine[i] == out) continue;
      const float overlap = overlaps == nullptr ? overlap_of(box_of(first + static_cast<i64>(i) * kinds * 4), chosen)
                                                : overlaps[static_cast<i64>(i) * n + best.at];
      if (spread > 0) {
        const float lowered = __fmul_rn(mine[i], exp(__fmul_rn(__fmul_rn(scale, overlap), overlap)));
        mine[i] = lowered > floor ? lowered : out;
      } else if (overlap > bound) {
        mine[i] = out;
      }
    }
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// As many as there are rows for, and zeros behind them.
GD_KERNEL(write_taken)(const i32* taken, const float* kept, const i32* count, i32* places, BOX* scores, i32* valid, i64 rows) {
  if (valid != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *valid = *count;
  GD_GRID_LOOP(i64, i, rows) {
    places[i] = i < *count ? taken[i] : 0;
    if (scores != nullptr) store(scores + i, i < *count ? kept[i] : 0.0f);
  }
}

// The best of what all classes of an image have, which a block has. kept is used up.
GD_KERNEL(combine)(const float* boxes, const i32* taken, float* kept, const i32* counts, float* out_boxes, float* out_scores, float* out_classes, i32* valid,
                   int n, int most, int classes, int kinds, int rows, int clip) {
  const i64 image = blockIdx.x;
  float* const mine = kept + image * classes * most;
  const float out = -limits<float>::infinity();
  const int all = classes * most;
  for (int i = threadIdx.x; i < all; i += blockDim.x)
    if (i % most >= counts[image * classes + i / most]) mine[i] = out;
  int count = 0;
  bool more = true;
  for (int row = 0; row < rows; ++row) {
    __syncthreads();
    Best best{out, all};
    if (more) {
      for (int i = threadIdx.x; i < all; i += blockDim.x) best = better_score()(best, Best{mine[i], i});
      best = block_reduce(best, better_score());
    }
    more = best.score != out;
    count += more;
    const i64 at = image * rows + row;
    const int label = more ? best.at / most : 0;
    if (threadIdx.x < 4) {
      float value = 0;
      if (more) {
        const i64 place = image * n + taken[image * all + best.at];
        value = boxes[(place * kinds + (kinds == 1 ? 0 : label)) * 4 + threadIdx.x];
        if (clip) value = value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
      }
      out_boxes[at * 4 + threadIdx.x] = value;
    }
    if (threadIdx.x == 0) {
      out_scores[at] = more ? best.score : 0.0f;
      out_classes[at] = static_cast<float>(label);
      if (more) mine[best.at] = out;
    }
  }
  if (threadIdx.x == 0) valid[image] = count;
}
