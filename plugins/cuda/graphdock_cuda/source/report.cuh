// How a kernel says that it found a bad value; see error_words.py.

#ifndef GD_REPORT
#define GD_REPORT

namespace gd {

// Note two numbers, together, and then the code. Of several threads that do so any one wins.
GD_DEVICE void report(i64* words, i64 code, i64 first, i64 second) {
  *reinterpret_cast<longlong2*>(words) = make_longlong2(first, second);
  __threadfence_system();
  *reinterpret_cast<volatile i64*>(words + 2) = code;
}

}  // namespace gd

#endif
