// The step arguments, carried by value in the parameters of a launch.

template <int BYTES> struct ArgumentBlock { u64 word[BYTES / 8]; };

template <int BYTES> GD_DEVICE void set_arguments(const ArgumentBlock<BYTES>& block, u64* target, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) target[i] = block.word[i];
}

#define GD_SET_ARGUMENTS(BYTES)                                                                              \
  extern "C" __global__ void set_arguments_##BYTES(ArgumentBlock<BYTES> block, u64* target, int words) {     \
    set_arguments<BYTES>(block, target, words);                                                              \
  }

GD_SET_ARGUMENTS(64)
GD_SET_ARGUMENTS(512)
GD_SET_ARGUMENTS(4032)
