// Classes drawn for a loss over some of them. After block.cuh and philox.cuh. DISTRIBUTION is one of these names; WEIGHT is the type of
// the weights, whose running sums are doubles.

namespace gd {

struct Classes {
  const WEIGHT* weights;
  const double* sums;
  i64 count;
  double width;  // log(count + 1)
};

struct uniform_classes {
  static GD_DEVICE i64 draw(const Classes& c, double u) { return static_cast<i64>(u * static_cast<double>(c.count)); }
  static GD_DEVICE double probability(const Classes& c, i64) { return 1.0 / static_cast<double>(c.count); }
};
struct log_uniform_classes {
  static GD_DEVICE i64 draw(const Classes& c, double u) {
    const i64 at = static_cast<i64>(exp(u * c.width)) - 1;
    return at < c.count ? at : c.count - 1;
  }
  static GD_DEVICE double probability(const Classes& c, i64 id) {
    return log(static_cast<double>(id + 2) / static_cast<double>(id + 1)) / c.width;
  }
};
struct weighted_classes {
  static GD_DEVICE i64 draw(const Classes& c, double u) {
    const double level = u * c.sums[c.count - 1];
    i64 low = 0, high = c.count;
    while (low < high) {  // the first sum above it
      const i64 middle = (low + high) / 2;
      if (c.sums[middle] > level) high = middle;
      else low = middle + 1;
    }
    return low < c.count ? low : c.count - 1;
  }
  static GD_DEVICE double probability(const Classes& c, i64 id) {
    return static_cast<double>(c.weights[id]) / c.sums[c.count - 1];
  }
};

}  // namespace gd

// Four parameters of a launch.
#define GD_CLASSES const WEIGHT* weights, const double* sums, i64 class_count, double width
#define GD_OPEN_CLASSES(name) const Classes name = {weights, sums, class_count, width}

// Running sums, and whether these are weights, of which as many are not 0 as are wanted. One block. usable: 1, or 0 after an error.
GD_KERNEL(sum_weights)(const WEIGHT* weights, double* sums, u32* usable, i64 n, i64 wanted, i64* words, i64 code, i64* few_words, i64 few_code) {
  double before = 0;
  i64 possible = 0;
  bool bad = false;
  for (i64 begin = 0; begin < n; begin += blockDim.x) {
    const i64 i = begin + threadIdx.x;
    const double own = i < n ? static_cast<double>(weights[i]) : 0;
    bad |= !(own >= 0);
    possible += own != 0;
    double total;
    const double sum = block_inclusive_scan(own, sum_op(), &total);
    if (i < n) sums[i] = before + sum;
    before += total;
    __syncthreads();
  }
  possible = block_reduce(possible, sum_op());
  bad = __syncthreads_or(bad) || !(before > 0 && before < limits<double>::infinity());
  if (threadIdx.x != 0) return;
  *usable = !bad && possible >= wanted;
  i64* const to = bad ? words : few_words;
  if (*usable) return;
  to[0] = possible;
  to[1] = n;
  __threadfence_system();
  to[2] = bad ? code : few_code;
}

// The first target class that is not there is refused. One block.
GD_KERNEL(check_classes)(const i64* ids, i64 n, i64 count, i64* words, i64 code) {
  i64 first = n;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x)
    if ((ids[i] < 0 || ids[i] >= count) && i < first) first = i;
  first = block_reduce(first, min_op());
  if (threadIdx.x != 0 || first == n) return;
  words[0] = ids[first];
  words[1] = count;
  __threadfence_system();
  words[2] = code;
}

// Draws with repetition. tries gets their number.
GD_KERNEL(draw_any)(GD_STREAM, i64* drawn, i64* tries, i64 wanted, const u32* usable, GD_CLASSES) {
  GD_OPEN_CLASSES(classes);
  GD_OPEN_STREAM(stream);
  if (blockIdx.x == 0 && threadIdx.x == 0) *tries = wanted;
  if (usable != nullptr && *usable == 0) return;
  GD_GRID_LOOP(i64, j, wanted) drawn[j] = DISTRIBUTION::draw(classes, fraction(stream.word(j)));
}

// Draws of which only the first of each class counts, by one block: as many at a time as it has threads. firsts: the draw that a
// class came with first, all bits set at the beginning.
GD_KERNEL(draw_unique)(GD_STREAM, i64* drawn, i64* tries, i64 wanted, u64* firsts, const u32* usable, GD_CLASSES) {
  GD_OPEN_CLASSES(classes);
  GD_OPEN_STREAM(stream);
  if (usable != nullptr && *usable == 0) return;
  i64 found = 0;
  for (i64 begin = 0; found < wanted; begin += blockDim.x) {
    const i64 j = begin + threadIdx.x;
    const i64 id = DISTRIBUTION::draw(classes, fraction(stream.word(j)));
    atomicMin(&firsts[id], static_cast<u64>(j));
    __syncthreads();
    const bool fresh = firsts[id] == static_cast<u64>(j);
    int total;
    const i64 at = found + block_exclusive_scan(fresh ? 1 : 0, sum_op(), 0, &total);
    if (fresh && at < wanted) {
      drawn[at] = id;
      if (at == wanted - 1) *tries = j + 1;
    }
    found += total;
    __syncthreads();
  }
}

// How often each class is expected among the draws.
GD_KERNEL(expect)(const i64* ids, float* y, i64 n, const i64* tries, int unique, const u32* usable, GD_CLASSES) {
  GD_OPEN_CLASSES(classes);
  if (usable != nullptr && *usable == 0) return;
  const double count = static_cast<double>(*tries);
  GD_GRID_LOOP(i64, i, n) {
    if (ids[i] < 0 || ids[i] >= classes.count) continue;
    const double p = DISTRIBUTION::probability(classes, ids[i]);
    y[i] = static_cast<float>(unique ? -expm1(count * log1p(-p)) : p * count);
  }
}
