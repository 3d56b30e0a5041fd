"""Names of functions over strings, and of what reads bytes."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "decode_csv": "graphdock_std.text.functions:decode_csv",
    "decode_raw": "graphdock_std.text.functions:decode_raw",
    "io.decode_csv": "graphdock_std.text.functions:decode_csv",
    "io.decode_raw": "graphdock_std.text.functions:decode_raw",
    "reduce_join": "graphdock_std.text.functions:reduce_join",
    "string_split": "graphdock_std.text.functions:string_split",
    "string_to_hash_bucket": "graphdock_std.text.functions:string_to_hash_bucket",
    "string_to_number": "graphdock_std.text.functions:string_to_number",
    "strings.format": "graphdock_std.text.functions:string_format",
    "strings.reduce_join": "graphdock_std.text.functions:reduce_join",
    "strings.split": "graphdock_std.text.functions:string_split_v2",
    "strings.to_hash_bucket": "graphdock_std.text.functions:string_to_hash_bucket",
    "strings.to_number": "graphdock_std.text.functions:string_to_number",
}

#: Operator methods of a tensor that are more than one op.
OPERATORS = {
    "__add__": "graphdock_std.text.functions:plus",
}
