"""Why an op gives another answer than TensorFlow's kernel does for a drawn edge.

Two reasons hold for any op where an input has no elements: shapes that can't fit are refused here before a kernel runs, where a
kernel of TensorFlow that has nothing to do does not look at them; and nothing is made of nothing, which some of them refuse.
"""

from __future__ import annotations

__all__ = ["DIFFERS"]

_NEVER_LOOKS = (
    r"refused \(.*(but a pool of such|output that it belongs|but the filter takes|but [BC] is|have shape|must be of rank)",
    "shapes that can't fit are refused; TensorFlow's kernel does not look, and reads or leaves what is not there",
)
_NO_ELEMENTS = (
    "output 0: ",
    "of no elements: zeros of the right shape; TensorFlow gives another shape, or memory that nobody wrote",
)
_PADDED = ("must have length of at least", "a short input is padded here; there tf.signal pads it before the op")
_UNWRITTEN = (
    r"output 0: .*got np\.\w+\(0(\.0|j)\)",
    "zeros of no input; TensorFlow transforms memory that nobody wrote",
)
_FORMAT = ("only supports? ?N", "the other layout is for GPUs there")
_TWICE = (
    r"output 0: \d+ of \d+ elements differ",
    "gradients of a row that comes twice are summed first; TensorFlow's optimizers sum them before",
)
_GENERATOR = ("output 0: ", "another generator, of the same distribution")
_SIGN = (r"output [12]: \d+ of \d+ elements differ", "vectors are defined up to a sign")
_NO_VECTORS = (
    "output 1: shape is|dtype is float(32|64), expected complex",
    "vectors that nobody asked for; real values are real",
)
_BYTES = ("output 0: ", "other bytes of the same message or image")
_MORE_FORMATS = (
    "Trying to decode BMP|can run on JPEG only",
    "these ops read any format, as most of TensorFlow 1.15's do",
)
_PRECISE = ("drawn-float64.*elements differ", "in float64; TensorFlow's attribute, or its whole kernel, is float32")
_BROADCASTS = ("given, and TensorFlow refuses", "inputs broadcast as those of other elementwise ops do")
_LOWEST = (
    "output 0: .*expected np.float32.-3.4028235e.38",
    "the largest of nothing is minus infinity, as reduce_max says",
)
_ROWS = (
    "refused ",
    "rows of labels and logits agree; TensorFlow's op broadcasts them, and gives a gradient of another shape",
)

