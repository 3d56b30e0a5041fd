/* graphdock's interface for kernels in C and C++ (docs/write-a-native-kernel.md).
 *
 * A library says once which interface it was compiled for, and exports one function per kernel:
 *
 *     #include <graphdock/kernel.h>
 *     GRAPHDOCK_LIBRARY
 *
 *     GRAPHDOCK_KERNEL(my_relu) {
 *         const float *x = (const float *)call->inputs[0].data;
 *         float *y = (float *)call->outputs[0].data;
 *         for (int64_t i = 0; i < call->outputs[0].size; i++) y[i] = x[i] > 0 ? x[i] : 0;
 *         return GD_OK;
 *     }
 *
 * A kernel is called without Python's lock, from any thread, by several threads at once for several nodes: it keeps nothing in
 * globals. It reads inputs and constants, writes outputs and scratch, and returns a status. Nothing that it is given outlives
 * the call. `graphdock opgen header OP` writes a header with the op's arguments and attributes by name.
 */
#ifndef GRAPHDOCK_KERNEL_H
#define GRAPHDOCK_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Raised whenever a struct below changes; a library of another version is refused when it is loaded. */
#define GRAPHDOCK_ABI_VERSION 1

/* begin declarations: what graphdock itself reads */

/* Element types. */
enum gd_dtype {
    GD_BOOL = 1, GD_INT8 = 2, GD_INT16 = 3, GD_INT32 = 4, GD_INT64 = 5, GD_UINT8 = 6, GD_UINT16 = 7, GD_UINT32 = 8,
    GD_UINT64 = 9, GD_FLOAT16 = 10, GD_BFLOAT16 = 11, GD_FLOAT32 = 12, GD_FLOAT64 = 13, GD_COMPLEX64 = 14, GD_COMPLEX128 = 15
};

/* What a kernel returns: TensorFlow's status numbers. Each but GD_OK becomes the error class of that name. */
enum gd_status {
    GD_OK = 0, GD_CANCELLED = 1, GD_INVALID_ARGUMENT = 3, GD_DEADLINE_EXCEEDED = 4, GD_NOT_FOUND = 5, GD_ALREADY_EXISTS = 6,
    GD_RESOURCE_EXHAUSTED = 8, GD_FAILED_PRECONDITION = 9, GD_ABORTED = 10, GD_OUT_OF_RANGE = 11, GD_UNIMPLEMENTED = 12,
    GD_INTERNAL = 13, GD_UNAVAILABLE = 14
};

/* What an attribute holds. GD_ATTR_ABSENT: null, or a kind of value that is not handed to C (graphs, tensors). */
enum gd_attr_kind {
    GD_ATTR_ABSENT = 0, GD_ATTR_INT = 1, GD_ATTR_FLOAT = 2, GD_ATTR_BOOL = 3, GD_ATTR_STRING = 4, GD_ATTR_DTYPE = 5,
    GD_ATTR_SHAPE = 6
};

/* An array: `size` elements from `data`. `strides` are in bytes. Rank 0 has one element. Without elements `data` may not be read.
 * Outputs, scratch and constants are row-major without gaps; inputs are too, unless the kernel is registered as strided. */
typedef struct gd_tensor {
    void *data;
    const int64_t *shape;
    const int64_t *strides;
    int64_t size;
    int32_t dtype;
    int32_t rank;
} gd_tensor;

/* UTF-8 of `size` bytes, and a zero byte after them. */
typedef struct gd_text {
    const char *data;
    int64_t size;
} gd_text;

/* An attribute: `count` values of a list, one of a scalar. Of the three pointers one is set: `ints` for ints, bools, dtypes and
 * the dims of a shape (-1: unknown), `floats`, `texts`. A shape of unknown rank has the count -1. */
typedef struct gd_attr {
    int32_t kind;
    int32_t is_list;
    int64_t count;
    const int64_t *ints;
    const double *floats;
    const gd_text *texts;
} gd_attr;

