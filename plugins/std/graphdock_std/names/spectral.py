"""Names of Fourier transforms and of signals that are written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "signal.dct": "graphdock_std.signal.spectral:dct",
    "signal.fftshift": "graphdock_std.signal.spectral:fftshift",
    "signal.frame": "graphdock_std.signal.functions:frame",
    "signal.hamming_window": "graphdock_std.signal.functions:hamming_window",
    "signal.hann_window": "graphdock_std.signal.functions:hann_window",
    "signal.idct": "graphdock_std.signal.spectral:idct",
    "signal.ifftshift": "graphdock_std.signal.spectral:ifftshift",
    "signal.inverse_stft": "graphdock_std.signal.functions:inverse_stft",
    "signal.irfft": "graphdock_std.signal.spectral:irfft",
    "signal.irfft2d": "graphdock_std.signal.spectral:irfft2d",
    "signal.irfft3d": "graphdock_std.signal.spectral:irfft3d",
    "signal.linear_to_mel_weight_matrix": "graphdock_std.signal.functions:linear_to_mel_weight_matrix",
    "signal.mfccs_from_log_mel_spectrograms": "graphdock_std.signal.functions:mfccs_from_log_mel_spectrograms",
    "signal.overlap_and_add": "graphdock_std.signal.functions:overlap_and_add",
    "signal.rfft": "graphdock_std.signal.spectral:rfft",
    "signal.rfft2d": "graphdock_std.signal.spectral:rfft2d",
    "signal.rfft3d": "graphdock_std.signal.spectral:rfft3d",
    "signal.stft": "graphdock_std.signal.functions:stft",
    "spectral.dct": "graphdock_std.signal.spectral:dct",
    "spectral.idct": "graphdock_std.signal.spectral:idct",
    "spectral.irfft": "graphdock_std.signal.spectral:irfft",
    "spectral.irfft2d": "graphdock_std.signal.spectral:irfft2d",
    "spectral.irfft3d": "graphdock_std.signal.spectral:irfft3d",
    "spectral.rfft": "graphdock_std.signal.spectral:rfft",
    "spectral.rfft2d": "graphdock_std.signal.spectral:rfft2d",
    "spectral.rfft3d": "graphdock_std.signal.spectral:rfft3d",
}

#: A function that makes a window function.
ENDPOINTS = {
    "signal.inverse_stft_window_fn": "graphdock_std.signal.functions:inverse_stft_window_fn",
}
