// CUDA C++ on the CPU: what a source sees in place of CUDA, and the loop that runs a grid. Hardly a header of any library is read, so
// that a small source compiles in a fraction of a second.
//
// The threads of a block run one after the other, in order or in reverse. One that meets a barrier or a warp's collective is left
// on its stack until the others are there; a kernel that meets none runs as a plain loop. What a GPU leaves undefined fails here:
// a barrier that not every live thread reaches, a collective whose lanes disagree, a trap, an address that nobody owns.
//
// The source is included within an unnamed namespace, so that what a kernel does not use is not compiled.

#include <signal.h>

#define GD_EMULATED 1
#define __CUDA_ARCH__ GD_EMULATED_ARCH

typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

extern "C" {
void* memcpy(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
int printf(const char*, ...);
}

// ---- the language

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// image.py finds these: they are all that a source keeps within functions
#define __shared__ static

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define GD_VECTOR(T, name, bytes)                                                    \
  struct __align__((2 * bytes)) name##2 { T x, y; };                                 \
  struct name##3 { T x, y, z; };                                                     \
  struct __align__((4 * bytes > 16 ? 16 : 4 * bytes)) name##4 { T x, y, z, w; };     \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                  \
  static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }          \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
GD_VECTOR(signed char, char, 1)
GD_VECTOR(unsigned char, uchar, 1)
GD_VECTOR(short, short, 2)
GD_VECTOR(unsigned short, ushort, 2)
GD_VECTOR(int, int, 4)
GD_VECTOR(float, float, 4)
GD_VECTOR(long long, longlong, 8)
GD_VECTOR(unsigned long long, ulonglong, 8)
GD_VECTOR(double, double, 8)
#undef GD_VECTOR
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

// ---- threads, barriers, collectives

