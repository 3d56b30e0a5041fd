// A box drawn out of an image, which holds enough of one of the boxes given; a block draws all attempts. Macro: MOST: boxes of a
// launch. After block.cuh and philox.cuh. Products are rounded before they are added to, so that a GPU draws what the cpu does.

// Areas in pixels; covered: how much of a box must be inside.
struct Image {
  i64 height, width;
  double ratio, ratios, least, most, covered;
};
struct Given {
  float at[MOST][4];
};
struct Box {
  i64 row, column, height, width;
};

// The first height for which `reached` holds, which holds for all above it as well; one more than the image's if it never does.
template <class Reached> GD_DEVICE i64 first_height(const Image& image, double ratio, Reached reached) {
  i64 low = 1, high = image.height + 1;
  while (low < high) {
    const i64 middle = low + (high - low) / 2;
    if (reached(rint(static_cast<double>(middle) * ratio), static_cast<double>(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Attempt number k; false where no size fits. Widths and areas grow with the height, so that all heights that fit are neighbours.
GD_DEVICE bool attempt(const RandomStream& stream, i64 k, const Image& image, Box& box) {
  const Words words = stream.block(1 + k);
  const double ratio = __dadd_rn(image.ratio, __dmul_rn(fraction(words.at[0]), image.ratios));
  const i64 first = first_height(image, ratio, [&](double w, double h) { return w >= 1.0 && h * w >= image.least; });
  const i64 past = first_height(
      image, ratio, [&](double w, double h) { return w > static_cast<double>(image.width) || h * w > image.most; });
  if (first >= past) return false;
  box.height = first + static_cast<i64>(__umul64hi(words.at[1], past - first));
  box.width = static_cast<i64>(rint(static_cast<double>(box.height) * ratio));
  box.row = static_cast<i64>(__umul64hi(words.at[2], image.height - box.height + 1));
  box.column = static_cast<i64>(__umul64hi(words.at[3], image.width - box.width + 1));
  return true;
}

GD_DEVICE bool covers(const Box& box, const float* given, const Image& image) {
  const double height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double top = __dmul_rn(given[0], height), left = __dmul_rn(given[1], width);
  const double low = __dmul_rn(given[2], height), right = __dmul_rn(given[3], width);
  const double down = minimum(low, static_cast<double>(box.row + box.height)) - maximum(top, static_cast<double>(box.row));
  const double along = minimum(right, static_cast<double>(box.column + box.width)) - maximum(left, static_cast<double>(box.column));
  const double whole = (low - top) * (right - left);
  return whole > 0.0 && maximum(0.0, down) * maximum(0.0, along) / whole >= image.covered;
}

// found: the box of the first attempt that covers one of the given, and its number; `first`: whether no launch before left one there.
// drawn: its ends, in parts of the image.
GD_KERNEL(sample_box)
(GD_STREAM, Image image, Given given, i64 count, i64 attempts, int first, i64* found, float* drawn) {
  GD_OPEN_STREAM(stream);
  i64 best = attempts;
  for (i64 k = threadIdx.x; k < best; k += blockDim.x) {
    Box box;
    if (!attempt(stream, k, image, box)) continue;
    for (i64 i = 0; i < count && best > k; ++i)
      if (covers(box, given.at[i], image)) best = k;
  }
  best = block_reduce(best, min_op());
  if (threadIdx.x != 0) return;
  if (!first && found[4] < best) best = found[4];
  Box box = {0, 0, image.height, image.width};
  if (best < attempts) attempt(stream, best, image, box);
  found[0] = box.row, found[1] = box.column, found[2] = box.height, found[3] = box.width, found[4] = best;
  drawn[0] = static_cast<float>(static_cast<double>(box.row) / static_cast<double>(image.height));
  drawn[1] = static_cast<float>(static_cast<double>(box.column) / static_cast<double>(image.width));
  drawn[2] = static_cast<float>(static_cast<double>(box.row + box.height) / static_cast<double>(image.height));
  drawn[3] = static_cast<float>(static_cast<double>(box.column + box.width) / static_cast<double>(image.width));
}
