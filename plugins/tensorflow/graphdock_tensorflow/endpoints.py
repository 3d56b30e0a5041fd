"""Names of TensorFlow's configuration and examples, and of what writes and reads graphs."""

from __future__ import annotations

#: Module -> namespaces -> the names that each of them has of it; ``name=attribute`` where the module calls it otherwise.
#: They mean nothing in a formula: they work on graphs, sessions and files.
ENDPOINTS: dict[str, dict[str, str]] = {
    "graphdock_tensorflow.config_proto": {
        "tf": "ConfigProto GPUOptions GraphOptions OptimizerOptions",
        "tf.train": "ServerDef",
    },
    "graphdock.messages": {
        "tf": "AttrValue GraphDef MetaGraphDef NameAttrList NodeDef TensorInfo",
        "tf.train": (
            "BytesList ClusterDef Example Feature FeatureList FeatureLists Features FloatList Int64List JobDef SequenceExample"
        ),
    },
    "graphdock_tensorflow.plain_data.reading": {
        "tf tf.graph_util": "import_graph_def",
    },
    "graphdock_tensorflow.step_stats": {
        "tf.ops": "StepStats",
    },
    "graphdock_tensorflow.graphs.drawing": {
        "tf.ops": "draw",
    },
    "graphdock_tensorflow.run_metadata": {
        "tf.ops": "run_metadata_proto",
    },
    "graphdock_tensorflow.graphs.meta_graph": {
        "tf.train": "export_meta_graph import_meta_graph",
    },
    "graphdock_tensorflow.graphs.write_graph": {
        "tf.io tf.train": "write_graph",
    },
    "graphdock_tensorflow.graph_util": {
        "tf.graph_util": (
            "convert_variables_to_constants extract_sub_graph must_run_on_cpu remove_training_nodes "
            "tensor_shape_from_node_def_name"
        ),
    },
    "graphdock_tensorflow.saved_model.constants": {
        "tf.saved_model tf.saved_model.constants": (
            "ASSETS_DIRECTORY ASSETS_KEY LEGACY_INIT_OP_KEY MAIN_OP_KEY SAVED_MODEL_FILENAME_PB "
            "SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME"
        ),
        "tf.saved_model tf.saved_model.signature_constants": (
            "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES "
            "DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS "
            "REGRESS_METHOD_NAME REGRESS_OUTPUTS"
        ),
        "tf.saved_model tf.saved_model.tag_constants": "GPU SERVING TPU TRAINING",
    },
    "graphdock_tensorflow.saved_model.builder": {
        "tf.saved_model": "Builder=SavedModelBuilder simple_save",
        "tf.saved_model.builder": "SavedModelBuilder",
        "tf.saved_model.main_op": "main_op",
        "tf.saved_model tf.saved_model.main_op": "main_op_with_restore",
    },
    "graphdock_tensorflow.saved_model.signatures": {
        "tf.saved_model tf.saved_model.signature_def_utils": (
            "build_signature_def classification_signature_def is_valid_signature predict_signature_def "
            "regression_signature_def"
        ),
        "tf.saved_model tf.saved_model.utils": "build_tensor_info get_tensor_from_tensor_info",
    },
    "graphdock_tensorflow.saved_model.loader": {
        "tf.saved_model": "contains_saved_model=maybe_saved_model_directory",
        "tf.saved_model tf.saved_model.loader": "load maybe_saved_model_directory",
    },
}
