// Connectionist temporal classification, in logarithms and doubles. After block.cuh; ELEMENT is the type of the logits.
//
// The states of a row are its labels between blanks, 2 n + 1 of n labels: they begin at 2 starts[row] + row among those of all rows.

namespace gd {

typedef double D;

GD_DEVICE D nothing() { return -limits<D>::infinity(); }
GD_DEVICE D log_sum(D a, D b) {
  const D most = a > b ? a : b, least = a > b ? b : a;
  return least == nothing() ? most : most + log1p(::exp(least - most));
}

struct log_sum_op { GD_DEVICE D operator()(D a, D b) const { return log_sum(a, b); } };

// The first element of a list for which a bad one is found, or n; by all threads.
template <class F> GD_DEVICE i64 first_bad(i64 n, F bad) {
  i64 first = n;
  for (i64 i = threadIdx.x; i < n && first == n; i += blockDim.x)
    if (bad(i)) first = i;
  return block_reduce(first, min_op());
}
GD_DEVICE void note(i64* words, i64 code, i64 first, i64 second) {
  if (threadIdx.x != 0) return;
  words[0] = first;
  words[1] = second;
  __threadfence_system();
  words[2] = code;
}

}  // namespace gd

// Whether all lengths are in range; else it is told. One block.
GD_KERNEL(check_lengths)(const i32* lengths, u32* usable, i64 rows, i64 steps, i64* words, i64 code) {
  const i64 row = first_bad(rows, [=](i64 i) { return lengths[i] < 0 || lengths[i] > steps; });
  if (row < rows) note(words, code, lengths[row], steps);
  if (threadIdx.x == 0) *usable = row == rows;
}

// Keys of the labels' places.
GD_KERNEL(place_keys)(const i64* indices, u64* keys, i64 n) {
  GD_GRID_LOOP(i64, i, n) keys[i] = static_cast<u64>(indices[2 * i + 1]) ^ 0x8000000000000000ull;
}
// Keys of the labels' rows, in an order; those of no row come last.
GD_KERNEL(row_keys)(const i64* indices, const i32* order, u32* keys, i64 n, i64 rows) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 row = indices[2 * order[i]];
    keys[i] = static_cast<u32>(row < 0 || row > rows ? rows : row);
  }
}

// Labels by row: their classes in order, and where each row begins and how many it has; repeated ones once, if collapse. One block.
// Errors in their order: a label that is no class, a label of no row, a label that is longer than its sequence.
GD_KERNEL(label_rows)(const i64* indices, const i32* values, const i32* lengths, const u32* keys, const i32* order, i32* classes, i32* starts, i32* sizes, u32* usable, i64 n, i64 rows,
                      i64 blank, int collapse, int ignore, i64* class_words, i64 class_code, i64* row_words, i64 row_code, i64* long_words, i64 long_code) {
  if (*usable == 0) return;
  const i64 stranger = first_bad(n, [=](i64 i) { return values[i] < 0 || values[i] >= blank; });
  const i64 outside = first_bad(n, [=](i64 i) { return indices[2 * i] < 0 || indices[2 * i] >= rows; });
  if (stranger < n) note(class_words, class_code, values[stranger], blank);
  else if (outside < n) note(row_words, row_code, indices[2 * outside], rows);
  const bool bad = stranger < n || outside < n;
  if (bad) {
    if (threadIdx.x == 0) *usable = 0;
    return;
  }
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) classes[i] = values[order[i]];
  for (i64 row = threadIdx.x; row <= rows; row += blockDim.x) {
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (keys[middle] < row) low = middle + 1;
      else high = middle;
    }
    starts[row] = static_cast<i32>(low);
  }
  __syncthreads();
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
    i32* const mine = classes + starts[row];
    const int all = starts[row + 1] - starts[row];
    int kept = 0;
    for (int i = 0; i < all; ++i) {
      const i32 own = mine[i];
      if (collapse && i > 0 && own == values[order[starts[row] + i - 1]]) continue;
      mine[kept++] = own;
    }
    sizes[row] = kept;
  }
  __syncthreads();
  if (ignore) return;
  const i64 row = first_bad(rows, [=](i64 i) { return sizes[i] > lengths[i]; });
  if (row == rows) return;
  note(long_words, long_code, row, static_cast<i64>(lengths[row]) << 32 | sizes[row]);
  if (threadIdx.x == 0) *usable = 0;
}

