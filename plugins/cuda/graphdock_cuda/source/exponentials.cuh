// Of the rows of [rows, width] of TYPE: the largest element and the sum of exponentials.
// Both are found in one pass (Milakov and Gimelshein, 2018).

typedef TYPE T;
typedef compute_t<T> C;

struct Exponentials {
  C largest, sum;  // sum is 0 where there is no logit yet
};
struct join {
  GD_DEVICE Exponentials operator()(const Exponentials& a, const Exponentials& b) const {
    if (a.sum == C(0)) return b;
    if (b.sum == C(0)) return a;
    const C largest = maximum(a.largest, b.largest);
    // equal ones are not subtracted: they may be infinite
    const C left = a.largest == largest ? a.sum : a.sum * exp(a.largest - largest);
    const C right = b.largest == largest ? b.sum : b.sum * exp(b.largest - largest);
    return {largest, left + right};
  }
};

template <class G> GD_DEVICE Exponentials exponentials(const T* x, i64 width) {
  Exponentials found{C(0), C(0)};
  GD_ROW(G, i, width) found = join()(found, Exponentials{load(x + i), C(1)});
  return G::reduce(found, join());
}