namespace gd_emulator {

typedef unsigned long long u64;

enum State : unsigned char { UNSTARTED, RUNNABLE, AT_BARRIER, AT_COLLECTIVE, DONE };
enum Collective : unsigned { SHUFFLE = 1, BALLOT, SYNC, MATCH };
constexpr unsigned MAX_THREADS = 1024;
constexpr size_t STACK = 64 << 10;

// A place in a source.
struct Where {
  const char* file;
  unsigned line;
};

struct Range {
  void* start;
  size_t size;
};

// What the driver hands over: memory that all modules share. The layout is known to image.py.
struct Machine {
  char* stacks;           // MAX_THREADS of STACK bytes, and one for signals
  unsigned char* shared;  // dynamic shared memory
  const Range* fixed;     // __shared__ variables
  unsigned fixed_count;
  unsigned reversed;      // threads run from the last to the first
  int status;             // out: 0, or CUDA's number
  unsigned line;          // out: of the source, and of which file of it
  unsigned block[3];      // out: where it failed
  unsigned thread[3];
  void* fault;            // out: the address, for a bad access
  char file[64];
  char message[256];      // out
};

struct Thread {
  char* stack;
  void* stack_pointer;
  Where where;  // it waits
  unsigned op, mask, lane;  // of a collective; op is the site of a barrier
  u64 in, out;
};

static Machine* machine;
static unsigned char* dynamic_shared;
static unsigned char state[MAX_THREADS];
static Thread threads[MAX_THREADS];
static unsigned count;      // threads of a block
static unsigned next;       // position of the next that has not begun
static unsigned current;    // the thread that runs
static unsigned waiting;    // how often a thread was left on its stack
static void* home;          // the stack pointer of the loop over threads
static char* free_stacks[MAX_THREADS];
static unsigned free_count;
static unsigned live;       // threads that have not ended
static char* this_stack;
static void (*entry)(void**);
static void** arguments;

// Leave the stack that runs for another; save where it was.
extern "C" __attribute__((visibility("hidden"))) void gd_switch(void** save, void* to);
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

// End the kernel with a status.
static __attribute__((noinline, noreturn)) void fail(int status, const char* message, Where where) {
  report(status, message, where);
  void* gone;
  gd_switch(&gone, home);
  __builtin_unreachable();
}

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

static __attribute__((noinline)) u64 collective(Collective op, unsigned mask, u64 in, unsigned lane, Where where) {
  const unsigned thread = current;
  Thread& me = threads[thread];
  if (!(mask >> (thread % 32) & 1)) fail(719, "a lane is not in the mask of the collective that it calls", where);
  me.op = op, me.mask = mask, me.in = in, me.lane = lane;
  state[thread] = AT_COLLECTIVE;
  if (!meet(thread / 32, op, mask)) leave(AT_COLLECTIVE, where);
  return me.out;
}

// Of the live threads, how many came with a predicate that holds.
static __attribute__((noinline)) unsigned barrier(Where where, unsigned site, bool predicate = false) {
  Thread& me = threads[current];
  me.in = predicate;
  me.op = site;
  leave(AT_BARRIER, where);
  return me.out;
}

// Runs on a stack of its own: threads that have not begun, one after the other.
static void work() {
  while (next < count) {
    const unsigned position = next++;
    place(machine->reversed ? count - 1 - position : position);
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

static void run_block() {
  memset(state, UNSTARTED, count);
  next = waiting = 0;
  live = count;
  while (next < count) {
    this_stack = free_stacks[--free_count];
    gd_switch(&home, first_frame(this_stack, work));
    if (machine->status) return;
  }
  while (live) {
    bool ran = false;
    for (unsigned position = 0; position < count; ++position) {
      const unsigned thread = machine->reversed ? count - 1 - position : position;
      if (state[thread] != RUNNABLE) continue;
      ran = true;
      place(thread);
      this_stack = threads[thread].stack;
      gd_switch(&home, threads[thread].stack_pointer);
      if (machine->status) return;
    }
    if (!ran && !release()) return;
  }
}

}  // namespace gd_emulator
#include "emulator_checks.h"
namespace gd_emulator {

// ---- a module's kernels, as the driver finds them

template <size_t... I> struct Numbers {};
template <size_t N, size_t... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <size_t... I> struct UpTo<0, I...> { typedef Numbers<I...> type; };

struct Kernel {
  const char* name;
  void (*entry)(void**);
  unsigned count;
  const unsigned* sizes;
  unsigned bound;  // of __launch_bounds__, 0 for none
};
template <auto K> struct Entry;
template <class... A, void (*K)(A...)> struct Entry<K> {
  static_assert((sizeof(A) + ... + 0) <= 4096, "the parameters of a kernel take 4096 bytes at most");
  static constexpr unsigned sizes[sizeof...(A) + 1] = {sizeof(A)..., 0};
  template <size_t... I> static inline void call(void** p, Numbers<I...>) { K(*reinterpret_cast<A*>(p[I])...); }
  static void run(void** p) { call(p, typename UpTo<sizeof...(A)>::type()); }
  static constexpr Kernel kernel(const char* name, unsigned bound) { return {name, run, sizeof...(A), sizes, bound}; }
};

static void run(const Kernel& kernel, const unsigned* grid, const unsigned* block, unsigned shared, void** params, Machine* m) {
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

#define GD_HERE (gd_emulator::Where{__FILE__, __LINE__})
#define __syncthreads() ((void)gd_emulator::barrier(GD_HERE, __COUNTER__))
#define __syncthreads_count(p) static_cast<int>(gd_emulator::barrier(GD_HERE, __COUNTER__, (p) != 0))
#define __syncthreads_or(p) (gd_emulator::barrier(GD_HERE, __COUNTER__, (p) != 0) != 0 ? 1 : 0)
#define __syncthreads_and(p) (gd_emulator::barrier(GD_HERE, __COUNTER__, !(p)) == 0 ? 1 : 0)

#define __trap() gd_emulator::fail(719, "trap", GD_HERE)
#define assert(condition) ((condition) ? (void)0 : gd_emulator::fail(710, #condition, GD_HERE))
