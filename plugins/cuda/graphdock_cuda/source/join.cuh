// Pieces of one size, one after the other in every row of an array. E: an element, see word.cuh; COUNT: most pieces of a launch.

struct Pieces {
  const E* at[COUNT];
};

template <class W> GD_DEVICE void join_as(const W* from, W* to, i64 n, i64 run, i64 row) {
  GD_GRID_LOOP(i64, i, n) {
    const i64 outer = i / run;
    to[outer * row + (i - outer * run)] = from[i];
  }
}

// Piece p of the launch has n elements, run of them in each row; the row has as many as `row` says.
GD_KERNEL(join)(Pieces pieces, E* to, i64 n, i64 run, i64 row) {
  typedef word<16>::type wide;
  const E* from = pieces.at[blockIdx.y];
  to += blockIdx.y * run;
  constexpr i64 many = sizeof(wide) / sizeof(E);
  const bool aligned = (reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to)) % sizeof(wide) == 0;
  if (aligned && run % many == 0 && row % many == 0) {
    join_as(reinterpret_cast<const wide*>(from), reinterpret_cast<wide*>(to), n / many, run / many, row / many);
  } else {
    join_as(from, to, n, run, row);
  }
}
