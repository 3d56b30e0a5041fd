"""GRUBlockCell, LSTMBlockCell, LSTMBlockFusedCell: TensorFlow's fused cells, as cells of the same variables and values."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike

from graphdock_tf1.rnn.basic import GRUCell
from graphdock_tf1.rnn.dynamic import dynamic_rnn
from graphdock_tf1.rnn.lstm import LSTMCell


class GRUBlockCell(GRUCell):
    """A GRUCell under another name, whose variables are called ``w_ru``, ``b_ru``, ``w_c`` and ``b_c``.

    Args:
      num_units, or ``cell_size``: size of the output and the state.
      reuse, name, dtype: as of GRUCell.
    """

    _named = ("w_ru", "b_ru"), ("w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: Any = None,
        name: str = "gru_cell",
        dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> None:
        size = cell_size if num_units is None else num_units
        if size is None or (num_units is not None and cell_size is not None):
            raise InvalidArgumentError(
                "GRUBlockCell takes one of num_units and cell_size", got=f"{num_units}, {cell_size}"
            )
        super().__init__(size, reuse=reuse, name=name, dtype=dtype, **keywords)


class GRUBlockCellV2(GRUBlockCell):
    """A GRUBlockCell whose variables are called as those of GRUCell."""

    _named = GRUCell._named


class LSTMBlockCell(LSTMCell):
    """An LSTMCell without projection under another name.

    Args:
      num_units: size of the output and of each state.
      forget_bias, cell_clip: as of LSTMCell; ``use_peephole``: its ``use_peepholes``.
      dtype, reuse, name: as of LSTMCell.
    """

    _peephole_order = "ifo"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: DTypeLike | None = None,
        reuse: Any = None,
        name: str = "lstm_cell",
        **keywords: Any,
    ) -> None:
        clip = None if cell_clip is None or cell_clip < 0 else cell_clip
        super().__init__(
            num_units,
            use_peephole,
            clip,
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **keywords,
        )


class LSTMBlockFusedCell:
    """An LSTM over all steps of ``[time, batch, depth]``.

    Args:
      As of LSTMBlockCell.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: DTypeLike | None = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        self._cell = LSTMBlockCell(num_units, forget_bias, cell_clip, use_peephole, dtype, reuse, name)

    @property
    def num_units(self) -> int:
        """Size of the output and of each state."""
        return int(self._cell.output_size)

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: DTypeLike | None = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Outputs ``[time, batch, num_units]`` and the last state; behind ``sequence_length`` outputs are zero.

        Raises:
          ValueError: neither a state nor a dtype is given for it.
        """
        if initial_state is None and dtype is None:
            raise ValueError("Either initial_state or dtype needs to be specified")
        inputs = _tf.convert_to_tensor(inputs)
        with _tf.variable_scope(_tf.get_variable_scope()) as scope:
            return dynamic_rnn(self._cell, inputs, sequence_length, initial_state, dtype, time_major=True, scope=scope)
