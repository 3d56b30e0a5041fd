"""Names of TensorFlow's ops and attributes here, where that differs. Both ways are read off one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["ATTRS", "HARMLESS", "HISTORIES", "INPUTS", "LACKING", "NAMES", "OUTPUTS", "OWN_WHILE", "WRITE_AS"]

#: The op of a loop that reads or keeps histories, which TensorFlow's do not; a graph that has one comes back here only.
OWN_WHILE = "GraphdockWhile"
#: Stands behind the name of a loop for the node that keeps histories of it besides.
HISTORIES = "/histories"

#: TensorFlow's op -> ours, with the same inputs and outputs.
NAMES: dict[str, str] = {
    "AddV2": "Add",
    "ConcatV2": "Concat",
    "GatherV2": "Gather",
    "PadV2": "Pad",
    "SelectV2": "Select",
    "BiasAddV1": "BiasAdd",
    "AccumulateNV2": "AddN",
    "BatchMatMul": "MatMul",
    "BatchMatMulV2": "MatMul",
    "BatchMatMulV3": "MatMul",
    "FusedBatchNormV2": "FusedBatchNorm",
    "FusedBatchNormGradV2": "FusedBatchNormGrad",
    "SparseSegmentMeanWithNumSegments": "SparseSegmentMean",
    "SparseSegmentSqrtNWithNumSegments": "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments": "SparseSegmentSum",
    "PreventGradient": "StopGradient",
    "Snapshot": "Identity",
    "DeepCopy": "Identity",
    "Inv": "Reciprocal",
    "InvGrad": "ReciprocalGrad",
    "BatchMatrixBandPart": "MatrixBandPart",
    "BatchMatrixDiag": "MatrixDiag",
    "BatchMatrixDiagPart": "MatrixDiagPart",
    "BatchMatrixSetDiag": "MatrixSetDiag",
    "BatchCholesky": "Cholesky",
    "BatchMatrixInverse": "MatrixInverse",
    "BatchMatrixSolve": "MatrixSolve",
    "BatchMatrixTriangularSolve": "MatrixTriangularSolve",
    "BatchMatrixDeterminant": "MatrixDeterminant",
    "BatchFFT": "FFT",
    "BatchIFFT": "IFFT",
    "PlaceholderV2": "Placeholder",
    "RandomPoissonV2": "RandomPoisson",
}
#: Our op -> TensorFlow's, where it is another; a node of other attributes or inputs is written by a rule of its own.
WRITE_AS = {
    "Concat": "ConcatV2",
    "Gather": "GatherV2",
    "FusedBatchNorm": "FusedBatchNormV2",
    "FusedBatchNormGrad": "FusedBatchNormGradV2",
    "RandomPoisson": "RandomPoissonV2",
    "LogicalXor": "NotEqual",
    "Select": "SelectV2",
}

_HYPER: dict[str, str | None] = {"Th": None}
_ROWS: dict[str, str | None] = {"T": "dtype"}
_COUNTED: dict[str, str | None] = {"Tnum": "Tnumsegments"}
_DRAWN: dict[str, str | None] = {"Tshape": "T"}
_SPECTRUM: dict[str, str | None] = {"T": "Tcomplex"}
_FROM_REAL: dict[str, str | None] = {"T": "Treal", "Tout": "Tcomplex"}
_TO_REAL: dict[str, str | None] = {"T": "Tcomplex", "Tout": "Treal"}
_SPARSE_SEGMENTS: dict[str, str | None] = {"Tids": "Tsegmentids", "Tnum": None}

# which of a kind of resources an op makes
_ORDERED: dict[str, str | None] = {"order": None}
_OF_NUMBERS: dict[str, str | None] = {"mutable": None, "value_shape": None}
_OF_A_KIND: dict[str, str | None] = {"kind": None}
_OF_ROWS: dict[str, str | None] = {"sparse": None}
_OF_A_REPLICA: dict[str, str | None] = {"replica": None}

#: Our op -> our attribute -> TensorFlow's; None for one that it does not have.
ATTRS: dict[str, Mapping[str, str | None]] = {
    **dict.fromkeys(("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2"), _ORDERED),
    "HashTableV2": _OF_NUMBERS,
    "MutableHashTableV2": _OF_NUMBERS,
    "MutableHashTableOfTensorsV2": {"mutable": None},
    "MutableDenseHashTableV2": {"mutable": None, "key_shape": None, "reserved": None},
    **{
        f"{kind}ReaderV2": _OF_A_KIND for kind in ("FixedLengthRecord", "Identity", "TFRecord", "TextLine", "WholeFile")
    },
    **dict.fromkeys(("ResourceConditionalAccumulator", "SparseConditionalAccumulator"), _OF_ROWS),
    **dict.fromkeys(("ResourceAccumulatorApplyGradient", "SparseAccumulatorApplyGradient"), _OF_A_REPLICA),
    "TensorListReserve": dict.fromkeys(
        ("dynamic_size", "clear_after_read", "write_once", "identical_element_shapes", "array_name")
    ),
    "TensorListScatterIntoExistingList": {"add": None},
    "ExtractGlimpse": {"seed": None, "seed2": None},
    **dict.fromkeys(("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"), _SPECTRUM),
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D"), _FROM_REAL),
    **dict.fromkeys(("IRFFT", "IRFFT2D", "IRFFT3D"), _TO_REAL),
    "Fill": {"Tdims": "index_type"},
    "Gather": {"T": "Tparams"},
    "GatherNd": {"T": "Tparams"},
    "MaxPoolGradGrad": {"explicit_paddings": None},
    "OneHot": {"Tindices": "TI", "Tdepth": None},
    "Pad": {"mode": None},
    "PlaceholderWithDefault": {"T": "dtype"},
    "RandomGamma": {"Tshape": "S"},
    "RandomPoisson": {"Tshape": "S", "T": "R"},
    **dict.fromkeys(("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"), _DRAWN),
    **dict.fromkeys(("StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal"), _DRAWN),
    "StatelessRandomUniformInt": {"Tshape": "T", "Tout": "dtype"},
    "RestoreV2": {"shapes": None, "reshape": None},
    **dict.fromkeys(("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"), _SPARSE_SEGMENTS),
    "Split": {"Tidx": None},
    "SplitV": {"Tidx": None},
    "Squeeze": {"axis": "squeeze_dims"},
    "Svd": {"Tout": None},
    **{f"UnsortedSegment{n}": _COUNTED for n in ("Max", "Min", "Prod", "Sum")},
    **{f"ResourceScatter{n}": _ROWS for n in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")},
    **{
        f"Resource{sparse}Apply{n}": _HYPER
        for sparse in ("", "Sparse")
        for n in (
            "Adadelta",
            "Adagrad",
            "AdagradDA",
            "Adam",
            "CenteredRMSProp",
            "Ftrl",
            "FtrlV2",
            "GradientDescent",
            "Momentum",
            "ProximalAdagrad",
            "ProximalGradientDescent",
            "RMSProp",
        )
    },
}

#: TensorFlow's attributes that ops here do not have -> the value with which they say nothing; None: whatever they say.
HARMLESS: dict[str, Any] = {
    "use_locking": None,
    "validate_indices": None,
    "debug_name": None,
    "allowed_devices": None,
    "ignore_lookup_error": None,
    "incompatible_shape_error": True,
    "sparse_gradient": None,
    "Truncate": False,
    "blank_index": -1,
    "seed": None,
    "seed2": None,
    "exponential_avg_factor": 1.0,
    "update_slots": True,
    "use_nesterov": False,
    "multiply_linear_by_lr": False,
    "allow_missing_files": False,
    "batch_dims": 0,
    "axis": -1,
    "use_cudnn_on_gpu": None,
    "grad_a": False,
    "grad_b": False,
    "resize_if_index_out_of_bounds": False,
    "grad_x": False,
    "grad_y": False,
    "bad_indices_policy": None,
    "adj_x": None,
    "adj_y": None,
    "message": None,
    "cudnn_data_format": None,
}

_OUTPUT = (
    "All Angle Any ArgMax ArgMin BroadcastTo Cholesky ClipByValue ConcatV2 Conj ExpandDims FFT FFT2D FFT3D Fill GatherV2 "
    "GatherNd IFFT "
    "IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D Imag LinSpace MatrixDeterminant MatrixDiag MatrixInverse MatrixLogarithm MatrixSetDiag "
    "MatrixSolve MatrixSolveLs MatrixSquareRoot MatrixTriangularSolve Max Mean Min MirrorPad MirrorPadGrad OneHot Pack "
    "PadV2 Prod RFFT "
    "RFFT2D RFFT3D Range Rank Real Reshape ReverseSequence ReverseV2 Roll ScatterNd SegmentMax SegmentMean SegmentMin SegmentProd "
    "SegmentSum SelectV2 Size Slice SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum Split SplitV Squeeze StridedSlice "
    "StridedSliceGrad Sum Tile Unpack UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum "
    "BatchMatMulV2 If While"
).split()
#: TensorFlow's op -> the names of its outputs, where ours are called otherwise: functions name tensors by them.
OUTPUTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OUTPUT, ("output",)),
    **dict.fromkeys(("Complex", "Cumprod", "Cumsum"), ("out",)),
    **dict.fromkeys(("ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"), ("z",)),
    "MatMul": ("product",),
    "DynamicPartition": ("outputs",),
    "DynamicStitch": ("merged",),
    "MatrixBandPart": ("band",),
    "MatrixDiagPart": ("diagonal",),
    "OptionalGetValue": ("components",),
    "Where": ("index",),
    "FakeQuantWithMinMaxVarsPerChannelGradient": ("backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"),
}
#: TensorFlow's op -> how many of its inputs rules read; one with fewer is no such op.
INPUTS: dict[str, int] = {
    **dict.fromkeys("Enter Exit NextIteration RefEnter RefExit RefNextIteration LoopCond If StatelessIf".split(), 1),
    **dict.fromkeys("TensorArrayV3 TensorArrayCloseV3".split(), 1),
    **dict.fromkeys("TensorArrayConcatV3 TensorArraySizeV3".split(), 2),
    **dict.fromkeys("TensorArrayReadV3 TensorArrayGatherV3".split(), 3),
    **dict.fromkeys("TensorArrayWriteV3 TensorArrayScatterV3 TensorArraySplitV3".split(), 4),
    **dict.fromkeys("RefIdentity IsVariableInitialized Merge RefMerge Concat ConcatOffset ResourceGather".split(), 1),
    **dict.fromkeys("Switch RefSwitch Sum Reshape Select".split(), 2),
    **dict.fromkeys("SoftplusGrad SoftsignGrad EluGrad Relu6Grad".split(), 2),
    "MutableDenseHashTableV2": 1,
}
#: What the names of ops begin with that are not here -> why.
LACKING = {
    "Stack": "what gradients of TensorFlow's loops keep; tf.gradients makes them anew",
    "TensorArrayGrad": "gradients of TensorFlow's arrays; tf.gradients makes them anew",
    "TensorArray": "of an older form; TensorFlow 1.0 and later write TensorArrayV3",
}
