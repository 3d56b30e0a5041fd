/* What a kernel of so3.TensorProductGrad gets, by name. Written by `graphdock opgen header so3.TensorProductGrad`; do not edit.
 *
 *     const so3_tensor_product_grad_args a = so3_tensor_product_grad_args_of(call);
 *
 * Gradients of both factors of a TensorProduct.
 */
#ifndef GRAPHDOCK_OP_SO3_TENSOR_PRODUCT_GRAD_H
#define GRAPHDOCK_OP_SO3_TENSOR_PRODUCT_GRAD_H

#include <graphdock/kernel.h>

/* Places in `input_begin`, `output_begin` and `attrs`. */
enum {
    SO3_TENSOR_PRODUCT_GRAD_INPUT_GRAD_OUT = 0,
    SO3_TENSOR_PRODUCT_GRAD_INPUT_V1 = 1,
    SO3_TENSOR_PRODUCT_GRAD_INPUT_V2 = 2,
    SO3_TENSOR_PRODUCT_GRAD_OUTPUT_GRAD_V1 = 0,
    SO3_TENSOR_PRODUCT_GRAD_OUTPUT_GRAD_V2 = 1,
    SO3_TENSOR_PRODUCT_GRAD_ATTR_P = 0,
    SO3_TENSOR_PRODUCT_GRAD_ATTR_L = 1,
    SO3_TENSOR_PRODUCT_GRAD_VERSION = 1
};

typedef struct so3_tensor_product_grad_args {
    gd_list grad_out; /* input, P [B, 2*i + 1, C]: Gradient of the product. */
    gd_list v1; /* input, P [B, 2*i + 1, C]: Left factor. */
    gd_list v2; /* input, P [B, 2*i + 1, C]: Right factor. */
    gd_list grad_v1; /* output, P [B, 2*i + 1, C]: Gradient of the left factor. */
    gd_list grad_v2; /* output, P [B, 2*i + 1, C]: Gradient of the right factor. */
    const gd_attr *P; /* attribute, list(type) */
    int64_t L; /* attribute, int: Largest degree. */
    const gd_call *call;
} so3_tensor_product_grad_args;

static inline so3_tensor_product_grad_args so3_tensor_product_grad_args_of(const gd_call *call) {
    so3_tensor_product_grad_args a;
    a.call = call;
    a.grad_out = gd_list_of(call->inputs, call->input_begin, SO3_TENSOR_PRODUCT_GRAD_INPUT_GRAD_OUT);
    a.v1 = gd_list_of(call->inputs, call->input_begin, SO3_TENSOR_PRODUCT_GRAD_INPUT_V1);
    a.v2 = gd_list_of(call->inputs, call->input_begin, SO3_TENSOR_PRODUCT_GRAD_INPUT_V2);
    a.grad_v1 = gd_list_of(call->outputs, call->output_begin, SO3_TENSOR_PRODUCT_GRAD_OUTPUT_GRAD_V1);
    a.grad_v2 = gd_list_of(call->outputs, call->output_begin, SO3_TENSOR_PRODUCT_GRAD_OUTPUT_GRAD_V2);
    a.P = &call->attrs[SO3_TENSOR_PRODUCT_GRAD_ATTR_P];
    a.L = call->attrs[SO3_TENSOR_PRODUCT_GRAD_ATTR_L].ints[0];
    return a;
}

#endif
