// Tables that a launch takes by value: rows of tensors, each with some of the launch's blocks.

namespace gd {

// The row that this block belongs to: the last one whose first block, begin(row), is not behind it.
template <class Begin> GD_DEVICE i64 row_of_block(i64 count, Begin begin) {
  i64 low = 0, high = count;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (begin(middle) <= blockIdx.x) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace gd
