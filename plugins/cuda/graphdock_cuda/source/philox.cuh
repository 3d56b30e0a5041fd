// Philox4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): the stream of a random op.
//
// Word w of a stream is word w % 4 of block 1 + w / 4, whose counter is (block, outer, iteration, ordinal), least significant word
// first. A thread computes the blocks that it needs, and no other.

namespace gd {

struct Words { u64 at[4]; };

struct RandomStream {
  u64 key[2], outer, iteration, ordinal;

  // The block of that number; the first is 1.
  GD_DEVICE Words block(u64 number) const {
    u64 c0 = number, c1 = outer, c2 = iteration, c3 = ordinal, k0 = key[0], k1 = key[1];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const u64 high0 = __umul64hi(0xd2e7470ee14c6c93ull, c0), low0 = 0xd2e7470ee14c6c93ull * c0;
      const u64 high1 = __umul64hi(0xca5a826395121157ull, c2), low1 = 0xca5a826395121157ull * c2;
      c0 = high1 ^ c1 ^ k0;
      c1 = low1;
      c2 = high0 ^ c3 ^ k1;
      c3 = low0;
      k0 += 0x9e3779b97f4a7c15ull;
      k1 += 0xbb67ae8584caa73bull;
    }
    return {{c0, c1, c2, c3}};
  }
  GD_DEVICE u64 word(u64 number) const { return block(1 + number / 4).at[number % 4]; }
};

// Five parameters of a launch; without an ordinal it is that of the first step.
#define GD_STREAM u64 key0, u64 key1, u64 outer, u64 iteration, const u64* ordinal
#define GD_OPEN_STREAM(name) \
  const RandomStream name = {{key0, key1}, outer, iteration, ordinal == nullptr ? 0ull : *ordinal}

// The top 53 bits of a word as a fraction of one.
GD_DEVICE double fraction(u64 word) { return static_cast<double>(word >> 11) * 1.1102230246251565404e-16; }
// The top bits of half a word, as many as the type keeps, as a fraction of one.
template <class T> GD_DEVICE float narrow_fraction(u32 half) {
  constexpr int BITS = same<T, half_t>::value ? 11 : same<T, bfloat16_t>::value ? 8 : 24;
  return static_cast<float>(half >> (32 - BITS)) * (1.0f / static_cast<float>(1 << BITS));
}

// Uniform numbers that a block holds: 4 of double, 8 of what is narrower, low half of a word first.
template <class T> struct uniforms {
  static constexpr int count = 8;
  float at[8];
  GD_DEVICE explicit uniforms(const Words& words) {
#pragma unroll
    for (int i = 0; i < 8; ++i) at[i] = narrow_fraction<T>(static_cast<u32>(words.at[i / 2] >> (i % 2 * 32)));
  }
};
template <> struct uniforms<double> {
  static constexpr int count = 4;
  double at[4];
  GD_DEVICE explicit uniforms(const Words& words) {
#pragma unroll
    for (int i = 0; i < 4; ++i) at[i] = fraction(words.at[i]);
  }
};

// Box and Muller, "A note on the generation of random normal deviates", 1958: two uniform numbers become two normal ones.
template <class C> GD_DEVICE void to_normal(C& u, C& v) {
  const C radius = sqrt(log(C(1) - u) * C(-2)), angle = v * C(6.28318530717958647693);
  u = radius * cos(angle);
  v = radius * sin(angle);
}

}  // namespace gd
