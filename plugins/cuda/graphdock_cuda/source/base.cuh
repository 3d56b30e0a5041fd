// What every CUDA source of this plugin begins with. Sources are joined as text: base.cuh, then complex.cuh, then block.cuh, then
// the kernels, so that NVRTC needs no header at all. GD_EMULATED is defined where a source runs on the CPU (testing/emulator.h).
//
// Storage types are what memory holds; arithmetic is done in compute_t<T>, which differs for the two halves alone:
//     y[i] = from_compute<T>(f(to_compute(x[i])));

#ifndef GD_BASE
#define GD_BASE

#define GD_DEVICE __device__ __forceinline__
// A function that is called, not copied to where it stands: a long one, of which a kernel would hold a dozen copies.
#define GD_CALLED static __device__ __noinline__
#define GD_FULL_MASK 0xffffffffu
// Begins a kernel: GD_KERNEL(name)(float* x, i64 n) { ... }. The emulator finds kernels by this and by extern "C" __global__ void.
#define GD_KERNEL(name) extern "C" __global__ void name
// A pointer to the dynamic shared memory of the launch, aligned to 16.
#ifdef GD_EMULATED
#define GD_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(gd_emulator::dynamic_shared)
#else
#define GD_DYNAMIC_SHARED(type, name)                             \
  extern __shared__ __align__(16) unsigned char gd_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(gd_dynamic_shared)
#endif
// Visits i = 0 .. n-1 with all threads of a one-dimensional grid, whatever its size.
#define GD_GRID_LOOP(I, i, n)                                                                     \
  for (I i = static_cast<I>(blockIdx.x) * static_cast<I>(blockDim.x) + static_cast<I>(threadIdx.x), \
         gd_step_##i = static_cast<I>(gridDim.x) * static_cast<I>(blockDim.x);                    \
       i < (n); i += gd_step_##i)

// NVRTC has no <math.h>.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif

namespace gd {

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
template <bool Condition, class A, class B> struct choose { typedef A type; };
template <class A, class B> struct choose<false, A, B> { typedef B type; };
template <bool Condition, class A = void> struct only_if {};
template <class A> struct only_if<true, A> { typedef A type; };

// The bits of a value as another type of the same size.
template <class To, class From> GD_DEVICE To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
  To out;
  memcpy(&out, &value, sizeof(To));
  return out;
}

// ---- the two halves: storage only

struct half_t { u16 bits; };
struct bfloat16_t { u16 bits; };

#ifdef GD_EMULATED
// The bits of a positive finite or infinite value, cut to fewer bits of mantissa, to nearest even.
GD_DEVICE u16 half_bits(double value) {
  const u64 all = bits_as<u64>(value), magnitude = all & 0x7fffffffffffffffull;
  const u16 sign = static_cast<u16>(all >> 48 & 0x8000u);
  if (magnitude > 0x7ff0000000000000ull) return static_cast<u16>(sign | 0x7e00u | (magnitude >> 42 & 0x3ffu));
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > 15) return static_cast<u16>(sign | 0x7c00u);
  if (exponent < -25) return sign;
  // 1.mantissa in 53 bits; the last bit kept is worth 2^(exponent-10), or 2^-24 for a subnormal
  const u64 mantissa = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
  const int drop = 42 + (exponent < -14 ? -14 - exponent : 0);
  u64 kept = mantissa >> drop;
  const u64 rest = mantissa & ((1ull << drop) - 1), tie = 1ull << (drop - 1);
  if (rest > tie || (rest == tie && (kept & 1))) kept++;
  // a carry out of the mantissa goes into the exponent, up to infinity
  const u64 base = exponent < -14 ? 0 : static_cast<u64>(exponent + 14) << 10;
  return static_cast<u16>(sign | (base + kept));
}
GD_DEVICE float half_value(u16 bits) {
  const u32 sign = static_cast<u32>(bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 31) return bits_as<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-08f;
    return sign ? -value : value;
  }
  return bits_as<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}
