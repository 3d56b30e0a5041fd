"""The messages of event files, with the names and numbers of TensorFlow (``summary.proto``, ``event.proto``, ``tensor.proto``)."""

from __future__ import annotations

from typing import ClassVar

from graphdock_storage.events.message import Field, Message

__all__ = [
    "Event",
    "HistogramProto",
    "LogMessage",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "SummaryMetadata",
    "TaggedRunMetadata",
    "TensorProto",
    "TensorShapeProto",
]


class TensorShapeProto(Message):
    """A shape. ``unknown_rank`` says that not even the rank is known; a dim of -1 is unknown."""

    class Dim(Message):
        """One dim."""

        size = Field(1, "int64")
        name = Field(2, "string")

    dim = Field(2, Dim, repeated=True)
    unknown_rank = Field(3, "bool")


class TensorProto(Message):
    """A tensor: its elements as bytes in ``tensor_content``, or one by one."""

    dtype = Field(1, "enum")
    tensor_shape = Field(2, TensorShapeProto)
    version_number = Field(3, "int32")
    tensor_content = Field(4, "bytes")
    float_val = Field(5, "float", repeated=True)
    double_val = Field(6, "double", repeated=True)
    int_val = Field(7, "int32", repeated=True)
    string_val = Field(8, "bytes", repeated=True)
    scomplex_val = Field(9, "float", repeated=True)
    int64_val = Field(10, "int64", repeated=True)
    bool_val = Field(11, "bool", repeated=True)
    dcomplex_val = Field(12, "double", repeated=True)
    half_val = Field(13, "int32", repeated=True)
    uint32_val = Field(16, "uint32", repeated=True)
    uint64_val = Field(17, "uint64", repeated=True)


class HistogramProto(Message):
    """A histogram: ``bucket[i]`` values lie below ``bucket_limit[i]``, and not below the limit before."""

    min = Field(1, "double")
    max = Field(2, "double")
    num = Field(3, "double")
    sum = Field(4, "double")
    sum_squares = Field(5, "double")
    bucket_limit = Field(6, "double", repeated=True)
    bucket = Field(7, "double", repeated=True)


class SummaryDescription(Message):
    """What a summary is of."""

    type_hint = Field(1, "string")


class SummaryMetadata(Message):
    """What is told of a tag once: the plugin of TensorBoard that shows it, and texts for people."""

    class PluginData(Message):
        """The plugin's name, and what it wants to know."""

        plugin_name = Field(1, "string")
        content = Field(2, "bytes")

    plugin_data = Field(1, PluginData)
    display_name = Field(2, "string")
    summary_description = Field(3, "string")
    data_class = Field(4, "enum")


class Image(Message):
    """An image file. ``colorspace`` is the number of its channels."""

    height = Field(1, "int32")
    width = Field(2, "int32")
    colorspace = Field(3, "int32")
    encoded_image_string = Field(4, "bytes")


class Audio(Message):
    """A sound file."""

    sample_rate = Field(1, "float")
    num_channels = Field(2, "int64")
    length_frames = Field(3, "int64")
    encoded_audio_string = Field(4, "bytes")
    content_type = Field(5, "string")


class Summary(Message):
    """What summaries of one step hold: a list of values, each with its tag."""

    Image = Image
    Audio = Audio

    class Value(Message):
        """One value, of one of six forms."""

        tag = Field(1, "string")
        simple_value = Field(2, "float", oneof="value")
        obsolete_old_style_histogram = Field(3, "bytes", oneof="value")
        image = Field(4, Image, oneof="value")
        histo = Field(5, HistogramProto, oneof="value")
        audio = Field(6, Audio, oneof="value")
        node_name = Field(7, "string")
        tensor = Field(8, TensorProto, oneof="value")
        metadata = Field(9, SummaryMetadata)

    value = Field(1, Value, repeated=True)


class SessionLog(Message):
    """That a session began, ended or saved a checkpoint."""

    STATUS_UNSPECIFIED: ClassVar[int] = 0
    START: ClassVar[int] = 1
    STOP: ClassVar[int] = 2
    CHECKPOINT: ClassVar[int] = 3

    status = Field(1, "enum")
    checkpoint_path = Field(2, "string")
    msg = Field(3, "string")


class LogMessage(Message):
    """A line of a log."""

    UNKNOWN: ClassVar[int] = 0
    DEBUGGING: ClassVar[int] = 10
    INFO: ClassVar[int] = 20
    WARN: ClassVar[int] = 30
    ERROR: ClassVar[int] = 40
    FATAL: ClassVar[int] = 50

    level = Field(1, "enum")
    message = Field(2, "string")


class TaggedRunMetadata(Message):
    """What a traced step reported, as the bytes of a RunMetadata, under a tag."""

    tag = Field(1, "string")
    run_metadata = Field(2, "bytes")


class SourceMetadata(Message):
    """Who wrote an event file."""

    writer = Field(1, "string")


class Event(Message):
    """One record of an event file: seconds since 1970, the step, and what happened."""

    wall_time = Field(1, "double")
    step = Field(2, "int64")
    file_version = Field(3, "string", oneof="what")
    graph_def = Field(4, "bytes", oneof="what")
    summary = Field(5, Summary, oneof="what")
    log_message = Field(6, LogMessage, oneof="what")
    session_log = Field(7, SessionLog, oneof="what")
    tagged_run_metadata = Field(8, TaggedRunMetadata, oneof="what")
    meta_graph_def = Field(9, "bytes", oneof="what")
    source_metadata = Field(10, SourceMetadata)
