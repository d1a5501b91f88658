import pytest

from tpu_estimator_compat.tools.preflight.op_names import OpNames

# In libtpu's form: layouts with tiles and memories, names after other attributes, tuples.
PROGRAM = """\
HloModule jit_f, is_scheduled=true

%fused_two (p.0: f32[8,128]) -> (f32[8,128], f32[8,128]) {
  %p.0 = f32[8,128]{1,0:T(8,128)S(1)} parameter(0)
  %exp.1 = f32[8,128]{1,0:T(8,128)} exponential(%p.0), metadata={op_name="model/Exp"}
  %conv.1 = f32[8,128]{1,0:T(8,128)} convolution(%p.0, %exp.1), window={size=1}, \
frontend_attributes={grad_x="false"}, metadata={op_type="Einsum" op_name="model/einsum/Einsum" \
source_file="a.py" source_line=3}, backend_config={"flag_configs":[]}
  ROOT %tuple.1 = (f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) tuple(%exp.1, %conv.1)
}

%fused_one (p.1: f32[8,128]) -> f32[8,128] {
  %p.1 = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT %tanh.1 = f32[8,128]{1,0:T(8,128)} tanh(%p.1), metadata={op_name="model/Tanh"}
}

ENTRY %main.9 (Arg_0.1: f32[8,128]) -> f32[8,128] {
  %Arg_0.1 = f32[8,128]{1,0:T(8,128)} parameter(0)
  %copy.1 = f32[8,128]{0,1:T(8,128)} copy(%Arg_0.1)
  %two = (f32[8,128]{1,0:T(8,128)S(1)}, /*index=1*/f32[8,128]{1,0:T(8,128)}) fusion(%Arg_0.1), \
kind=kOutput, calls=%fused_two, metadata={op_name="model/add"}
  %part = f32[8,128]{1,0:T(8,128)} get-tuple-element(%two), index=1
  %copy-start.3 = (f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)S(1)}, u32[]{:S(2)}) \
copy-start(%part), backend_config={"dma_priority":1}
  %copy-done.3 = f32[8,128]{1,0:T(8,128)} copy-done(%copy-start.3)
  %one = f32[8,128]{1,0:T(8,128)} fusion(%copy-done.3), kind=kLoop, calls=%fused_one
  %zeros = f32[8,128]{1,0:T(8,128)} broadcast(%Arg_0.1)
  %spread = (f32[8,128]{1,0:T(8,128)}, s32[8,128]{1,0:T(8,128)}) reduce-window(%zeros, %zeros)
  %index = s32[8,128]{1,0:T(8,128)} get-tuple-element(%spread), index=1
  %relu = f32[8,128]{1,0:T(8,128)} maximum(%index, %one), metadata={op_name="model/Relu"}
  ROOT %sum = f32[8,128]{1,0:T(8,128)} add(%relu, %copy.1)
}
"""


@pytest.mark.parametrize(
    ("name", "element", "op_name"),
    [
        ("exp.1", None, "model/Exp"),
        ("conv.1", None, "model/einsum/Einsum"),
        ("two", None, "model/add"),
        ("two", 0, "model/Exp"),
        ("two", 1, "model/einsum/Einsum"),
        ("two", 2, "model/add"),
        ("part", None, "model/einsum/Einsum"),
        ("copy-start.3", 0, "model/einsum/Einsum"),
        ("copy-done.3", None, "model/einsum/Einsum"),
        ("one", None, "model/Tanh"),
        ("copy.1", None, ""),
        ("zeros", None, "model/Relu"),
        ("spread", 1, "model/Relu"),
        ("Arg_0.1", None, ""),
        ("sum", None, ""),
        ("unknown", None, ""),
    ],
)
def test_a_value_has_the_name_of_what_made_it(name, element, op_name):
    assert OpNames(PROGRAM).of(name, element) == op_name


def test_no_program_has_no_names():
    assert OpNames("").of("anything") == ""
