"""Fields and numbers, by bytes that TensorFlow 2.15 wrote of messages with every field set."""

from __future__ import annotations

import graphdock as tf
import pytest

VALUE = tf.Summary.Value
SUMMARY = tf.Summary(
    value=[
        VALUE(tag="a", simple_value=1.5, node_name="n"),
        VALUE(obsolete_old_style_histogram=b"o"),
        VALUE(image=tf.Summary.Image(height=1, width=2, colorspace=3, encoded_image_string=b"p")),
        VALUE(histo=tf.HistogramProto(min=1, max=2, num=3, sum=4, sum_squares=5, bucket_limit=[6, 7], bucket=[8, 9])),
        VALUE(
            audio=tf.Summary.Audio(
                sample_rate=1, num_channels=2, length_frames=3, encoded_audio_string=b"w", content_type="c"
            )
        ),
        VALUE(
            tensor={"dtype": 1, "tensor_shape": {"dim": [{"size": 1}]}, "float_val": [1.5]},
            metadata=tf.SummaryMetadata(
                plugin_data=tf.SummaryMetadata.PluginData(plugin_name="p", content=b"c"),
                display_name="d",
                summary_description="s",
                data_class=2,
            ),
        ),
    ]
)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (
            tf.Event(wall_time=1.5, step=2, summary=SUMMARY),
            b"\t\x00\x00\x00\x00\x00\x00\xf8?\x10\x02*\xab\x01\n\x0b\n\x01a\x15\x00\x00\xc0?:\x01n\n\x03\x1a\x01o"
            b'\n\x0b"\t\x08\x01\x10\x02\x18\x03"\x01p\nS*Q\t\x00\x00\x00\x00\x00\x00\xf0?\x11\x00\x00\x00\x00\x00\x00\x00@'
            b"\x19\x00\x00\x00\x00\x00\x00\x08@!\x00\x00\x00\x00\x00\x00\x10@)\x00\x00\x00\x00\x00\x00\x14@2\x10\x00\x00"
            b'\x00\x00\x00\x00\x18@\x00\x00\x00\x00\x00\x00\x1c@:\x10\x00\x00\x00\x00\x00\x00 @\x00\x00\x00\x00\x00\x00"@'
            b'\n\x112\x0f\r\x00\x00\x80?\x10\x02\x18\x03"\x01w*\x01c\n"B\x0e\x08\x01\x12\x04\x12\x02\x08\x01*\x04\x00\x00'
            b"\xc0?J\x10\n\x06\n\x01p\x12\x01c\x12\x01d\x1a\x01s \x02",
        ),
        (tf.Event(file_version="v", source_metadata={"writer": "w"}), b"\x1a\x01vR\x03\n\x01w"),
        (tf.Event(graph_def=b"g"), b'"\x01g'),
        (tf.Event(log_message=tf.LogMessage(level=tf.LogMessage.INFO, message="m")), b"2\x05\x08\x14\x12\x01m"),
        (
            tf.Event(session_log=tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="p", msg="m")),
            b":\x08\x08\x03\x12\x01p\x1a\x01m",
        ),
        (
            tf.Event(tagged_run_metadata=tf.summary.TaggedRunMetadata(tag="t", run_metadata=b"r")),
            b"B\x06\n\x01t\x12\x01r",
        ),
        (tf.Event(meta_graph_def=b"m"), b"J\x01m"),
    ],
    ids=lambda part: part.WhichOneof("what") if isinstance(part, tf.Event) else "",
)
def test_bytes_of_tensorflow(event, data):
    assert event.SerializeToString() == data and tf.Event.FromString(data) == event
