// Where windows of images lie, per axis: rows, then columns. before: pixels of the margin; rate: distance of pixels in a window.

struct Windows { i64 size[2], count[2], taps[2], stride[2], rate[2], before[2]; };
