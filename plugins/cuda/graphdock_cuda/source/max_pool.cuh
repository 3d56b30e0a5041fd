// The largest element of each window. After windows.cuh.

GD_KERNEL(max_pool)(const T* x, T* y, i64 n, Pool p) {
  GD_GRID_LOOP(i64, o, n) {
    const Spot s = spot(o, p.out);
    C largest = limits<T>::bottom();
    each_of(window_of(p, s.at), [&](const int* at) {
      largest = maximum(largest, load(x + flat_at(s.batch, at, p.size)));
      return true;
    });
    store(y + o, largest);
  }
}
