// CUDA C++ on the CPU: what a source sees in place of CUDA. No header of any library is read, so that a small source compiles in a
// fraction of a second; emulator.cc, which runs the grid, is compiled once.
//
// The threads of a block run one after the other, in an order that the driver draws. One that meets a barrier or a warp's collective is left
// on its stack until the others are there; a kernel that meets none runs as a plain loop. What a GPU leaves undefined fails here:
// a barrier that not every live thread reaches, a collective whose lanes disagree, a trap, an address that nobody owns.
//
// The source is included within an unnamed namespace, so that what a kernel does not use is not compiled.

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

#pragma GCC visibility push(hidden)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

// ---- threads, barriers, collectives

namespace gd_emulator {

typedef unsigned long long u64;

enum Collective : unsigned { SHUFFLE = 1, BALLOT, SYNC, MATCH };
constexpr unsigned MAX_THREADS = 1024;
constexpr size_t STACK = 64 << 10;
// In which order the threads of a block run: from the last to the first; each warp as far as it comes before the next one begins.
enum Order : unsigned { REVERSED = 1, WARPWISE = 2 };

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
// Memory whose bytes are marked when a traced image reads (1) or writes (2) them.
struct Watched {
  u64 start, size;
  unsigned char* marks;
};

struct Machine {
  char* stacks;           // MAX_THREADS of STACK bytes, and one for signals
  unsigned char* shared;  // dynamic shared memory
  const Range* fixed;     // __shared__ variables
  unsigned fixed_count;
  unsigned order;         // REVERSED, WARPWISE or both
  const Watched* watched;
  unsigned watched_count;
  int status;             // out: 0, or CUDA's number
  unsigned line;          // out: of the source, and of which file of it
  unsigned block[3];      // out: where it failed
  unsigned thread[3];
  void* fault;            // out: the address, for a bad access
  char file[64];
  char message[256];      // out
};

extern unsigned char* dynamic_shared;
extern unsigned current;  // the thread that runs, by its number in the block

// End the kernel with a status of CUDA's.
[[noreturn]] void fail(int status, const char* message, Where where);
// Meet the other lanes of the mask; gives what the collective gives this one.
u64 collective(Collective op, unsigned mask, u64 in, unsigned lane, Where where);
// Meet the other threads of the block; gives how many of the live ones came with a predicate that holds. site: of the call.
unsigned barrier(Where where, unsigned site, bool predicate = false);

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

// Run a grid of a kernel; the machine says how it ended.
void run(const Kernel& kernel, const unsigned* grid, const unsigned* block, unsigned shared, void** params, Machine* machine);

}  // namespace gd_emulator

#pragma GCC visibility pop

#define GD_HERE (gd_emulator::Where{__FILE__, __LINE__})
#define __syncthreads() ((void)gd_emulator::barrier(GD_HERE, __COUNTER__))
#define __syncthreads_count(p) static_cast<int>(gd_emulator::barrier(GD_HERE, __COUNTER__, (p) != 0))
#define __syncthreads_or(p) (gd_emulator::barrier(GD_HERE, __COUNTER__, (p) != 0) != 0 ? 1 : 0)
#define __syncthreads_and(p) (gd_emulator::barrier(GD_HERE, __COUNTER__, !(p)) == 0 ? 1 : 0)

#define __trap() gd_emulator::fail(719, "trap", GD_HERE)
#define assert(condition) ((condition) ? (void)0 : gd_emulator::fail(710, #condition, GD_HERE))
