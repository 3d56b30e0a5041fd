// A counter: one more, or an error at its limit. Macro: TX: i32 or i64.

GD_KERNEL(count_up)(TX* counter, const TX* limit, i64* words, i64 code) {
  if (*counter >= *limit) report(words, code, *limit, *counter);
  else *counter += 1;
}
