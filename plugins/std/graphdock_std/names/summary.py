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
    "summary.FileWriter": "graphdock_std.summary.file_writer:FileWriter",
    "summary.FileWriterCache": "graphdock_std.summary.writer_cache:FileWriterCache",
    "summary.SessionLog": "graphdock.messages:SessionLog",
    "summary.Summary": "graphdock.messages:Summary",
    "summary.SummaryDescription": "graphdock.messages:SummaryDescription",
    "summary.TaggedRunMetadata": "graphdock.messages:TaggedRunMetadata",
    "summary.audio": "graphdock_std.summary.ops:audio",
    "summary.get_summary_description": "graphdock_std.summary.reading:get_summary_description",
    "summary.histogram": "graphdock_std.summary.ops:histogram",
    "summary.image": "graphdock_std.summary.ops:image",
    "summary.merge": "graphdock_std.summary.ops:merge",
    "summary.merge_all": "graphdock_std.summary.ops:merge_all",
    "summary.scalar": "graphdock_std.summary.ops:scalar",
    "summary.tensor_summary": "graphdock_std.summary.ops:tensor_summary",
    "summary.text": "graphdock_std.summary.ops:text",
    "train.summary_iterator": "graphdock_std.summary.reading:summary_iterator",
}
