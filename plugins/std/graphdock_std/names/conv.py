"""Names of convolutions and pools."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "nn.atrous_conv2d": "graphdock_std.convolution:atrous_conv2d",
    "nn.atrous_conv2d_transpose": "graphdock_std.convolution:atrous_conv2d_transpose",
    "nn.avg_pool": "graphdock_std.pooling:avg_pool",
    "nn.avg_pool1d": "graphdock_std.pooling:avg_pool1d",
    "nn.avg_pool2d": "graphdock_std.pooling:avg_pool",
    "nn.avg_pool3d": "graphdock_std.pooling:avg_pool3d",
    "nn.avg_pool_v2": "graphdock_std.pooling:avg_pool_v2",
    "nn.conv1d": "graphdock_std.convolution:conv1d",
    "nn.conv1d_transpose": "graphdock_std.convolution:conv1d_transpose",
    "nn.conv2d": "graphdock_std.convolution:conv2d",
    "nn.conv2d_backprop_filter": "graphdock_std.convolution:conv2d_backprop_filter",
    "nn.conv2d_backprop_input": "graphdock_std.convolution:conv2d_backprop_input",
    "nn.conv2d_transpose": "graphdock_std.convolution:conv2d_transpose",
    "nn.conv3d": "graphdock_std.convolution:conv3d",
    "nn.conv3d_backprop_filter": "graphdock_std.convolution:conv3d_backprop_filter",
    "nn.conv3d_backprop_filter_v2": "graphdock_std.convolution:conv3d_backprop_filter",
    "nn.conv3d_transpose": "graphdock_std.convolution:conv3d_transpose",
    "nn.conv_transpose": "graphdock_std.convolution:conv_transpose",
    "nn.convolution": "graphdock_std.convolution:convolution",
    "nn.depthwise_conv2d": "graphdock_std.depthwise:depthwise_conv2d",
    "nn.depthwise_conv2d_backprop_filter": "graphdock_std.depthwise:depthwise_conv2d_native_backprop_filter",
    "nn.depthwise_conv2d_backprop_input": "graphdock_std.depthwise:depthwise_conv2d_native_backprop_input",
    "nn.depthwise_conv2d_native": "graphdock_std.depthwise:depthwise_conv2d_native",
    "nn.depthwise_conv2d_native_backprop_filter": "graphdock_std.depthwise:depthwise_conv2d_native_backprop_filter",
    "nn.depthwise_conv2d_native_backprop_input": "graphdock_std.depthwise:depthwise_conv2d_native_backprop_input",
    "nn.max_pool": "graphdock_std.pooling:max_pool",
    "nn.max_pool1d": "graphdock_std.pooling:max_pool1d",
    "nn.max_pool2d": "graphdock_std.pooling:max_pool2d",
    "nn.max_pool3d": "graphdock_std.pooling:max_pool3d",
    "nn.max_pool_v2": "graphdock_std.pooling:max_pool_v2",
    "nn.pool": "graphdock_std.pooling:pool",
    "nn.separable_conv2d": "graphdock_std.depthwise:separable_conv2d",
}
