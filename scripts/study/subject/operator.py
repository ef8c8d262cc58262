"""handed_on: y = x. What a kernel does on the way is its own affair, and what the study measures."""

DIMS = ("kind", "rows", "loops")
INPUTS = {"x": ("rows", 4096)}
OUTPUTS = {"y": ("rows", 4096)}
FLOP = "rows * 4096"
BY_ROWS = ("x",)
BASELINE = "torch copy"
BASELINE_WRITES = True


def reference(xp, inputs, dims):
    return inputs[0]


def baseline(torch, inputs, outputs, dims):
    outputs[0].copy_(inputs[0])
