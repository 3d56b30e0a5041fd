// The gradient of an array with mirrored margins: of each element the sum of what its mirror images got. ELEMENT: type of elements.

typedef ELEMENT T;

GD_KERNEL(mirror_pad_grad)(const T* dy, T* y, i64 n, int rank, Pads at) {
  const i64 skip = MODE == mode_reflect ? 1 : 0;
  GD_GRID_LOOP(i64, i, n) {
    // per axis the places of the element and of its images in dy, times the axis' stride
    i64 places[MAX_RANK][3], left = i, step = 1;
    int counts[MAX_RANK], which[MAX_RANK];
    for (int axis = rank - 1; axis >= 0; --axis) {
      const i64 size = at.dims[axis], before = at.before[axis], after = at.after[axis];
      const i64 above = left / size, place = left - above * size;
      left = above;
      places[axis][0] = (before + place) * step;
      counts[axis] = 1;
      const i64 low = before - 1 + skip - place, high = before + 2 * size - 1 - skip - place;
      if (low >= 0 && low < before) places[axis][counts[axis]++] = low * step;
      if (high >= before + size && high < before + size + after) places[axis][counts[axis]++] = high * step;
      which[axis] = 0;
      step *= before + size + after;
    }
    compute_t<T> total = from_compute<compute_t<T>>(0.0f);
    for (bool more = true; more;) {
      i64 from = 0;
      for (int axis = 0; axis < rank; ++axis) from += places[axis][which[axis]];
      total = total + load(dy + from);
      more = false;
      for (int axis = rank - 1; axis >= 0 && !more; --axis) {
        more = ++which[axis] < counts[axis];
        if (!more) which[axis] = 0;
      }
    }
    store(y + i, total);
  }
}
