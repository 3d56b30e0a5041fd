/* What a kernel of so3.TensorProduct gets, by name. Written by `graphdock opgen header so3.TensorProduct`; do not edit.
 *
 *     const so3_tensor_product_args a = so3_tensor_product_args_of(call);
 *
 * Channelwise product of two SO(3)-vectors, truncated at degree L.
 */
#ifndef GRAPHDOCK_OP_SO3_TENSOR_PRODUCT_H
#define GRAPHDOCK_OP_SO3_TENSOR_PRODUCT_H

#include <graphdock/kernel.h>

/* Places in `input_begin`, `output_begin` and `attrs`. */
enum {
    SO3_TENSOR_PRODUCT_INPUT_V1 = 0,
    SO3_TENSOR_PRODUCT_INPUT_V2 = 1,
    SO3_TENSOR_PRODUCT_OUTPUT_OUT = 0,
    SO3_TENSOR_PRODUCT_ATTR_T = 0,
    SO3_TENSOR_PRODUCT_ATTR_L = 1,
    SO3_TENSOR_PRODUCT_VERSION = 1
};

typedef struct so3_tensor_product_args {
    gd_list v1; /* input, T [B, 2*i + 1, C]: Left factor. */
    gd_list v2; /* input, T [B, 2*i + 1, C]: Right factor. */
    gd_list out; /* output, T [B, 2*i + 1, C]: The product. */
    const gd_attr *T; /* attribute, list(type) */
    int64_t L; /* attribute, int: Largest degree. */
    const gd_call *call;
} so3_tensor_product_args;

static inline so3_tensor_product_args so3_tensor_product_args_of(const gd_call *call) {
    so3_tensor_product_args a;
    a.call = call;
    a.v1 = gd_list_of(call->inputs, call->input_begin, SO3_TENSOR_PRODUCT_INPUT_V1);
    a.v2 = gd_list_of(call->inputs, call->input_begin, SO3_TENSOR_PRODUCT_INPUT_V2);
    a.out = gd_list_of(call->outputs, call->output_begin, SO3_TENSOR_PRODUCT_OUTPUT_OUT);
    a.T = &call->attrs[SO3_TENSOR_PRODUCT_ATTR_T];
    a.L = call->attrs[SO3_TENSOR_PRODUCT_ATTR_L].ints[0];
    return a;
}

#endif
