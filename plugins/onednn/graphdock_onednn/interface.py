"""The part of oneDNN's C interface, version 3, that is called: declarations, and the numbers of its enumerations."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["DECLARATIONS", "Algorithm", "Arg", "Fact", "Kind", "Status", "isa_name"]

DECLARATIONS = """
typedef struct dnnl_engine *dnnl_engine_t;
typedef struct dnnl_stream *dnnl_stream_t;
typedef struct dnnl_memory_desc *dnnl_memory_desc_t;
typedef struct dnnl_memory *dnnl_memory_t;
typedef struct dnnl_primitive_desc *dnnl_primitive_desc_t;
typedef struct dnnl_primitive *dnnl_primitive_t;
typedef struct dnnl_primitive_attr *dnnl_primitive_attr_t;
typedef struct dnnl_post_ops *dnnl_post_ops_t;
typedef struct { int arg; dnnl_memory_t memory; } dnnl_exec_arg_t;
typedef struct {
  int major; int minor; int patch; const char *hash; unsigned cpu_runtime; unsigned gpu_runtime;
} dnnl_version_t;

const dnnl_version_t *dnnl_version(void);
int dnnl_get_effective_cpu_isa(void);

int dnnl_engine_create(dnnl_engine_t *made, int kind, size_t index);
int dnnl_stream_create(dnnl_stream_t *made, dnnl_engine_t engine, unsigned flags);
int dnnl_stream_destroy(dnnl_stream_t one);

int dnnl_memory_desc_create_with_strides(
  dnnl_memory_desc_t *made, int rank, const int64_t *dims, int type, const int64_t *strides);
int dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *made, int rank, const int64_t *dims, int type, int tag);
int dnnl_memory_desc_clone(dnnl_memory_desc_t *made, dnnl_memory_desc_t one);
int dnnl_memory_desc_destroy(dnnl_memory_desc_t one);
int dnnl_memory_desc_equal(dnnl_memory_desc_t one, dnnl_memory_desc_t other);
size_t dnnl_memory_desc_get_size(dnnl_memory_desc_t one);

int dnnl_memory_create(dnnl_memory_t *made, dnnl_memory_desc_t layout, dnnl_engine_t engine, void *data);
int dnnl_memory_set_data_handle(dnnl_memory_t one, void *data);
int dnnl_memory_destroy(dnnl_memory_t one);

int dnnl_primitive_attr_create(dnnl_primitive_attr_t *made);
int dnnl_primitive_attr_destroy(dnnl_primitive_attr_t one);
int dnnl_primitive_attr_set_scratchpad_mode(dnnl_primitive_attr_t one, int mode);
int dnnl_primitive_attr_set_post_ops(dnnl_primitive_attr_t one, dnnl_post_ops_t ops);
int dnnl_post_ops_create(dnnl_post_ops_t *made);
int dnnl_post_ops_destroy(dnnl_post_ops_t one);
int dnnl_post_ops_append_eltwise(dnnl_post_ops_t one, int algorithm, float alpha, float beta);
int dnnl_post_ops_append_prelu(dnnl_post_ops_t one, int mask);

dnnl_memory_desc_t dnnl_primitive_desc_query_md(dnnl_primitive_desc_t one, int what, int index);
int dnnl_primitive_desc_query(dnnl_primitive_desc_t one, int what, int index, void *found);
int dnnl_primitive_desc_destroy(dnnl_primitive_desc_t one);
int dnnl_primitive_create(dnnl_primitive_t *made, dnnl_primitive_desc_t one);
int dnnl_primitive_destroy(dnnl_primitive_t one);
int dnnl_primitive_execute(dnnl_primitive_t one, dnnl_stream_t stream, int count, const dnnl_exec_arg_t *args);

int dnnl_reorder_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_memory_desc_t from, dnnl_engine_t engine, dnnl_memory_desc_t to,
  dnnl_engine_t other, dnnl_primitive_attr_t attr);
int dnnl_matmul_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, dnnl_memory_desc_t src, dnnl_memory_desc_t weights,
  dnnl_memory_desc_t bias, dnnl_memory_desc_t dst, dnnl_primitive_attr_t attr);
int dnnl_convolution_forward_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int prop, int algorithm, dnnl_memory_desc_t src,
  dnnl_memory_desc_t weights, dnnl_memory_desc_t bias, dnnl_memory_desc_t dst, const int64_t *strides,
  const int64_t *dilates, const int64_t *before, const int64_t *behind, dnnl_primitive_attr_t attr);
int dnnl_convolution_backward_data_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int algorithm, dnnl_memory_desc_t diff_src,
  dnnl_memory_desc_t weights, dnnl_memory_desc_t diff_dst, const int64_t *strides, const int64_t *dilates,
  const int64_t *before, const int64_t *behind, dnnl_primitive_desc_t forward, dnnl_primitive_attr_t attr);