// Logarithms of the sums of exponentials of each step and row, by a warp each.
GD_KERNEL(normalizers)(const ELEMENT* logits, double* y, i64 lines, i64 classes) {
  for (i64 line = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_id(); line < lines; line += static_cast<i64>(gridDim.x) * (blockDim.x >> 5)) {
    D most = nothing(), total = 0;
    for (i64 c = lane_id(); c < classes; c += 32) most = maximum(most, static_cast<D>(logits[line * classes + c]));
    most = warp_reduce_all(most, max_op());
    for (i64 c = lane_id(); c < classes; c += 32) total += ::exp(static_cast<D>(logits[line * classes + c]) - most);
    total = warp_reduce_all(total, sum_op());
    if (lane_id() == 0) y[line] = most + ::log(total);
  }
}

// Loss and gradient of a row per block. ahead: room for the states of all rows at all steps; behind: twice those of one step.
GD_KERNEL(ctc)(const ELEMENT* logits, const double* normalizers, const i32* lengths, const i32* classes, const i32* starts, const i32* sizes, const u32* usable, double* ahead, double* behind,
               ELEMENT* loss, ELEMENT* gradient, i64 steps, i64 rows, i64 class_count, i64 states, int merge) {
  if (*usable == 0) return;
  const i64 row = blockIdx.x, blank = class_count - 1, offset = 2 * static_cast<i64>(starts[row]) + row;
  const int size = sizes[row], length = lengths[row], count = 2 * size + 1;
  const i32* const label = classes + starts[row];
  const auto log_of = [=](i64 t, i64 c) {
    const i64 line = t * rows + row;
    return static_cast<D>(logits[line * class_count + c]) - normalizers[line];
  };
  const auto class_of = [=](int s) { return s % 2 ? static_cast<i64>(label[s / 2]) : blank; };
  // from the label before, over the blank between; and from itself
  const auto skips = [=](int s) { return s % 2 == 1 && s >= 2 && !(merge && label[s / 2] == label[s / 2 - 1]); };
  const auto stays = [=](int s) { return s % 2 == 0 || merge; };
  const bool ignored = size > length;
  D total = length == 0 && size == 0 ? 0.0 : nothing();
  if (!ignored && length > 0) {
    for (int t = 0; t < length; ++t) {
      D* const now = ahead + t * states + offset;
      const D* const last = now - states;
      for (int s = threadIdx.x; s < count; s += blockDim.x) {
        D reached = t == 0 && s < 2 ? 0.0 : nothing();
        if (t > 0) {
          if (stays(s)) reached = last[s];
          if (s > 0) reached = log_sum(reached, last[s - 1]);
          if (skips(s)) reached = log_sum(reached, last[s - 2]);
        }
        now[s] = reached + log_of(t, class_of(s));
      }
      __syncthreads();
    }
    const D* const end = ahead + (length - 1) * states + offset;
    total = end[count - 1];
    if (size > 0) total = log_sum(end[count - 2], total);
  }
  if (threadIdx.x == 0) store(loss + row, ignored ? 0.0 : -total);
  const int live = !ignored && total > nothing() && total < -nothing() ? length : 0;
  for (i64 t = steps - 1; t >= live; --t)
    for (i64 c = threadIdx.x; c < class_count; c += blockDim.x) gradient[(t * rows + row) * class_count + c] = ELEMENT(0);
  D *now = behind + offset, *next = behind + states + offset;
  for (int t = live - 1; t >= 0; --t) {
    for (int s = threadIdx.x; s < count; s += blockDim.x) {
      D follows = t == live - 1 && s >= count - 2 ? 0.0 : nothing();
      if (t < live - 1) {
        if (stays(s)) follows = next[s] + log_of(t + 1, class_of(s));
        if (s + 1 < count) follows = log_sum(follows, next[s + 1] + log_of(t + 1, class_of(s + 1)));
        if (s + 2 < count && skips(s + 2)) follows = log_sum(follows, next[s + 2] + log_of(t + 1, class_of(s + 2)));
      }
      now[s] = follows;
    }
    __syncthreads();
    // the share of each state in all paths; of a class that stands several times by the thread of the first one
    const D* const before = ahead + t * states + offset;
    ELEMENT* const to = gradient + (t * rows + row) * class_count;
    for (i64 c = threadIdx.x; c < blank; c += blockDim.x) store(to + c, ::exp(log_of(t, c)));
    D share = 0;
    for (int s = 2 * threadIdx.x; s < count; s += 2 * blockDim.x) share += ::exp(before[s] + now[s] - total);
    share = block_reduce(share, sum_op());
    if (threadIdx.x == 0) store(to + blank, ::exp(log_of(t, blank)) - share);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      bool first = true;
      for (int k = 0; k < i && first; ++k) first = label[k] != label[i];
      if (!first) continue;
      D own = 0;
      for (int k = i; k < size; ++k)
        if (label[k] == label[i]) own += ::exp(before[2 * k + 1] + now[2 * k + 1] - total);
      store(to + label[i], ::exp(log_of(t, label[i])) - own);
    }
    __syncthreads();
    D* const kept = now;
    now = next, next = kept;
  }
}

