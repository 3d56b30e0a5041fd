// QR decompositions by Householder's reflections. After complex.cuh, block.cuh, matrix.cuh and reflections.cuh; ELEMENT is the
// matrices' type. Per block it works on a (m by n), q (m by k) and as many factors as there are reflections.

GD_KERNEL(qr)(const ELEMENT* input, ELEMENT* q, ELEMENT* r, ELEMENT* buffer, i64 each, int m, int n, int k) {
  ELEMENT* const a = workspace(buffer, each);
  ELEMENT* const basis = a + static_cast<i64>(m) * n;
  ELEMENT* const tau = basis + static_cast<i64>(m) * k;
  const int count = min(m, n);
  const i64 matrix = blockIdx.x;
  for (int i = warp_id(); i < m; i += warps())
    for (int j = lane_id(); j < n; j += 32) a[static_cast<i64>(j) * m + i] = input[(matrix * m + i) * n + j];
  __syncthreads();
  reflect_columns(a, m, m, n, tau);
  set_identity(basis, m, m, k);
  apply_reflections(a, m, m, count, tau, basis, m, k, 0);
  for (int i = warp_id(); i < m; i += warps())
    for (int j = lane_id(); j < k; j += 32) q[(matrix * m + i) * k + j] = basis[static_cast<i64>(j) * m + i];
  for (int i = warp_id(); i < k; i += warps())
    for (int j = lane_id(); j < n; j += 32) r[(matrix * k + i) * n + j] = i <= j ? a[static_cast<i64>(j) * m + i] : ELEMENT{};
}
