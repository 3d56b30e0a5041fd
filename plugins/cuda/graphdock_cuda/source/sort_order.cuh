// Unsigned integers that are ordered as elements are: NaN above all, alike; -0 as 0. Macro: KEY: u32 or u64, which holds them.

namespace gd {

template <class T> GD_DEVICE KEY key_of(T value) {
  typedef typename choose<sizeof(T) == 1, u8, typename choose<sizeof(T) == 2, u16, typename choose<sizeof(T) == 4, u32, u64>::type>::type>::type B;
  const B top = static_cast<B>(static_cast<B>(1) << (8 * sizeof(T) - 1)), all = static_cast<B>(~static_cast<B>(0));
  B bits = bits_as<B>(value);
  if constexpr (is_floating<T>::value) {
    const compute_t<T> number = to_compute(value);
    if (number != number) return all;
    if (number == compute_t<T>(0)) bits = 0;
    return static_cast<B>(bits & top ? ~bits : bits | top);
  } else {
    return !same<unsigned_t<T>, T>::value ? static_cast<B>(bits ^ top) : bits;
  }
}

}  // namespace gd
