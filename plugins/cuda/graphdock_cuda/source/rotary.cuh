// Rotary position embedding (Su and others, "RoFormer", 2021) of x[rows, positions, heads, depth] by angles[positions, angles].
// TYPE: of the elements; ANGLE: of cosines and sines; WIDE: what is computed in. A thread has two numbers that are turned together, or
// one that stays; y may be x. _32 and _64 are the bits that a thread counts in.

typedef TYPE T;
typedef ANGLE U;
typedef WIDE W;

struct Heads {
  i64 positions, heads, depth, angles;
};

template <class I> GD_DEVICE void turn(const T* x, const U* cos, const U* sin, T* y, I n, Heads sizes, int pairs, int back) {
  const I depth = static_cast<I>(sizes.depth), angles = static_cast<I>(sizes.angles), per_head = depth - angles;
  GD_GRID_LOOP(I, thread, n) {
    const I head = thread / per_head, i = thread - head * per_head, begin = head * depth;
    if (i >= angles) {
      y[begin + angles + i] = x[begin + angles + i];
      continue;
    }
    const I first = begin + (pairs ? 2 * i : i), second = first + (pairs ? 1 : angles);
    const I angle = head / static_cast<I>(sizes.heads) % static_cast<I>(sizes.positions) * angles + i;
    const W a = static_cast<W>(load(x + first)), b = static_cast<W>(load(x + second));
    const W c = static_cast<W>(load(cos + angle)), sine = static_cast<W>(load(sin + angle)), s = back ? -sine : sine;
    store(y + first, a * c - b * s);
    store(y + second, b * c + a * s);
  }
}
GD_KERNEL(rotary_32)(const T* x, const U* cos, const U* sin, T* y, i64 n, Heads sizes, int pairs, int back) {
  turn<u32>(x, cos, sin, y, n, sizes, pairs, back);
}
GD_KERNEL(rotary_64)(const T* x, const U* cos, const U* sin, T* y, i64 n, Heads sizes, int pairs, int back) {
  turn<i64>(x, cos, sin, y, n, sizes, pairs, back);
}
