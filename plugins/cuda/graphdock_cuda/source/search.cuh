// Places of values in sorted rows; NaN is above all numbers. Macros: TX: type of elements; OUT: i32 or i64.

namespace gd {

template <class C> GD_DEVICE bool below(C a, C b) { return a < b || (b != b && a == a); }

}  // namespace gd

// How many elements of the row are below the value; with `upper` those that it is not below.
GD_KERNEL(search)(const TX* rows, const TX* values, OUT* out, i64 count, i64 n, i64 m, int upper) {
  GD_GRID_LOOP(i64, i, count * m) {
    const TX* row = rows + i / m * n;
    const compute_t<TX> value = to_compute(values[i]);
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      const compute_t<TX> here = to_compute(row[middle]);
      if (upper ? !below(value, here) : below(here, value)) low = middle + 1;
      else high = middle;
    }
    out[i] = static_cast<OUT>(low);
  }
}
