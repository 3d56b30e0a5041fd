// Threads together: shuffles of any type, reductions and scans of warps and blocks, atomics of any type.
//
// Every thread of the block calls block_*; blockDim.x is a multiple of 32 and the only dimension. Values are combined in the order
// of the threads, always in the same tree, so that results repeat to the bit and an operation need only be associative.

#ifndef GD_BLOCK
#define GD_BLOCK

namespace gd {

GD_DEVICE int lane_id() { return threadIdx.x & 31; }
GD_DEVICE int warp_id() { return threadIdx.x >> 5; }

// Any T of up to 64 bytes as words of 32 bits.
template <class T> struct words {
  static constexpr int count = (sizeof(T) + 3) / 4;
  u32 at[count];
  static GD_DEVICE words of(const T& value) {
    words out;
    out.at[count - 1] = 0;
    memcpy(out.at, &value, sizeof(T));
    return out;
  }
  GD_DEVICE T value() const {
    T out;
    memcpy(&out, at, sizeof(T));
    return out;
  }
};

// The value of lane + delta; one's own where there is none.
template <class T> GD_DEVICE T shuffle_down(T value, unsigned delta, unsigned mask = GD_FULL_MASK) {
  words<T> all = words<T>::of(value);
#pragma unroll
  for (int i = 0; i < words<T>::count; ++i) all.at[i] = __shfl_down_sync(mask, all.at[i], delta);
  return all.value();
}
// The value of lane - delta; one's own where there is none.
template <class T> GD_DEVICE T shuffle_up(T value, unsigned delta, unsigned mask = GD_FULL_MASK) {
  words<T> all = words<T>::of(value);
#pragma unroll
  for (int i = 0; i < words<T>::count; ++i) all.at[i] = __shfl_up_sync(mask, all.at[i], delta);
  return all.value();
}
// The value of lane ^ bits.
template <class T> GD_DEVICE T shuffle_xor(T value, int bits, unsigned mask = GD_FULL_MASK) {
  words<T> all = words<T>::of(value);
#pragma unroll
  for (int i = 0; i < words<T>::count; ++i) all.at[i] = __shfl_xor_sync(mask, all.at[i], bits);
  return all.value();
}
// The value of one lane.
template <class T> GD_DEVICE T shuffle(T value, int lane, unsigned mask = GD_FULL_MASK) {
  words<T> all = words<T>::of(value);
#pragma unroll
  for (int i = 0; i < words<T>::count; ++i) all.at[i] = __shfl_sync(mask, all.at[i], lane);
  return all.value();
}

// The values of all lanes combined; lane 0 has it.
template <class T, class Op> GD_DEVICE T warp_reduce(T value, Op op) {
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) value = op(value, shuffle_down(value, delta));
  return value;
}
// As warp_reduce; every lane has it.
template <class T, class Op> GD_DEVICE T warp_reduce_all(T value, Op op) { return shuffle(warp_reduce(value, op), 0); }
// The values of lanes up to and with one's own.
template <class T, class Op> GD_DEVICE T warp_inclusive_scan(T value, Op op) {
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) {
    const T before = shuffle_up(value, delta);
    if (lane_id() >= delta) value = op(before, value);
  }
  return value;
}

// One value per warp, in shared memory of its own for each T.
template <class T> GD_DEVICE T* warp_values() {
  __shared__ __align__(16) unsigned char bytes[32 * sizeof(T)];
  return reinterpret_cast<T*>(bytes);
}

