// What runs a grid of a kernel on the CPU: threads of a block on stacks of their own, and what ends a kernel before its time.

#include <signal.h>

#include "emulator.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace gd_emulator {

unsigned char* dynamic_shared;
unsigned current;

enum State : unsigned char { UNSTARTED, RUNNABLE, AT_BARRIER, AT_COLLECTIVE, DONE };

struct Thread {
  char* stack;
  void* stack_pointer;
  Where where;  // it waits
  unsigned op, mask, lane;  // of a collective; op is the site of a barrier
  u64 in, out;
};

static Machine* machine;
static unsigned char state[MAX_THREADS];
static Thread threads[MAX_THREADS];
static unsigned count;      // threads of a block
static unsigned next;       // position of the next that has not begun
static unsigned last;       // how far threads may begin now
static unsigned waiting;    // how often a thread was left on its stack
static void* home;          // the stack pointer of the loop over threads
static char* free_stacks[MAX_THREADS];
static unsigned free_count;
static unsigned live;       // threads that have not ended
static char* this_stack;
static void (*entry)(void**);
static void** arguments;

// ---- what the compiler calls at each access of a traced image, by the names that Linux's kernel has for them

static void note(const void* at, size_t size, unsigned char kind) {
  for (unsigned i = 0; i < machine->watched_count; ++i) {
    const Watched& watched = machine->watched[i];
    u64 from = reinterpret_cast<u64>(at) - watched.start;
    if (from >= watched.size) continue;
    for (size_t j = 0; j < size && from + j < watched.size; ++j) watched.marks[from + j] |= kind;
    return;
  }
}

#define GD_TRACED(size)                                                          \
  extern "C" void __asan_load##size##_noabort(const void* at) { note(at, size, 1); } \
  extern "C" void __asan_store##size##_noabort(const void* at) { note(at, size, 2); }
GD_TRACED(1) GD_TRACED(2) GD_TRACED(4) GD_TRACED(8) GD_TRACED(16)
extern "C" void __asan_loadN_noabort(const void* at, size_t size) { note(at, size, 1); }
extern "C" void __asan_storeN_noabort(const void* at, size_t size) { note(at, size, 2); }
extern "C" void __asan_handle_no_return() {}

// Leave the stack that runs for another; save where it was.
extern "C" void gd_switch(void** save, void* to);
#if defined(__x86_64__)
asm(R"(
.text
.globl gd_switch
.hidden gd_switch
.type gd_switch, @function
gd_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gd_switch, .-gd_switch
)");
static void* first_frame(char* stack, void (*run)()) {
  void** top = reinterpret_cast<void**>(stack + STACK);
  *--top = nullptr;  // where run would return to; it never does
  *--top = reinterpret_cast<void*>(run);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl gd_switch
.hidden gd_switch
.type gd_switch, %function
gd_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size gd_switch, .-gd_switch
)");
static void* first_frame(char* stack, void (*run)()) {
  void** top = reinterpret_cast<void**>(stack + STACK - 176);
  for (int i = 0; i < 22; ++i) top[i] = nullptr;
  top[11] = reinterpret_cast<void*>(run);
  return top;
}
#else
#error "the emulator knows x86-64 and aarch64"
#endif

static void copy_text(char* to, size_t size, const char* from) {
  size_t i = 0;
  for (; from[i] != 0 && i + 1 < size; ++i) to[i] = from[i];
  to[i] = 0;
}

// Note a failure, of the thread that is current.
static void report(int status, const char* message, Where where) {
  machine->status = status;
  machine->line = where.line;
  machine->block[0] = blockIdx.x, machine->block[1] = blockIdx.y, machine->block[2] = blockIdx.z;
  machine->thread[0] = threadIdx.x, machine->thread[1] = threadIdx.y, machine->thread[2] = threadIdx.z;
  copy_text(machine->file, sizeof(machine->file), where.file);
  copy_text(machine->message, sizeof(machine->message), message);
}

void fail(int status, const char* message, Where where) {
  report(status, message, where);
  void* gone;
  gd_switch(&gone, home);
  __builtin_unreachable();
}

static unsigned thread_at(unsigned position) { return machine->order & REVERSED ? count - 1 - position : position; }

static void place(unsigned thread) {
  current = thread;
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / (blockDim.x * blockDim.y);
}

// The thread that runs waits until it is made runnable.
static void leave(State why, Where where) {
  Thread& me = threads[current];
  me.where = where;
  me.stack = this_stack;
  state[current] = why;
  waiting++;
  gd_switch(&me.stack_pointer, home);
}

// Let a collective of a warp happen if all its lanes are there. Lanes that ended take no part.
static bool meet(unsigned warp, unsigned op, unsigned mask) {
  const unsigned first = warp * 32, lanes = count - first < 32 ? count - first : 32;
  unsigned present = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const unsigned thread = first + lane;
    if (!(mask >> lane & 1) || state[thread] == DONE) continue;
    if (state[thread] != AT_COLLECTIVE || threads[thread].op != op || threads[thread].mask != mask) return false;
    present |= 1u << lane;
  }
  u64 votes = 0;
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (present >> lane & 1 && threads[first + lane].in != 0) votes |= 1ull << lane;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (!(present >> lane & 1)) continue;
    Thread& me = threads[first + lane];
    state[first + lane] = RUNNABLE;
    if (op == SHUFFLE) {
      // a lane that takes no part gives nothing that can be relied on
      me.out = present >> me.lane & 1 ? threads[first + me.lane].in : ~0ull;
    } else if (op == BALLOT) {
      me.out = votes;
    } else if (op == MATCH) {
      me.out = 0;
      for (unsigned other = 0; other < lanes; ++other)
        if (present >> other & 1 && threads[first + other].in == me.in) me.out |= 1ull << other;
    }
  }
  return true;
}

