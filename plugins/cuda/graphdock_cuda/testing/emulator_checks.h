// What ends a kernel of the emulator: signals of the processor, and what the compiler's checks (-fsanitize) find.

namespace gd_emulator {

static void on_signal(int number, siginfo_t* info, void*) {
  machine->fault = info->si_addr;
  if (number == SIGFPE) fail(719, "an integer division by zero", {"", 0});
  fail(700, "an address that is not this kernel's to use", {"", 0});
}

struct Guard {
  static constexpr int COUNT = 3;
  const int numbers[COUNT] = {SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction before[COUNT];
  stack_t stack_before;
  explicit Guard(Machine* m) {
    stack_t stack = {};
    stack.ss_sp = m->stacks + MAX_THREADS * STACK;
    stack.ss_size = STACK;
    sigaltstack(&stack, &stack_before);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < COUNT; ++i) sigaction(numbers[i], &action, &before[i]);
  }
  ~Guard() {
    for (int i = 0; i < COUNT; ++i) sigaction(numbers[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
  }
};

}  // namespace gd_emulator

// The compiler calls these; each gets a place in the source first. No library of it is linked.
extern "C" {
#define GD_FOUND(name, ...) __attribute__((visibility("hidden"))) void __ubsan_handle_##name(gd_emulator::Where* where, __VA_ARGS__)
GD_FOUND(type_mismatch_v1, uintptr_t address) {
  gd_emulator::machine->fault = reinterpret_cast<void*>(address);
  gd_emulator::fail(716, "a misaligned address", *where);
}
GD_FOUND(shift_out_of_bounds, uintptr_t, uintptr_t) {
  gd_emulator::fail(719, "a shift by more bits than there are", *where);
}
GD_FOUND(out_of_bounds, uintptr_t) { gd_emulator::fail(719, "an index beyond an array", *where); }
GD_FOUND(load_invalid_value, uintptr_t) { gd_emulator::fail(719, "a bool that is neither 0 nor 1", *where); }
GD_FOUND(divrem_overflow, uintptr_t, uintptr_t) { gd_emulator::fail(719, "an integer division by zero", *where); }
#undef GD_FOUND
}
