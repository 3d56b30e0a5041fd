// What a reduction or a scan does with its elements: the accumulator, its value over nothing, what an element adds, how two are
// combined, and what becomes of the last one. After base.cuh, complex.cuh and scalar.cuh.
//
// A reducer of one's own is such a struct: it stands before reduce.cuh, and the macro REDUCER names it.

#ifndef GD_REDUCERS
#define GD_REDUCERS

namespace gd {

template <class T> struct sum_reducer {
  typedef compute_t<T> acc;
  static GD_DEVICE acc first() { return from_compute<acc>(0.0f); }
  static GD_DEVICE acc map(compute_t<T> x, i64) { return x; }
  static GD_DEVICE acc combine(acc a, acc b) { return add(a, b); }
  static GD_DEVICE acc finish(acc a, i64) { return a; }
};
template <class T> struct product_reducer : sum_reducer<T> {
  typedef compute_t<T> acc;
  static GD_DEVICE acc first() { return from_compute<acc>(1.0f); }
  static GD_DEVICE acc combine(acc a, acc b) { return mul(a, b); }
};
template <class T> struct max_reducer : sum_reducer<T> {
  typedef compute_t<T> acc;
  static GD_DEVICE acc first() { return limits<T>::bottom(); }
  static GD_DEVICE acc combine(acc a, acc b) { return maximum(a, b); }
};
template <class T> struct min_reducer : sum_reducer<T> {
  typedef compute_t<T> acc;
  static GD_DEVICE acc first() { return limits<T>::top(); }
  static GD_DEVICE acc combine(acc a, acc b) { return minimum(a, b); }
};
struct all_reducer {
  typedef bool acc;
  static GD_DEVICE bool first() { return true; }
  static GD_DEVICE bool map(bool x, i64) { return x; }
  static GD_DEVICE bool combine(bool a, bool b) { return a && b; }
  static GD_DEVICE bool finish(bool a, i64) { return a; }
};
struct any_reducer : all_reducer {
  static GD_DEVICE bool first() { return false; }
  static GD_DEVICE bool combine(bool a, bool b) { return a || b; }
};

// A mean: integers are summed in 64 bits and divide towards zero; the mean of nothing is NaN, or 0.
template <class T> struct mean_reducer {
  typedef typename choose<is_integer<compute_t<T>>::value, typename choose<same<unsigned_t<T>, T>::value, u64, i64>::type,
                          compute_t<T>>::type acc;
  static GD_DEVICE acc first() { return acc(0); }
  static GD_DEVICE acc map(compute_t<T> x, i64) { return static_cast<acc>(x); }
  static GD_DEVICE acc combine(acc a, acc b) { return add(a, b); }
  static GD_DEVICE acc finish(acc a, i64 n) {
    if constexpr (is_integer<acc>::value) return n ? trunc_div(a, static_cast<acc>(n)) : acc(0);
    else return a / static_cast<acc>(n);
  }
};
template <class P> struct mean_reducer<complex_t<P>> : sum_reducer<complex_t<P>> {
  static GD_DEVICE complex_t<P> finish(complex_t<P> a, i64 n) { return {a.re / static_cast<P>(n), a.im / static_cast<P>(n)}; }
};
// The sum divided by the square root of the number of terms.
template <class T> struct root_reducer : sum_reducer<T> {
  typedef compute_t<T> acc;
  static GD_DEVICE acc finish(acc a, i64 n) { return a / sqrt(static_cast<acc>(n)); }
};
// Half the sum of the squares.
template <class T> struct half_squares_reducer : sum_reducer<T> {
  typedef compute_t<T> acc;
  static GD_DEVICE acc map(acc x, i64) { return x * x; }
  static GD_DEVICE acc finish(acc a, i64) { return a * acc(0.5); }
};

// The place of the first element that is better than all others; NaN counts as the infinity that is worst.
template <class C> struct place_of {
  C value;
  i64 at;  // -1: of no element
};
template <class T, bool LARGEST> struct place_reducer {
  typedef place_of<compute_t<T>> acc;
  static GD_DEVICE acc first() { return acc{from_compute<compute_t<T>>(0.0f), -1}; }
  static GD_DEVICE acc map(compute_t<T> x, i64 i) { return acc{x == x ? x : LARGEST ? limits<T>::bottom() : limits<T>::top(), i}; }
  static GD_DEVICE bool better(compute_t<T> a, compute_t<T> b) { return LARGEST ? a > b : a < b; }
  static GD_DEVICE acc combine(acc a, acc b) {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    if (better(a.value, b.value)) return a;
    if (better(b.value, a.value)) return b;
    return a.at < b.at ? a : b;
  }
  static GD_DEVICE i64 finish(acc a, i64) { return a.at; }
};
template <class T> using argmax_reducer = place_reducer<T, true>;
template <class T> using argmin_reducer = place_reducer<T, false>;

template <class R> struct combining {
  template <class A> GD_DEVICE A operator()(A a, A b) const { return R::combine(a, b); }
};

}  // namespace gd

#endif
