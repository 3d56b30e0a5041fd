"""The names of the standard library that are written by hand; those of ops stand in their specs.

:mod:`graphdock_std.endpoints` publishes them when a program runs; opgen reads this file as data, without importing anything.
Module -> namespaces -> the names that each of them has of it, ``name=attribute`` where the module calls it otherwise
(``docs/reference/op-specs.md``, "Names").
"""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS: dict[str, dict[str, str]] = {
    "graphdock_std.array.functions": {
        "tf": (
            "concat diag diag_part expand_dims meshgrid ones pad range rank sequence_mask size split squeeze stack "
            "transpose unstack zeros"
        ),
        "tf tf.linalg": "eye matrix_transpose",
        "tf.linalg": "tensor_diag=diag tensor_diag_part=diag_part transpose=matrix_transpose",
    },
    "graphdock_std.array.indexing": {
        "tf": "batch_gather boolean_mask gather one_hot strided_slice where where_v2",
        "tf tf.manip": "gather_nd",
    },
    "graphdock_std.array.rearrange": {
        "tf": "broadcast_static_shape guarantee_const parallel_stack repeat reverse_sequence shape_n",
    },
    "graphdock_std.array.scatter": {"tf": "sparse_to_dense"},
    "graphdock_std.array.selection": {
        "tf": "histogram_fixed_width histogram_fixed_width_bins listdiff searchsorted setdiff1d",
        "tf tf.contrib.framework": "argsort sort",
        "tf tf.math": "bincount confusion_matrix",
        "tf.math tf.nn": "in_top_k top_k",
    },
    "graphdock_std.array.space": {
        "tf": "batch_to_space required_space_to_batch_paddings",
        "tf tf.image": "extract_image_patches",
        "tf.image": "extract_patches",
        "tf tf.nn": "space_to_batch",
    },
    "graphdock_std.control.assertions": {"tf tf.debugging tf.math": "is_non_decreasing is_strictly_increasing"},
    "graphdock_std.control.static_assertions": {
        "tf.debugging": "assert_all_finite=verify_tensor_all_finite",
        "tf": "verify_tensor_all_finite",
    },
    "graphdock_std.conv.convolution": {
        "tf.nn": (
            "atrous_conv2d conv1d conv2d conv2d_backprop_filter conv2d_backprop_input conv3d conv3d_backprop_filter "
            "conv3d_backprop_filter_v2=conv3d_backprop_filter convolution"
        ),
    },
    "graphdock_std.conv.depthwise": {
        "tf.nn": (
            "depthwise_conv2d depthwise_conv2d_backprop_filter=depthwise_conv2d_native_backprop_filter "
            "depthwise_conv2d_backprop_input=depthwise_conv2d_native_backprop_input depthwise_conv2d_native "
            "depthwise_conv2d_native_backprop_filter depthwise_conv2d_native_backprop_input separable_conv2d"
        ),
    },
    "graphdock_std.conv.morphology": {"tf.nn": "dilation2d erosion2d"},
    "graphdock_std.conv.pooling": {
        "tf.nn": (
            "avg_pool avg_pool1d avg_pool2d=avg_pool avg_pool3d avg_pool_v2 max_pool max_pool1d max_pool2d max_pool3d "
            "max_pool_v2 max_pool_with_argmax pool"
        ),
    },
    "graphdock_std.conv.transposed": {
        "tf.nn": "atrous_conv2d_transpose conv1d_transpose conv2d_transpose conv3d_transpose conv_transpose",
    },
    "graphdock_std.image.boxes": {
        "tf.image": (
            "combined_non_max_suppression crop_and_resize draw_bounding_boxes extract_glimpse "
            "non_max_suppression_with_scores sample_distorted_bounding_box"
        ),
    },
    "graphdock_std.image.codecs": {
        "tf.image": "adjust_jpeg_quality random_jpeg_quality",
        "tf.image tf.io": "decode_image",
    },
    "graphdock_std.image.color": {
        "tf.image": (
            "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation convert_image_dtype "
            "grayscale_to_rgb per_image_standardization random_brightness random_contrast random_hue "
            "random_saturation rgb_to_grayscale rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb"
        ),
        "tf tf.dtypes": "saturate_cast",
    },
    "graphdock_std.image.geometry": {
        "tf.image": (
            "central_crop crop_to_bounding_box flip_left_right flip_up_down pad_to_bounding_box "
            "random_flip_left_right random_flip_up_down resize_image_with_crop_or_pad "
            "resize_with_crop_or_pad=resize_image_with_crop_or_pad rot90 transpose=transpose_image transpose_image"
        ),
        "tf tf.image": "random_crop",
    },
    "graphdock_std.image.quality": {
        "tf.image": "image_gradients psnr sobel_edges ssim ssim_multiscale total_variation",
    },
    "graphdock_std.image.resize": {
        "tf.image": (
            "resize=resize_images resize_bicubic resize_bilinear resize_image_with_pad resize_images "
            "resize_nearest_neighbor"
        ),
    },
    "graphdock_std.linalg.diagonals": {
        "tf.linalg": "diag=matrix_diag diag_part=matrix_diag_part set_diag=matrix_set_diag",
        "tf": "matrix_diag matrix_diag_part matrix_set_diag",
    },
    "graphdock_std.linalg.einsum": {"tf tf.linalg": "einsum"},
    "graphdock_std.linalg.functions": {
        "tf.linalg": "adjoint matvec normalize",
        "tf": "batch_matmul=matmul",
        "tf tf.linalg": "matmul norm trace",
    },
    "graphdock_std.linalg.solve": {
        "tf tf.linalg": "cholesky_solve svd",
        "tf.linalg": (
            "eigh=self_adjoint_eig eigvalsh=self_adjoint_eigvals expm logdet lstsq=matrix_solve_ls lu_matrix_inverse "
            "lu_reconstruct lu_solve matrix_rank pinv tridiagonal_matmul tridiagonal_solve"
        ),
        "tf": "matrix_solve_ls self_adjoint_eig self_adjoint_eigvals",
    },
    "graphdock_std.linalg.tensordot": {"tf tf.linalg": "tensordot"},
    "graphdock_std.math.clipping": {
        "tf": "clip_by_average_norm clip_by_global_norm clip_by_norm",
        "tf tf.linalg": "global_norm",
    },
    "graphdock_std.math.complex": {
        "tf tf.math": "abs angle conj imag real",
        "tf tf.dtypes": "complex",
    },
    "graphdock_std.math.functions": {
        "tf tf.math": "accumulate_n divide round scalar_mul squared_difference truediv",
        "tf": "div div_no_nan to_bfloat16 to_complex128 to_complex64 to_double to_float to_int32 to_int64",
        "tf.math": "divide_no_nan=div_no_nan",
    },
    "graphdock_std.math.reductions": {
        "tf": "arg_max arg_min",
        "tf tf.math": (
            "argmax argmin count_nonzero reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min "
            "reduce_prod reduce_std reduce_sum reduce_variance"
        ),
    },
    "graphdock_std.math.segment": {
        "tf.sparse": (
            "segment_mean=sparse_segment_mean segment_sqrt_n=sparse_segment_sqrt_n segment_sum=sparse_segment_sum"
        ),
        "tf": "sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum",
        "tf tf.math": "unsorted_segment_mean unsorted_segment_sqrt_n",
    },
    "graphdock_std.math.special": {
        "tf.math": "bessel_i0 bessel_i1 polyval reciprocal_no_nan reduce_euclidean_norm",
        "tf tf.math": "lbeta",
    },
    "graphdock_std.nn.activations": {
        "tf.nn": "crelu leaky_relu swish",
        "tf tf.math": "log_sigmoid",
        "tf.math tf.nn": "zero_fraction",
    },
    "graphdock_std.nn.cross_entropy": {
        "tf.nn": (
            "log_poisson_loss sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits "
            "softmax_cross_entropy_with_logits_v2 sparse_softmax_cross_entropy_with_logits "
            "weighted_cross_entropy_with_logits"
        ),
    },
    "graphdock_std.nn.ctc": {"tf.nn": "ctc_beam_search_decoder ctc_greedy_decoder ctc_loss"},
    "graphdock_std.nn.functions": {
        "tf.nn": "bias_add moments relu_layer xw_plus_b",
        "tf.linalg tf.math tf.nn": "l2_normalize",
        "tf.math tf.nn": "log_softmax softmax",
    },
    "graphdock_std.normalization.functions": {
        "tf.nn": (
            "batch_norm_with_global_normalization batch_normalization fused_batch_norm normalize_moments "
            "sufficient_statistics weighted_moments"
        ),
    },
    "graphdock_std.normalization.layer_norm": {"tf.nn": "instance_norm layer_norm"},
    "graphdock_std.quantization.functions": {
        "tf tf.quantization": "quantize",
        "tf": "quantize_v2",
    },
    "graphdock_std.random.functions": {
        "tf.random": "normal=random_normal shuffle=random_shuffle uniform=random_uniform",
        "tf": "random_normal random_shuffle random_uniform",
        "tf tf.random": "truncated_normal",
    },
    "graphdock_std.random.sampling": {
        "tf.random": (
            "categorical gamma=random_gamma poisson=random_poisson stateless_categorical stateless_multinomial "
            "stateless_normal=stateless_random_normal stateless_truncated_normal "
            "stateless_uniform=stateless_random_uniform"
        ),
        "tf tf.random": "multinomial",
        "tf": "random_gamma random_poisson",
    },
    "graphdock_std.signal.functions": {
        "tf.signal": (
            "frame hamming_window hann_window inverse_stft linear_to_mel_weight_matrix "
            "mfccs_from_log_mel_spectrograms overlap_and_add stft"
        ),
    },
    "graphdock_std.signal.spectral": {
        "tf.signal tf.spectral": "dct idct irfft irfft2d irfft3d rfft rfft2d rfft3d",
        "tf.signal": "fftshift ifftshift",
    },
    "graphdock_std.sparse.sets": {
        "tf.sets": (
            "difference=set_difference intersection=set_intersection set_difference set_intersection set_size "
            "set_union size=set_size union=set_union"
        ),
    },
    "graphdock_std.text.functions": {
        "tf tf.io": "decode_csv decode_raw",
        "tf.strings": (
            "format=string_format split=string_split_v2 to_hash_bucket=string_to_hash_bucket to_number=string_to_number"
        ),
        "tf tf.strings": "reduce_join",
        "tf": "string_split string_to_hash_bucket string_to_number",
    },
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable, returns operations or works on files.
ENDPOINTS: dict[str, dict[str, str]] = {
    "graphdock.dtypes": {"tf.dtypes": "bool=bool_"},
    "graphdock.ops.core": {"tf.debugging": "Assert", "tf.dtypes": "cast"},
    "graphdock.variables.initialization": {
        "tf.initializers": (
            "global_variables=global_variables_initializer local_variables=local_variables_initializer "
            "variables=variables_initializer"
        ),
    },
    "graphdock_std.array.functions": {"tf": "newaxis"},
    "graphdock_std.array.scatter": {
        "tf": (
            "batch_scatter_update scatter_add scatter_div scatter_max scatter_min scatter_mul scatter_nd_add "
            "scatter_nd_sub scatter_nd_update scatter_sub scatter_update"
        ),
    },
    "graphdock_std.control.assertions": {
        "tf tf.debugging": (
            "assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near "
            "assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive "
            "is_numeric_tensor"
        ),
    },
    "graphdock_std.control.custom_gradient": {"tf": "custom_gradient hessians"},
    "graphdock_std.control.functional": {"tf": "foldl foldr map_fn scan"},
    "graphdock_std.control.static_assertions": {
        "tf": "add_check_numerics_ops assert_variables_initialized",
        "tf tf.debugging": (
            "assert_integer assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in assert_scalar "
            "assert_same_float_dtype assert_type"
        ),
    },
    "graphdock_std.image.resize": {"tf.image": "ResizeMethod"},
    "graphdock_std.io.printing": {"tf": "print=print_"},
    "graphdock_std.nn.candidates": {
        "tf.nn tf.random": (
            "all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler "
            "log_uniform_candidate_sampler uniform_candidate_sampler"
        ),
        "tf.nn": "compute_accidental_hits nce_loss sampled_softmax_loss",
    },
    "graphdock_std.nn.embedding": {"tf.nn": "embedding_lookup"},
    "graphdock_std.nn.functions": {"tf.nn": "dropout"},
    "graphdock_std.random.functions": {"tf tf.random": "get_seed set_random_seed"},
    "graphdock_std.signal.functions": {"tf.signal": "inverse_stft_window_fn"},
    "graphdock_std.sparse.combine": {
        "tf.sparse": (
            "add=sparse_add concat=sparse_concat maximum=sparse_maximum merge=sparse_merge minimum=sparse_minimum"
        ),
        "tf": "sparse_add sparse_concat sparse_maximum sparse_merge sparse_minimum",
    },
    "graphdock_std.sparse.dense": {
        "tf.sparse": (
            "from_dense matmul=sparse_tensor_dense_matmul sparse_dense_matmul=sparse_tensor_dense_matmul "
            "to_dense=sparse_tensor_to_dense to_indicator=sparse_to_indicator"
        ),
        "tf": "sparse_matmul sparse_tensor_dense_matmul sparse_tensor_to_dense sparse_to_indicator",
    },
    "graphdock_std.sparse.embedding": {
        "tf": "edit_distance",
        "tf.nn": "embedding_lookup_sparse safe_embedding_lookup_sparse",
    },
    "graphdock_std.sparse.reduce": {
        "tf.sparse": (
            "reduce_max=sparse_reduce_max reduce_max_sparse=sparse_reduce_max_sparse reduce_sum=sparse_reduce_sum "
            "reduce_sum_sparse=sparse_reduce_sum_sparse softmax=sparse_softmax"
        ),
        "tf": "sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum sparse_reduce_sum_sparse sparse_softmax",
    },
    "graphdock_std.sparse.shape": {
        "tf.sparse": (
            "expand_dims=sparse_expand_dims eye=sparse_eye fill_empty_rows=sparse_fill_empty_rows mask=sparse_mask "
            "reorder=sparse_reorder reset_shape=sparse_reset_shape reshape=sparse_reshape retain=sparse_retain "
            "slice=sparse_slice split=sparse_split transpose=sparse_transpose"
        ),
        "tf": (
            "sparse_fill_empty_rows sparse_mask sparse_reorder sparse_reset_shape sparse_reshape sparse_retain "
            "sparse_slice sparse_split sparse_transpose"
        ),
    },
    "graphdock_std.sparse.tensor": {
        "tf": "convert_to_tensor_or_sparse_tensor sparse_placeholder SparseTensorValue",
        "tf.sparse": "placeholder=sparse_placeholder",
        "tf tf.sparse": "SparseTensor",
    },
    "graphdock_std.variables.counting": {"tf": "count_up_to"},
    "graphdock_std.variables.initializers": {
        "tf.initializers": (
            "constant=Constant glorot_normal=GlorotNormal glorot_uniform=GlorotUniform he_normal=HeNormal "
            "he_uniform=HeUniform identity=Identity lecun_normal=LecunNormal lecun_uniform=LecunUniform ones=Ones "
            "orthogonal=Orthogonal random_normal=RandomNormal random_uniform=RandomUniform "
            "truncated_normal=TruncatedNormal uniform_unit_scaling=UniformUnitScaling "
            "variance_scaling=VarianceScaling zeros=Zeros"
        ),
        "tf": (
            "constant_initializer=Constant glorot_normal_initializer=GlorotNormal "
            "glorot_uniform_initializer=GlorotUniform ones_initializer=Ones orthogonal_initializer=Orthogonal "
            "random_normal_initializer=RandomNormal random_uniform_initializer=RandomUniform "
            "truncated_normal_initializer=TruncatedNormal uniform_unit_scaling_initializer=UniformUnitScaling "
            "variance_scaling_initializer=VarianceScaling zeros_initializer=Zeros"
        ),
    },
    "graphdock_std.variables.uninitialized": {"tf": "report_uninitialized_variables"},
}

#: What formulas may call besides, though it is not public.
HELPERS: dict[str, dict[str, str]] = {
    "graphdock_std.attention.dropped": {"tf": "attend_dropped attend_kept"},
    "graphdock_std.attention.functions": {"tf": "attend attend_log_sum attend_slopes attend_weights"},
    "graphdock_std.attention.rotary": {"tf": "turn"},
    "graphdock_std.grad_support": {"tf": "sum_to"},
    "graphdock_std.math.complex": {"tf": "imaginary_part real_part times_i"},
    "graphdock_std.nn.functions": {"tf": "half_squares"},
    "graphdock_std.nn.fused": {
        "tf": "activate convolved gelu_curve gelu_slope gelu_tanh_curve gelu_tanh_slope inner_sums",
    },
    "graphdock_std.nn.linear_cross_entropy": {"tf": "linear_logits linear_slope"},
    "graphdock_std.nn.loss_with_gradient": {
        "tf": "softmax_loss softmax_loss_gradient sparse_softmax_loss sparse_softmax_loss_gradient",
    },
    "graphdock_std.nn.recurrent": {"tf": "lstm_gates_slope lstm_output lstm_state lstm_state_slope"},
    "graphdock_std.normalization.rms_norm": {"tf": "rms_gamma_slope rms_inverse rms_scaled rms_slope"},
}

#: Operator methods of a tensor that are more than one op.
OPERATORS: dict[str, str] = {
    "__abs__": "graphdock_std.math.complex:abs",
    "__add__": "graphdock_std.text.functions:plus",
    "__getitem__": "graphdock_std.array.indexing:getitem",
    "__matmul__": "graphdock_std.linalg.functions:matmul",
    "__truediv__": "graphdock_std.math.functions:truediv",
}
