// Layer normalisation over the rows of [rows, width]. TYPE: of the elements; STATISTICS: of gamma, beta, mean and inverse; WIDE: what
// is computed in. After rows.cuh and columns.cuh.

typedef TYPE T;
typedef STATISTICS U;
typedef WIDE W;

template <class G>
GD_DEVICE void layer_norm(const T* x, const U* gamma, const U* beta, T* y, U* mean, U* inverse, i64 rows, i64 width, double epsilon) {
  GD_ROWS(G, row, rows) {
    const T* from = x + row * width;
    T* to = y + row * width;
    W sum = W(0), squares = W(0);
    GD_ROW(G, i, width) sum += static_cast<W>(load(from + i));
    const W average = G::reduce(sum, sum_op()) / static_cast<W>(width);
    GD_ROW(G, i, width) {
      const W centred = static_cast<W>(load(from + i)) - average;
      squares += centred * centred;
    }
    const W variance = G::reduce(squares, sum_op()) / static_cast<W>(width);
    const W root = W(1) / sqrt(variance + static_cast<W>(epsilon));
    GD_ROW(G, i, width) {
      const W normal = (static_cast<W>(load(from + i)) - average) * root;
      store(to + i, normal * static_cast<W>(gamma[i]) + static_cast<W>(beta[i]));
    }
    if (G::thread() == 0) {
      store(mean + row, average);
      store(inverse + row, root);
    }
  }
}
GD_KERNEL(layer_norm_warp)(const T* x, const U* gamma, const U* beta, T* y, U* mean, U* inverse, i64 rows, i64 width, double epsilon) {
  layer_norm<warp_group>(x, gamma, beta, y, mean, inverse, rows, width, epsilon);
}
GD_KERNEL(layer_norm_block)(const T* x, const U* gamma, const U* beta, T* y, U* mean, U* inverse, i64 rows, i64 width, double epsilon) {
  layer_norm<block_group>(x, gamma, beta, y, mean, inverse, rows, width, epsilon);
}

// dx = i (h - mean(h) - normal mean(h normal)) with h = dy gamma and normal = (x - mean) i
template <class G>
GD_DEVICE void layer_norm_grad(const T* dy, const T* x, const U* gamma, const U* mean, const U* inverse, T* dx, i64 rows, i64 width) {
  GD_ROWS(G, row, rows) {
    const i64 at = row * width;
    const W average = static_cast<W>(mean[row]), root = static_cast<W>(inverse[row]);
    W sum = W(0), slope = W(0);
    GD_ROW(G, i, width) {
      const W h = static_cast<W>(load(dy + at + i)) * static_cast<W>(gamma[i]);
      sum += h;
      slope += h * (static_cast<W>(load(x + at + i)) - average) * root;
    }
    sum = G::reduce(sum, sum_op()) / static_cast<W>(width);
    slope = G::reduce(slope, sum_op()) / static_cast<W>(width);
    GD_ROW(G, i, width) {
      const W h = static_cast<W>(load(dy + at + i)) * static_cast<W>(gamma[i]);
      const W normal = (static_cast<W>(load(x + at + i)) - average) * root;
      store(dx + at + i, (h - sum - normal * slope) * root);
    }
  }
}
GD_KERNEL(layer_norm_grad_warp)(const T* dy, const T* x, const U* gamma, const U* mean, const U* inverse, T* dx, i64 rows, i64 width) {
  layer_norm_grad<warp_group>(dy, x, gamma, mean, inverse, dx, rows, width);
}
GD_KERNEL(layer_norm_grad_block)(const T* dy, const T* x, const U* gamma, const U* mean, const U* inverse, T* dx, i64 rows, i64 width) {
  layer_norm_grad<block_group>(dy, x, gamma, mean, inverse, dx, rows, width);
}

struct grads_of_rows {
  const T* dy;
  const T* x;
  const U* mean;
  const U* inverse;
  i64 width;
  GD_DEVICE Two<W> operator()(i64 row, i64 i) const {
    const W grad = static_cast<W>(load(dy + row * width + i));
    const W normal = (static_cast<W>(load(x + row * width + i)) - static_cast<W>(mean[row])) * static_cast<W>(inverse[row]);
    return {grad * normal, grad};
  }
};
GD_KERNEL(layer_norm_vector_parts)(const T* dy, const T* x, const U* mean, const U* inverse, TwoSums<W>* parts, i64 rows, i64 width) {
  columns_last(parts, rows, width, grads_of_rows{dy, x, mean, inverse, width});
}
GD_KERNEL(layer_norm_vectors)(const TwoSums<W>* parts, int count, U* to_gamma, U* to_beta, i64 width) {
  GD_GRID_LOOP(i64, i, width) {
    const TwoSums<W> all = joined(parts, count, width, i);
    store(to_gamma + i, all.first);
    store(to_beta + i, all.second);
  }
}