#: Op -> (a pattern of what differs, why). What no pattern finds is a fault.
DIFFERS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        (
            "AvgPool3DGrad",
            "AvgPoolGrad",
            "Conv3DBackpropFilterV2",
            "ResizeBicubicGrad",
            "ResizeBilinearGrad",
            "ResourceScatterAdd",
            "ResourceScatterDiv",
            "ResourceScatterMax",
            "ResourceScatterMin",
            "ResourceScatterMul",
            "ResourceScatterSub",
            "ResourceScatterUpdate",
        ),
        (_NEVER_LOOKS,),
    ),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv2DBackpropInput"), (_NEVER_LOOKS, _NO_ELEMENTS)),
    "Conv2D": (_NO_ELEMENTS, ("refused .*but the filter takes 1", "there are no groups, as on TensorFlow 1's CPUs")),
    "Conv3D": (_NO_ELEMENTS,),
    "DepthwiseConv2dNative": (_NO_ELEMENTS,),
    "DepthwiseConv2dNativeBackpropFilter": (
        _NEVER_LOOKS,
        ("drawn-float32-3.*elements differ", "TensorFlow's kernel ignores dilations, which its Python takes care of"),
        ("equal length strides", "strides may differ"),
    ),
    "DepthwiseConv2dNativeBackpropInput": (_NO_ELEMENTS, ("equal length strides", "strides may differ")),
    "AvgPool": (("drawn-float32-4.*output 0: shape is", "TensorFlow gives an empty image for windows over channels"),),
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D"), (_PADDED, _UNWRITTEN)),
    **dict.fromkeys(("MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGradGrad"), (_FORMAT,)),
    "MaxPoolGrad": (
        _FORMAT,
        ("(dim [12] of all is 1|all dims are 1): output 0", "an output that is not the pool's of such an input"),
    ),
    "MaxPool": (_LOWEST,),
    "Dilation2D": (_LOWEST,),
    **dict.fromkeys(
        ("Dilation2DBackpropFilter", "Dilation2DBackpropInput"),
        (
            (
                "(each 6|dim 1 of all) is 1: output 0",
                "a window of nothing passes no gradient; TensorFlow gives it to the first element",
            ),
        ),
    ),
    **{
        f"ResourceSparseApply{n}": (_TWICE,)
        for n in (
            "Adadelta",
            "Adagrad",
            "AdagradDA",
            "CenteredRMSProp",
            "Ftrl",
            "FtrlV2",
            "Momentum",
            "ProximalAdagrad",
            "ProximalGradientDescent",
            "RMSProp",
        )
    },
    **dict.fromkeys(
        ("StatelessMultinomial", "StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal"),
        (_GENERATOR,),
    ),
    **dict.fromkeys(("SelfAdjointEigV2", "Svd"), (_SIGN, _NO_VECTORS)),
    **dict.fromkeys(("DecodeJSONExample", "EncodePng", "ScalarSummary", "SerializeManySparse"), (_BYTES,)),
    **dict.fromkeys(("DecodeAndCropJpeg", "DecodeGif", "DecodeJpeg", "DecodePng"), (_MORE_FORMATS,)),
    "DecodeImage": (
        ("uint16.*got np.uint16.771", "white is white in any dtype (257 times); 256 times for some formats there"),
    ),
    **dict.fromkeys(("CTCBeamSearchDecoder", "LeakyRelu", "LeakyReluGrad"), (_PRECISE,)),
    "CTCLoss": (
        _PRECISE,
        ("a label is no class", "a label beyond the classes is refused, also where no time is left for it"),
        ("drawn-float32-[14].*given", "no labels, and labels that fit no path, have a loss"),
    ),
    **dict.fromkeys(("Betainc", "ClipByValue"), (_BROADCASTS,)),
    "ComplexAbs": (("Tout=float.*given", "the result may be of another width than the parts"),),
    "ComputeAccidentalHits": (
        ("shape is", "every sampled position that is a target; TensorFlow lists one of a class"),
    ),
    "FusedBatchNorm": (("output [13]: ", "of no image: the mean that was given, and what is kept for its gradient"),),
    "Gather": (("all dims are 0: refused .indices is", "an index that is out of range, also where nothing is taken"),),
    "HistogramFixedWidth": (("must not contain NaN", "NaN falls into no bucket, as in TensorFlow 1"),),
    "MatrixSolveLs": (
        (
            r"(each [23]|dim 1 of all) is 0: output 0: ",
            "of no equations: zeros; TensorFlow gives memory that nobody wrote",
        ),
    ),
    "MatrixTriangularSolve": (("do not agree", "batches do not broadcast, as in TensorFlow 1"),),
    "Mean": (("complex.*got np.complex.*nan", "the mean of nothing is NaN, as of real numbers"),),
    "QuantizeAndDequantizeV3": (("Axis requested is larger", "a scalar has no axis to look at"),),
    "ReverseV2": (("is a scalar and has no axis", "an axis that is not there is refused"),),
    "SoftmaxCrossEntropyWithLogits": (_ROWS, ("given, and TensorFlow refuses", "any rank, without a reshape")),
    "SparseSoftmaxCrossEntropyWithLogits": (("logits must be 2-D", "any rank, without a reshape"),),
    "TopKV2": (("'sorted': False", "in no order"),),
    "Where": (("rank 0 of condition", "a scalar has one place, without coordinates"),),
}
