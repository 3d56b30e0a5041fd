"""Names of what is done to images, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "image.adjust_brightness": "graphdock_std.image_color:adjust_brightness",
    "image.adjust_contrast": "graphdock_std.image_color:adjust_contrast",
    "image.adjust_gamma": "graphdock_std.image_color:adjust_gamma",
    "image.adjust_hue": "graphdock_std.image_color:adjust_hue",
    "image.adjust_saturation": "graphdock_std.image_color:adjust_saturation",
    "image.central_crop": "graphdock_std.image_geometry:central_crop",
    "image.convert_image_dtype": "graphdock_std.image_color:convert_image_dtype",
    "image.crop_to_bounding_box": "graphdock_std.image_geometry:crop_to_bounding_box",
    "image.flip_left_right": "graphdock_std.image_geometry:flip_left_right",
    "image.flip_up_down": "graphdock_std.image_geometry:flip_up_down",
    "image.grayscale_to_rgb": "graphdock_std.image_color:grayscale_to_rgb",
    "image.image_gradients": "graphdock_std.image_quality:image_gradients",
    "image.pad_to_bounding_box": "graphdock_std.image_geometry:pad_to_bounding_box",
    "image.per_image_standardization": "graphdock_std.image_color:per_image_standardization",
    "image.psnr": "graphdock_std.image_quality:psnr",
    "image.random_brightness": "graphdock_std.image_color:random_brightness",
    "image.random_contrast": "graphdock_std.image_color:random_contrast",
    "image.random_crop": "graphdock_std.image_geometry:random_crop",
    "image.random_flip_left_right": "graphdock_std.image_geometry:random_flip_left_right",
    "image.random_flip_up_down": "graphdock_std.image_geometry:random_flip_up_down",
    "image.random_hue": "graphdock_std.image_color:random_hue",
    "image.random_saturation": "graphdock_std.image_color:random_saturation",
    "image.resize": "graphdock_std.image_resize:resize_images",
    "image.resize_bicubic": "graphdock_std.image_resize:resize_bicubic",
    "image.resize_bilinear": "graphdock_std.image_resize:resize_bilinear",
    "image.resize_image_with_crop_or_pad": "graphdock_std.image_geometry:resize_image_with_crop_or_pad",
    "image.resize_image_with_pad": "graphdock_std.image_resize:resize_image_with_pad",
    "image.resize_images": "graphdock_std.image_resize:resize_images",
    "image.resize_nearest_neighbor": "graphdock_std.image_resize:resize_nearest_neighbor",
    "image.resize_with_crop_or_pad": "graphdock_std.image_geometry:resize_image_with_crop_or_pad",
    "image.rgb_to_grayscale": "graphdock_std.image_color:rgb_to_grayscale",
    "image.rgb_to_yiq": "graphdock_std.image_color:rgb_to_yiq",
    "image.rgb_to_yuv": "graphdock_std.image_color:rgb_to_yuv",
    "image.rot90": "graphdock_std.image_geometry:rot90",
    "image.sobel_edges": "graphdock_std.image_quality:sobel_edges",
    "image.ssim": "graphdock_std.image_quality:ssim",
    "image.ssim_multiscale": "graphdock_std.image_quality:ssim_multiscale",
    "image.total_variation": "graphdock_std.image_quality:total_variation",
    "image.transpose": "graphdock_std.image_geometry:transpose_image",
    "image.transpose_image": "graphdock_std.image_geometry:transpose_image",
    "image.yiq_to_rgb": "graphdock_std.image_color:yiq_to_rgb",
    "image.yuv_to_rgb": "graphdock_std.image_color:yuv_to_rgb",
    "random_crop": "graphdock_std.image_geometry:random_crop",
    "saturate_cast": "graphdock_std.image_color:saturate_cast",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "image.ResizeMethod": "graphdock_std.image_resize:ResizeMethod",
}
