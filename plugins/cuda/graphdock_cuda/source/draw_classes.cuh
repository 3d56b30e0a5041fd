// Classes drawn by running sums of their weights: sample i of all takes word i. ELEMENT: type of the classes. After philox.cuh.

typedef ELEMENT T;

GD_KERNEL(draw_classes)(GD_STREAM, const double* sums, T* y, i64 n, i64 count, i64 classes) {
  GD_OPEN_STREAM(stream);
  GD_GRID_LOOP(i64, i, n) {
    const double* row = sums + i / count * classes;
    const double wanted = fraction(stream.word(i)) * row[classes - 1];
    i64 low = 0, high = classes;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (row[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    y[i] = static_cast<T>(low);
  }
}
