"""Names of summaries and of event files."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they make and read files.
ENDPOINTS = {
    "Event": "graphdock.messages:Event",
    "HistogramProto": "graphdock.messages:HistogramProto",
    "LogMessage": "graphdock.messages:LogMessage",
    "SessionLog": "graphdock.messages:SessionLog",
    "Summary": "graphdock.messages:Summary",
    "SummaryMetadata": "graphdock.messages:SummaryMetadata",
    "summary.Event": "graphdock.messages:Event",
    "summary.FileWriter": "graphdock_tf1.summary.file_writer:FileWriter",
    "summary.FileWriterCache": "graphdock_tf1.summary.writer_cache:FileWriterCache",
    "summary.SessionLog": "graphdock.messages:SessionLog",
    "summary.Summary": "graphdock.messages:Summary",
    "summary.SummaryDescription": "graphdock.messages:SummaryDescription",
    "summary.TaggedRunMetadata": "graphdock.messages:TaggedRunMetadata",
    "summary.audio": "graphdock_tf1.summary.ops:audio",
    "summary.get_summary_description": "graphdock_tf1.summary.reading:get_summary_description",
    "summary.histogram": "graphdock_tf1.summary.ops:histogram",
    "summary.image": "graphdock_tf1.summary.ops:image",
    "summary.merge": "graphdock_tf1.summary.ops:merge",
    "summary.merge_all": "graphdock_tf1.summary.ops:merge_all",
    "summary.scalar": "graphdock_tf1.summary.ops:scalar",
    "summary.tensor_summary": "graphdock_tf1.summary.ops:tensor_summary",
    "summary.text": "graphdock_tf1.summary.ops:text",
    "train.summary_iterator": "graphdock_tf1.summary.reading:summary_iterator",
}