GD_DEVICE u16 bfloat16_bits(float value) {
  const u32 all = bits_as<u32>(value);
  if ((all & 0x7fffffffu) > 0x7f800000u) return static_cast<u16>(all >> 16 | 0x40u);
  return static_cast<u16>((all + 0x7fffu + (all >> 16 & 1)) >> 16);
}
#else
GD_DEVICE u16 half_bits(float value) {
  u16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(value));
  return out;
}
GD_DEVICE u16 half_bits(double value) {
  u16 out;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(out) : "d"(value));
  return out;
}
GD_DEVICE float half_value(u16 bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
  return out;
}
GD_DEVICE u16 bfloat16_bits(float value) {
  u16 out;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(value));
  return out;
}
#endif

// Rounded to nearest even; NaN stays NaN. A double becomes a bfloat16 through float, as ml_dtypes does it.
GD_DEVICE half_t to_half(float value) { return half_t{half_bits(value)}; }
GD_DEVICE half_t to_half(double value) { return half_t{half_bits(value)}; }
GD_DEVICE bfloat16_t to_bfloat16(float value) { return bfloat16_t{bfloat16_bits(value)}; }

// ---- storage and compute types

template <class T> struct compute { typedef T type; };
template <> struct compute<half_t> { typedef float type; };
template <> struct compute<bfloat16_t> { typedef float type; };
// What T is computed in: float for the halves, T itself else.
template <class T> using compute_t = typename compute<T>::type;

// A stored value as its compute type.
template <class T> GD_DEVICE T to_compute(T value) { return value; }
GD_DEVICE float to_compute(half_t value) { return half_value(value.bits); }
GD_DEVICE float to_compute(bfloat16_t value) { return bits_as<float>(static_cast<u32>(value.bits) << 16); }

template <class T> struct storing {
  template <class C> static GD_DEVICE T of(C value) { return static_cast<T>(value); }
};
template <> struct storing<half_t> {
  static GD_DEVICE half_t of(float value) { return to_half(value); }
  static GD_DEVICE half_t of(double value) { return to_half(value); }
  template <class C> static GD_DEVICE half_t of(C value) { return to_half(static_cast<float>(value)); }
};
template <> struct storing<bfloat16_t> {
  template <class C> static GD_DEVICE bfloat16_t of(C value) { return to_bfloat16(static_cast<float>(value)); }
};
// A computed value as it is stored: from_compute<half_t>(1.5f).
template <class T, class C> GD_DEVICE T from_compute(C value) { return storing<T>::of(value); }

// x[i] as its compute type, through the read-only cache where the pointer is const __restrict__.
template <class T> GD_DEVICE compute_t<T> load(const T* from) { return to_compute(*from); }
// Round to T and store.
template <class T, class C> GD_DEVICE void store(T* to, C value) { *to = from_compute<T>(value); }
// T rounded to its storage type and back: what a chain of separate kernels would have seen.
template <class T> GD_DEVICE compute_t<T> rounded(compute_t<T> value) { return to_compute(from_compute<T>(value)); }

// ---- facts of types

template <class T> struct is_floating { static constexpr bool value = false; };
template <> struct is_floating<float> { static constexpr bool value = true; };
template <> struct is_floating<double> { static constexpr bool value = true; };
template <> struct is_floating<half_t> { static constexpr bool value = true; };
template <> struct is_floating<bfloat16_t> { static constexpr bool value = true; };

template <class T> struct unsigned_of { typedef T type; };
template <> struct unsigned_of<i8> { typedef u8 type; };
template <> struct unsigned_of<i16> { typedef u16 type; };
template <> struct unsigned_of<i32> { typedef u32 type; };
template <> struct unsigned_of<i64> { typedef u64 type; };
// The unsigned integer as wide as T.
template <class T> using unsigned_t = typename unsigned_of<T>::type;

