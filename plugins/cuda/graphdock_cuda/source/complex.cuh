// Complex numbers, as NumPy's complex64 and complex128 lie in memory.

#ifndef GD_COMPLEX
#define GD_COMPLEX

namespace gd {

template <class T> struct alignas(2 * sizeof(T)) complex_t {
  T re, im;
  typedef T part;
};
typedef complex_t<float> complex64;
typedef complex_t<double> complex128;

template <class T> struct is_complex { static constexpr bool value = false; };
template <class T> struct is_complex<complex_t<T>> { static constexpr bool value = true; };

// A real number as a complex one, and one precision as the other.
template <class T> struct storing<complex_t<T>> {
  template <class C> static GD_DEVICE complex_t<T> of(C value) { return complex_t<T>{static_cast<T>(value), T(0)}; }
  template <class C> static GD_DEVICE complex_t<T> of(complex_t<C> value) {
    return complex_t<T>{static_cast<T>(value.re), static_cast<T>(value.im)};
  }
};

template <class T> GD_DEVICE complex_t<T> operator+(complex_t<T> a, complex_t<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> GD_DEVICE complex_t<T> operator-(complex_t<T> a, complex_t<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> GD_DEVICE complex_t<T> operator-(complex_t<T> a) { return {-a.re, -a.im}; }
template <class T> GD_DEVICE complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> GD_DEVICE complex_t<T> operator*(complex_t<T> a, T b) { return {a.re * b, a.im * b}; }
template <class T> GD_DEVICE complex_t<T> operator*(T a, complex_t<T> b) { return {a * b.re, a * b.im}; }
// Smith's method, as NumPy divides.
template <class T> GD_DEVICE complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == T(0) && b.im == T(0)) return {a.re / fabs(b.re), a.im / fabs(b.re)};
    const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T> GD_DEVICE complex_t<T>& operator+=(complex_t<T>& a, complex_t<T> b) { return a = a + b; }
template <class T> GD_DEVICE complex_t<T>& operator-=(complex_t<T>& a, complex_t<T> b) { return a = a - b; }
template <class T> GD_DEVICE complex_t<T>& operator*=(complex_t<T>& a, complex_t<T> b) { return a = a * b; }
template <class T> GD_DEVICE bool operator==(complex_t<T> a, complex_t<T> b) { return a.re == b.re && a.im == b.im; }
template <class T> GD_DEVICE bool operator!=(complex_t<T> a, complex_t<T> b) { return !(a == b); }

template <class T> GD_DEVICE complex_t<T> conj(complex_t<T> a) { return {a.re, -a.im}; }
template <class T> GD_DEVICE T abs(complex_t<T> a) { return hypot(a.re, a.im); }
template <class T> GD_DEVICE T abs_squared(complex_t<T> a) { return a.re * a.re + a.im * a.im; }
template <class T> GD_DEVICE T angle(complex_t<T> a) { return atan2(a.im, a.re); }
template <class T> GD_DEVICE complex_t<T> polar(T radius, T angle) { return {radius * ::cos(angle), radius * ::sin(angle)}; }
template <class T> GD_DEVICE complex_t<T> reciprocal(complex_t<T> a) { return complex_t<T>{T(1), T(0)} / a; }

template <class T> GD_DEVICE complex_t<T> exp(complex_t<T> a) {
  return a.im == T(0) ? complex_t<T>{::exp(a.re), a.im} : polar(::exp(a.re), a.im);
}
template <class T> GD_DEVICE complex_t<T> log(complex_t<T> a) { return {::log(abs(a)), angle(a)}; }
template <class T> GD_DEVICE complex_t<T> sqrt(complex_t<T> a) {
  if (a.re == T(0) && a.im == T(0)) return {T(0), a.im};
  const T root = ::sqrt((fabs(a.re) + abs(a)) * T(0.5));
  if (a.re >= T(0)) return {root, a.im / (T(2) * root)};
  return {fabs(a.im) / (T(2) * root), ::copysign(root, a.im)};
}
template <class T> GD_DEVICE complex_t<T> rsqrt(complex_t<T> a) { return reciprocal(sqrt(a)); }
template <class T> GD_DEVICE complex_t<T> sin(complex_t<T> a) {
  return {::sin(a.re) * ::cosh(a.im), ::cos(a.re) * ::sinh(a.im)};
}
template <class T> GD_DEVICE complex_t<T> cos(complex_t<T> a) {
  return {::cos(a.re) * ::cosh(a.im), -::sin(a.re) * ::sinh(a.im)};
}
template <class T> GD_DEVICE complex_t<T> sinh(complex_t<T> a) {
  return {::sinh(a.re) * ::cos(a.im), ::cosh(a.re) * ::sin(a.im)};
}
template <class T> GD_DEVICE complex_t<T> cosh(complex_t<T> a) {
  return {::cosh(a.re) * ::cos(a.im), ::sinh(a.re) * ::sin(a.im)};
}
// Beyond |re| = 20 the real part is 1 in either precision, and the sinh's would overflow.
template <class T> GD_DEVICE complex_t<T> tanh(complex_t<T> a) {
  if (fabs(a.re) > T(20)) return {::copysign(T(1), a.re), T(4) * ::sin(a.im) * ::cos(a.im) * ::exp(T(-2) * fabs(a.re))};
  const T sinh_re = ::sinh(a.re), cos_im = ::cos(a.im), below = sinh_re * sinh_re + cos_im * cos_im;
  return {sinh_re * ::cosh(a.re) / below, ::sin(a.im) * cos_im / below};
}
template <class T> GD_DEVICE complex_t<T> tan(complex_t<T> a) {
  const complex_t<T> turned = tanh(complex_t<T>{-a.im, a.re});
  return {turned.im, -turned.re};
}
template <class T> GD_DEVICE complex_t<T> pow(complex_t<T> a, complex_t<T> b) {
  if (b.re == T(0) && b.im == T(0)) return {T(1), T(0)};
  if (a.re == T(0) && a.im == T(0)) return {T(0), T(0)};
  return exp(b * log(a));
}

}  // namespace gd

#endif
