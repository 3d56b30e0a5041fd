// One value everywhere, given or in memory. Macro: E: a word as wide as an element.

GD_KERNEL(fill)(E* out, i64 n, E value) { GD_GRID_LOOP(i64, i, n) out[i] = value; }
GD_KERNEL(fill_from)(E* out, i64 n, const E* value) { GD_GRID_LOOP(i64, i, n) out[i] = *value; }
