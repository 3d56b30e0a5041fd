// Softmax of scores, dropped. After attention.cuh.

// weights may be the scores. log_sum: of all scores' rows, the logarithm of base 2 of the sum of exponentials.
template <class G>
GD_DEVICE void attention_forward(const C* scores, T* weights, float* log_sum, const BIAS* bias, const Dropout& dropout, const Rows& rows) {
  GD_ROWS(G, i, rows.count) {
    const Row row(scores, bias, rows, i);
    Exponentials found{-limits<C>::infinity(), C(0)};
    GD_ROW(G, j, row.end) found = join()(found, Exponentials{row.score(j), C(1)});
    found = G::reduce(found, join());
    const C inverse = row.inverse(found, rows.keys);
    if (G::thread() == 0) store(log_sum + row.number, (found.largest - log(inverse)) * C(1.4426950408889634074));
    T* to = weights + i * rows.seen;
    over_keys<G>(rows, row, dropout, [&](i64 j, C factor) { store(to + j, row.weight(j, found, inverse) * factor); });
  }
}

GD_KERNEL(attention_forward_warp)
(const C* scores, T* weights, float* log_sum, const BIAS* bias, const u64* words, const float* rate, const T* factor, Rows rows) {
  attention_forward<warp_group>(scores, weights, log_sum, bias, Dropout{words, rate, factor}, rows);
}
GD_KERNEL(attention_forward_block)
(const C* scores, T* weights, float* log_sum, const BIAS* bias, const u64* words, const float* rate, const T* factor, Rows rows) {
  attention_forward<block_group>(scores, weights, log_sum, bias, Dropout{words, rate, factor}, rows);
}