u64 collective(Collective op, unsigned mask, u64 in, unsigned lane, Where where) {
  const unsigned thread = current;
  Thread& me = threads[thread];
  if (!(mask >> (thread % 32) & 1)) fail(719, "a lane is not in the mask of the collective that it calls", where);
  me.op = op, me.mask = mask, me.in = in, me.lane = lane;
  state[thread] = AT_COLLECTIVE;
  if (!meet(thread / 32, op, mask)) leave(AT_COLLECTIVE, where);
  return me.out;
}

unsigned barrier(Where where, unsigned site, bool predicate) {
  Thread& me = threads[current];
  me.in = predicate;
  me.op = site;
  leave(AT_BARRIER, where);
  return me.out;
}

// Runs on a stack of its own: threads that have not begun, one after the other.
static void work() {
  while (next < last) {
    place(thread_at(next++));
    state[current] = RUNNABLE;
    entry(arguments);
    state[current] = DONE;
    live--;
    if (waiting) {
      const unsigned first = current / 32 * 32, last = first + 32 < count ? first + 32 : count;
      for (unsigned other = first; other < last; ++other)
        if (state[other] == AT_COLLECTIVE) meet(current / 32, threads[other].op, threads[other].mask);
    }
  }
  // the stack is empty again: the next that needs one takes it
  void* gone;
  free_stacks[free_count++] = this_stack;
  gd_switch(&gone, home);
}

// All threads that live wait. Let the barrier happen if they are at the same one.
static bool release() {
  unsigned votes = 0, first = count;
  for (unsigned thread = 0; thread < count; ++thread) {
    if (state[thread] == DONE) continue;
    if (state[thread] == AT_COLLECTIVE) {
      place(thread);
      report(719, "divergent collective: not every lane of its mask came to it", threads[thread].where);
      return false;
    }
    if (first == count) first = thread;
    if (threads[first].op != threads[thread].op) {
      place(thread);
      report(719, "divergent barrier: threads of a block wait at different ones", threads[thread].where);
      return false;
    }
    votes += threads[thread].in != 0;
  }
  for (unsigned thread = 0; thread < count; ++thread) {
    if (state[thread] == DONE) continue;
    threads[thread].out = votes;
    state[thread] = RUNNABLE;
  }
  return true;
}

// Run what can run of threads that have begun, by position. Whether there was any; false too when the kernel failed.
static bool resume(unsigned from, unsigned to) {
  bool ran = false;
  for (unsigned position = from; position < to; ++position) {
    const unsigned thread = thread_at(position);
    if (state[thread] != RUNNABLE) continue;
    ran = true;
    place(thread);
    this_stack = threads[thread].stack;
    gd_switch(&home, threads[thread].stack_pointer);
    if (machine->status) return false;
  }
  return ran;
}

static void run_block() {
  const bool warpwise = machine->order & WARPWISE;
  const unsigned step = warpwise ? 32 : count;
  memset(state, UNSTARTED, count);
  next = waiting = 0;
  live = count;
  for (unsigned from = 0; from < count; from += step) {
    last = from + step < count ? from + step : count;
    while (next < last) {
      this_stack = free_stacks[--free_count];
      gd_switch(&home, first_frame(this_stack, work));
      if (machine->status) return;
    }
    while (warpwise && resume(from, last)) {}
    if (machine->status) return;
  }
  while (live) {
    bool ran = false;
    for (unsigned from = 0; from < count; from += step) {
      const unsigned to = from + step < count ? from + step : count;
      while (resume(from, to)) {
        ran = true;
        if (!warpwise) break;
      }
      if (machine->status) return;
    }
    if (!ran && !release()) return;
  }
}

// ---- signals

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

// ---- grids

void run(const Kernel& kernel, const unsigned* grid, const unsigned* block, unsigned shared, void** params, Machine* m) {
  machine = m;
  dynamic_shared = m->shared;
  gridDim = dim3(grid[0], grid[1], grid[2]);
  blockDim = dim3(block[0], block[1], block[2]);
  count = blockDim.x * blockDim.y * blockDim.z;
  entry = kernel.entry;
  arguments = params;
  free_count = 0;
  for (unsigned i = MAX_THREADS; i-- > 0;) free_stacks[free_count++] = m->stacks + i * STACK;
  Guard guard(m);
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        for (unsigned i = 0; i < m->fixed_count; ++i) memset(m->fixed[i].start, 0xff, m->fixed[i].size);
        if (shared) memset(dynamic_shared, 0xff, shared);
        run_block();
        if (m->status) return;
      }
}

}  // namespace gd_emulator

// ---- what the checks of the compiler (-fsanitize) find

// The compiler calls these; each gets a place in the source first. No library of it is linked.
extern "C" {
#define GD_FOUND(name, ...) void __ubsan_handle_##name(gd_emulator::Where* where, __VA_ARGS__)
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