// limits<T>, of storage types: lowest, highest (finite), and for floating ones infinity and nan, all as compute_t<T>.
template <class T> struct limits {
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static GD_DEVICE T highest() {
    return is_signed ? static_cast<T>((static_cast<u64>(1) << (8 * sizeof(T) - 1)) - 1) : static_cast<T>(~static_cast<T>(0));
  }
  static GD_DEVICE T lowest() { return static_cast<T>(is_signed ? -highest() - 1 : 0); }
  // what every other value is above or below
  static GD_DEVICE T bottom() { return lowest(); }
  static GD_DEVICE T top() { return highest(); }
};
template <> struct limits<bool> {
  static GD_DEVICE bool highest() { return true; }
  static GD_DEVICE bool lowest() { return false; }
  static GD_DEVICE bool bottom() { return false; }
  static GD_DEVICE bool top() { return true; }
};
struct float_limits {
  static GD_DEVICE float infinity() { return bits_as<float>(0x7f800000u); }
  static GD_DEVICE float nan() { return bits_as<float>(0x7fc00000u); }
  static GD_DEVICE float bottom() { return -infinity(); }
  static GD_DEVICE float top() { return infinity(); }
};
template <> struct limits<float> : float_limits {
  static GD_DEVICE float highest() { return 3.40282346638528859812e+38f; }
  static GD_DEVICE float lowest() { return -highest(); }
  static GD_DEVICE float epsilon() { return 1.1920928955078125e-07f; }
};
template <> struct limits<half_t> : float_limits {
  static GD_DEVICE float highest() { return 65504.0f; }
  static GD_DEVICE float lowest() { return -highest(); }
  static GD_DEVICE float epsilon() { return 0.0009765625f; }
};
template <> struct limits<bfloat16_t> : float_limits {
  static GD_DEVICE float highest() { return bits_as<float>(0x7f7f0000u); }
  static GD_DEVICE float lowest() { return -highest(); }
  static GD_DEVICE float epsilon() { return 0.0078125f; }
};
template <> struct limits<double> {
  static GD_DEVICE double infinity() { return bits_as<double>(0x7ff0000000000000ull); }
  static GD_DEVICE double nan() { return bits_as<double>(0x7ff8000000000000ull); }
  static GD_DEVICE double bottom() { return -infinity(); }
  static GD_DEVICE double top() { return infinity(); }
  static GD_DEVICE double highest() { return 1.79769313486231570815e+308; }
  static GD_DEVICE double lowest() { return -highest(); }
  static GD_DEVICE double epsilon() { return 2.2204460492503130808e-16; }
};

// ---- arithmetic of integers, as NumPy does it

// Sums, differences and products modulo 2^n, without undefined overflow.
template <class T> GD_DEVICE T wrap_add(T a, T b) { return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b)); }
template <class T> GD_DEVICE T wrap_sub(T a, T b) { return static_cast<T>(static_cast<u64>(a) - static_cast<u64>(b)); }
template <class T> GD_DEVICE T wrap_mul(T a, T b) { return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b)); }
template <class T> GD_DEVICE T wrap_neg(T a) { return static_cast<T>(static_cast<u64>(0) - static_cast<u64>(a)); }

// a / b towards zero; 0 where b is 0, and lowest / -1 wraps.
template <class T> GD_DEVICE T trunc_div(T a, T b) {
  if (b == T(0)) return T(0);
  if (limits<T>::is_signed && b == static_cast<T>(-1)) return wrap_neg(a);
  return static_cast<T>(a / b);
}
// The remainder of trunc_div, with the sign of a; 0 where b is 0.
template <class T> GD_DEVICE T trunc_mod(T a, T b) {
  if (b == T(0) || (limits<T>::is_signed && b == static_cast<T>(-1))) return T(0);
  return static_cast<T>(a % b);
}
// a / b rounded down; 0 where b is 0.
template <class T> GD_DEVICE T floor_div(T a, T b) {
  const T q = trunc_div(a, b), r = trunc_mod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(q - 1) : q;
}
// The remainder of floor_div, with the sign of b; 0 where b is 0.
template <class T> GD_DEVICE T floor_mod(T a, T b) {
  const T r = trunc_mod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
}
// Floating floor_mod and floor_div, of Python and NumPy.
template <class T> GD_DEVICE T floor_mod_float(T a, T b) {
  const T r = fmod(a, b);
  if (r == T(0)) return copysign(T(0), b);
  return (r < T(0)) != (b < T(0)) ? r + b : r;
}
template <class T> GD_DEVICE T floor_div_float(T a, T b) {
  if (b == T(0)) return a / b;
  T r = fmod(a, b), q = (a - r) / b;
  if (r != T(0) && (r < T(0)) != (b < T(0))) q -= T(1);
  if (q == T(0)) return copysign(T(0), a / b);
  const T down = floor(q);
  return q - down > T(0.5) ? down + T(1) : down;
}
GD_DEVICE float floor_mod(float a, float b) { return floor_mod_float(a, b); }
GD_DEVICE double floor_mod(double a, double b) { return floor_mod_float(a, b); }
GD_DEVICE float floor_div(float a, float b) { return floor_div_float(a, b); }
GD_DEVICE double floor_div(double a, double b) { return floor_div_float(a, b); }

