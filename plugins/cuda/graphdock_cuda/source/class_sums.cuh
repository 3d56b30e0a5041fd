// Running sums of the weights of classes, exp(logit - largest), a row per block. ELEMENT: type of the logits. After running_sums.cuh.

typedef ELEMENT T;

GD_DEVICE bool is_possible(double x) { return fabs(x) < limits<double>::infinity(); }

GD_KERNEL(class_sums)(const T* logits, double* sums, i64 rows, i64 classes, i64* words, i64 code) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = logits + row * classes;
    double largest = -limits<double>::infinity();
    for (i64 i = threadIdx.x; i < classes; i += blockDim.x) {
      const double x = static_cast<double>(load(from + i));
      if (is_possible(x) && x > largest) largest = x;
    }
    largest = block_reduce(largest, max_op());
    if (threadIdx.x == 0 && !is_possible(largest)) report(words, code, row, 0);
    running_sums(sums + row * classes, classes, [=](i64 i) {
      const double x = static_cast<double>(load(from + i));
      return is_possible(x) ? exp(x - largest) : 0.0;
    });
  }
}
