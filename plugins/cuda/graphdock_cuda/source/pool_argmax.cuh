// Pools that say where their maxima are, and gradients that go by those indices. INDEX: their type. After windows.cuh.

typedef INDEX TI;

GD_KERNEL(max_pool_argmax)(const T* x, T* y, TI* argmax, i64 n, i64 image, int with_batch, Pool p) {
  GD_GRID_LOOP(i64, o, n) {
    const Spot s = spot(o, p.out);
    C largest = limits<T>::bottom();
    i64 where = -1;
    each_of(window_of(p, s.at), [&](const int* at) {
      const i64 i = flat_at(s.batch, at, p.size);
      const C value = load(x + i);
      if (where < 0 || value > largest || value != value) {
        if (!(largest != largest)) largest = value;
        where = i;
      }
      return true;
    });
    const bool none = where < 0 || largest != largest;
    store(y + o, largest);
    argmax[o] = static_cast<TI>(none ? 0 : with_batch ? where : where % image);
  }
}
// The flat index in the input that a window's index means; -1 and an error word where it is outside.
GD_DEVICE i64 meant(const TI* argmax, i64 o, i64 per_image, i64 image, i64 inputs, int with_batch, i64* words, i64 code) {
  const i64 index = static_cast<i64>(argmax[o]), most = with_batch ? inputs : image;
  if (index < 0 || index >= most) {
    words[0] = index;
    words[1] = most;
    __threadfence_system();
    words[2] = code;
    return -1;
  }
  return with_batch ? index : o / per_image * image + index;
}
GD_KERNEL(max_pool_argmax_pick)(const T* grad, const TI* argmax, T* out, i64 n, i64 per_image, i64 image, i64 inputs, int with_batch,
                                i64* words, i64 code) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 i = meant(argmax, o, per_image, image, inputs, with_batch, words, code);
    if (i >= 0) out[o] = grad[i];
  }
}
// The windows of each element as a list: heads holds its last window, and next the one before, in any order.
GD_KERNEL(max_pool_argmax_lists)(const TI* argmax, u64* heads, i64* next, i64 n, i64 per_image, i64 image, i64 inputs, int with_batch,
                                 i64* words, i64 code) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 i = meant(argmax, o, per_image, image, inputs, with_batch, words, code);
    if (i >= 0) next[o] = static_cast<i64>(atomicExch(heads + i, static_cast<u64>(o)));
  }
}
// Sums the list of each element in the order of its windows, whatever the order of the list. A list longer than 32 is not walked
// again for each of its windows; all windows that may be in it are looked at once.
GD_KERNEL(max_pool_argmax_gather)(const T* dy, const TI* argmax, const i64* heads, const i64* next, T* dx, i64 n, i64 windows,
                                  i64 per_image, i64 image, int with_batch) {
  GD_GRID_LOOP(i64, i, n) {
    C sum = C(0);
    int length = 0;
    for (i64 o = heads[i]; o >= 0 && length <= 32; o = next[o]) ++length;
    if (length > 32) {
      const i64 begin = with_batch ? 0 : i / image * per_image, end = with_batch ? windows : begin + per_image;
      const i64 index = with_batch ? i : i % image;
      for (i64 o = begin; o < end; ++o)
        if (static_cast<i64>(argmax[o]) == index) sum += load(dy + o);
    } else {
      i64 last = -1;
      for (int taken = 0; taken < length; ++taken) {
        i64 least = windows;
        for (i64 o = heads[i]; o >= 0; o = next[o])
          if (o > last && o < least) least = o;
        sum += load(dy + least);
        last = least;
      }
    }
    store(dx + i, sum);
  }
}
