"""Small StableHLO modules, as text, to compile: steps of one replica."""

import re

import numpy as np

from tpu_estimator_compat.engine.jax.lowering.step_module import Array, Dispatch, StepModule


def module(
    body: str,
    result: str,
    feeds: dict[str, str],
    variables: dict[str, str] | None = None,
    updated: str = "",
    most: int = 1,
) -> Dispatch:
    """A step.

    Args:
      body: its operations, the last of which makes %r.
      result: the type of %r.
      feeds: types of what it is fed, by name.
      variables: types of its variables, by name.
      updated: which of them gets %r as its new value; where empty, %r is fetched.
      most: steps of a dispatch.
    """
    variables = variables or {}
    types = {**feeds, **variables}
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    alias = (
        f'{{alias = {{kind = "may_alias", parameter_index = array<i64>, '
        f"parameter_number = {[*types].index(updated)} : i64}}, output_index = array<i64: 0>}}"
        if updated
        else ""
    )
    code = (
        f"module @jit_f attributes {{mhlo.input_output_alias = [{alias}]}} {{\n"
        f"func.func public @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result} }}}}"
    )
    return Dispatch(
        StepModule(
            code.encode(),
            tuple(map(_array, feeds.values())),
            {name: _array(type_) for name, type_ in variables.items()},
            () if updated else ("r:0",),
        ),
        most,
    )


def _array(type_: str) -> Array:
    """Of a type such as "tensor<8x128xf32>"."""
    *sizes, dtype = re.fullmatch(r"tensor<(.*)>", type_)[1].split("x")
    return Array(tuple(map(int, sizes)), np.dtype({"f32": "float32"}[dtype]))


def _summed(value: str, type_: str, replicas: int) -> str:
    group = ",".join(map(str, range(replicas)))
    return f"""%sum = "stablehlo.all_reduce"({value}) ({{
      ^bb0(%left: tensor<f32>, %right: tensor<f32>):
        %both = stablehlo.add %left, %right : tensor<f32>
        stablehlo.return %both : tensor<f32>
    }}) {{replica_groups = dense<[[{group}]]> : tensor<1x{replicas}xi64>}}
      : ({type_}) -> {type_} loc("train/CrossReplicaSum")"""


def step(replicas: int, most: int = 1) -> Dispatch:
    """w[512,128] += sum over replicas of transpose(x[256,512]) @ g[256,128], w updated in place.

    One matrix product of 2 * 512 * 256 * 128 FLOPs; w has 256 KiB, x 512 KiB, g 128 KiB.
    """
    w, x, g = "tensor<512x128xf32>", "tensor<256x512xf32>", "tensor<256x128xf32>"
    summed = _summed("%product", w, replicas) if replicas > 1 else ""
    return module(
        f"""%product = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0]
              : ({x}, {g}) -> {w} loc("gradients/dense/MatMul")
            {summed}
            %r = stablehlo.add %w, {"%sum" if summed else "%product"} : {w} loc("train/assign")""",
        w,
        {"x": x, "g": g},
        {"w": w},
        updated="w",
        most=most,
    )


STEP_FLOPS = 2 * 512 * 256 * 128


def layers(gib: float, count: int) -> Dispatch:
    """Layers and their gradients whose activations, of `gib` unpadded, stay alive.

    Where their matrices of 129x129 are multiplied they take 2.1 times as much: tiles have 8x128.
    """
    size = 129
    rows = int(gib * 2**30 / 4 / size / size)
    a, w = f"tensor<{rows}x{size}x{size}xf32>", f"tensor<{size}x{size}xf32>"
    lines = [
        f"%a{i + 1} = stablehlo.dot_general %a{i}, %w, contracting_dims = [2] x [0] "
        f': ({a}, {w}) -> {a} loc("model/dense_{i}/MatMul")'
        for i in range(count)
    ]
    lines.append(f"%g{count} = stablehlo.tanh %a{count} : {a}")
    lines += [
        f"%g{i} = stablehlo.dot_general %g{i + 1}, %a{i}, batching_dims = [0] x [0], "
        f'contracting_dims = [2] x [1] : ({a}, {a}) -> {a} loc("gradients/dense_{i}/MatMul")'
        for i in range(count - 1, 0, -1)
    ]
    lines.append(f'%r = stablehlo.negate %g1 : {a} loc("gradients/Neg")')
    return module("\n".join(lines), a, {"a0": a}, {"w": w})


def call(target: str, config: str = "", type_: str = "tensor<8x128xf32>") -> Dispatch:
    config = config.replace('"', '\\"')
    return module(
        f'%r = stablehlo.custom_call @{target}(%x) {{backend_config = "{config}"}} '
        f": ({type_}) -> {type_}",
        type_,
        {"x": type_},
    )


def aborting() -> Dispatch:
    """For one replica, libtpu aborts: it looks for the core of a device that is not there."""
    type_ = "tensor<8x128xf32>"
    return module(
        '%r = "stablehlo.collective_permute"(%x) '
        f"{{source_target_pairs = dense<[[0, 99]]> : tensor<1x2xi64>}} : ({type_}) -> {type_}",
        type_,
        {"x": type_},
    )


def in_place(size: int) -> Dispatch:
    """A variable of `size` bytes, of which a part changes."""
    type_, part = f"tensor<{size // 4096}x1024xf32>", "tensor<8x128xf32>"
    return module(
        f"""%zero = stablehlo.constant dense<0> : tensor<i32>
            %ones = stablehlo.constant dense<1.0> : {part}
            %r = stablehlo.dynamic_update_slice %x, %ones, %zero, %zero
              : ({type_}, {part}, tensor<i32>, tensor<i32>) -> {type_}""",
        type_,
        {},
        {"x": type_},
        updated="x",
    )
