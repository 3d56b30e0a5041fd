/* The SO(3) tensor product and its gradient. constants[0]: rows (l1, m1, l2, m2, l, m); constants[1]: their coefficients. */
#include "so3_tensor_product.h"
#include "so3_tensor_product_grad.h"

GRAPHDOCK_LIBRARY

/* Row m of part l of a vector, for example b. */
#define ROW(T, list, l, m) ((T *)(list).items[l].data + (b * (2 * (l) + 1) + (m)) * channels)

#define KERNELS(T)                                                                                                \
    static void zero_##T(gd_list list) {                                                                          \
        for (int32_t l = 0; l < list.count; l++)                                                                  \
            for (int64_t i = 0; i < list.items[l].size; i++) ((T *)list.items[l].data)[i] = 0;                    \
    }                                                                                                             \
    static void product_##T(so3_tensor_product_args a) {                                                          \
        const int32_t(*at)[6] = (const int32_t(*)[6])a.call->constants[0].data;                                   \
        const double *value = (const double *)a.call->constants[1].data;                                          \
        const int64_t batch = a.v1.items[0].shape[0], channels = a.v1.items[0].shape[2];                          \
        zero_##T(a.out);                                                                                          \
        for (int64_t b = 0; b < batch; b++)                                                                       \
            for (int64_t e = 0; e < a.call->constants[1].size; e++) {                                             \
                const T *x = ROW(T, a.v1, at[e][0], at[e][1]), *y = ROW(T, a.v2, at[e][2], at[e][3]);             \
                T *restrict z = ROW(T, a.out, at[e][4], at[e][5]);                                                \
                const T c = (T)value[e];                                                                          \
                for (int64_t i = 0; i < channels; i++) z[i] += c * x[i] * y[i];                                   \
            }                                                                                                     \
    }                                                                                                             \
    static void gradient_##T(so3_tensor_product_grad_args a) {                                                    \
        const int32_t(*at)[6] = (const int32_t(*)[6])a.call->constants[0].data;                                   \
        const double *value = (const double *)a.call->constants[1].data;                                          \
        const int64_t batch = a.v1.items[0].shape[0], channels = a.v1.items[0].shape[2];                          \
        zero_##T(a.grad_v1);                                                                                      \
        zero_##T(a.grad_v2);                                                                                      \
        for (int64_t b = 0; b < batch; b++)                                                                       \
            for (int64_t e = 0; e < a.call->constants[1].size; e++) {                                             \
                const T *x = ROW(T, a.v1, at[e][0], at[e][1]), *y = ROW(T, a.v2, at[e][2], at[e][3]);             \
                const T *z = ROW(T, a.grad_out, at[e][4], at[e][5]);                                              \
                T *restrict dx = ROW(T, a.grad_v1, at[e][0], at[e][1]);                                           \
                T *restrict dy = ROW(T, a.grad_v2, at[e][2], at[e][3]);                                           \
                const T c = (T)value[e];                                                                          \
                for (int64_t i = 0; i < channels; i++) {                                                          \
                    dx[i] += c * z[i] * y[i];                                                                     \
                    dy[i] += c * z[i] * x[i];                                                                     \
                }                                                                                                 \
            }                                                                                                     \
    }

KERNELS(float)
KERNELS(double)

GRAPHDOCK_KERNEL(so3_tensor_product) {
    const so3_tensor_product_args a = so3_tensor_product_args_of(call);
    switch (a.v1.items[0].dtype) {
        case GD_FLOAT32: product_float(a); return GD_OK;
        case GD_FLOAT64: product_double(a); return GD_OK;
        default: return gd_fail(call, GD_UNIMPLEMENTED, "no C code for dtype %d", (int)a.v1.items[0].dtype);
    }
}

GRAPHDOCK_KERNEL(so3_tensor_product_grad) {
    const so3_tensor_product_grad_args a = so3_tensor_product_grad_args_of(call);
    switch (a.v1.items[0].dtype) {
        case GD_FLOAT32: gradient_float(a); return GD_OK;
        case GD_FLOAT64: gradient_double(a); return GD_OK;
        default: return gd_fail(call, GD_UNIMPLEMENTED, "no C code for dtype %d", (int)a.v1.items[0].dtype);
    }
}
