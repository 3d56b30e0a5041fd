// Connectionist temporal classification, in float64. TYPE: of the logits [steps, rows, classes]; the last class is the blank. After
// block.cuh.

typedef TYPE T;

struct Sequences {
  i64 steps, rows, classes, labels;
};
GD_DEVICE double log_sum(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  return high == -limits<double>::infinity() ? high : high + log1p(exp(low - high));
}
// The steps of a row; -1 and an error word for a number out of range.
GD_DEVICE i64 length_of(const i32* lengths, i64 row, const Sequences& s, i64* words, i64 code) {
  const i64 length = lengths[row];
  if (length >= 0 && length <= s.steps) return length;
  if (threadIdx.x == 0) {
    words[0] = length;
    words[1] = row;
    __threadfence_system();
    words[2] = code;
  }
  return -1;
}