// The values of all threads combined; every thread has it.
template <class T, class Op> GD_DEVICE T block_reduce(T value, Op op) {
  T* values = warp_values<T>();
  value = warp_reduce(value, op);
  __syncthreads();  // what an earlier call left there was read
  if (lane_id() == 0) values[warp_id()] = value;
  __syncthreads();
  T all = values[0];
  for (int warp = 1; warp < static_cast<int>(blockDim.x >> 5); ++warp) all = op(all, values[warp]);
  return all;
}
// The values of threads up to and with one's own; total, where asked for, gets those of all.
template <class T, class Op> GD_DEVICE T block_inclusive_scan(T value, Op op, T* total = nullptr) {
  T* values = warp_values<T>();
  value = warp_inclusive_scan(value, op);
  __syncthreads();
  if (lane_id() == 31) values[warp_id()] = value;
  __syncthreads();
  T before = values[0];
  for (int warp = 1; warp < warp_id(); ++warp) before = op(before, values[warp]);
  if (total != nullptr) {
    T all = values[0];
    for (int warp = 1; warp < static_cast<int>(blockDim.x >> 5); ++warp) all = op(all, values[warp]);
    *total = all;
  }
  return warp_id() > 0 ? op(before, value) : value;
}
// The values of threads before one's own; first for thread 0.
template <class T, class Op> GD_DEVICE T block_exclusive_scan(T value, Op op, T first, T* total = nullptr) {
  T* values = warp_values<T>();
  const T inclusive = warp_inclusive_scan(value, op);
  const T before_in_warp = shuffle_up(inclusive, 1);
  __syncthreads();
  if (lane_id() == 31) values[warp_id()] = inclusive;
  __syncthreads();
  T before = values[0];
  for (int warp = 1; warp < warp_id(); ++warp) before = op(before, values[warp]);
  if (total != nullptr) {
    T all = values[0];
    for (int warp = 1; warp < static_cast<int>(blockDim.x >> 5); ++warp) all = op(all, values[warp]);
    *total = all;
  }
  if (threadIdx.x == 0) return first;
  if (lane_id() == 0) return before;
  return warp_id() > 0 ? op(before, before_in_warp) : before_in_warp;
}

// ---- atomics

// Replace *at by op(*at, value), of any T of 1, 2, 4 or 8 bytes; gives what was there.
template <class T, class Op> GD_DEVICE T atomic_update(T* at, T value, Op op) {
  if constexpr (sizeof(T) == 8) {
    u64* word = reinterpret_cast<u64*>(at);
    u64 seen = *word, found;
    while ((found = atomicCAS(word, seen, bits_as<u64>(op(bits_as<T>(seen), value)))) != seen) seen = found;
    return bits_as<T>(seen);
  } else if constexpr (sizeof(T) == 4) {
    u32* word = reinterpret_cast<u32*>(at);
    u32 seen = *word, found;
    while ((found = atomicCAS(word, seen, bits_as<u32>(op(bits_as<T>(seen), value)))) != seen) seen = found;
    return bits_as<T>(seen);
  } else {
    static_assert(sizeof(T) <= 2, "atomics are of 1, 2, 4 or 8 bytes");
    typedef typename choose<sizeof(T) == 2, u16, u8>::type part;
    const u64 address = reinterpret_cast<u64>(at);
    u32* word = reinterpret_cast<u32*>(address & ~3ull);
    const int shift = static_cast<int>(address & 3) * 8;
    const u32 mask = (sizeof(T) == 2 ? 0xffffu : 0xffu) << shift;
    u32 seen = *word, found;
    for (;;) {
      const T before = bits_as<T>(static_cast<part>(seen >> shift));
      const u32 next = (seen & ~mask) | static_cast<u32>(bits_as<part>(op(before, value))) << shift;
      found = atomicCAS(word, seen, next);
      if (found == seen) return before;
      seen = found;
    }
  }
}

template <class T> struct stored_sum {
  GD_DEVICE T operator()(T a, T b) const { return from_compute<T>(to_compute(a) + to_compute(b)); }
};
// Add to memory. The order among threads, and so the last bits of a floating sum, are not fixed.
template <class T> GD_DEVICE void atomic_add(T* at, T value) { atomic_update(at, value, stored_sum<T>()); }
GD_DEVICE void atomic_add(float* at, float value) { atomicAdd(at, value); }
GD_DEVICE void atomic_add(double* at, double value) { atomicAdd(at, value); }
GD_DEVICE void atomic_add(i32* at, i32 value) { atomicAdd(at, value); }
GD_DEVICE void atomic_add(u32* at, u32 value) { atomicAdd(at, value); }
GD_DEVICE void atomic_add(u64* at, u64 value) { atomicAdd(at, value); }
GD_DEVICE void atomic_add(i64* at, i64 value) { atomicAdd(reinterpret_cast<u64*>(at), static_cast<u64>(value)); }
#ifdef GD_COMPLEX
template <class T> GD_DEVICE void atomic_add(complex_t<T>* at, complex_t<T> value) {
  atomicAdd(&at->re, value.re);
  atomicAdd(&at->im, value.im);
}
#endif

}  // namespace gd

#endif
