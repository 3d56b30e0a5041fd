// A counter: its value, to which one is added, or an error at its limit. Macro: TX: i32 or i64.

GD_KERNEL(count_up)(TX* counter, TX* before, i64 limit, i64* words, i64 code) {
  if (*counter >= limit) { report(words, code, limit, *counter); return; }
  *before = *counter;
  *counter += 1;
}
