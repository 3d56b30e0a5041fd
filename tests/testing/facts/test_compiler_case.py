"""Random graphs of the kit for region compilers: products, updates, parts and others where a compiler asks for them."""

from __future__ import annotations

import types
from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import Bound, Refusal, Span, hookimpl
from graphdock.plugin.host import Host
from graphdock_opgen.new_files import render
from graphdock_testing.case import ConformanceError, Untested
from graphdock_testing.conformance import Conformance
from graphdock_testing.region_reference import ArrangingCompiler, ReferenceCompiler, evaluate


def kit(compiler):
    host = Host()
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    return Conformance("lab", host=host)


def said(compiler, check):
    """Error that a case of the compiler ends with; None where it ends well."""
    made = kit(compiler)
    (case,) = [c for c in made.cases("compiler lab.reference") if c.data["check"] == check]
    try:
        made.check(case)
    except (ConformanceError, Untested) as error:
        return type(error), str(error)
    return None


def lab(**fields):
    return type("Lab", (ReferenceCompiler,), fields)()


KINDS = ["regions", "products", "updates", "parts", "arranged", "reductions", "loops", "histories"]
KINDS += ["unknown_dims", "unknown_parts", "unknown_products", "gathers"]


class All(ArrangingCompiler):
    reductions = True


@pytest.mark.parametrize("check", KINDS)
def test_a_compiler_that_is_right_is_told_nothing(check):
    assert said(All(), check) is None


def test_only_what_a_compiler_asks_for_is_a_case():
    no = dict.fromkeys(["updates", "products", "parts", "loops", "histories", "unknown_dims", "gathers"], False)
    few = kit(lab(**no))
    assert [c.id for c in few.cases("compiler lab.reference")] == ["compiler lab.reference[regions]"]
    assert [c.data["check"] for c in kit(All()).cases("compiler lab.reference")] == KINDS


def spoiled(into_a_copy=False, twice=False):
    """The reference, with a fault of updates or of products."""

    def build(self, region, ctx):
        program, count = region.program, len(region.graph.inputs)
        drawn = count + len(region.streams)
        factor = 2 if twice and any(n.op in ("MatMul", "BatchMatMul") for n in region.graph.nodes) else 1

        def compute(*given):
            outs = iter(given[drawn:])
            for out, value in zip(program.outputs, evaluate(program, given[:count], given[count:drawn]), strict=True):
                held = None if out.into is None else given[out.into].copy() if into_a_copy else given[out.into]
                (next(outs) if held is None else held)[...] = value * factor

        return compute

    return lab(build=build)


def test_an_update_that_goes_into_a_copy_is_found():
    compiler = spoiled(into_a_copy=True)
    assert said(compiler, "regions") is said(compiler, "products") is None
    kind, text = said(compiler, "updates")
    assert kind is ConformanceError and "elements differ" in text


def test_a_product_that_is_doubled_is_found():
    compiler = spoiled(twice=True)
    assert said(compiler, "regions") is said(compiler, "updates") is None
    kind, text = said(compiler, "products")
    assert kind is ConformanceError and "elements differ" in text and "MatMul" in text


class ExtentsOfTheWhole(ReferenceCompiler):
    """The reference, which takes a slice of a dim that it does not know for all of it."""

    def build(self, region, ctx):
        inputs = [replace(i, spans=tuple(s and Span(s.dim) for s in i.spans)) for i in region.program.inputs]
        region.program = replace(region.program, inputs=tuple(inputs))
        return super().build(region, ctx)


def test_an_extent_of_another_dim_is_found():
    assert said(ExtentsOfTheWhole(), "parts") is said(ExtentsOfTheWhole(), "unknown_dims") is None
    kind, text = said(ExtentsOfTheWhole(), "unknown_parts")
    assert kind is ConformanceError and "for float32" in text


class LongSumsCut(ReferenceCompiler):
    """The reference, which loses what stands behind 512 places of a sum of products that only a step counts."""

    def build(self, region, ctx):
        bound, program = super().build(region, ctx), region.program
        places = [t.value for t in program.terms if t.op == "sum" and program.axes[t.value[0]].extent is None]

        def compute(*given):
            some = list(given)
            for part in program.inputs if places else ():
                if places[0][0] in part.dims:
                    some[part.source] = given[part.source].copy()
                    some[part.source][(slice(None),) * part.dims.index(places[0][0]) + (slice(512, None),)] = 0
            return bound.compute(*some)

        return Bound(compute)


def test_a_sum_of_products_that_ends_too_early_is_found():
    assert said(LongSumsCut(), "products") is said(LongSumsCut(), "unknown_dims") is None
    kind, text = said(LongSumsCut(), "unknown_products")
    assert kind is ConformanceError and "elements differ" in text and "MatMul" in text


class OtherRows(ReferenceCompiler):
    """The reference, which reads rows where it likes: ``rows`` says which, of the indices and the tensor."""

    rows = staticmethod(lambda indices, table: indices)

    def build(self, region, ctx):
        bound, program = super().build(region, ctx), region.program

        def compute(*given):
            some = list(given)
            for part in program.inputs:
                if part.indices is not None:
                    source = program.inputs[part.indices].source
                    some[source] = self.rows(given[source], given[part.source])
            return bound.compute(*some)

        return Bound(compute)


def test_rows_other_than_indices_say_are_found():
    compiler = type("Lab", (OtherRows,), {"rows": staticmethod(lambda i, t: i[::-1].copy())})()
    assert said(compiler, "regions") is said(compiler, "parts") is None
    kind, text = said(compiler, "gathers")
    assert kind is ConformanceError and "elements differ" in text and "Gather" in text


