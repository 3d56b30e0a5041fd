// Convolutions and their gradients as products of matrices that are gathered on the way (implicit GEMM). TYPE: of the elements;
// GD_TILE, GD_A_ALONG, GD_B_ALONG: see gemm.cuh. Blocks: tiles along x, parts of the inner dim along y. After sliding.cuh and gemm.cuh.

typedef TYPE T;
typedef compute_t<T> R;

// The input's elements by position of the window and (element of the window, channel).
struct Windows {
  const T* x;
  const Slide& s;
  struct Row {
    i64 base;
    int at[3];
  };
  typedef Tap Column;
  GD_DEVICE Row row(i64 m) const {
    const Place p = place(m, s.out);
    Row r{p.batch * s.x_batch, {0, 0, 0}};
#pragma unroll
    for (int d = 0; d < 3; ++d) r.at[d] = p.at[d] * s.stride[d] - s.before[d];
    return r;
  }
  GD_DEVICE Column column(i64 k) const { return tap(s, static_cast<u32>(k), s.channels); }
  GD_DEVICE R at(const Row& r, const Column& c) const {
    i64 offset = r.base + c.channel * s.x_channel;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      const int i = r.at[d] + c.by[d];
      if (i < 0 || i >= s.size[d]) return R(0);
      offset += i * s.x_step[d];
    }
    return load(x + offset);
  }
};

// The output's gradients by position in the input and (element of the window, output channel).
struct Reached {
  const T* dy;
  const Slide& s;
  struct Row {
    i64 base;
    int at[3];
  };
  typedef Tap Column;
  GD_DEVICE Row row(i64 m) const {
    const Place p = place(m, s.size);
    Row r{p.batch * s.y_batch, {0, 0, 0}};
#pragma unroll
    for (int d = 0; d < 3; ++d) r.at[d] = p.at[d] + s.before[d];
    return r;
  }
  GD_DEVICE Column column(i64 k) const { return tap(s, static_cast<u32>(k), s.outputs); }
  GD_DEVICE R at(const Row& r, const Column& c) const {
    i64 line = 0;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      const int reach = r.at[d] - c.by[d];
      const int o = reach / s.stride[d];
      if (reach < 0 || o * s.stride[d] != reach || o >= s.out[d]) return R(0);
      line = line * s.out[d] + o;
    }
    return load(dy + r.base + line * s.y_line + c.channel * s.y_channel);
  }
};

// Rows and columns of another addressing changed over.
template <class A> struct Turned {
  A of;
  typedef typename A::Column Row;
  typedef typename A::Row Column;
  GD_DEVICE Row row(i64 i) const { return of.column(i); }
  GD_DEVICE Column column(i64 j) const { return of.row(j); }
  GD_DEVICE R at(const Row& i, const Column& j) const { return of.at(j, i); }
};

// A matrix by two steps.
struct Plain {
  const T* elements;
  i64 by_row, by_column;
  struct Row { i64 at; };
  struct Column { i64 at; };
  GD_DEVICE Row row(i64 i) const { return {i * by_row}; }
  GD_DEVICE Column column(i64 j) const { return {j * by_column}; }
  GD_DEVICE R at(Row i, Column j) const { return load(elements + i.at + j.at); }
};

// The filter by input channel and (element of the window, output channel).
struct FilterBack {
  const T* w;
  const Slide& s;
  struct Row { i64 at; };
  struct Column { i64 at; };
  GD_DEVICE Row row(i64 c) const { return {c * s.outputs}; }
  GD_DEVICE Column column(i64 k) const {
    const u32 index = static_cast<u32>(k) / s.outputs, o = static_cast<u32>(k) % s.outputs;
    return {static_cast<i64>(index) * s.channels * s.outputs + o};
  }
  GD_DEVICE R at(Row i, Column j) const { return load(w + i.at + j.at); }
};

// The output's gradients by output channel and position.
struct Gradients {
  const T* dy;
  const Slide& s;
  struct Row { i64 at; };
  struct Column { i64 at; };
  GD_DEVICE Row row(i64 o) const { return {o * s.y_channel}; }
  GD_DEVICE Column column(i64 m) const {
    const i64 lines = places(s.out), batch = m / lines;
    return {batch * s.y_batch + (m - batch * lines) * s.y_line};
  }
  GD_DEVICE R at(Row i, Column j) const { return load(dy + i.at + j.at); }
};

// put(i, j, sum) does with a sum what is to be done; of parts, those who join them do.
template <class A, class B, class Put>
GD_DEVICE void gathered(const A& a, const B& b, R* sums, i64 m, i64 n, i64 k, int parts, Put put) {
  const i64 across = ceil_div<i64>(n, 16 * GD_TILE);
  const i64 row = blockIdx.x / across * (16 * GD_TILE), column = blockIdx.x % across * (16 * GD_TILE);
  const Part part = part_of(k, parts);
  R* mine = sums + blockIdx.y * m * n;
  product_tile<R, GD_TILE, GD_A_ALONG, GD_B_ALONG>(a, b, m, n, row, column, part.begin, part.end, [&](i64 i, i64 j, R sum) {
    if (parts == 1) put(i, j, sum);
    else mine[i * n + j] = sum;
  });
}
GD_DEVICE R total(const R* sums, i64 i, i64 count, int parts) {
  R sum = sums[i];
  for (int part = 1; part < parts; ++part) sum += sums[part * count + i];
  return sum;
}
GD_DEVICE i64 of_output(const Slide& s, i64 i, i64 j) {
  const i64 lines = places(s.out), batch = i / lines;
  return batch * s.y_batch + (i - batch * lines) * s.y_line + j * s.y_channel;
}
GD_DEVICE i64 of_input(const Slide& s, i64 i, i64 j) {
  const i64 lines = places(s.size), batch = i / lines;
  return batch * s.x_batch + (i - batch * lines) * s.x_line + j * s.x_channel;
}
