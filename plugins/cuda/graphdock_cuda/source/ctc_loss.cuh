// The loss with its derivative (Graves and others, 2006), a block per row. After ctc.cuh.

struct Options {
  int collapse, merge, ignore;
};
// What a row has of the memory that all share: rows before it have `begin` labels.
struct Lattice {
  i32* label;      // its labels in order
  i32* next;       // of a state, the next one of the same class; -1 for none
  double* alpha;   // [steps, states]
  double* beta;    // [2, states]
  double* norms;   // of each step the logarithm of the sum of exponentials
};

// Sorts the labels of the row by place, and takes repeated ones as one where that is asked for. Returns how many there are.
GD_DEVICE i64 sorted_labels(const i64* indices, const i32* values, i32* label, i64 row, i64 count, const Sequences& s, int collapse) {
  for (i64 e = threadIdx.x; e < s.labels; e += blockDim.x) {
    if (indices[2 * e] != row) continue;
    i64 rank = 0;
    for (i64 o = 0; o < s.labels; ++o)
      if (indices[2 * o] == row) rank += indices[2 * o + 1] < indices[2 * e + 1] || (indices[2 * o + 1] == indices[2 * e + 1] && o < e);
    label[rank] = values[e];
  }
  __syncthreads();
  __shared__ i64 kept;
  if (threadIdx.x == 0) {
    kept = count;
    if (collapse && count) {
      i64 to = 1;
      for (i64 from = 1; from < count; ++from)
        if (label[from] != label[from - 1]) label[to++] = label[from];  // to <= from: what is compared was not overwritten yet
      kept = to;
    }
  }
  __syncthreads();
  return kept;
}

