"""rmsnorm: y = x / sqrt(mean(x^2) + EPSILON) * weight, the mean over each row of x (Zhang and Sennrich 2019)."""

DIMS = ("rows", "columns")
INPUTS = {"x": ("rows", "columns"), "weight": ("columns",)}
OUTPUTS = {"y": ("rows", "columns")}
FLOP = "4 * rows * columns"  # square and add, scale and weigh
BY_ROWS = ("x",)
TERMS = "columns"  # of each row's sum of squares
FAMILIES = ("large_offset", "small_rows", "one_hot_rows", "zero_rows", "row_scales")
BASELINE = "rms_norm"

EPSILON = 1e-5


def fill(draw, family, inputs, dims):
    x, weight = inputs
    weight[...] = draw.normal(weight.shape)
    if family == "large_offset":  # tells the mean of squares from a variance
        x[...] = draw.normal(x.shape) + 8
    elif family == "small_rows":  # squares of about a millionth: EPSILON is most of the sum
        x[...] = draw.normal(x.shape) / 1024
    elif family == "one_hot_rows":  # all of a row's squares in one place, perhaps its last
        x[...] = 16 * draw.one_hot(x.shape)
    elif family == "zero_rows":
        x[...] = draw.normal(x.shape) * draw.bits((x.shape[0], 1))
    else:
        x[...] = draw.row_scales(x.shape, octaves=8)


def reference(xp, inputs, dims):
    x, weight = inputs
    return x / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * weight


def baseline(torch, inputs, outputs, dims):
    x, weight = inputs
    torch.nn.functional.rms_norm(x, weight.shape, weight, EPSILON)
