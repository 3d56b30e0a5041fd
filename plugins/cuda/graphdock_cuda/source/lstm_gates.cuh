// The gates of an LSTM's cell (Hochreiter and Schmidhuber, 1997; Gers, Schmidhuber and Cummins, "Learning to forget", 2000). A row of
// gates holds those of input, new value, forget and output, side by side. TYPE: of the elements. After scalar.cuh. A thread has a unit
// and reads all that it needs before it writes, so that outputs may lie where inputs do; _32 and _64 are the bits that it counts in.

typedef TYPE T;
typedef compute_t<T> C;

// The gates of a unit, activated.
template <class I> struct Activated {
  C i, j, f, o;
  GD_DEVICE Activated(const T* gates, I units, C forget_bias)
      : i(logistic(load(gates))),
        j(tanh(load(gates + units))),
        f(logistic(load(gates + 2 * units) + forget_bias)),
        o(logistic(load(gates + 3 * units))) {}
};

template <class I> GD_DEVICE void forward(const T* gates, const T* c, T* h, T* new_c, I n, I units, C forget_bias) {
  GD_GRID_LOOP(I, at, n) {
    const Activated<I> gate(gates + at + at / units * 3 * units, units, forget_bias);
    const C state = load(c + at) * gate.f + gate.i * gate.j;
    store(new_c + at, state);
    store(h + at, tanh(state) * gate.o);
  }
}
GD_KERNEL(lstm_gates_32)(const T* gates, const T* c, T* h, T* new_c, i64 n, i64 units, double forget_bias) {
  forward<u32>(gates, c, h, new_c, n, units, static_cast<C>(forget_bias));
}
GD_KERNEL(lstm_gates_64)(const T* gates, const T* c, T* h, T* new_c, i64 n, i64 units, double forget_bias) {
  forward<i64>(gates, c, h, new_c, n, units, static_cast<C>(forget_bias));
}

template <class I>
GD_DEVICE void backward(const T* dh, const T* dnew_c, const T* gates, const T* c, const T* new_c, T* to_gates, T* to_c, I n, I units,
                        C forget_bias) {
  GD_GRID_LOOP(I, at, n) {
    const I begin = at + at / units * 3 * units;
    const Activated<I> gate(gates + begin, units, forget_bias);
    const C grad = load(dh + at), before = load(c + at), out = tanh(load(new_c + at));
    const C through = load(dnew_c + at) + grad * gate.o * (C(1) - out * out);
    T* to = to_gates + begin;
    store(to, through * gate.j * gate.i * (C(1) - gate.i));
    store(to + units, through * gate.i * (C(1) - gate.j * gate.j));
    store(to + 2 * units, through * before * gate.f * (C(1) - gate.f));
    store(to + 3 * units, grad * out * gate.o * (C(1) - gate.o));
    store(to_c + at, through * gate.f);
  }
}
GD_KERNEL(lstm_gates_grad_32)
(const T* dh, const T* dnew_c, const T* gates, const T* c, const T* new_c, T* to_gates, T* to_c, i64 n, i64 units, double forget_bias) {
  backward<u32>(dh, dnew_c, gates, c, new_c, to_gates, to_c, n, units, static_cast<C>(forget_bias));
}
GD_KERNEL(lstm_gates_grad_64)
(const T* dh, const T* dnew_c, const T* gates, const T* c, const T* new_c, T* to_gates, T* to_c, i64 n, i64 units, double forget_bias) {
  backward<i64>(dh, dnew_c, gates, c, new_c, to_gates, to_c, n, units, static_cast<C>(forget_bias));
}
