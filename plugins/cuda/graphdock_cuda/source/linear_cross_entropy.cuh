// The cross-entropy with a class index of type LABEL per row, of logits that come in chunks of classes; numbers of rows are
// of type STATISTICS. Logits lie densely from an aligned address on: where whole packs make up a row, they are moved as packs.
// After exponentials.cuh.

typedef LABEL TL;
typedef STATISTICS U;
constexpr int V = vector_width<T>::value;

// Of each row, between chunks.
struct Row {
  Exponentials e;
  C mine;  // the logit of its label, once it came
};

template <class G> GD_DEVICE Exponentials exponentials_of(const T* x, i64 width) {
  if (width % V) return exponentials<G>(x, width);
  Exponentials found{C(0), C(0)};
  GD_ROW(G, i, width / V) {
    const pack<T> values = load_pack(x + i * V);
    C largest = to_compute(values.at[0]), sum = C(0);
#pragma unroll
    for (int k = 1; k < V; ++k) largest = maximum(largest, to_compute(values.at[k]));
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const C value = to_compute(values.at[k]);
      sum += value == largest ? C(1) : exp(value - largest);  // equal ones may be infinite
    }
    found = join()(found, Exponentials{largest, sum});
  }
  return G::reduce(found, join());
}

// Rows have the classes from `begin` on, `width` of `classes`.
template <class G>
GD_DEVICE void chunk(const T* x, const TL* labels, Row* kept, U* loss, U* log_sum, i64 rows, i64 width, i64 begin, i64 classes,
                     i64* words, i64 code) {
  GD_ROWS(G, row, rows) {
    const i64 label = static_cast<i64>(labels[row]);
    const Exponentials e = exponentials_of<G>(x + row * width, width);
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
    const auto by_logit = [=](T logit, i64 i) {
      return from_compute<T>((exp(to_compute(logit) - total) - (i == label ? C(1) : C(0))) * factor);
    };
    if (width % V) {
      GD_ROW(G, i, width) at[i] = by_logit(at[i], i);
    } else {
      GD_ROW(G, i, width / V) {
        pack<T> values = load_pack(at + i * V);
#pragma unroll
        for (int k = 0; k < V; ++k) values.at[k] = by_logit(values.at[k], i * V + k);
        store_pack(at + i * V, values);
      }
    }
  }
}

GD_KERNEL(slope_warp)(T* x, const TL* labels, const U* log_sum, const U* dloss, i64 rows, i64 width, i64 begin) {
  slope<warp_group>(x, labels, log_sum, dloss, rows, width, begin);
}
GD_KERNEL(slope_block)(T* x, const TL* labels, const U* log_sum, const U* dloss, i64 rows, i64 width, i64 begin) {
  slope<block_group>(x, labels, log_sum, dloss, rows, width, begin);
}
