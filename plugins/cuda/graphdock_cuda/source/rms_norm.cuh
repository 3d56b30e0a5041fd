// RMS normalisation over the rows of [rows, width]. TYPE: of the elements; STATISTICS: of gamma and inverse; WIDE: what is computed
// in. After rows.cuh and columns.cuh.

typedef TYPE T;
typedef STATISTICS U;
typedef WIDE W;

template <class G>
GD_DEVICE void rms_norm(const T* x, const U* gamma, T* y, U* inverse, i64 rows, i64 width, double epsilon) {
  GD_ROWS(G, row, rows) {
    const T* from = x + row * width;
    T* to = y + row * width;
    W squares = W(0);
    GD_ROW(G, i, width) {
      const W value = static_cast<W>(load(from + i));
      squares += value * value;
    }
    const W square = G::reduce(squares, sum_op()) / static_cast<W>(width);
    const W root = W(1) / sqrt(square + static_cast<W>(epsilon));
    GD_ROW(G, i, width) store(to + i, static_cast<W>(load(from + i)) * root * static_cast<W>(gamma[i]));
    if (G::thread() == 0) store(inverse + row, root);
  }
}
GD_KERNEL(rms_norm_warp)(const T* x, const U* gamma, T* y, U* inverse, i64 rows, i64 width, double epsilon) {
  rms_norm<warp_group>(x, gamma, y, inverse, rows, width, epsilon);
}
GD_KERNEL(rms_norm_block)(const T* x, const U* gamma, T* y, U* inverse, i64 rows, i64 width, double epsilon) {
  rms_norm<block_group>(x, gamma, y, inverse, rows, width, epsilon);
}

// dx = i (h - normal mean(h normal)) with h = dy gamma, normal = x i and i = inverse
template <class G>
GD_DEVICE void rms_norm_grad(const T* dy, const T* x, const U* gamma, const U* inverse, T* dx, i64 rows, i64 width) {
  GD_ROWS(G, row, rows) {
    const i64 at = row * width;
    const W root = static_cast<W>(inverse[row]);
    W slope = W(0);
    GD_ROW(G, i, width) {
      const W h = static_cast<W>(load(dy + at + i)) * static_cast<W>(gamma[i]);
      slope += h * static_cast<W>(load(x + at + i)) * root;
    }
    slope = G::reduce(slope, sum_op()) / static_cast<W>(width);
    GD_ROW(G, i, width) {
      const W h = static_cast<W>(load(dy + at + i)) * static_cast<W>(gamma[i]);
      const W normal = static_cast<W>(load(x + at + i)) * root;
      store(dx + at + i, (h - normal * slope) * root);
    }
  }
}
GD_KERNEL(rms_norm_grad_warp)(const T* dy, const T* x, const U* gamma, const U* inverse, T* dx, i64 rows, i64 width) {
  rms_norm_grad<warp_group>(dy, x, gamma, inverse, dx, rows, width);
}
GD_KERNEL(rms_norm_grad_block)(const T* dy, const T* x, const U* gamma, const U* inverse, T* dx, i64 rows, i64 width) {
  rms_norm_grad<block_group>(dy, x, gamma, inverse, dx, rows, width);
}

struct grads_of_rows {
  const T* dy;
  const T* x;
  const U* inverse;
  i64 width;
  GD_DEVICE W operator()(i64 row, i64 i) const {
    const i64 at = row * width + i;
    return static_cast<W>(load(dy + at)) * static_cast<W>(load(x + at)) * static_cast<W>(inverse[row]);
  }
};
GD_KERNEL(rms_norm_factor_parts)(const T* dy, const T* x, const U* inverse, Sum<W>* parts, i64 rows, i64 width) {
  columns_last(parts, rows, width, grads_of_rows{dy, x, inverse, width});
}
GD_KERNEL(rms_norm_factors)(const Sum<W>* parts, int count, U* to_gamma, i64 width) {
  GD_GRID_LOOP(i64, i, width) store(to_gamma + i, joined(parts, count, width, i).total);
}