// ---- the label of the most probable classes

// The best class of each step and row, [row, step], by a warp each, and its logit.
GD_KERNEL(best_classes)(const ELEMENT* logits, i32* best, double* values, i64 steps, i64 rows, i64 classes) {
  const i64 lines = steps * rows;
  for (i64 line = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_id(); line < lines; line += static_cast<i64>(gridDim.x) * (blockDim.x >> 5)) {
    struct Best {
      D value;
      i64 at;
    };
    const auto better = [](Best a, Best b) {
      const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
      if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
      if (a_nan != b_nan) return a_nan ? a : b;
      return b.value > a.value || ((b.value == a.value || a_nan) && b.at < a.at) ? b : a;
    };
    Best found{0, -1};
    for (i64 c = lane_id(); c < classes; c += 32) found = better(found, Best{static_cast<D>(logits[line * classes + c]), c});
    found = warp_reduce(found, better);
    if (lane_id() == 0) {
      const i64 at = line % rows * steps + line / rows;
      best[at] = static_cast<i32>(found.at);
      values[at] = found.value;
    }
  }
}

// Which steps give a label, and minus the sum of the best logits; a thread has a row.
GD_KERNEL(mark_labels)(const i32* best, const double* values, const i32* lengths, const u32* usable, u8* flags, ELEMENT* scores, i64* longest, i64 steps, i64 rows, i64 blank, int merge) {
  GD_GRID_LOOP(i64, row, rows) {
    const i64 length = *usable ? lengths[row] : 0;
    D total = 0;
    i64 count = 0;
    for (i64 t = 0; t < steps; ++t) {
      const i64 at = row * steps + t;
      const bool kept = t < length && best[at] != blank && !(merge && t > 0 && best[at] == best[at - 1]);
      flags[at] = kept;
      count += kept;
      if (t < length) total += values[at];
    }
    store(scores + row, -total);
    longest[row] = count;
  }
}
// The shape: rows, and the most labels of one. One block.
GD_KERNEL(label_shape)(const i64* longest, i64* shape, i64 rows) {
  i64 most = 0;
  for (i64 i = threadIdx.x; i < rows; i += blockDim.x) most = longest[i] > most ? longest[i] : most;
  most = block_reduce(most, max_op());
  if (threadIdx.x == 0) shape[0] = rows, shape[1] = most;
}
GD_KERNEL(write_labels)(const i64* places, const i32* best, i64* indices, i64* values, i64 count, i64 steps) {
  GD_GRID_LOOP(i64, i, count) {
    const i64 row = places[i] / steps;
    i64 low = 0, high = i;  // the first of this row
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (places[middle] < row * steps) low = middle + 1;
      else high = middle;
    }
    indices[2 * i] = row;
    indices[2 * i + 1] = i - low;
    values[i] = best[places[i]];
  }
}
