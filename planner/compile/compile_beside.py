# What a source may have beside its model, in front of compile_model.py: attributes, optimizer(parameters),
# and loss(output, label) per row, which becomes an ONNX file of its own.
import inspect, math, re

LABELS_FIRST = ("label", "labels", "target", "targets", "y", "y_true")  # def loss(labels, predictions)


def attribute_of(parameter, documentation):
    """The type of an attribute: that of its annotation, else of its default."""
    default = None if parameter.default is parameter.empty else parameter.default
    note = "" if parameter.annotation is parameter.empty else (
        parameter.annotation if isinstance(parameter.annotation, str) else
        getattr(parameter.annotation, "__name__", "") if isinstance(parameter.annotation, type) and
        not getattr(parameter.annotation, "__args__", ()) else str(parameter.annotation))
    element = next((t for t in ("int", "float", "str") if re.search(rf"\b{t}\b", note)), "")
    if re.search(r"(?i)\b(list|tuple|sequence|iterable)\b", note):
        kind = {"int": "integers", "str": "texts"}.get(element, "numbers")
    elif re.search(r"\bbool\b", note):
        kind = "flag"
    elif element:
        kind = {"int": "integer", "float": "number", "str": "text"}[element]
    elif isinstance(default, (list, tuple)):
        kind = ("texts" if default and all(isinstance(v, str) for v in default) else
                "numbers" if any(isinstance(v, float) for v in default) else "integers")
    else:
        kind = {bool: "flag", int: "integer", float: "number", str: "text"}.get(type(default), "")
    if not kind:
        raise Refused(f"attribute '{parameter.name}' has no type that SQL has",
                      f"an annotation names it: {parameter.name}: int, float, bool, str, or list[int]")
    found = re.search(rf"(?m)^\s*(?::param\s+)?{re.escape(parameter.name)}\s*(?:\([^)\n]*\))?\s*(?::|--)\s*(\S.*)$",
                      documentation or "")
    return {"name": parameter.name, "type": kind, "default": list(default) if isinstance(default, tuple) else default,
            "required": parameter.default is parameter.empty, "doc": found.group(1).strip() if found else ""}


def optimizer_of(space, torch):
    maker = space.get("optimizer")
    if not callable(maker):
        return None
    wants = len(inspect.signature(maker).parameters) if inspect.isfunction(maker) else 1
    made = guarded(maker, *([torch.nn.Parameter(torch.zeros(1))] for _ in range(min(wants, 1))))
    if not isinstance(made, torch.optim.Optimizer):
        raise Refused(f"optimizer() returned {type(made).__name__}, not an optimizer of torch.optim",
                      "def optimizer(parameters): return torch.optim.Adam(parameters, lr=0.01)")
    values = {k: v for k, v in made.defaults.items() if isinstance(v, (bool, int, float, tuple))}
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
    return {"name": type(made).__name__, "line": getattr(getattr(maker, "__code__", None), "co_firstlineno", 0),
            "arguments": values}