int dnnl_convolution_backward_weights_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int algorithm, dnnl_memory_desc_t src,
  dnnl_memory_desc_t diff_weights, dnnl_memory_desc_t diff_bias, dnnl_memory_desc_t diff_dst, const int64_t *strides,
  const int64_t *dilates, const int64_t *before, const int64_t *behind, dnnl_primitive_desc_t forward,
  dnnl_primitive_attr_t attr);
int dnnl_pooling_forward_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int prop, int algorithm, dnnl_memory_desc_t src,
  dnnl_memory_desc_t dst, const int64_t *strides, const int64_t *window, const int64_t *dilates,
  const int64_t *before, const int64_t *behind, dnnl_primitive_attr_t attr);
int dnnl_pooling_backward_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int algorithm, dnnl_memory_desc_t diff_src,
  dnnl_memory_desc_t diff_dst, const int64_t *strides, const int64_t *window, const int64_t *dilates,
  const int64_t *before, const int64_t *behind, dnnl_primitive_desc_t forward, dnnl_primitive_attr_t attr);
int dnnl_eltwise_forward_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int prop, int algorithm, dnnl_memory_desc_t src,
  dnnl_memory_desc_t dst, float alpha, float beta, dnnl_primitive_attr_t attr);
int dnnl_binary_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int algorithm, dnnl_memory_desc_t src, dnnl_memory_desc_t other,
  dnnl_memory_desc_t dst, dnnl_primitive_attr_t attr);
int dnnl_reduction_primitive_desc_create(
  dnnl_primitive_desc_t *made, dnnl_engine_t engine, int algorithm, dnnl_memory_desc_t src, dnnl_memory_desc_t dst,
  float p, float eps, dnnl_primitive_attr_t attr);

void omp_set_num_threads(int count);
int omp_get_max_threads(void);
int omp_pause_resource_all(int kind);
"""


class Status(IntEnum):
    """``dnnl_status_t``."""

    SUCCESS = 0
    OUT_OF_MEMORY = 1
    INVALID_ARGUMENTS = 2
    UNIMPLEMENTED = 3
    LAST_IMPL_REACHED = 4
    RUNTIME_ERROR = 5
    NOT_REQUIRED = 6
    INVALID_GRAPH = 7
    INVALID_GRAPH_OP = 8
    INVALID_SHAPE = 9
    INVALID_DATA_TYPE = 10


class Kind(IntEnum):
    """Engines, uses of a primitive, layouts and scratch memory, as they are asked for."""

    CPU = 1
    IN_ORDER = 1
    ANY = 1
    USER_SCRATCHPAD = 1
    TRAINING = 64
    INFERENCE = 96
    HARD_PAUSE = 2
    OPENMP = 2


class Algorithm(IntEnum):
    """``dnnl_alg_kind_t``."""

    CONVOLUTION = 0x1
    RELU = 0x20
    TANH = 0x21
    LOGISTIC = 0x29
    GELU_TANH = 0x2B
    CLIP_V2 = 0x2F
    GELU_ERF = 0x31
    POOL_MAX = 0x1FF
    POOL_MEAN = 0x3FF
    NOT_EQUAL = 0x1FFFB
    SUM = 0x2FFF4


class Arg(IntEnum):
    """Numbers of the arguments of a primitive."""

    SRC = 1
    SRC_1 = 2
    DST = 17
    WEIGHTS = 33
    BIAS = 41
    WORKSPACE = 64
    SCRATCHPAD = 80
    DIFF_SRC = 129
    DIFF_DST = 145
    DIFF_WEIGHTS = 161
    DIFF_BIAS = 169
    #: The weights of the first operation behind.
    POST_WEIGHTS = 32768 | 33


class Fact(IntEnum):
    """``dnnl_query_t``."""

    IMPLEMENTATION = 8
    SRC = 129
    DIFF_SRC = 130
    WEIGHTS = 131
    DIFF_WEIGHTS = 132
    DST = 133
    DIFF_DST = 134
    WORKSPACE = 135
    SCRATCHPAD = 136


#: Instruction sets by what they have, the largest first.
_ISAS = (
    (0x1FEF, "AVX-512 with AMX and float16 tiles"),
    (0xFEF, "AVX-512 with AMX"),
    (0x1EF, "AVX-512 with float16"),
    (0xE7, "AVX-512 with bfloat16"),
    (0x67, "AVX-512 with VNNI"),
    (0x27, "AVX-512"),
    (0x1F, "AVX2 with VNNI and narrow floats"),
    (0xF, "AVX2 with VNNI"),
    (0x7, "AVX2"),
    (0x3, "AVX"),
    (0x1, "SSE4.1"),
)


def isa_name(number: int) -> str:
    """Name of the largest instruction set in what ``dnnl_get_effective_cpu_isa`` answers."""
    return next((name for mask, name in _ISAS if number & mask == mask), "none")