/* One call of a kernel. Argument i of the op has the inputs input_begin[i] up to input_begin[i + 1]: one, or those of a list, or
 * none where it is optional and absent; outputs likewise. Attributes stand in the order of the spec, type variables first. */
typedef struct gd_call {
    uint32_t abi_version;
    uint32_t call_size;
    int32_t input_count;
    int32_t output_count;
    int32_t scratch_count;
    int32_t constant_count;
    int32_t attr_count;
    int32_t reserved;
    const gd_tensor *inputs;
    const gd_tensor *outputs;
    const gd_tensor *scratch;
    const gd_tensor *constants;
    const gd_attr *attrs;
    const int32_t *input_begin;
    const int32_t *output_begin;
    char *message;
    int64_t message_size;
} gd_call;

/* What a library was compiled for. */
typedef struct gd_abi {
    uint32_t version;
    uint32_t call_size;
    uint32_t tensor_size;
    uint32_t attr_size;
} gd_abi;

/* end declarations */

#if defined(_WIN32)
#define GRAPHDOCK_SYMBOL __declspec(dllexport)
#elif defined(__GNUC__)
#define GRAPHDOCK_SYMBOL __attribute__((visibility("default")))
#else
#define GRAPHDOCK_SYMBOL
#endif

#ifdef __cplusplus
#define GRAPHDOCK_EXPORT extern "C" GRAPHDOCK_SYMBOL
#else
#define GRAPHDOCK_EXPORT GRAPHDOCK_SYMBOL
#endif

/* Once per library, in one of its files. */
#define GRAPHDOCK_LIBRARY                                                                                                       \
    GRAPHDOCK_EXPORT const gd_abi *graphdock_abi(void);                                                                         \
    GRAPHDOCK_EXPORT const gd_abi *graphdock_abi(void) {                                                                        \
        static const gd_abi made = {GRAPHDOCK_ABI_VERSION, sizeof(gd_call), sizeof(gd_tensor), sizeof(gd_attr)};                \
        return &made;                                                                                                           \
    }

/* Begins the definition of a kernel; its only argument is `call`. */
#define GRAPHDOCK_KERNEL(NAME)                                                                                                  \
    GRAPHDOCK_EXPORT int32_t NAME(const gd_call *call);                                                                         \
    GRAPHDOCK_EXPORT int32_t NAME(const gd_call *call)

/* The tensors of one list argument. */
typedef struct gd_list {
    const gd_tensor *items;
    int32_t count;
} gd_list;

static inline gd_list gd_list_of(const gd_tensor *all, const int32_t *begin, int argument) {
    gd_list found;
    found.items = all + begin[argument];
    found.count = begin[argument + 1] - begin[argument];
    return found;
}

/* The tensor of an argument that is no list; NULL for an absent optional one. */
static inline const gd_tensor *gd_tensor_of(const gd_tensor *all, const int32_t *begin, int argument) {
    return begin[argument + 1] > begin[argument] ? all + begin[argument] : NULL;
}

/* return gd_fail(call, GD_OUT_OF_RANGE, "index %d is beyond %d", i, n); */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline int32_t gd_fail(const gd_call *call, int32_t status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(call->message, (size_t)call->message_size, format, args);
    va_end(args);
    return status;
}

#ifdef __cplusplus
#include <exception>
#include <new>

/* return gd_guard(call, [&] { ...; return GD_OK; }); No exception may leave a kernel: this makes a status of each. */
template <class Body>
int32_t gd_guard(const gd_call *call, Body body) {
    try {
        return body();
    } catch (const std::bad_alloc &error) {
        return gd_fail(call, GD_RESOURCE_EXHAUSTED, "%s", error.what());
    } catch (const std::exception &error) {
        return gd_fail(call, GD_INTERNAL, "%s", error.what());
    } catch (...) {
        return gd_fail(call, GD_INTERNAL, "an exception of an unknown type");
    }
}
#endif

#endif
