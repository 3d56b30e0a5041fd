// Numbers evenly distributed over [0, 1). After random.cuh.

GD_KERNEL(uniform)(GD_STREAM, T* y, i64 n) { DRAW_ALL(T, ) }
