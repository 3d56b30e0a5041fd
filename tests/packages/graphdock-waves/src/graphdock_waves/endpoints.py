"""Names below ``tf``: name -> ``"module:attribute"``, strings only."""

ENDPOINTS = {
    "waves.square": "graphdock_waves.functions:square",
    "waves.triangle": "graphdock_waves.functions:triangle",
    "signal.square_wave": "graphdock_waves.functions:square",
}
