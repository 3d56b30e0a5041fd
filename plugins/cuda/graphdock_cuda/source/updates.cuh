// Updates of variables by their gradients, dense and of some rows. A rule is a struct that reads its rates once per thread, as
// doubles, and then updates the variable and its slots, elements of compute_t<T>, by one gradient.
//
// The kernels' own parameters are the variable, its slots and the rates, which differ per op: graphdock_cuda/kernels/updates.py
// writes them around dense() and sparse(). After tables.cuh.

namespace gd {

template <class C> struct gradient_descent {
  C alpha;
  GD_DEVICE explicit gradient_descent(const double* r) : alpha(C(r[0])) {}
  GD_DEVICE void operator()(C* held, C grad) const { held[0] -= grad * alpha; }
};

template <class C, bool NESTEROV> struct with_momentum {
  C rate, keep;
  GD_DEVICE explicit with_momentum(const double* r) : rate(C(r[0])), keep(C(r[1])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] = held[1] * keep + grad;
    held[0] -= rate * (NESTEROV ? held[1] * keep + grad : held[1]);
  }
};
template <class C> using momentum = with_momentum<C, false>;
template <class C> using nesterov = with_momentum<C, true>;

template <class C> struct adagrad {
  C rate;
  GD_DEVICE explicit adagrad(const double* r) : rate(C(r[0])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += grad * grad;
    held[0] -= grad / sqrt(held[1]) * rate;
  }
};

// Rates: beta1_power, beta2_power, lr, beta1, beta2, epsilon.
template <class C> struct adam {
  C rate, rest1, rest2, epsilon;
  GD_DEVICE explicit adam(const double* r)
      : rate(C(r[2] * sqrt(1.0 - r[1]) / (1.0 - r[0]))), rest1(C(1.0 - r[3])), rest2(C(1.0 - r[4])), epsilon(C(r[5])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += (grad - held[1]) * rest1;
    held[2] += (grad * grad - held[2]) * rest2;
    held[0] -= held[1] / (sqrt(held[2]) + epsilon) * rate;
  }
};

// Rates: those of adam, then weight_decay.
template <class C> struct adam_w {
  adam<C> inner;
  C keep;
  GD_DEVICE explicit adam_w(const double* r) : inner(r), keep(C(1.0 - r[2] * r[6])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[0] *= keep;
    inner(held, grad);
  }
};

// Rates: lr, rho, momentum, epsilon.
template <class C> struct rms_prop {
  C rate, rest, keep, epsilon;
  GD_DEVICE explicit rms_prop(const double* r) : rate(C(r[0])), rest(C(1.0 - r[1])), keep(C(r[2])), epsilon(C(r[3])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += (grad * grad - held[1]) * rest;
    held[2] = held[2] * keep + grad / sqrt(held[1] + epsilon) * rate;
    held[0] -= held[2];
  }
};
template <class C> struct centered_rms_prop {
  C rate, rest, keep, epsilon;
  GD_DEVICE explicit centered_rms_prop(const double* r)
      : rate(C(r[0])), rest(C(1.0 - r[1])), keep(C(r[2])), epsilon(C(r[3])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += (grad - held[1]) * rest;
    held[2] += (grad * grad - held[2]) * rest;
    held[3] = held[3] * keep + grad / sqrt(held[2] - held[1] * held[1] + epsilon) * rate;
    held[0] -= held[3];
  }
};

// Rates: lr, rho, epsilon.
template <class C> struct adadelta {
  C rate, rest, epsilon;
  GD_DEVICE explicit adadelta(const double* r) : rate(C(r[0])), rest(C(1.0 - r[1])), epsilon(C(r[2])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += (grad * grad - held[1]) * rest;
    const C move = sqrt((held[2] + epsilon) / (held[1] + epsilon)) * grad;
    held[0] -= move * rate;
    held[2] += (move * move - held[2]) * rest;
  }
};

// Towards zero by a limit, and zero where it would get past it; NaN stays NaN.
template <class C> GD_DEVICE C shrunk(C value, C limit) { return copysign(maximum(fabs(value) - limit, C(0)), value); }

// Rates: lr, l1, l2, global_step.
template <class C> struct adagrad_da {
  C back, limit, ridge;
  GD_DEVICE explicit adagrad_da(const double* r) : back(C(-r[0])), limit(C(r[1] * r[3])), ridge(C(r[2] * r[3] * r[0])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += grad;
    held[2] += grad * grad;
    held[0] = shrunk(held[1], limit) / (sqrt(held[2]) + ridge) * back;
  }
};

// Rates: alpha, l1, l2.
template <class C> struct proximal_gradient_descent {
  C alpha, limit, shrink;
  GD_DEVICE explicit proximal_gradient_descent(const double* r)
      : alpha(C(r[0])), limit(C(r[0] * r[1])), shrink(C(1.0 + r[0] * r[2])) {}
  GD_DEVICE void operator()(C* held, C grad) const { held[0] = shrunk(held[0] - grad * alpha, limit) / shrink; }
};
template <class C> struct proximal_adagrad {
  C rate, l1, l2;
  GD_DEVICE explicit proximal_adagrad(const double* r) : rate(C(r[0])), l1(C(r[1])), l2(C(r[2])) {}
  GD_DEVICE void operator()(C* held, C grad) const {
    held[1] += grad * grad;
    const C own = rate / sqrt(held[1]);
    held[0] = shrunk(held[0] - own * grad, own * l1) / (own * l2 + C(1));
  }
};

