// Rows of the scores of attention. TYPE: of the elements; BIAS: of a bias; BIASED: whether one is added; MASKED: whether it says
// which keys are seen; DROPPED: whether weights are dropped.
// Scores are the scaled products of queries and keys, in what is computed in. After philox.cuh, rows.cuh and exponentials.cuh.

// What is held: `count` rows of `seen` keys each, of all scores [matrices, queries, keys] the rows from `first` on. Where a matrix
// of the bias lies is told by the dims before the last two; steps are 0 where it is stretched.
struct Rows {
  i64 count, first, queries, keys, seen;
  i64 dims[MAX_RANK], strides[MAX_RANK];
  i64 by_query, by_key;
  int rank, causal;
  double hidden;  // the score of keys that are not seen
};

// What dropout is given: the words of a stream, the rate, and the factor of weights that stay.
struct Dropout {
  const u64* words;
  const float* rate;
  const T* factor;
};

// One row: its number among all, how many of the keys that are held it looks at, and how many of them causality shows.
struct Row {
  const C* scores;
  const BIAS* bias;
  i64 number, end, shown, by_key;
  C hidden;

  GD_DEVICE Row(const C* scores, const BIAS* bias, const Rows& rows, i64 row)
      : scores(scores + row * rows.seen), bias(bias), number(rows.first + row), end(rows.seen), shown(rows.seen),
        by_key(rows.by_key), hidden(static_cast<C>(rows.hidden)) {
    const i64 matrix = number / rows.queries, query = number - matrix * rows.queries;
    if (rows.causal) shown = minimum(shown, maximum(query + rows.keys - rows.queries + 1, i64(0)));
    if (hidden == -limits<C>::infinity()) end = shown;
#if BIASED || MASKED
    this->bias += offset_of(matrix, rows.dims, rows.strides, rows.rank) + query * rows.by_query;
#endif
  }
  GD_DEVICE bool sees(i64 j) const {
#if MASKED
    return j < shown && bias[j * by_key];
#else
    return j < shown;
#endif
  }
  GD_DEVICE C score(i64 j) const {
#if BIASED
    return sees(j) ? scores[j] + static_cast<C>(load(bias + j * by_key)) : hidden;
#else
    return sees(j) ? scores[j] : hidden;
#endif
  }
  // One divided by the sum of exponentials. NaN for a row that sees nothing of its keys, and where the largest score is infinite.
  GD_DEVICE C inverse(const Exponentials& e, i64 keys) const {
    const bool nothing = keys > 0 && e.largest - e.largest != C(0);
    return nothing ? static_cast<C>(NAN) : C(1) / e.sum;
  }
  GD_DEVICE C weight(i64 j, const Exponentials& e, C inverse) const {
    return j < end ? exp(score(j) - e.largest) * inverse : C(0) * inverse;
  }
};

// Calls take(j, factor) for the keys of a row, each by one thread, the same one each time: factor is 1, or with dropout that of the
// weight's number in the stream, of which a thread draws eight.
template <class G, class Take> GD_DEVICE void over_keys(const Rows& rows, const Row& row, const Dropout& dropout, Take take) {
#if DROPPED
  const u64* words = dropout.words;
  const RandomStream stream = {{words[0], words[1]}, words[2], words[3], words[4]};
  const float rate = *dropout.rate;
  const C factor = load(dropout.factor);
  const i64 begin = row.number * rows.keys;
  for (i64 block = begin / 8 + G::thread(); block * 8 < begin + rows.seen; block += G::size()) {
    const uniforms<float> drawn(stream.block(1 + block));
    u32 kept = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) kept |= static_cast<u32>(drawn.at[i] >= rate) << i;
    // eight copies of what is done with a key would be long
#pragma unroll 2
    for (int i = 0; i < 8; ++i) {
      const i64 j = block * 8 + i - begin;
      if (j >= 0 && j < rows.seen) take(j, kept >> i & 1 ? factor : C(0));
    }
  }
#else
  GD_ROW(G, j, rows.seen) take(j, C(1));
#endif
}
