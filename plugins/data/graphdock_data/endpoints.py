"""The public names of the data plugin."""

from __future__ import annotations

#: Module -> namespaces -> the names that each of them has of it; ``name=attribute`` where the module calls it otherwise.
ENDPOINTS: dict[str, dict[str, str]] = {
    "graphdock_data.arrays.tensor_array": {"tf": "TensorArray"},
    "graphdock_data.records.tfrecords": {
        "tf.io tf.python_io": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
    },
    "graphdock_data.records.features": {
        "tf tf.io": "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature",
    },
    "graphdock_data.records.parsing": {
        "tf tf.io": "parse_example parse_single_example parse_single_sequence_example",
    },
    "graphdock_data.records.sequences": {"tf.io": "parse_sequence_example"},
    "graphdock_data.records.serialized": {
        "tf tf.io": (
            "decode_compressed decode_json_example deserialize_many_sparse parse_tensor serialize_many_sparse "
            "serialize_sparse serialize_tensor"
        ),
        "tf tf.contrib.util": "make_ndarray make_tensor_proto",
    },
    "graphdock_data.records.files": {
        "tf tf.io": "matching_files read_file write_file",
        "tf.io tf.train": "match_filenames_once",
    },
    "graphdock_data.lookup.initializers": {
        "tf.contrib.lookup tf.lookup": "KeyValueTensorInitializer TextFileIndex TextFileInitializer",
        "tf.contrib.lookup": "TableInitializerBase TextFileIdTableInitializer TextFileStringTableInitializer",
    },
    "graphdock_data.lookup.tables": {
        "tf.contrib.lookup": (
            "FastHashSpec HashTable HasherSpec IdTableWithHashBuckets InitializableLookupTableBase LookupInterface "
            "MutableDenseHashTable=DenseHashTable MutableHashTable StrongHashSpec"
        ),
        "tf.lookup": "StaticHashTable StaticVocabularyTable",
        "tf.lookup.experimental": "DenseHashTable",
    },
    "graphdock_data.lookup.vocabularies": {
        "tf.contrib.lookup": (
            "index_table_from_file index_table_from_tensor index_to_string index_to_string_table_from_file "
            "index_to_string_table_from_tensor string_to_index"
        ),
    },
    "graphdock_data.queues.queues": {
        "tf tf.io tf.queue": "PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
        "tf tf.queue": "FIFOQueue",
    },
    "graphdock_data.queues.staging": {"tf.contrib.staging": "StagingArea"},
    "graphdock_data.queues.map_staging": {"tf.contrib.staging": "MapStagingArea"},
    "graphdock_data.queues.accumulators": {
        "tf": "ConditionalAccumulator ConditionalAccumulatorBase",
        "tf tf.sparse": "SparseConditionalAccumulator",
    },
    "graphdock_data.input.queue_runner": {
        "tf.train tf.train.queue_runner": "QueueRunner add_queue_runner start_queue_runners",
    },
    "graphdock_data.input.producers": {
        "tf.train": "input_producer limit_epochs range_input_producer slice_input_producer string_input_producer",
    },
    "graphdock_data.input.batching": {
        "tf.train": (
            "batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join shuffle_batch "
            "shuffle_batch_join"
        ),
    },
    "graphdock_data.input.readers": {
        "tf": ("FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader WholeFileReader"),
    },
    "graphdock_data.dataset.cardinalities": {
        "tf.data.experimental": "INFINITE_CARDINALITY UNKNOWN_CARDINALITY cardinality",
    },
    "graphdock_data.dataset.csv_files": {"tf.data.experimental tf.contrib.data": "CsvDataset make_csv_dataset"},
    "graphdock_data.dataset.dataset": {"tf.data": "Dataset"},
    "graphdock_data.dataset.example_files": {
        "tf.data.experimental tf.contrib.data": "make_batched_features_dataset parse_example_dataset",
    },
    "graphdock_data.dataset.grouping": {
        "tf.data.experimental tf.contrib.data": "Reducer bucket_by_sequence_length group_by_reducer group_by_window",
    },
    "graphdock_data.dataset.iterator": {"tf.data": "Iterator"},
    "graphdock_data.dataset.options": {
        "tf.data": (
            "Options get_output_classes get_output_shapes get_output_types make_initializable_iterator make_one_shot_iterator"
        ),
        "tf.data.experimental": (
            "DistributeOptions MapVectorizationOptions OptimizationOptions StatsOptions ThreadingOptions"
        ),
    },
    "graphdock_data.dataset.readers": {
        "tf.data": "FixedLengthRecordDataset TFRecordDataset TextLineDataset",
        "tf.data.experimental tf.contrib.data": "SqlDataset",
    },
    "graphdock_data.dataset.transformations": {
        "tf.data.experimental tf.contrib.data": (
            "Counter RandomDataset choose_from_datasets copy_to_device dense_to_sparse_batch enumerate_dataset "
            "ignore_errors map_and_batch parallel_interleave prefetch_to_device rejection_resample sample_from_datasets scan "
            "shuffle_and_repeat take_while unbatch unique"
        ),
        "tf.data.experimental": "AUTOTUNE map_and_batch_with_legacy_function=map_and_batch",
    },
}