class OverTheTable(ReferenceCompiler):
    """The reference, which writes rows over the tensor that it gathers them from: one row, then the next."""

    def inplace(self, region):
        program = region.program
        tables = [i for i in program.inputs if i.indices is not None and i.shape == program.outputs[0].shape]
        return {"out0": tuple(f"in{i.source}" for i in tables)} if tables else {}

    def build(self, region, ctx):
        program, count = region.program, len(region.graph.inputs)
        if region.loop is not None or not self.inplace(region) or ctx.outputs[0].mode.kind != "inplace":
            return super().build(region, ctx)

        def compute(*given):
            for row in range(len(given[count])):
                for out, value in zip(given[count:], evaluate(program, given[:count]), strict=True):
                    out[row] = value[row]

        return Bound(compute)


def test_a_table_that_is_written_over_is_found():
    assert said(OverTheTable(), "regions") is said(OverTheTable(), "updates") is None
    kind, text = said(OverTheTable(), "gathers")
    assert kind is ConformanceError and "lab.reference (of lab) has out0" in text and "take over in" in text


def test_an_index_out_of_range_that_is_no_error_is_found():
    compiler = type("Lab", (OtherRows,), {"rows": staticmethod(lambda i, t: np.clip(i, 0, len(t) - 1))})()
    kind, text = said(compiler, "gathers")
    assert kind is ConformanceError and "out of range gives results" in text


class OrderLost(ReferenceCompiler):
    """The reference, whose histories are in the wrong order."""

    def build(self, region, ctx):
        bound = super().build(region, ctx)

        def compute(*given):
            made = bound.compute(*given)
            several = made if isinstance(made, tuple) else (made,)
            turned = [m[::-1] if isinstance(m, list) else m for m in several]
            return made if made is None else turned[0] if len(turned) == 1 else tuple(turned)

        return Bound(compute)


def test_a_history_in_the_wrong_order_is_found():
    assert said(OrderLost(), "loops") is None
    kind, text = said(OrderLost(), "histories")
    assert kind is ConformanceError and "elements differ" in text


class EndsLost(ReferenceCompiler):
    """The reference, whose histories of histories lose where one element ends and the next one begins."""

    def build(self, region, ctx):
        bound = super().build(region, ctx)

        def shifted(made):
            if not isinstance(made, list) or len(made) < 2 or not all(isinstance(m, list) for m in made):
                return made
            return [made[0] + made[1], [], *made[2:]]

        def compute(*given):
            made = bound.compute(*given)
            return tuple(map(shifted, made)) if isinstance(made, tuple) else shifted(made)

        return Bound(compute)


def test_a_history_of_histories_whose_elements_end_elsewhere_is_found():
    assert said(EndsLost(), "loops") is None
    kind, text = said(EndsLost(), "histories")
    assert kind is ConformanceError and ("elements differ" in text or "different lengths" in text)


@pytest.mark.parametrize("check, fact", [("products", "space"), ("updates", "writes")])
def test_what_is_asked_for_and_never_claimed_is_untested(check, fact):
    def claim(self, candidate):
        if any(n.opdef.region is not None and getattr(n.opdef.region, fact) for n in candidate.graph.nodes):
            return Refusal("not these")
        return ReferenceCompiler.claim(self, candidate)

    kind, text = said(lab(claim=claim), check)
    assert kind is Untested and text.startswith(f"{check}: lab.reference claimed none") and "not these" in text


@pytest.mark.parametrize(
    "check", ["parts", "reductions", "loops", "histories", "unknown_dims", "unknown_parts", "unknown_products"]
)
def test_what_is_asked_for_and_never_comes_about_is_untested(check):
    def claim(self, candidate):
        program = candidate.program
        lone = len([n for n in candidate.graph.nodes if n.verb != "constant" and n not in candidate.parts]) == 1
        asked = {
            "parts": bool(candidate.parts),
            "unknown_parts": bool(candidate.parts),
            "loops": candidate.loop is not None,
            "histories": candidate.loop is not None,
            "reductions": lone,
            "unknown_dims": program is not None and any(a.extent is None for a in program.axes),
            "unknown_products": any(n.op == "MatMul" for n in candidate.graph.nodes),
        }
        return Refusal("not these") if asked[check] else ReferenceCompiler.claim(self, candidate)

    kind, text = said(lab(claim=claim, reductions=True), check)
    assert kind is Untested and text.startswith(f"{check}: lab.reference claimed none")


def test_an_arrangement_that_never_comes_about_is_untested():
    kind, text = said(lab(arranged=lambda self, region: {}), "arranged")
    assert kind is Untested and text.startswith("arranged: lab.reference claimed none")


def scaffold(*changes):
    """The compiler of `graphdock new plugin reference --compiler`, with changes of its source."""
    source = render("compiler/compiler.py", name="reference", title="Few")
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names = {"__name__": "few"}
    exec(compile(source, "few.py", "exec"), names)
    return names["FewCompiler"]()


def test_a_compiler_of_few_ops_is_shown_graphs_of_those_alone():
    assert said(scaffold(), "regions") is None
    kind, text = said(scaffold(('"Sub": np.subtract', '"Sub": np.add')), "regions")
    assert kind is ConformanceError and "elements differ" in text and "Sub" in text
    kind, text = said(scaffold(("len(nodes) < 2", "True")), "regions")
    assert kind is Untested and "it knows Add" in text