// Rates: lr, l1, l2, then l2_shrinkage where there is one, then lr_power.
template <class C, bool SHRINKS> struct follow_leader {
  C rate, l1, l2, shrinkage, power;
  GD_DEVICE explicit follow_leader(const double* r)
      : rate(C(1.0 / r[0])), l1(C(r[1])), l2(C(2.0 * r[2])), shrinkage(C(SHRINKS ? 2.0 * r[3] : 0.0)), power(C(-r[SHRINKS ? 4 : 3])) {}
  GD_DEVICE C raised(C accum) const { return power == C(0.5) ? sqrt(accum) : pow(accum, power); }
  GD_DEVICE void operator()(C* held, C grad) const {
    const C before = raised(held[1]);
    held[1] += grad * grad;
    const C after = raised(held[1]);
    held[2] += grad - ((after - before) * rate - shrinkage) * held[0];
    const C size = fabs(held[2]);
    held[0] = size > l1 || size != size ? (copysign(l1, held[2]) - held[2]) / (after * rate + l2) : C(0);
  }
};
template <class C> using ftrl = follow_leader<C, false>;
template <class C> using ftrl_v2 = follow_leader<C, true>;

// Every element of a variable and its slots; 16 bytes at a time where all begin at a multiple of that. The thread is number `first`
// of `step`.
template <class T, int HELD, class R>
GD_DEVICE void dense(T* const (&held)[HELD], const T* __restrict__ grad, const R& rule, i64 n, i64 first, i64 step) {
  typedef compute_t<T> C;
  constexpr int V = vector_width<T>::value;
  u64 addresses = reinterpret_cast<u64>(grad);
#pragma unroll
  for (int h = 0; h < HELD; ++h) addresses |= reinterpret_cast<u64>(held[h]);
  const i64 packs = addresses % (V * sizeof(T)) == 0 ? n / V : 0;
  for (i64 i = first; i < packs; i += step) {
    pack<T> values[HELD];
    const pack<T> grads = load_pack(grad + i * V);
#pragma unroll
    for (int h = 0; h < HELD; ++h) values[h] = load_pack(held[h] + i * V);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      C own[HELD];
#pragma unroll
      for (int h = 0; h < HELD; ++h) own[h] = to_compute(values[h].at[j]);
      rule(own, to_compute(grads.at[j]));
#pragma unroll
      for (int h = 0; h < HELD; ++h) values[h].at[j] = from_compute<T>(own[h]);
    }
#pragma unroll
    for (int h = 0; h < HELD; ++h) store_pack(held[h] + i * V, values[h]);
  }
  for (i64 i = packs * V + first; i < n; i += step) {
    C own[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) own[h] = load(held[h] + i);
    rule(own, load(grad + i));
#pragma unroll
    for (int h = 0; h < HELD; ++h) store(held[h] + i, own[h]);
  }
}

// What one launch updates of several variables: where each and its slots lie, its gradient, its size, and its first block.
template <class T, int HELD> struct Variables {
  T* held[HELD];
  const T* grad;
  i64 n;
  u64 begin;
};

template <class T, int HELD, class R> GD_DEVICE void dense_many(const Variables<T, HELD>* each, i64 count, const R& rule) {
  const i64 low = row_of_block(count, [&](i64 i) { return each[i].begin; });
  const i64 begin = each[low].begin, end = low + 1 < count ? each[low + 1].begin : gridDim.x;
  T* held[HELD];
#pragma unroll
  for (int h = 0; h < HELD; ++h) held[h] = each[low].held[h];
  dense(held, each[low].grad, rule, each[low].n, (blockIdx.x - begin) * blockDim.x + threadIdx.x, (end - begin) * blockDim.x);
}

// The rows that are named, each by one thread per element of a row, which adds its gradients in their order first.
// rows: sorted; order: where each stood among the gradients; nothing is done where refused holds another number than 0.
template <class T, int HELD, class R>
GD_DEVICE void sparse(T* const (&held)[HELD], const T* __restrict__ grad, const u32* __restrict__ rows,
                      const i32* __restrict__ order, const u32* refused, const R& rule, i64 count, i64 width) {
  typedef compute_t<T> C;
  if (*refused != 0) return;
  GD_GRID_LOOP(i64, flat, count * width) {
    const i64 first = flat / width, column = flat - first * width;
    const u32 row = rows[first];
    if (first > 0 && rows[first - 1] == row) continue;
    C total = C(0);
    for (i64 i = first; i < count && rows[i] == row; ++i) total += load(grad + static_cast<i64>(order[i]) * width + column);
    const i64 at = row * width + column;
    C own[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) own[h] = load(held[h] + at);
    rule(own, total);
#pragma unroll
    for (int h = 0; h < HELD; ++h) store(held[h] + at, own[h]);
  }
}

}  // namespace gd
