// Conditions of recorded work: a bool becomes what conditional nodes of a graph are steered by.

#ifndef GD_EMULATED
// The driver has it, and finds it when the finished code is loaded.
extern "C" __device__ void cudaGraphSetConditional(u64 condition, unsigned value);
#endif

// `other` is 0 where no node is steered by the opposite.
GD_KERNEL(set_condition)(const bool* flag, u64 condition, u64 other) {
  const bool holds = *flag;
  cudaGraphSetConditional(condition, holds);
  if (other) cudaGraphSetConditional(other, !holds);
}