GD_KERNEL(ctc_loss)(const T* x, const i64* indices, const i32* values, const i32* lengths, T* loss, T* gradient, i32* label_room,
                    i32* next_room, double* alpha_room, double* beta_room, double* norm_room, Sequences s, Options options,
                    i64* words, i64 of_length, i64* words_2, i64 of_label, i64* words_3, i64 of_row, i64* words_4, i64 too_long) {
  const i64 row = blockIdx.x, blank = s.classes - 1, wide = s.rows * s.classes;
  const double none = -limits<double>::infinity();
  for (i64 i = threadIdx.x; i < s.steps * s.classes; i += blockDim.x)
    store(gradient + i / s.classes * wide + row * s.classes + i % s.classes, 0.0);
  const i64 length = length_of(lengths, row, s, words, of_length);
  // how many labels rows before have, and this one
  i64 before = 0, mine = 0, wrong = 0;
  for (i64 e = threadIdx.x; e < s.labels; e += blockDim.x) {
    before += indices[2 * e] < row;
    mine += indices[2 * e] == row;
    if (values[e] < 0 || values[e] >= blank) {
      wrong = 1;
      words_2[0] = values[e];
      words_2[1] = blank;
      __threadfence_system();
      words_2[2] = of_label;
    } else if (indices[2 * e] < 0 || indices[2 * e] >= s.rows) {
      wrong = 1;
      words_3[0] = indices[2 * e];
      words_3[1] = s.rows;
      __threadfence_system();
      words_3[2] = of_row;
    }
  }
  before = block_reduce(before, sum_op());
  mine = block_reduce(mine, sum_op());
  wrong = block_reduce(wrong, sum_op());
  if (wrong || length < 0) return;
  Lattice l;
  l.label = label_room + before;
  l.next = next_room + 2 * before + row;
  l.alpha = alpha_room + s.steps * (2 * before + row);
  l.beta = beta_room + 2 * (2 * before + row);
  l.norms = norm_room + row * s.steps;
  const i64 labels = sorted_labels(indices, values, l.label, row, mine, s, options.collapse), states = 2 * labels + 1;
  if (labels > length) {
    if (threadIdx.x == 0) {
      store(loss + row, 0.0);
      if (!options.ignore) {
        words_4[0] = row;
        words_4[1] = length;
        __threadfence_system();
        words_4[2] = too_long;
      }
    }
    return;
  }
  const auto class_of = [&](i64 state) { return state & 1 ? static_cast<i64>(l.label[state >> 1]) : blank; };
  const auto logit = [&](i64 t, i64 c) { return static_cast<double>(load(x + t * wide + row * s.classes + c)); };
  // from the label before, over the blank between; and from itself
  const auto skips = [&](i64 state) { return (state & 1) && state >= 3 && !(options.merge && class_of(state) == class_of(state - 2)); };
  const auto stays = [&](i64 state) { return options.merge || !(state & 1); };

  for (i64 t = threadIdx.x; t < length; t += blockDim.x) {
    double high = logit(t, 0), sum = 0.0;
    for (i64 c = 1; c < s.classes; ++c) high = maximum(high, logit(t, c));
    for (i64 c = 0; c < s.classes; ++c) sum += exp(logit(t, c) - high);
    l.norms[t] = high + log(sum);
  }
  for (i64 state = 1 + 2 * static_cast<i64>(threadIdx.x); state < states; state += 2 * blockDim.x) {
    i64 other = state + 2;
    while (other < states && class_of(other) != class_of(state)) other += 2;
    l.next[state] = other < states ? static_cast<i32>(other) : -1;
  }
  __syncthreads();
  for (i64 t = 0; t < length; ++t) {
    double* now = l.alpha + t * states;
    const double* last = now - states;
    for (i64 state = threadIdx.x; state < states; state += blockDim.x) {
      double reached = none;
      if (t == 0) {
        reached = state < 2 ? 0.0 : none;
      } else {
        if (stays(state)) reached = last[state];
        if (state >= 1) reached = log_sum(reached, last[state - 1]);
        if (skips(state)) reached = log_sum(reached, last[state - 2]);
      }
      now[state] = reached + logit(t, class_of(state)) - l.norms[t];
    }
    __syncthreads();
  }
  double total = 0.0;
  if (length > 0) {
    const double* end = l.alpha + (length - 1) * states;
    total = states > 1 ? log_sum(end[states - 1], end[states - 2]) : end[0];
  }
  if (threadIdx.x == 0) store(loss + row, -total);
  if (total == none) {  // a label that no path makes has the softmax
    for (i64 i = threadIdx.x; i < length * s.classes; i += blockDim.x)
      store(gradient + i / s.classes * wide + row * s.classes + i % s.classes, exp(logit(i / s.classes, i % s.classes) - l.norms[i / s.classes]));
    return;
  }
  __syncthreads();  // the way back writes over alpha
  for (i64 t = length - 1; t >= 0; --t) {
    double* now = l.beta + (t & 1) * states;
    const double* later = l.beta + ((t + 1) & 1) * states;
    double* alpha = l.alpha + t * states;
    const auto following = [&](i64 state) { return later[state] + logit(t + 1, class_of(state)) - l.norms[t + 1]; };
    double of_blank = 0.0;
    for (i64 state = threadIdx.x; state < states; state += blockDim.x) {
      double follows = none;
      if (t == length - 1) {
        follows = state + 2 >= states ? 0.0 : none;
      } else {
        if (stays(state)) follows = following(state);
        if (state + 1 < states) follows = log_sum(follows, following(state + 1));
        if (state + 2 < states && skips(state + 2)) follows = log_sum(follows, following(state + 2));
      }
      now[state] = follows;
      alpha[state] = exp(alpha[state] + follows - total);  // the share of the paths that are in this state now
      if (!(state & 1)) of_blank += alpha[state];
    }
    of_blank = block_reduce(of_blank, sum_op());
    for (i64 c = threadIdx.x; c < s.classes; c += blockDim.x)
      store(gradient + t * wide + row * s.classes + c, exp(logit(t, c) - l.norms[t]) - (c == blank ? of_blank : 0.0));
    __syncthreads();
    // the first state of a class sums all of them
    for (i64 state = 1 + 2 * static_cast<i64>(threadIdx.x); state < states; state += 2 * blockDim.x) {
      bool first = true;
      for (i64 other = state - 2; other >= 1 && first; other -= 2) first = class_of(other) != class_of(state);
      if (!first) continue;
      double share = 0.0;
      for (i64 other = state; other >= 0; other = l.next[other]) share += alpha[other];
      const i64 c = class_of(state);
      store(gradient + t * wide + row * s.classes + c, exp(logit(t, c) - l.norms[t]) - share);
    }
    __syncthreads();
  }
}
