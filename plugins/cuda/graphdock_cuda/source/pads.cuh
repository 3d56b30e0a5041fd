// Margins around arrays: of one value, or mirrored with the edge (symmetric) or without it (reflect).

enum pad_mode { mode_constant, mode_reflect, mode_symmetric };

// Sizes of the axes without margins, and margins before and after.
struct Pads {
  i64 dims[MAX_RANK], before[MAX_RANK], after[MAX_RANK];
};
