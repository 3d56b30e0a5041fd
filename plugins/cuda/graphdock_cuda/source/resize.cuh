// Images [batch, height, width, channels] of another size. TYPE: of what comes in; RESULT: of what comes out; METHOD_OF: how. After
// resample.cuh.

typedef TYPE T;
typedef RESULT TR;
typedef compute_t<TR> C;

struct Images {
  Axis rows, columns;
  i64 channels;
};

GD_KERNEL(resize)(const T* x, TR* y, i64 n, Images s) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 channel = o % s.channels, pixel = o / s.channels, line = pixel / s.columns.wanted;
    const int column = static_cast<int>(pixel % s.columns.wanted), row = static_cast<int>(line % s.rows.wanted);
    const T* image = x + line / s.rows.wanted * s.rows.size * s.columns.size * s.channels + channel;
    C sum = C(0);
    each_tap<METHOD_OF>(s.rows, row, [&](int i, float above) {
      C part = C(0);
      each_tap<METHOD_OF>(s.columns, column, [&](int j, float beside) {
        const C value = static_cast<C>(load(image + (static_cast<i64>(i) * s.columns.size + j) * s.channels));
        if constexpr (METHOD_OF == NEAREST) part = value;
        else part += static_cast<C>(beside) * value;
      });
      if constexpr (METHOD_OF == NEAREST) sum = part;
      else sum += static_cast<C>(above) * part;
    });
    store(y + o, sum);
  }
}
// Each pixel of the image gathers from all that it had a part in.
GD_KERNEL(resize_back)(const T* g, TR* dx, i64 n, Images s) {
  GD_GRID_LOOP(i64, o, n) {
    const i64 channel = o % s.channels, pixel = o / s.channels, line = pixel / s.columns.size;
    const int column = static_cast<int>(pixel % s.columns.size), row = static_cast<int>(line % s.rows.size);
    const T* grads = g + line / s.rows.size * s.rows.wanted * s.columns.wanted * s.channels + channel;
    C sum = C(0);
    each_user<METHOD_OF>(s.rows, row, [&](int i, float above) {
      each_user<METHOD_OF>(s.columns, column, [&](int j, float beside) {
        const C value = static_cast<C>(load(grads + (static_cast<i64>(i) * s.columns.wanted + j) * s.channels));
        if constexpr (METHOD_OF == NEAREST) sum = static_cast<C>(sum + value);
        else sum += static_cast<C>(above) * static_cast<C>(beside) * value;
      });
    });
    store(dx + o, sum);
  }
}
