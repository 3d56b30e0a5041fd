// Shifts by counts that are clamped to the width, and numbers of set bits.

namespace gd {

template <class C> GD_DEVICE int shift_count(C count) {
  return count < C(0) ? 0 : count > C(8 * sizeof(C) - 1) ? static_cast<int>(8 * sizeof(C) - 1) : static_cast<int>(count);
}
template <class C> GD_DEVICE C shifted_left(C x, C count) {
  return static_cast<C>(static_cast<u64>(x) << shift_count(count));
}
template <class C> GD_DEVICE C shifted_right(C x, C count) { return static_cast<C>(x >> shift_count(count)); }
template <class C> GD_DEVICE u8 count_bits(C x) {
  return static_cast<u8>(__popcll(static_cast<u64>(static_cast<unsigned_t<C>>(x))));
}

}  // namespace gd
