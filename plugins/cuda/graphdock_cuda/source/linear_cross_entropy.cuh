// The cross-entropy with a class index of type LABEL per row, of logits that come in chunks of classes; numbers of rows are
// of type STATISTICS. After exponentials.cuh.

typedef LABEL TL;
typedef STATISTICS U;

// Of each row, between chunks.
struct Row {
  Exponentials e;
  C mine;  // the logit of its label, once it came
};

// Rows have the classes from `begin` on, `width` of `classes`.
template <class G>
GD_DEVICE void chunk(const T* x, const TL* labels, Row* kept, U* loss, U* log_sum, i64 rows, i64 width, i64 begin, i64 classes,
                     i64* words, i64 code) {
  GD_ROWS(G, row, rows) {
    const i64 label = static_cast<i64>(labels[row]);
    const Exponentials e = exponentials<G>(x + row * width, width);
    if (G::thread() != 0) continue;
    if (label < 0 || label >= classes) {
      words[0] = label;
      words[1] = row;
      __threadfence_system();
      words[2] = code;
      continue;
    }
    Row now{e, C(0)};
    if (begin > 0) now = Row{join()(kept[row].e, e), kept[row].mine};
    if (label >= begin && label < begin + width) now.mine = load(x + row * width + label - begin);
    if (begin + width < classes) {
      kept[row] = now;
    } else {
      store(loss + row, log(now.e.sum) - (now.mine - now.e.largest));
      store(log_sum + row, log(now.e.sum) + now.e.largest);
    }
  }
}

GD_KERNEL(chunk_warp)(const T* x, const TL* labels, Row* kept, U* loss, U* log_sum, i64 rows, i64 width, i64 begin, i64 classes,
                      i64* words, i64 code) {
  chunk<warp_group>(x, labels, kept, loss, log_sum, rows, width, begin, classes, words, code);
}
GD_KERNEL(chunk_block)(const T* x, const TL* labels, Row* kept, U* loss, U* log_sum, i64 rows, i64 width, i64 begin, i64 classes,
                       i64* words, i64 code) {
  chunk<block_group>(x, labels, kept, loss, log_sum, rows, width, begin, classes, words, code);
}

// The gradient of the loss by the logits of a chunk, over the logits.
template <class G>
GD_DEVICE void slope(T* x, const TL* labels, const U* log_sum, const U* dloss, i64 rows, i64 width, i64 begin) {
  GD_ROWS(G, row, rows) {
    const i64 label = static_cast<i64>(labels[row]) - begin;
    const C total = static_cast<C>(load(log_sum + row)), factor = static_cast<C>(load(dloss + row));
    T* const at = x + row * width;
    GD_ROW(G, i, width) store(at + i, (exp(load(at + i) - total) - (i == label ? C(1) : C(0))) * factor);
  }
}

GD_KERNEL(slope_warp)(T* x, const TL* labels, const U* log_sum, const U* dloss, i64 rows, i64 width, i64 begin) {
  slope<warp_group>(x, labels, log_sum, dloss, rows, width, begin);
}
GD_KERNEL(slope_block)(T* x, const TL* labels, const U* log_sum, const U* dloss, i64 rows, i64 width, i64 begin) {
  slope<block_group>(x, labels, log_sum, dloss, rows, width, begin);
}
