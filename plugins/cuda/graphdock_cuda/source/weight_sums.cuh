// Running sums of the weights of classes, and behind them the weights, in double. ELEMENT: type of the weights. After running_sums.cuh.

GD_KERNEL(weight_sums)
(const ELEMENT* weights, double* sums, i64 classes, i64 wanted, i64* words, i64 code, i64* words_few, i64 code_few) {
  i64 possible = 0;
  bool right = true;
  for (i64 i = threadIdx.x; i < classes; i += blockDim.x) {
    const double weight = static_cast<double>(weights[i]);
    right = right && weight >= 0;
    possible += weight != 0;
    sums[classes + i] = weight;
  }
  right = block_reduce(right, all_op());
  possible = block_reduce(possible, sum_op());
  const double total = running_sums(sums, classes, [=](i64 i) { return static_cast<double>(weights[i]); });
  if (threadIdx.x != 0) return;
  if (!right || !(total > 0) || !(total < limits<double>::infinity())) {
    report(words, code, 0, 0);
    sums[classes - 1] = limits<double>::nan();
  } else if (possible < wanted) {
    report(words_few, code_few, possible, 0);
    sums[classes - 1] = limits<double>::nan();
  }
}
