"""The public names of TensorFlow 1's Python library."""

from __future__ import annotations

#: Module -> namespaces -> the names that each of them has of it; ``name=attribute`` where the module calls it otherwise.
ENDPOINTS: dict[str, dict[str, str]] = {
    # train
    "graphdock_tf1.train.optimizer": {"tf.train": "Optimizer"},
    "graphdock_tf1.train.gradient_descent": {"tf.train": "GradientDescentOptimizer MomentumOptimizer"},
    "graphdock_tf1.train.adagrad": {"tf.train": "AdagradOptimizer"},
    "graphdock_tf1.train.adam": {"tf.train": "AdamOptimizer AdamWOptimizer"},
    "graphdock_tf1.train.decoupled_decay": {
        "tf.contrib.opt": (
            "AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer extend_with_decoupled_weight_decay"
        ),
    },
    "graphdock_tf1.train.rmsprop": {"tf.train": "RMSPropOptimizer"},
    "graphdock_tf1.train.ftrl": {"tf.train": "FtrlOptimizer"},
    "graphdock_tf1.train.adadelta": {"tf.train": "AdadeltaOptimizer"},
    "graphdock_tf1.train.adagrad_da": {"tf.train": "AdagradDAOptimizer"},
    "graphdock_tf1.train.proximal": {"tf.train": "ProximalGradientDescentOptimizer ProximalAdagradOptimizer"},
    "graphdock_tf1.train.sync_replicas": {"tf.train": "SyncReplicasOptimizer"},
    "graphdock_tf1.train.lazy_adam": {"tf.contrib.opt": "LazyAdamOptimizer"},
    "graphdock_tf1.train.moving_averages": {"tf.train": "ExponentialMovingAverage"},
    "graphdock_tf1.train.schedules": {
        "tf.train": (
            "exponential_decay natural_exp_decay inverse_time_decay polynomial_decay cosine_decay piecewise_constant "
            "piecewise_constant_decay cosine_decay_restarts linear_cosine_decay noisy_linear_cosine_decay"
        ),
    },
    "graphdock_tf1.train.global_step": {
        "tf.contrib.framework tf.contrib.slim tf.train": (
            "assert_global_step create_global_step get_global_step get_or_create_global_step"
        ),
        "tf.train": "global_step",
    },
    # checkpoint
    "graphdock_tf1.train.checkpoint_objects": {"tf.train": "Checkpoint"},
    "graphdock_tf1.train.checkpoint_manager": {"tf.train": "CheckpointManager"},
    "graphdock_tf1.train.checkpoints_iterator": {"tf.train": "checkpoints_iterator"},
    "graphdock_tf1.train.saver": {"tf.train": "Saver"},
    "graphdock_tf1.train.saveables": {"tf.train": "SaveSpec SaveableObject"},
    "graphdock_tf1.train.saver_def": {"tf.train": "SaverDef"},
    "graphdock_tf1.train.checkpoint_reader": {
        "tf.train": "NewCheckpointReader",
        "tf.contrib.framework tf.train": "list_variables load_checkpoint load_variable",
    },
    "graphdock_tf1.train.checkpoint_files": {"tf.train": "checkpoint_exists get_checkpoint_mtimes remove_checkpoint"},
    "graphdock_tf1.train.checkpoint_state": {
        "tf.train": "generate_checkpoint_state_proto get_checkpoint_state latest_checkpoint update_checkpoint_state",
    },
    "graphdock_tf1.train.init_from_checkpoint": {"tf.contrib.framework tf.train": "init_from_checkpoint"},
    # supervision
    "graphdock_tf1.train.supervision.scaffold": {
        "tf": "initialize_all_tables=tables_initializer",
        "tf tf.initializers": "tables_initializer",
        "tf.train": "Scaffold",
    },
    "graphdock_tf1.train.supervision.session_creators": {
        "tf.train": "ChiefSessionCreator SessionCreator WorkerSessionCreator",
    },
    "graphdock_tf1.train.hooks.checkpoint_saver": {
        "tf.estimator tf.train": "CheckpointSaverHook CheckpointSaverListener"
    },
    "graphdock_tf1.train.supervision.coordinator": {"tf.train": "Coordinator LooperThread"},
    "graphdock_tf1.train.hooks.values": {"tf.estimator tf.train": "FeedFnHook FinalOpsHook LoggingTensorHook"},
    "graphdock_tf1.train.hooks.stopping": {
        "tf.estimator tf.train": "GlobalStepWaiterHook NanLossDuringTrainingError NanTensorHook StopAtStepHook",
    },
    "graphdock_tf1.train.supervision.monitored_session": {"tf.train": "MonitoredSession SingularMonitoredSession"},
    "graphdock_tf1.train.supervision.monitored_training_session": {"tf.train": "MonitoredTrainingSession"},
    "graphdock_tf1.train.hooks.profiler": {"tf.estimator tf.train": "ProfilerHook"},
    "graphdock_tf1.train.hooks.timer": {"tf.estimator tf.train": "SecondOrStepTimer"},
    "graphdock_tf1.train.supervision.session_manager": {"tf.train": "SessionManager"},
    "graphdock_tf1.train.hooks.run_hook": {
        "tf.estimator tf.train": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
    },
    "graphdock_tf1.train.hooks.summaries": {"tf.estimator tf.train": "StepCounterHook SummarySaverHook"},
    "graphdock_tf1.train.supervision.supervisor": {"tf.train": "Supervisor basic_train_loop"},
    # summary
    "graphdock.messages": {
        "tf tf.summary": "Event SessionLog Summary",
        "tf": "HistogramProto LogMessage SummaryMetadata",
        "tf.summary": "SummaryDescription TaggedRunMetadata",
        "tf.contrib.tensorboard.plugins.projector": "EmbeddingInfo ProjectorConfig SpriteMetadata",
    },
    "graphdock_tf1.summary.file_writer": {"tf.summary": "FileWriter"},
    "graphdock_tf1.summary.writer_cache": {"tf.summary": "FileWriterCache"},
    "graphdock_tf1.summary.ops": {"tf.summary": "audio histogram image merge merge_all scalar tensor_summary text"},
    "graphdock_tf1.summary.reading": {"tf.summary": "get_summary_description", "tf.train": "summary_iterator"},
    "graphdock_tf1.static_value": {"tf": "get_static_value=constant_value", "tf.contrib.util": "constant_value"},
    "graphdock_tf1.switch_case": {"tf": "switch_case"},
    # linear operators
    "graphdock_tf1.linear_operators.base": {"tf.linalg": "LinearOperator"},
    "graphdock_tf1.linear_operators.block_diagonal": {"tf.linalg": "LinearOperatorBlockDiag"},
    "graphdock_tf1.linear_operators.composed": {
        "tf.linalg": "LinearOperatorAdjoint LinearOperatorComposition LinearOperatorInversion",
    },
    "graphdock_tf1.linear_operators.dense": {"tf.linalg": "LinearOperatorFullMatrix LinearOperatorLowerTriangular"},
    "graphdock_tf1.linear_operators.diagonal": {
        "tf.linalg": ("LinearOperatorDiag LinearOperatorIdentity LinearOperatorScaledIdentity LinearOperatorZeros"),
    },
    "graphdock_tf1.linear_operators.householder": {"tf.linalg": "LinearOperatorHouseholder"},
    "graphdock_tf1.linear_operators.kronecker": {"tf.linalg": "LinearOperatorKronecker"},
    "graphdock_tf1.linear_operators.low_rank": {"tf.linalg": "LinearOperatorLowRankUpdate"},
    # platform
    "graphdock_tf1.platform.compat": {
        "tf tf.version": "VERSION",
        "tf.compat": (
            "as_bytes as_str=as_text as_str_any as_text bytes_or_text_types complex_types integral_types path_to_str "
            "forward_compatibility_horizon forward_compatible real_types v1"
        ),
        "tf tf.compat": "dimension_at_index dimension_value",
        "tf": (
            "control_flow_v2_enabled=off disable_control_flow_v2=no_effect disable_eager_execution=no_effect "
            "disable_resource_variables=no_effect disable_tensor_equality=no_effect disable_v2_behavior=no_effect "
            "disable_v2_tensorshape=no_effect enable_control_flow_v2=no_effect enable_resource_variables=no_effect "
            "executing_eagerly=off "
            "resource_variables_enabled=on"
        ),
    },
    "graphdock_tf1.cluster.device_spec": {"tf": "DeviceSpec"},
    "graphdock_tf1.cluster.cluster_spec": {"tf.train": "ClusterSpec"},
    "graphdock_tf1.cluster.resolvers": {
        "tf.contrib.cluster_resolver tf.distribute.cluster_resolver": (
            "ClusterResolver SimpleClusterResolver TFConfigClusterResolver"
        ),
        "tf.contrib.cluster_resolver": "UnionClusterResolver",
        "tf.distribute.cluster_resolver": "UnionResolver=UnionClusterResolver",
    },
    "graphdock_tf1.cluster.device_setter": {
        "tf.train": "replica_device_setter",
        "tf.contrib.training": "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
    },
    "graphdock_tf1.platform.app": {"tf.app": "run"},
    "graphdock_tf1.platform.build": {
        "tf tf.version": (
            "COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER"
        ),
        "tf tf.sysconfig": "CXX11_ABI_FLAG MONOLITHIC_BUILD",
        "tf.sysconfig": "get_compile_flags get_include get_lib get_link_flags",
    },
    "graphdock_tf1.platform.resource_loader": {
        "tf.resource_loader": (
            "get_data_files_path get_path_to_datafile get_root_dir_with_all_resources load_resource readahead_file_path"
        ),
    },
    # test
    "graphdock_tf1.testing.case": {"tf.test": "TestCase"},
    "graphdock_tf1.testing.running": {
        "tf.test": (
            "get_temp_dir gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm "
            "is_gpu_available main mock test_src_dir_path"
        ),
    },
    "graphdock_tf1.testing.gradient_checker": {"tf.test": "compute_gradient compute_gradient_error"},
    "graphdock_tf1.testing.graph_defs": {"tf.test": "assert_equal_graph_def"},
    "graphdock_tf1.testing.benchmark": {"tf.test": "Benchmark=TensorFlowBenchmark"},
    "graphdock_tf1.platform.flags": {
        "tf.app.flags tf.flags": (
            "DEFINE_bool DEFINE_boolean DEFINE_enum DEFINE_float DEFINE_integer DEFINE_list DEFINE_multi_float "
            "DEFINE_multi_integer DEFINE_multi_string DEFINE_string FLAGS FlagValues mark_flag_as_required "
            "mark_flags_as_required"
        ),
    },
    "graphdock_tf1.platform.log": {
        "tf": "get_logger",
        "tf.logging": (
            "DEBUG ERROR FATAL INFO WARN debug error fatal flush get_verbosity info log log_every_n log_first_n "
            "log_if set_verbosity vlog warn warning"
        ),
    },
    "graphdock_tf1.platform.gfile": {
        "tf.gfile": (
            "Copy DeleteRecursively Exists FastGFile=GFile GFile Glob IsDirectory ListDirectory MakeDirs MkDir "
            "Open=GFile Remove Rename Stat Walk"
        ),
        "tf.io.gfile": "GFile",
    },
    "graphdock_tf1.platform.io_gfile": {
        "tf.io.gfile": "copy exists glob isdir listdir makedirs mkdir remove rename rmtree stat walk",
    },
    # variables
    "graphdock_tf1.variables.get_variable": {"tf": "get_variable get_local_variable"},
    "graphdock_tf1.variables.partitioned": {
        "tf": (
            "PartitionedVariable create_partitioned_variables fixed_size_partitioner min_max_variable_partitioner "
            "variable_axis_size_partitioner"
        ),
    },
    "graphdock_tf1.variables.scope": {
        "tf": "get_variable_scope op_scope variable_op_scope variable_scope VariableScope AUTO_REUSE",
    },
    "graphdock_tf1.variables.template": {"tf": "make_template"},
    "graphdock_tf1.variables.stored": {"tf.ops": "set_initial_value stored_variables"},
    "graphdock_tf1.variables.variable_def": {"tf.ops": "variable_from_proto=from_proto variable_to_proto=to_proto"},
    # layers
    "graphdock_tf1.layers.lookup": {"tf": "no_regularizer"},
    "graphdock_tf1.layers.base": {"tf.layers": "Layer"},
    "graphdock_tf1.layers.input_spec": {"tf.layers": "InputSpec"},
    "graphdock_tf1.layers.dense": {"tf.layers": "Dense dense"},
    "graphdock_tf1.layers.convolution": {"tf.layers": "Conv1D Conv2D Conv3D conv1d conv2d conv3d"},
    "graphdock_tf1.layers.transposed": {
        "tf.layers": "Conv2DTranspose Conv3DTranspose conv2d_transpose conv3d_transpose",
    },
    "graphdock_tf1.layers.separable": {
        "tf.layers": "SeparableConv1D SeparableConv2D separable_conv1d separable_conv2d",
    },
    "graphdock_tf1.layers.pooling": {
        "tf.layers": (
            "AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D "
            "average_pooling1d average_pooling2d average_pooling3d max_pooling1d max_pooling2d max_pooling3d"
        ),
    },
    "graphdock_tf1.layers.reshaping": {"tf.layers": "Dropout Flatten dropout flatten"},
    "graphdock_tf1.layers.normalization": {"tf.layers": "BatchNormalization batch_normalization"},
    # rnn
    "graphdock_tf1.rnn.cell": {
        "tf.contrib.rnn tf.nn.rnn_cell": "RNNCell LSTMStateTuple",
        "tf.contrib.rnn": "LayerRNNCell",
    },
    "graphdock_tf1.rnn.basic": {"tf.contrib.rnn tf.nn.rnn_cell": "BasicRNNCell GRUCell"},
    "graphdock_tf1.rnn.lstm": {"tf.contrib.rnn tf.nn.rnn_cell": "BasicLSTMCell LSTMCell"},
    "graphdock_tf1.rnn.multi": {"tf.contrib.rnn tf.nn.rnn_cell": "MultiRNNCell"},
    "graphdock_tf1.rnn.wrappers": {"tf.contrib.rnn tf.nn.rnn_cell": "DropoutWrapper ResidualWrapper DeviceWrapper"},
    "graphdock_tf1.rnn.dynamic": {"tf.nn": "dynamic_rnn"},
    "graphdock_tf1.rnn.raw": {"tf.nn": "raw_rnn"},
    "graphdock_tf1.rnn.static": {"tf.contrib.rnn tf.nn": "static_rnn static_state_saving_rnn"},
    "graphdock_tf1.rnn.bidirectional": {
        "tf.nn": "bidirectional_dynamic_rnn",
        "tf.contrib.rnn tf.nn": "static_bidirectional_rnn",
        "tf.contrib.rnn": "stack_bidirectional_dynamic_rnn",
    },
    "graphdock_tf1.rnn.layer_norm_lstm": {"tf.contrib.rnn": "LayerNormBasicLSTMCell"},
    "graphdock_tf1.rnn.nas": {"tf.contrib.rnn": "NASCell"},
    "graphdock_tf1.rnn.block": {"tf.contrib.rnn": "GRUBlockCell GRUBlockCellV2 LSTMBlockCell LSTMBlockFusedCell"},
    "graphdock_tf1.rnn.projections": {
        "tf.contrib.rnn": "EmbeddingWrapper InputProjectionWrapper OutputProjectionWrapper",
    },
    "graphdock_tf1.rnn.attention_cell": {"tf.contrib.rnn": "AttentionCellWrapper"},
    # seq2seq
    "graphdock_tf1.seq2seq.attention": {"tf.contrib.seq2seq": "AttentionMechanism BahdanauAttention LuongAttention"},
    "graphdock_tf1.seq2seq.wrapper": {"tf.contrib.seq2seq": "AttentionWrapper AttentionWrapperState tile_batch"},
    "graphdock_tf1.seq2seq.decoder": {"tf.contrib.seq2seq": "BasicDecoder BasicDecoderOutput Decoder dynamic_decode"},
    "graphdock_tf1.seq2seq.beam_search": {
        "tf.contrib.seq2seq": (
            "BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput"
        ),
    },
    "graphdock_tf1.seq2seq.helper": {
        "tf.contrib.seq2seq": (
            "CustomHelper GreedyEmbeddingHelper Helper SampleEmbeddingHelper ScheduledEmbeddingTrainingHelper "
            "TrainingHelper"
        ),
    },
    "graphdock_tf1.seq2seq.gather_tree": {"tf.contrib.seq2seq": "gather_tree"},
    "graphdock_tf1.seq2seq.loss": {"tf.contrib.seq2seq": "sequence_loss"},
    "graphdock_tf1.seq2seq.legacy_decoders": {
        "tf.contrib.legacy_seq2seq": (
            "attention_decoder embedding_attention_decoder embedding_rnn_decoder rnn_decoder"
        ),
    },
    "graphdock_tf1.seq2seq.legacy_models": {
        "tf.contrib.legacy_seq2seq": (
            "basic_rnn_seq2seq embedding_attention_seq2seq embedding_rnn_seq2seq embedding_tied_rnn_seq2seq "
            "one2many_rnn_seq2seq tied_rnn_seq2seq"
        ),
    },
    "graphdock_tf1.seq2seq.legacy_loss": {
        "tf.contrib.legacy_seq2seq": "model_with_buckets sequence_loss sequence_loss_by_example",
    },
    # losses
    "graphdock_tf1.losses.weighted": {"tf.losses": "Reduction compute_weighted_loss"},
    "graphdock_tf1.losses.collected": {
        "tf.contrib.losses tf.contrib.slim.losses tf.losses": (
            "add_loss get_losses get_regularization_losses get_total_loss"
        ),
        "tf.losses": "get_regularization_loss",
    },
    "graphdock_tf1.losses.regression": {
        "tf.losses": (
            "absolute_difference cosine_distance hinge_loss huber_loss log_loss mean_pairwise_squared_error "
            "mean_squared_error"
        ),
    },
    "graphdock_tf1.losses.classification": {
        "tf.losses": "sigmoid_cross_entropy softmax_cross_entropy sparse_softmax_cross_entropy",
    },
    # metrics
    "graphdock_tf1.metrics.means": {
        "tf.contrib.metrics": "streaming_mean=mean",
        "tf.metrics": (
            "accuracy mean mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy "
            "mean_relative_error mean_squared_error mean_tensor percentage_below root_mean_squared_error"
        ),
    },
    "graphdock_tf1.metrics.counts": {
        "tf.metrics": "false_negatives false_positives precision recall true_negatives true_positives",
    },
    "graphdock_tf1.metrics.thresholds": {
        "tf.metrics": (
            "auc false_negatives_at_thresholds false_positives_at_thresholds precision_at_thresholds "
            "recall_at_thresholds sensitivity_at_specificity specificity_at_sensitivity true_negatives_at_thresholds "
            "true_positives_at_thresholds"
        ),
    },
    "graphdock_tf1.metrics.top_k": {
        "tf.metrics": (
            "average_precision_at_k precision_at_k precision_at_top_k recall_at_k recall_at_top_k "
            "sparse_average_precision_at_k sparse_precision_at_k"
        ),
    },
    # distributions
    "graphdock_tf1.distributions.distribution": {
        "tf.contrib.distributions tf.distributions": (
            "Distribution ReparameterizationType FULLY_REPARAMETERIZED NOT_REPARAMETERIZED"
        ),
    },
    "graphdock_tf1.distributions.kullback_leibler": {
        "tf.contrib.distributions tf.distributions": "RegisterKL kl_divergence"
    },
    "graphdock_tf1.distributions.discrete": {
        "tf.contrib.distributions tf.distributions": "Bernoulli Categorical Multinomial"
    },
    "graphdock_tf1.distributions.dirichlet_multinomial": {
        "tf.contrib.distributions tf.distributions": "DirichletMultinomial"
    },
    "graphdock_tf1.distributions.gamma": {
        "tf.contrib.distributions tf.distributions": "Beta Dirichlet Exponential Gamma"
    },
    "graphdock_tf1.distributions.location_scale": {
        "tf.contrib.distributions tf.distributions": "Laplace Normal StudentT Uniform"
    },
    "graphdock_tf1.distributions.multivariate": {"tf.contrib.distributions": "MultivariateNormalDiag"},
    # estimator
    "graphdock_tf1.estimator.estimator": {"tf.estimator": "Estimator"},
    "graphdock_tf1.estimator.spec": {"tf.estimator": "EstimatorSpec ModeKeys"},
    "graphdock_tf1.estimator.run_config": {"tf.contrib.learn tf.estimator": "RunConfig"},
    "graphdock_tf1.estimator.training": {"tf.estimator": "EvalSpec TrainSpec train_and_evaluate"},
    "graphdock_tf1.estimator.exporters": {"tf.estimator": "BestExporter Exporter FinalExporter LatestExporter"},
    "graphdock_tf1.estimator.inputs": {
        "tf.contrib.learn.io tf.estimator.inputs": "numpy_input_fn pandas_input_fn",
    },
    "graphdock_tf1.train.warm_start": {"tf.estimator tf.train": "VocabInfo", "tf.train": "warm_start"},
    "graphdock_tf1.estimator.warm_starting": {"tf.estimator": "WarmStartSettings"},
    "graphdock_tf1.estimator.extenders": {"tf.estimator": "add_metrics"},
    "graphdock_tf1.estimator.in_memory": {"tf.estimator.experimental": "InMemoryEvaluatorHook"},
    "graphdock_tf1.estimator.early_stopping": {
        "tf.estimator.experimental": (
            "make_early_stopping_hook make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook "
            "stop_if_no_decrease_hook stop_if_no_increase_hook"
        ),
    },
    "graphdock_tf1.estimator.serving": {
        "tf.estimator.export": (
            "ClassificationOutput ExportOutput PredictOutput RegressionOutput ServingInputReceiver TensorServingInputReceiver "
            "build_parsing_serving_input_receiver_fn build_raw_serving_input_receiver_fn"
        ),
    },
    # contrib: layers, slim and framework
    "graphdock.nest": {
        "tf.contrib.framework.nest": (
            "assert_same_structure flatten flatten_up_to is_nested is_sequence=is_nested map_structure pack_sequence_as"
        ),
    },
    "graphdock_tf1.contrib.smart_cond": {
        "tf.contrib.framework": "smart_cond smart_constant_value",
        "tf.contrib.layers.utils tf.contrib.slim.utils": "smart_cond=smart_cond_of",
    },
    "graphdock_tf1.contrib.crf": {
        "tf.contrib.crf": (
            "crf_binary_score crf_decode crf_log_likelihood crf_log_norm crf_sequence_score crf_unary_score "
            "viterbi_decode"
        ),
    },
    "graphdock_tf1.contrib.metric_learning": {
        "tf.contrib.losses.metric_learning": (
            "contrastive_loss lifted_struct_loss npairs_loss npairs_loss_multilabel triplet_semihard_loss"
        ),
    },
    "graphdock_tf1.contrib.cluster_loss": {"tf.contrib.losses.metric_learning": "cluster_loss"},
    "graphdock_tf1.contrib.nets.resnet_utils": {
        "tf.contrib.slim.nets.resnet_utils": "Block conv2d_same resnet_arg_scope stack_blocks_dense subsample",
        "tf.contrib.slim.nets.resnet_v1 tf.contrib.slim.nets.resnet_v2": "resnet_arg_scope",
    },
    "graphdock_tf1.contrib.nets.resnet_v1": {
        "tf.contrib.slim.nets.resnet_v1": (
            "bottleneck resnet_v1 resnet_v1_101 resnet_v1_152 resnet_v1_200 resnet_v1_50 resnet_v1_block"
        ),
    },
    "graphdock_tf1.contrib.nets.resnet_v2": {
        "tf.contrib.slim.nets.resnet_v2": (
            "bottleneck resnet_v2 resnet_v2_50 resnet_v2_101 resnet_v2_152 resnet_v2_200 resnet_v2_block"
        ),
    },
    "graphdock_tf1.contrib.nets.inception_utils": {
        "tf.contrib.slim.nets.inception": (
            "inception_arg_scope inception_v1_arg_scope=inception_arg_scope inception_v3_arg_scope=inception_arg_scope"
        ),
    },
    "graphdock_tf1.contrib.nets.inception_v1": {"tf.contrib.slim.nets.inception": "inception_v1 inception_v1_base"},
    "graphdock_tf1.contrib.nets.inception_v3": {"tf.contrib.slim.nets.inception": "inception_v3 inception_v3_base"},
    "graphdock_tf1.contrib.nets.alexnet": {"tf.contrib.slim.nets.alexnet": "alexnet_v2 alexnet_v2_arg_scope"},
    "graphdock_tf1.contrib.nets.vgg": {"tf.contrib.slim.nets.vgg": "vgg_16 vgg_19 vgg_a vgg_arg_scope"},
    "graphdock_std.signal.functions": {
        "tf.contrib.signal": (
            "frame hamming_window hann_window inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix "
            "mfccs_from_log_mel_spectrograms overlap_and_add stft"
        ),
    },
    "graphdock_std.signal.spectral": {"tf.contrib.signal": "dct idct"},
    "graphdock.ops.core": {"tf": "numpy_function=py_func"},
    "graphdock_tf1.contrib.kmeans": {
        "tf.contrib.factorization": (
            "COSINE_DISTANCE KMC2_INIT KMEANS_PLUS_PLUS_INIT KMeans RANDOM_INIT SQUARED_EUCLIDEAN_DISTANCE"
        ),
    },
    "graphdock_tf1.contrib.tpu": {
        "tf.contrib.tpu": "CrossShardOptimizer",
        "tf.contrib.tpu tf.estimator.tpu": "InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec",
        "tf.contrib.cluster_resolver": "TPUClusterResolver",
    },
    "graphdock_tf1.contrib.slim_data": {
        "tf.contrib.slim.dataset": "Dataset",
        "tf.contrib.slim.data_decoder": "DataDecoder",
        "tf.contrib.slim.data_provider": "DataProvider",
        "tf.contrib.slim.dataset_data_provider": "DatasetDataProvider",
        "tf.contrib.slim.parallel_reader": "get_data_files parallel_read",
        "tf.contrib.slim.queues": "QueueRunners",
        "tf.contrib.slim.tfexample_decoder": (
            "BoundingBox Image ItemHandler ItemHandlerCallback TFExampleDecoder Tensor"
        ),
    },
    "graphdock_tf1.contrib.streaming_metrics": {
        "tf.contrib.metrics": (
            "streaming_accuracy streaming_auc streaming_mean_absolute_error streaming_mean_iou "
            "streaming_mean_squared_error streaming_precision streaming_recall streaming_root_mean_squared_error"
        ),
    },
    "graphdock_tf1.contrib.model_analysis": {
        "tf.contrib.tfprof.model_analyzer": (
            "FLOAT_OPS_OPTIONS TRAINABLE_VARS_PARAMS_STAT_OPTIONS print_model_analysis"
        ),
    },
    "graphdock_tf1.contrib.hparams": {"tf.contrib.training": "HParams parse_values"},
    "graphdock_tf1.contrib.vocabulary": {
        "tf.contrib.learn.preprocessing": "CategoricalVocabulary VocabularyProcessor tokenizer",
    },
    "graphdock_tf1.contrib.downloads": {"tf.contrib.learn.datasets.base": "maybe_download"},
    "graphdock_tf1.contrib.modes": {"tf.contrib.learn": "ModeKeys"},
    "graphdock_tf1.contrib.projector": {"tf.contrib.tensorboard.plugins.projector": "visualize_embeddings"},
    "graphdock_tf1.contrib.model_analyzer": {"tf.contrib.slim.model_analyzer": "analyze_vars"},
    "graphdock_tf1.contrib.arg_scope": {
        "tf.contrib.framework tf.contrib.slim": (
            "add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope"
        ),
    },
    "graphdock_tf1.contrib.variables": {
        "tf.contrib.framework tf.contrib.slim": (
            "add_model_variable assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn "
            "assign_from_values assign_from_values_fn filter_variables get_local_variables get_model_variables "
            "get_trainable_variables get_unique_variable get_variable_full_name get_variables get_variables_by_name "
            "get_variables_by_suffix get_variables_to_restore global_variable local_variable model_variable variable"
        ),
    },
    "graphdock_std.grad_support": {"tf tf.contrib.framework": "is_tensor"},
    "graphdock_tf1.contrib.optimize": {"tf.contrib.layers": "OPTIMIZER_CLS_NAMES optimize_loss OPTIMIZER_SUMMARIES"},
    "graphdock_tf1.contrib.regularizers": {
        "tf.contrib.layers tf.contrib.slim": (
            "apply_regularization l1_l2_regularizer l1_regularizer l2_regularizer sum_regularizer"
        ),
    },
    "graphdock_tf1.contrib.pooling": {
        "tf.contrib.layers tf.contrib.slim": (
            "avg_pool2d avg_pool3d dropout flatten max_pool2d max_pool3d softmax unit_norm"
        ),
    },
    "graphdock_tf1.contrib.normalization": {"tf.contrib.layers tf.contrib.slim": "batch_norm layer_norm"},
    "graphdock_tf1.contrib.connected": {
        "tf.contrib.layers tf.contrib.slim": (
            "bias_add embed_sequence fully_connected linear one_hot_encoding relu relu6 repeat stack"
        ),
    },
    "graphdock_tf1.contrib.convolution": {
        "tf.contrib.layers tf.contrib.slim": (
            "conv1d=convolution1d conv2d=convolution2d conv2d_in_plane=convolution2d_in_plane "
            "conv2d_transpose=convolution2d_transpose conv3d=convolution3d conv3d_transpose=convolution3d_transpose "
            "convolution convolution1d convolution2d convolution2d_in_plane convolution2d_transpose convolution3d "
            "convolution3d_transpose separable_conv2d=separable_convolution2d separable_convolution2d"
        ),
    },
    "graphdock_tf1.contrib.support": {
        "tf.contrib.layers.utils tf.contrib.slim.utils": (
            "collect_named_outputs convert_collection_to_dict get_variable_collections=collections_of"
        ),
    },
    "graphdock_tf1.contrib.initializers": {
        "tf.contrib.layers.initializers tf.contrib.slim.initializers": (
            "variance_scaling_initializer xavier_initializer xavier_initializer_conv2d=xavier_initializer"
        ),
        "tf.contrib.layers tf.contrib.slim": (
            "variance_scaling_initializer xavier_initializer xavier_initializer_conv2d=xavier_initializer"
        ),
    },
    "graphdock_tf1.contrib.losses": {
        "tf.contrib.losses tf.contrib.slim.losses": (
            "absolute_difference compute_weighted_loss cosine_distance hinge_loss log_loss "
            "mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy softmax_cross_entropy "
            "sparse_softmax_cross_entropy"
        ),
    },
    "graphdock_tf1.contrib.summaries": {
        "tf.contrib.layers": (
            "summarize_activation summarize_activations summarize_biases summarize_collection summarize_tensor "
            "summarize_tensors summarize_variables summarize_weights"
        ),
    },
}
