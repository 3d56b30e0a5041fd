// Means of windows, and gradients of pools of floats. Each element of a result is gathered by one thread: nothing is added by several
// threads to one place, so that results repeat to the bit. After windows.cuh.

GD_KERNEL(max_pool_grad)(const T* x, const T* y, const T* dy, T* dx, i64 n, Pool p) {
  GD_GRID_LOOP(i64, i, n) {
    const Spot s = spot(i, p.size);
    const C value = load(x + i);
    C sum = C(0);
    each_of(positions_with(p, s.at), [&](const int* at) {
      const i64 o = flat_at(s.batch, at, p.out);
      if (load(y + o) == value && first_with(x, value, s.batch, window_of(p, at), p) == i) sum += load(dy + o);
      return true;
    });
    store(dx + i, sum);
  }
}
GD_KERNEL(max_pool_grad_grad)(const T* x, const T* y, const T* grad, T* out, i64 n, Pool p) {
  GD_GRID_LOOP(i64, o, n) {
    const Spot s = spot(o, p.out);
    const i64 i = first_with(x, load(y + o), s.batch, window_of(p, s.at), p);
    store(out + o, i < 0 ? C(0) : load(grad + i));
  }
}
GD_KERNEL(avg_pool)(const T* x, T* y, i64 n, Pool p) {
  GD_GRID_LOOP(i64, o, n) {
    const Spot s = spot(o, p.out);
    const Range window = window_of(p, s.at);
    C sum = C(0);
    each_of(window, [&](const int* at) {
      sum += load(x + flat_at(s.batch, at, p.size));
      return true;
    });
    store(y + o, sum / static_cast<C>(count_of(window)));
  }
}
GD_KERNEL(avg_pool_grad)(const T* dy, T* dx, i64 n, Pool p) {
  GD_GRID_LOOP(i64, i, n) {
    const Spot s = spot(i, p.size);
    C sum = C(0);
    each_of(positions_with(p, s.at), [&](const int* at) {
      sum += load(dy + flat_at(s.batch, at, p.out)) / static_cast<C>(count_of(window_of(p, at)));
      return true;
    });
    store(dx + i, sum);
  }
}
