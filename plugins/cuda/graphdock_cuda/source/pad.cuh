// An array with margins. E: an element, see word.cuh; MODE: what the margins hold.

GD_KERNEL(pad)(const E* x, const E* value, E* y, i64 n, int rank, Pads at) {
  GD_GRID_LOOP(i64, i, n) {
    i64 left = i, from = 0, step = 1;
    bool inside = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const i64 size = at.dims[axis], whole = at.before[axis] + size + at.after[axis], above = left / whole;
      i64 place = left - above * whole - at.before[axis];
      left = above;
      if (place < 0 || place >= size) {
        if (MODE == mode_constant) inside = false;
        const i64 skip = MODE == mode_reflect ? 1 : 0;
        place = place < 0 ? -place - 1 + skip : 2 * size - 1 - skip - place;
      }
      from += place * step;
      step *= size;
    }
    y[i] = inside ? x[from] : *value;
  }
}
