// Quotients and remainders towards zero, and conjugates, of every compute type. After scalar.cuh.

template <class C> GD_DEVICE C truncated_quotient(C a, C b) {
  if constexpr (is_integer<C>::value) return trunc_div(a, b);
  else return trunc(a / b);
}
template <class C> GD_DEVICE C truncated_remainder(C a, C b) {
  if constexpr (is_integer<C>::value) return trunc_mod(a, b);
  else return fmod(a, b);
}
template <class C> GD_DEVICE C conjugate(C a) {
  if constexpr (is_complex<C>::value) return conj(a);
  else return a;
}