// ---- sixteen bytes at once

// How many T a vector access moves, 16 bytes where T divides it.
template <class T> struct vector_width { static constexpr int value = sizeof(T) >= 16 ? 1 : 16 / sizeof(T); };
// N neighbouring elements, moved as one access: *reinterpret_cast<pack<T>*>(p), p aligned to the whole.
template <class T, int N = vector_width<T>::value> struct alignas(N * sizeof(T)) pack {
  T at[N];
};
template <class T, int N = vector_width<T>::value> GD_DEVICE pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const pack<T, N>*>(from);
}
template <class T, int N> GD_DEVICE void store_pack(T* to, const pack<T, N>& values) {
  *reinterpret_cast<pack<T, N>*>(to) = values;
}

// ---- indices

constexpr int MAX_RANK = 8;

// Coordinates of a flat row-major index.
template <class I> GD_DEVICE void unravel(I flat, const I* dims, int rank, I* coords) {
#pragma unroll
  for (int axis = MAX_RANK - 1; axis >= 0; --axis) {
    if (axis >= rank) continue;
    const I above = flat / dims[axis];
    coords[axis] = flat - above * dims[axis];
    flat = above;
  }
}
// Where the element of a flat row-major index lies, by strides in elements (0 for a broadcast axis).
template <class I> GD_DEVICE I offset_of(I flat, const I* dims, const I* strides, int rank) {
  I offset = 0;
#pragma unroll
  for (int axis = MAX_RANK - 1; axis >= 0; --axis) {
    if (axis >= rank) continue;
    const I above = flat / dims[axis];
    offset += (flat - above * dims[axis]) * strides[axis];
    flat = above;
  }
  return offset;
}
// Division by a number known to the host, of n < 2^31: the host gives shift = ceil(log2(d)) and
// magic = (2^32 * (2^shift - d)) / d + 1 (Granlund and Montgomery).
struct divider {
  u32 divisor, magic, shift;
  GD_DEVICE u32 div(u32 n) const { return (__umulhi(n, magic) + n) >> shift; }
  GD_DEVICE u32 mod(u32 n) const { return n - div(n) * divisor; }
};
// As offset_of, with the host's dividers.
GD_DEVICE u32 offset_of(u32 flat, const divider* dims, const u32* strides, int rank) {
  u32 offset = 0;
#pragma unroll
  for (int axis = MAX_RANK - 1; axis >= 0; --axis) {
    if (axis >= rank) continue;
    const u32 above = dims[axis].div(flat);
    offset += (flat - above * dims[axis].divisor) * strides[axis];
    flat = above;
  }
  return offset;
}
template <class I> GD_DEVICE I ceil_div(I a, I b) { return (a + b - 1) / b; }

// ---- operations, for reductions and scans

// NaN wins, as in NumPy's maximum and minimum.
template <class T> GD_DEVICE T maximum(T a, T b) { return a != a || a > b ? a : b; }
template <class T> GD_DEVICE T minimum(T a, T b) { return a != a || a < b ? a : b; }

struct sum_op { template <class T> GD_DEVICE T operator()(T a, T b) const { return static_cast<T>(a + b); } };
struct product_op { template <class T> GD_DEVICE T operator()(T a, T b) const { return static_cast<T>(a * b); } };
struct max_op { template <class T> GD_DEVICE T operator()(T a, T b) const { return maximum(a, b); } };
struct min_op { template <class T> GD_DEVICE T operator()(T a, T b) const { return minimum(a, b); } };
struct all_op { GD_DEVICE bool operator()(bool a, bool b) const { return a && b; } };
struct any_op { GD_DEVICE bool operator()(bool a, bool b) const { return a || b; } };

}  // namespace gd
using namespace gd;

#endif
