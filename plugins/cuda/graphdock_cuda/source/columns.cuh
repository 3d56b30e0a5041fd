// Sums per channel of a tensor [rows, channels] or [batch, channels, inner], in two stages and always in the same order.
// An accumulator A has add(element), join(A) and a first value A{}. After block.cuh.

namespace gd {

// Channels last: 32 channels by 8 rows of threads per block; blockIdx.y counts the parts of the rows. at(row, channel) gives
// what add takes. The parts come to lie as [part, channel].
template <class A, class At> GD_DEVICE void columns_last(A* parts, i64 rows, i64 channels, At at) {
  __shared__ __align__(16) unsigned char bytes[256 * sizeof(A)];
  A* all = reinterpret_cast<A*>(bytes);
  const int lane = threadIdx.x & 31, line = threadIdx.x >> 5;
  const i64 channel = static_cast<i64>(blockIdx.x) * 32 + lane;
  const i64 per = ceil_div<i64>(rows, gridDim.y), begin = per * blockIdx.y, end = begin + per < rows ? begin + per : rows;
  A mine{};
  if (channel < channels)
    for (i64 row = begin + line; row < end; row += 8) mine.add(at(row, channel));
  all[threadIdx.x] = mine;
  __syncthreads();
  if (line == 0 && channel < channels) {
    for (int other = 1; other < 8; ++other) mine.join(all[other * 32 + lane]);
    parts[static_cast<i64>(blockIdx.y) * channels + channel] = mine;
  }
}

template <class A> struct joining {
  GD_DEVICE A operator()(A a, const A& b) const {
    a.join(b);
    return a;
  }
};

// Channels first: a block per channel and part. at(index within the tensor, channel) gives what add takes.
template <class A, class At> GD_DEVICE void columns_first(A* parts, i64 batch, i64 channels, i64 inner, At at) {
  const i64 channel = blockIdx.x, count = batch * inner;
  const i64 per = ceil_div<i64>(count, gridDim.y), begin = per * blockIdx.y, end = begin + per < count ? begin + per : count;
  A mine{};
  for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x)
    mine.add(at(((i / inner) * channels + channel) * inner + i % inner, channel));
  mine = block_reduce(mine, joining<A>());
  if (threadIdx.x == 0) parts[static_cast<i64>(blockIdx.y) * channels + channel] = mine;
}

// The parts of a channel, joined in order.
template <class A> GD_DEVICE A joined(const A* parts, int count, i64 channels, i64 channel) {
  A all = parts[channel];
  for (int part = 1; part < count; ++part) all.join(parts[static_cast<i64>(part) * channels + channel]);
  return all;
}

// Mean and sum of squared differences to it (Welford, 1962; joined as Chan, Golub and LeVeque, 1979).
template <class W> struct Moments {
  W mean, squares;
  i64 count;
  GD_DEVICE void add(W value) {
    const W delta = value - mean;
    mean += delta / static_cast<W>(++count);
    squares += delta * (value - mean);
  }
  GD_DEVICE void join(const Moments& other) {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    const i64 both = count + other.count;
    const W delta = other.mean - mean, share = static_cast<W>(other.count) / static_cast<W>(both);
    mean += delta * share;
    squares += other.squares + delta * delta * static_cast<W>(count) * share;
    count = both;
  }
};

// A sum.
template <class W> struct Sum {
  W total;
  GD_DEVICE void add(W value) { total += value; }
  GD_DEVICE void join(const Sum& other) { total += other.total; }
};

// Two sums at once.
template <class W> struct Two {
  W first, second;
};
template <class W> struct TwoSums {
  W first, second;
  GD_DEVICE void add(Two<W> value) {
    first += value.first;
    second += value.second;
  }
  GD_DEVICE void join(const TwoSums& other) {
    first += other.first;
    second += other.second;
  }
};

}  // namespace gd
