// From the gradient of dropped weights to that of scores. After attention.cuh.

// A row's exponentials, and the sum of them times what reaches each weight.
struct Slope {
  Exponentials e;
  C sum;
};
struct join_slopes {
  static GD_DEVICE C part(const Slope& of, const Exponentials& all) {
    if (of.e.sum == C(0)) return C(0);
    return of.e.largest == all.largest ? of.sum : of.sum * exp(of.e.largest - all.largest);
  }
  GD_DEVICE Slope operator()(const Slope& a, const Slope& b) const {
    const Exponentials all = join()(a.e, b.e);
    return {all, part(a, all) + part(b, all)};
  }
};

// toward: what reaches the dropped weights. weights: those, dropped; may be the scores. slopes: by the scaled scores; may be toward.
template <class G>
GD_DEVICE void attention_grad(const C* scores, const C* toward, T* weights, T* slopes, const BIAS* bias, const Dropout& dropout, const Rows& rows) {
  GD_ROWS(G, i, rows.count) {
    const Row row(scores, bias, rows, i);
    const i64 first = i * rows.seen;
    const C* reaches = toward + first;
    Slope found{{-limits<C>::infinity(), C(0)}, C(0)};
    over_keys<G>(rows, row, dropout, [&](i64 j, C factor) {
      if (j < row.end) found = join_slopes()(found, Slope{{row.score(j), C(1)}, reaches[j] * factor});
    });
    found = G::reduce(found, join_slopes());
    const C inverse = row.inverse(found.e, rows.keys), mean = found.sum * inverse;
    over_keys<G>(rows, row, dropout, [&](i64 j, C factor) {
      const C weight = row.weight(j, found.e, inverse);
      const C slope = row.sees(j) ? weight * (reaches[j] * factor - mean) : C(0);
      store(weights + first + j, weight * factor);
      store(slopes + first + j, slope);
    });
  }
}

GD_KERNEL(attention_grad_warp)
(const C* scores, const C* toward, T* weights, T* slopes, const BIAS* bias, const u64* words, const float* rate, const T* factor, Rows rows) {
  attention_grad<warp_group>(scores, toward, weights, slopes, bias, Dropout{words, rate, factor}, rows);
}
GD_KERNEL(attention_grad_block)
(const C* scores, const C* toward, T* weights, T* slopes, const BIAS* bias, const u64* words, const float* rate, const T* factor, Rows rows) {
  attention_grad<block_group>(scores, toward, weights, slopes, bias, Dropout{words, rate, factor}, rows);
}
