// The step arguments, carried by value in the parameters of a launch.

template <int BYTES> struct ArgumentBlock { u64 word[BYTES / 8]; };

template <int BYTES> GD_DEVICE void set_arguments(const ArgumentBlock<BYTES>& block, u64* target, int words) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) target[i] = block.word[i];
}

GD_KERNEL(set_arguments_64)(ArgumentBlock<64> block, u64* target, int words) { set_arguments<64>(block, target, words); }
GD_KERNEL(set_arguments_512)(ArgumentBlock<512> block, u64* target, int words) { set_arguments<512>(block, target, words); }
GD_KERNEL(set_arguments_4032)(ArgumentBlock<4032> block, u64* target, int words) { set_arguments<4032>(block, target, words); }
