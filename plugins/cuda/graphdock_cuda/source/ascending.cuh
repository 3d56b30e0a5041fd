// Whether numbers of rows ascend, none twice. Macro: KEY: u32 or u64.

GD_KERNEL(ascending)(const KEY* keys, u64* fault, i64 n) {
  GD_GRID_LOOP(i64, i, n - 1) if (keys[i + 1] <= keys[i]) atomicMin(fault, static_cast<u64>(i + 1));
}

// Notes the first place that does not, and with it the row and the one before it as row * size + before. Not where an index is bad.
GD_KERNEL(report_ascending)(const KEY* keys, const u64* bad, const u64* fault, i64 size, i64* words, i64 code) {
  if (*bad != ~0ull || *fault == ~0ull) return;
  const i64 at = static_cast<i64>(*fault);
  report(words, code, at, static_cast<i64>(static_cast<u64>(keys[at]) * static_cast<u64>(size) + static_cast<u64>(keys[at - 1])));
}
