// One value everywhere, given or in memory. Macro: WORD: a word as wide as an element.

GD_KERNEL(fill)(WORD* out, i64 n, WORD value) { GD_GRID_LOOP(i64, i, n) out[i] = value; }
GD_KERNEL(fill_from)(WORD* out, i64 n, const WORD* value) { GD_GRID_LOOP(i64, i, n) out[i] = *value; }
