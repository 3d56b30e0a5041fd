// Numbers drawn from a stream. ELEMENT: type of elements. After philox.cuh, and quantile.cuh for truncated normal numbers.

typedef ELEMENT T;
typedef choose<same<T, double>::value, double, float>::type WIDE;

// One block per thread and turn; DRAW makes `values`, an array of uniforms<...>::count numbers, of `words`.
#define DRAW_ALL(KIND, ...)                                             \
  GD_OPEN_STREAM(stream);                                               \
  constexpr int COUNT = uniforms<KIND>::count;                          \
  GD_GRID_LOOP(i64, at, (n + COUNT - 1) / COUNT) {                      \
    uniforms<KIND> values(stream.block(1 + at));                        \
    __VA_ARGS__                                                         \
    for (int i = 0; i < COUNT && at * COUNT + i < n; ++i) store(y + at * COUNT + i, values.at[i]); \
  }
