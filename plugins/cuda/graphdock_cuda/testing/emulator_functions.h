// The functions that CUDA gives to device code, for emulator.h. Included within the source's unnamed namespace, so that what a
// source overloads (exp of a complex number) is found beside them.

// The place of the call.
#define GD_CALLED , const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()
static inline unsigned gd_lane() { return gd_emulator::current & 31; }
template <class T> static T gd_shuffle(unsigned mask, T value, int lane, gd_emulator::Where where) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  unsigned long long in = 0;
  memcpy(&in, &value, sizeof(T));
  in = gd_emulator::collective(gd_emulator::SHUFFLE, mask, in, lane & 31, where);
  memcpy(&value, &in, sizeof(T));
  return value;
}
template <class T> static T __shfl_sync(unsigned mask, T value, int lane, int width = 32 GD_CALLED) {
  return gd_shuffle(mask, value, (gd_lane() & ~(width - 1)) | (lane & (width - 1)), {file, line});
}
template <class T> static T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32 GD_CALLED) {
  const int lane = gd_lane(), from = lane - static_cast<int>(delta);
  return gd_shuffle(mask, value, from < (lane & ~(width - 1)) ? lane : from, {file, line});
}
template <class T> static T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32 GD_CALLED) {
  const int lane = gd_lane(), from = lane + static_cast<int>(delta);
  return gd_shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, {file, line});
}
template <class T> static T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32 GD_CALLED) {
  const int lane = gd_lane(), from = lane ^ bits;
  return gd_shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, {file, line});
}
static inline void __syncwarp(unsigned mask = 0xffffffffu GD_CALLED) {
  gd_emulator::collective(gd_emulator::SYNC, mask, 0, 0, {file, line});
}
static inline unsigned __ballot_sync(unsigned mask, int p GD_CALLED) {
  return static_cast<unsigned>(gd_emulator::collective(gd_emulator::BALLOT, mask, p != 0, 0, {file, line}));
}
static inline int __any_sync(unsigned mask, int p GD_CALLED) { return __ballot_sync(mask, p, file, line) != 0; }
static inline int __all_sync(unsigned mask, int p GD_CALLED) { return __ballot_sync(mask, !p, file, line) == 0; }
template <class T> static unsigned __match_any_sync(unsigned mask, T value GD_CALLED) {
  unsigned long long in = 0;
  memcpy(&in, &value, sizeof(T));
  return static_cast<unsigned>(gd_emulator::collective(gd_emulator::MATCH, mask, in, 0, {file, line}));
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

// A condition of recorded work is the address of the word that the fake driver looks at.
static inline void cudaGraphSetConditional(unsigned long long condition, unsigned value) {
  *reinterpret_cast<unsigned*>(condition) = value;
}

// ---- atomics: one thread runs at a time

#define GD_ATOMIC(T)                                                                            \
  static inline T atomicExch(T* at, T value) { const T old = *at; *at = value; return old; }    \
  static inline T atomicAdd(T* at, T value) { const T old = *at; *at = old + value; return old; }
#define GD_ATOMIC_INTEGER(T)                                                                                    \
  GD_ATOMIC(T)                                                                                                  \
  static inline T atomicMin(T* at, T value) { const T old = *at; if (value < old) *at = value; return old; }    \
  static inline T atomicMax(T* at, T value) { const T old = *at; if (value > old) *at = value; return old; }    \
  static inline T atomicAnd(T* at, T value) { const T old = *at; *at = old & value; return old; }               \
  static inline T atomicOr(T* at, T value) { const T old = *at; *at = old | value; return old; }                \
  static inline T atomicXor(T* at, T value) { const T old = *at; *at = old ^ value; return old; }               \
  static inline T atomicCAS(T* at, T seen, T value) { const T old = *at; if (old == seen) *at = value; return old; }
GD_ATOMIC_INTEGER(int)
GD_ATOMIC_INTEGER(unsigned)
GD_ATOMIC_INTEGER(unsigned long long)
GD_ATOMIC(float)
GD_ATOMIC(double)
static inline long long atomicMin(long long* at, long long value) { const long long old = *at; if (value < old) *at = value; return old; }
static inline long long atomicMax(long long* at, long long value) { const long long old = *at; if (value > old) *at = value; return old; }
static inline int atomicSub(int* at, int value) { return atomicAdd(at, -value); }
static inline unsigned atomicSub(unsigned* at, unsigned value) { return atomicAdd(at, 0u - value); }
static inline unsigned atomicInc(unsigned* at, unsigned last) { const unsigned old = *at; *at = old >= last ? 0 : old + 1; return old; }
static inline unsigned atomicDec(unsigned* at, unsigned last) {
  const unsigned old = *at;
  *at = old == 0 || old > last ? last : old - 1;
  return old;
}
static inline unsigned short atomicCAS(unsigned short* at, unsigned short seen, unsigned short value) {
  const unsigned short old = *at;
  if (old == seen) *at = value;
  return old;
}

// ---- bits and integers

template <class T> static inline T __ldg(const T* at) { return *at; }
template <class T> static inline T __ldcs(const T* at) { return *at; }
template <class T> static inline T __ldcg(const T* at) { return *at; }
template <class T> static inline void __stcs(T* at, T value) { *at = value; }
// without the compiler's own library, which has the builtin
static inline int __popcll(unsigned long long v) {
  v -= v >> 1 & 0x5555555555555555ull;
  v = (v & 0x3333333333333333ull) + (v >> 2 & 0x3333333333333333ull);
  return static_cast<int>(((v + (v >> 4)) & 0x0f0f0f0f0f0f0f0full) * 0x0101010101010101ull >> 56);
}
static inline int __popc(unsigned v) { return __popcll(v); }
static inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
static inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(v)); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __ffsll(long long v) { return __builtin_ffsll(v); }
static inline unsigned __brev(unsigned v) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (v >> i & 1u) << (31 - i);
  return out;
}
static inline unsigned long long __brevll(unsigned long long v) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(v))) << 32 | __brev(static_cast<unsigned>(v >> 32));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select) {
  const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= static_cast<unsigned>(both >> ((select >> 4 * i & 7) * 8) & 0xff) << 8 * i;
  return out;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (by & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
static inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
template <class To, class From> static inline To gd_bits(From value) {
  To out;
  memcpy(&out, &value, sizeof(To));
  return out;
}
static inline int __float_as_int(float v) { return gd_bits<int>(v); }
static inline unsigned __float_as_uint(float v) { return gd_bits<unsigned>(v); }
static inline float __int_as_float(int v) { return gd_bits<float>(v); }
static inline float __uint_as_float(unsigned v) { return gd_bits<float>(v); }
static inline long long __double_as_longlong(double v) { return gd_bits<long long>(v); }
static inline double __longlong_as_double(long long v) { return gd_bits<double>(v); }
static inline int __double2hiint(double v) { return static_cast<int>(gd_bits<long long>(v) >> 32); }
static inline int __double2loint(double v) { return static_cast<int>(gd_bits<long long>(v)); }
static inline double __hiloint2double(int high, int low) {
  return gd_bits<double>(static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}
static inline int min(int a, int b) { return a < b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

// ---- mathematics: the C library's, overloaded for float as CUDA has it

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define GD_MATH1(name)                                     \
  extern "C" double name(double) noexcept;                 \
  extern "C" float name##f(float) noexcept;                \
  static inline float name(float x) { return name##f(x); }
#define GD_MATH2(name)                                                  \
  extern "C" double name(double, double) noexcept;                      \
  extern "C" float name##f(float, float) noexcept;                      \
  static inline float name(float x, float y) { return name##f(x, y); }
GD_MATH1(acos) GD_MATH1(acosh) GD_MATH1(asin) GD_MATH1(asinh) GD_MATH1(atan) GD_MATH1(atanh) GD_MATH1(cbrt) GD_MATH1(ceil)
GD_MATH1(cos) GD_MATH1(cosh) GD_MATH1(erf) GD_MATH1(erfc) GD_MATH1(exp) GD_MATH1(exp2) GD_MATH1(expm1) GD_MATH1(fabs)
GD_MATH1(floor) GD_MATH1(lgamma) GD_MATH1(log) GD_MATH1(log10) GD_MATH1(log1p) GD_MATH1(log2) GD_MATH1(logb)
GD_MATH1(nearbyint) GD_MATH1(rint) GD_MATH1(round) GD_MATH1(sin) GD_MATH1(sinh) GD_MATH1(sqrt) GD_MATH1(tan) GD_MATH1(tanh)
GD_MATH1(tgamma) GD_MATH1(trunc) GD_MATH1(j0) GD_MATH1(j1) GD_MATH1(y0) GD_MATH1(y1) GD_MATH1(exp10)
GD_MATH2(atan2) GD_MATH2(copysign) GD_MATH2(fdim) GD_MATH2(fmax) GD_MATH2(fmin) GD_MATH2(fmod) GD_MATH2(hypot)
GD_MATH2(nextafter) GD_MATH2(pow) GD_MATH2(remainder)
#undef GD_MATH1
#undef GD_MATH2
extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
int abs(int) noexcept;
long long llabs(long long) noexcept;
void sincos(double, double*, double*) noexcept;
void sincosf(float, float*, float*) noexcept;
}
static inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline float ldexp(float x, int e) { return ldexpf(x, e); }
static inline float frexp(float x, int* e) { return frexpf(x, e); }
static inline float modf(float x, float* whole) { return modff(x, whole); }
static inline float scalbn(float x, int e) { return scalbnf(x, e); }
static inline int ilogb(float x) { return ilogbf(x); }
static inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
static inline long long abs(long long v) { return v < 0 ? -v : v; }
static inline float abs(float v) { return fabsf(v); }
static inline double abs(double v) { return fabs(v); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.707106781186547524f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.707106781186547524); }
static inline float sinpif(float x) { return static_cast<float>(sin(x * 3.14159265358979323846)); }
static inline double sinpi(double x) { return sin(fmod(x, 2.0) * 3.14159265358979323846); }
static inline float cospif(float x) { return static_cast<float>(cos(x * 3.14159265358979323846)); }
static inline double cospi(double x) { return cos(fmod(x, 2.0) * 3.14159265358979323846); }
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> static inline bool signbit(T x) { return __builtin_signbit(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
// What is rounded by name is never part of a fused multiplication and addition.
template <class T> static inline T GD_ROUNDED(T value) {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#else
  asm("" : "+w"(value));
#endif
  return value;
}
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __fadd_rn(float a, float b) { return GD_ROUNDED(a + b); }
static inline float __fsub_rn(float a, float b) { return GD_ROUNDED(a - b); }
static inline float __fmul_rn(float a, float b) { return GD_ROUNDED(a * b); }
static inline float __fdiv_rn(float a, float b) { return GD_ROUNDED(a / b); }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline double __dadd_rn(double a, double b) { return GD_ROUNDED(a + b); }
static inline double __dsub_rn(double a, double b) { return GD_ROUNDED(a - b); }
static inline double __dmul_rn(double a, double b) { return GD_ROUNDED(a * b); }
static inline double __ddiv_rn(double a, double b) { return GD_ROUNDED(a / b); }
static inline double __dsqrt_rn(double a) { return sqrt(a); }
static inline float __int2float_rn(int v) { return static_cast<float>(v); }
static inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
static inline float __double2float_rn(double v) { return static_cast<float>(v); }
// Conversions to integers saturate on a GPU, and NaN becomes 0.
static inline int __float2int_rz(float v) { return v != v ? 0 : v >= 2147483648.0f ? 2147483647 : v < -2147483648.0f ? -2147483647 - 1 : static_cast<int>(v); }
static inline int __float2int_rn(float v) { return __float2int_rz(rintf(v)); }
static inline int __float2int_rd(float v) { return __float2int_rz(floorf(v)); }
static inline unsigned __float2uint_rz(float v) { return v >= 4294967296.0f ? 4294967295u : v > 0.0f ? static_cast<unsigned>(v) : 0u; }
static inline unsigned __float2uint_rn(float v) { return __float2uint_rz(rintf(v)); }
