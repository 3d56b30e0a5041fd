// What formulas of single elements are printed in: one function per operator and function, for every compute type.
// After base.cuh and complex.cuh.

namespace gd {

using ::exp;
using ::fabs;
using ::pow;
using ::sqrt;

template <class T> struct is_integer { static constexpr bool value = !is_floating<T>::value && !is_complex<T>::value; };

// A number of a formula as the type that the formula is computed in.
template <class C> GD_DEVICE C number(double value) { return from_compute<C>(value); }

template <class C> GD_DEVICE C add(C a, C b) {
  if constexpr (is_integer<C>::value) return wrap_add(a, b);
  else return a + b;
}
template <class C> GD_DEVICE C sub(C a, C b) {
  if constexpr (is_integer<C>::value) return wrap_sub(a, b);
  else return a - b;
}
template <class C> GD_DEVICE C mul(C a, C b) {
  if constexpr (is_integer<C>::value) return wrap_mul(a, b);
  else return a * b;
}
template <class C> GD_DEVICE C divide(C a, C b) {
  if constexpr (is_integer<C>::value) return trunc_div(a, b);
  else return a / b;
}
template <class C> GD_DEVICE C neg(C a) {
  if constexpr (is_integer<C>::value) return wrap_neg(a);
  else return -a;
}
template <class C> GD_DEVICE C absolute(C a) {
  if constexpr (is_floating<C>::value) return fabs(a);
  else return a < C(0) ? wrap_neg(a) : a;
}
template <class C> GD_DEVICE C sign(C a) {
  if constexpr (is_complex<C>::value) {
    const auto size = abs(a);
    return size == decltype(size)(0) ? C{0, 0} : C{a.re / size, a.im / size};
  } else {
    return a > C(0) ? C(1) : a < C(0) ? static_cast<C>(-1) : a;  // NaN stays NaN, and so does the sign of 0
  }
}
template <class C> GD_DEVICE C reciprocal_of(C a) {
  if constexpr (is_complex<C>::value) return reciprocal(a);
  else return divide(C(1), a);
}
template <class C> GD_DEVICE C reciprocal_root(C a) {
  if constexpr (is_complex<C>::value) return rsqrt(a);
  else return C(1) / sqrt(a);
}
template <class C> GD_DEVICE C logistic(C a) {
  if constexpr (is_complex<C>::value) {
    return reciprocal(C{1, 0} + exp(-a));
  } else {
    const C e = exp(-fabs(a));
    return a >= C(0) ? C(1) / (C(1) + e) : e / (C(1) + e);
  }
}
template <class C> GD_DEVICE C power(C a, C b) {
  if constexpr (is_integer<C>::value) {
    if (b < C(0)) return a == C(1) ? C(1) : a == static_cast<C>(-1) ? ((b & C(1)) ? static_cast<C>(-1) : C(1)) : C(0);
    C result = C(1);
    for (; b != C(0); b = static_cast<C>(b >> 1)) {
      if (b & C(1)) result = wrap_mul(result, a);
      a = wrap_mul(a, a);
    }
    return result;
  } else {
    return pow(a, b);
  }
}
template <class C> GD_DEVICE bool not_a_number(C a) { return a != a; }
template <class C> GD_DEVICE bool infinite(C a) { return fabs(a) == limits<C>::infinity(); }
template <class C> GD_DEVICE bool finite(C a) { return fabs(a) < limits<C>::infinity(); }

// A value as another type of elements: towards zero and wrapped for integers, the real part of complex numbers.
template <class T, class C> GD_DEVICE compute_t<T> converted(C value) {
  if constexpr (same<T, bool>::value) {
    return value != from_compute<C>(0.0f);
  } else if constexpr (is_complex<C>::value && !is_complex<T>::value) {
    return converted<T>(value.re);
  } else if constexpr (is_floating<C>::value && is_integer<T>::value) {
    // beyond 64 bits, and NaN: the lowest 64-bit integer, cut, as x86 does it
    if (!(fabs(value) < C(9223372036854775808.0))) {
      if (same<T, u64>::value && value > C(0) && value < C(18446744073709551616.0)) return static_cast<T>(static_cast<u64>(value));
      return static_cast<T>(sizeof(T) == 8 ? 0x8000000000000000ull : sizeof(T) == 4 && limits<T>::is_signed ? 0x80000000ull : 0ull);
    }
    if (sizeof(T) == 4 && limits<T>::is_signed && !(fabs(value) < C(2147483648.0)) && value != C(-2147483648.0))
      return static_cast<T>(0x80000000ull);
    return static_cast<T>(static_cast<i64>(value));
  } else {
    return to_compute(from_compute<T>(value));
  }
}

}  // namespace gd