def write_out(torch):
    """What torch 1.13 does not export, or as a loop, as what it is made of."""
    plain = torch.nn.functional

    def bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
            sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
        if offsets is not None or input.dim() != 2:
            raise Refused("EmbeddingBag gets ids [rows, length], without offsets",
                          "self.bag(x['text'], per_sample_weights=x['text.mask']) with mode='sum': all rows are as long")
        rows, counts = plain.embedding(input, weight), input.shape[1]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(2)
        if padding_idx is not None:
            there = (input != padding_idx).unsqueeze(2).float()
            rows, counts = rows * there if mode != "max" else rows - 1e9 * (1 - there), there.sum(1).clamp(min=1)
        return rows.sum(1) if mode == "sum" else rows.sum(1) / counts if mode == "mean" else rows.max(1)[0]

    def huber(input, target, reduction="mean", delta=1.0):
        error = (input - target).abs()
        return reduced(torch.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta)), reduction)

    def smooth(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
        error = (input - target).abs()
        return reduced(torch.where(error < beta, 0.5 * error * error / beta, error - 0.5 * beta), reduction)

    def cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
        least = 1e-37  # so that the logarithm of 0 and its gradient are numbers
        losses = -(target * input.clamp(min=least).log() + (1 - target) * (1 - input).clamp(min=least).log())
        return reduced(losses if weight is None else losses * weight, reduction)

    def cross_entropy_of_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        wrong = plain.softplus(-input)  # torch exports the logarithm of a sigmoid, which is infinite from -89 on
        wrong = wrong if pos_weight is None else wrong * (1 + (pos_weight - 1) * target)
        losses = (1 - target) * input + wrong
        return reduced(losses if weight is None else losses * weight, reduction)

    def reduced(losses, reduction):
        return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()

    def sized(pool):  # x.shape[-1] is a tensor while a model is traced
        def whole(size):
            return int(size) if isinstance(size, torch.Tensor) and size.dim() == 0 else size
        return lambda input, *sizes, **named: pool(input, *map(whole, sizes), **{k: whole(v) for k, v in named.items()})

    plain.avg_pool1d, plain.max_pool1d = sized(plain.avg_pool1d), sized(plain.max_pool1d)
    plain.huber_loss, plain.smooth_l1_loss, plain.embedding_bag = huber, smooth, bag
    plain.binary_cross_entropy, plain.binary_cross_entropy_with_logits = cross_entropy, cross_entropy_of_logits
    plain.logsigmoid = lambda input: -plain.softplus(-input)


def check_alone(run, inputs, line):
    """What a row gives follows from that row alone: predictions come in batches of any rows."""
    whole, rows = run(*inputs).detach(), len(inputs[0]) if inputs else 0
    for row in range(rows):
        alone = run(*(x[row:row + 1] for x in inputs)).detach().reshape(-1).tolist()
        for own, among in zip(alone, whole[row].reshape(-1).tolist()):
            if not abs(own - among) <= 1e-4 * max(1.0, abs(among)):
                raise Refused(f"the output of a row depends on the other rows: {own:.6g} alone, {among:.6g} among {rows}",
                              "means and sums over a batch have no place in a model; BatchNorm1d remembers those of training", line)


def labels_of(kind, rows, width, torch):
    if kind == "number":
        return torch.rand(rows) * 3 + 0.1
    if kind == "vector":
        return torch.rand(rows, width) * 3 + 0.1
    ids = torch.arange(rows) % max(width, 2)
    return ids if width > 1 else ids.float()


def check_rows(losses, output, label, call, line, torch):
    """One number per row, which follows from that row alone, and has a gradient."""
    rows = len(label)
    if not isinstance(losses, torch.Tensor) or list(losses.shape) != [rows] or not losses.is_floating_point():
        what = f"a tensor of {list(losses.shape)}" if isinstance(losses, torch.Tensor) else type(losses).__name__
        raise Refused(f"loss returned {what} for {rows} rows, not one number for each",
                      "reduction='none' leaves the mean to Sluice; several numbers of a row: .sum(dim=1)", line)
    if not all(map(math.isfinite, losses.detach().tolist())):
        raise Refused("loss returned NaN or infinity for ordinary rows", "torch.clamp keeps log and sqrt above 0", line)
    for row in range(rows if rows > 1 else 0):
        alone = float(call(output[row:row + 1], label[row:row + 1]).detach().reshape(-1)[0])
        own = float(losses[row].detach())
        if abs(alone - own) > 1e-4 * max(1.0, abs(own)):
            raise Refused(f"the loss of a row depends on the other rows: {own:.6g}, and {alone:.6g} alone",
                          "means and sums over a batch are Sluice's, which may cut batches", line)
    if not losses.requires_grad:
        raise Refused("loss has no gradient by the output: nothing would be learnt",
                      "comparisons, round, argmax, .item() and .detach() have none", line)
    gradient, = torch.autograd.grad(losses.sum(), output, allow_unused=True)
    if gradient is None or not bool(torch.isfinite(gradient).all()):
        raise Refused("loss has no gradient by the output, or one that is not finite", "", line)
    return float(gradient.abs().max())


def loss_of(space, request, outputs, torch):
    maker = space.get("loss")
    if maker is None or not request["loss"]:
        return None
    if not callable(maker):
        raise Refused(f"loss is of type {type(maker).__name__}, not a function", "def loss(output, label): ...")
    line = getattr(getattr(maker, "__code__", None), "co_firstlineno", 0)
    wants = list(inspect.signature(maker).parameters) if inspect.isfunction(maker) else ["output", "label"]
    if len(wants) != 2:
        raise Refused(f"loss has {len(wants)} parameters, not two", "def loss(output, label): ...", line)
    swapped = wants[0].lower() in LABELS_FIRST and wants[1].lower() not in LABELS_FIRST
    call = (lambda output, label: maker(label, output)) if swapped else maker
    batches, steepest = [], 0.0
    for batch, made in zip(request["batches"], outputs):
        rows, width = batch["rows"], made["width"]
        output = torch.tensor(made["values"]).reshape([rows, width] if width > 1 else [rows]).requires_grad_()
        label = labels_of(request["label"], rows, width, torch)
        losses = guarded(call, output, label)
        steepest = max(steepest, check_rows(losses, output, label, call, line, torch))
        batches.append({"output": output.detach(), "label": label, "losses": losses.detach().tolist()})
    if steepest == 0.0:
        raise Refused("the loss's gradient is 0 for all rows: nothing would be learnt",
                      "comparisons, round and argmax have none", line)

    class Loss(torch.nn.Module):
        def forward(self, output, label):
            return call(output, label)

    last = batches[-1]
    content = export(Loss(), [last["output"], last["label"]], ["output", "label"], "loss", torch)
    return {"content": content, "loss_bytes": len(content), "loss_line": line,
            "losses": [{"labels": b["label"].reshape(-1).tolist(), "losses": b["losses"]} for b in batches]}


