# The compile step: makes an ONNX file of a PyTorch model. Sluice runs this text as `python3 -I -c` in a
# process without rights. It reads a request from standard input (JSON) and writes its answer to
# descriptor 3: a line of JSON, then the bytes of the ONNX file, then those of the loss's, if the source has
# one (compile_beside.py, which stands before this text, as compile_keras.py does). It needs torch 1.13 or
# later only; a source in Keras needs keras instead.
import inspect, io, json, math, os, re, sys, traceback, warnings
from collections import namedtuple

FILE = "<model>"     # the user's source in tracebacks
TABLE_ROWS = 4096    # of a larger Embedding only so many rows exist here
MOST_VALUES = 60     # MiB of parameters, in an answer of 64 MiB
FEATURES = []        # their names
SOURCE = []          # its lines
Feature = namedtuple("Feature", "name kind width buckets length")


class Refused(Exception):
    def __init__(self, message, hint="", line=0, column=0, names=()):
        super().__init__(message)
        self.answer = {"message": message, "hint": hint, "line": line, "column": column, "names": list(names)}


def write(answer, content=b""):
    answer["bytes"] = len(content)
    with os.fdopen(3, "wb") as out:
        out.write(json.dumps(answer).encode() + b"\n" + content)


def user_line(error):
    """The innermost place of the user's source, and its function."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
    return (frames[-1].lineno, frames[-1].name) if frames else (0, "")


def guarded(work, *args, **kwargs):
    """Runs the user's code; an exception becomes an error at the user's line."""
    try:
        return work(*args, **kwargs)
    except Refused:
        raise
    except ModuleNotFoundError as error:
        raise Refused(f"there is no module '{error.name}' beside {'keras' if 'keras' in sys.modules else 'torch'} and Python's own",
                      "write what the model needs into its source", user_line(error)[0])
    except BaseException as error:
        line, function = user_line(error)
        text = str(error).strip().split("\n")[0][:400]
        message = f"{type(error).__name__}{': ' if text else ''}{text}" + (f" (in {function})" if function else "")
        hint = ""
        if isinstance(error, MemoryError) or "can't allocate memory" in text:
            hint = "the compile step has 4 GiB; an Embedding takes little of it, however many rows it has"
        elif "must be Tensor, not dict" in text or "'dict' object has no attribute" in text:
            hint = "x is a dict of tensors by the names of features: torch.cat([x['age'], x['hours']], dim=1)"
        elif isinstance(error, KeyError):
            hint = ("a category with one id per row, [rows], has no mask" if ".mask" in text else
                    "x has the features of the SELECT, by their names: " + ", ".join(FEATURES))
        elif "indices" in text and "Float" in text:
            hint = ("an Embedding gets ids, and this feature is numbers: COLUMN CATEGORY_ID(column, 100) makes ids of a "
                    "number, SEQ_CATEGORY_ID(column, 100) of a list")
        elif ("Long" in text and "Float" in text) or "same dtype" in text or "for_int" in text or "'Long'" in text:
            hint = "the ids of a category are int64: nn.Embedding makes numbers of them, or .float() does"
        raise Refused(message, hint, line)


def load(source):
    SOURCE.extend(source.split("\n"))
    try:
        code = compile(source, FILE, "exec")
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", 0) or 0, getattr(error, "offset", 0) or 0
        raise Refused(f"this is not Python: {getattr(error, 'msg', error)}", "", line, column)
    space = {"__name__": "model"}
    guarded(exec, code, space)
    return space


def choose(space, name, base):
    """The class or function of the type's name, or the only one that the source has."""
    own = {}
    for key, value in space.items():
        module = isinstance(value, type) and issubclass(value, base)
        function = inspect.isfunction(value) and key not in ("loss", "optimizer")
        if (module or function) and getattr(value, "__module__", "") == "model":
            own[key] = value
    functions = [k for k, v in own.items() if inspect.isfunction(v) and "features" in inspect.signature(v).parameters]
    alike = [k for k in own if k == name] or [k for k in own if k.lower() == name.lower()]
    classes = list({id(v): k for k, v in own.items() if isinstance(v, type)}.values())  # one may have two names
    only = alike or (classes if len(classes) == 1 else functions if len(functions) == 1 else [])
    if not only:
        wanted = ("def NAME(features, outputs): ... return keras.Model(inputs, outputs)" if "keras" in sys.modules else
                  "class NAME(torch.nn.Module): ...")
        raise Refused(f"the source has no class or function '{name}'",
                      "it has " + ", ".join(own) if own else wanted + " is what it needs", names=own)
    return own[only[0]]


def parameters_of(maker):
    found = inspect.signature(maker.__init__ if isinstance(maker, type) else maker).parameters.values()
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][1 if isinstance(maker, type) else 0:]


def arguments_for(maker, request):
    features = [Feature(**f) for f in request["features"]]
    FEATURES.extend(f.name for f in features)
    given = dict(request["attributes"])
    for name, value in (("features", features), ("outputs", request["outputs"])):
        if any(p.name == name for p in parameters_of(maker)):
            given[name] = value
    return given


def describe(request):
    keras = import_keras() if request["language"] == "keras" else None
    if keras is None:
        import torch
    space = load(request["source"])
    maker = guarded(choose, space, request["name"], keras.Model if keras else torch.nn.Module)
    documentation = "\n".join(filter(None, (maker.__doc__, getattr(maker.__init__, "__doc__", ""))))
    own = [p for p in parameters_of(maker) if p.name not in ("features", "outputs")]
    version = {"keras": str(keras.__version__)} if keras else {"torch": torch.__version__}
    write({"class": maker.__name__, **version, "doc": (maker.__doc__ or "").strip().split("\n")[0],
           "attributes": [attribute_of(p, documentation) for p in own]})


class Tables:
    """Embeddings of many rows are made with few; their initial distribution is measured on those."""

    def __init__(self, torch):
        self.cut = []
        for kind in (torch.nn.Embedding, torch.nn.EmbeddingBag):
            self.replace(kind, torch)

    def replace(self, kind, torch):
        original, forward = kind.__init__, kind.forward

        def make(module, num_embeddings, *args, **kwargs):
            if num_embeddings > TABLE_ROWS and kwargs.get("_weight") is None:
                self.cut.append(module)
                original(module, TABLE_ROWS, *args, **kwargs)
                module.num_embeddings = num_embeddings
            else:
                original(module, num_embeddings, *args, **kwargs)

        def look_up(module, ids, *args, **kwargs):
            if not torch.jit.is_tracing() and ids.numel() and not ids.is_floating_point():
                low, high = int(ids.min()), int(ids.max())
                if low < 0 or high >= module.num_embeddings:
                    raise IndexError(f"an {kind.__name__} of {module.num_embeddings} rows is read at "
                                     f"{low if low < 0 else high}: a feature says how many values it has (buckets)")
            return forward(module, ids, *args, **kwargs)

        kind.__init__, kind.forward = make, look_up

    def report(self, model):
        names = {id(p): n for n, p in model.named_parameters()}
        found = []
        for module in self.cut:
            values = module.weight.detach()
            low, high, deviation = float(values.min()), float(values.max()), float(values.std())
            initial = ("zeros" if low == high == 0 else "ones" if low == high == 1 else
                       f"uniform:{max(-low, high):.6g}" if max(-low, high) < 1.8 * deviation else f"normal:{deviation:.6g}")
            if id(module.weight) in names:
                found.append({"name": names[id(module.weight)], "rows": module.num_embeddings, "initializer": initial})
        return found


def numbers_of(outputs, rows, wanted, line, torch):
    if not isinstance(outputs, torch.Tensor) or not outputs.is_floating_point():
        what = str(outputs.dtype) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
        raise Refused(f"forward returned {what}, not a tensor of floats", "", line)
    shape = list(outputs.shape)
    if shape != [rows, wanted] and shape != [rows, 2 if wanted == 1 else wanted] and not (wanted == 1 and shape == [rows]):
        raise Refused(f"forward returned a tensor of {shape} for {rows} rows",
                      f"this label needs {[rows, wanted]}" + (f" or {[rows]}" if wanted == 1 else "") + ": `outputs` says how many", line)
    flat = outputs.detach().reshape(-1).tolist()
    if not all(map(math.isfinite, flat)):
        raise Refused("forward returned NaN or infinity for ordinary rows",
                      "torch.clamp keeps log and sqrt above 0, and exp below infinity", line)
    return {"width": 1 if len(shape) == 1 else shape[1], "values": flat}


def tensors_of(x, rows, features, torch):
    made = {}
    for f in features:
        values = x[f.name]
        if f.kind == "category":
            made[f.name] = torch.tensor(values, dtype=torch.int64).reshape([rows, f.length] if f.length else [rows])
            if f.length:
                made[f.name + ".mask"] = torch.tensor(x[f.name + ".mask"]).reshape(rows, f.length)
        else:
            made[f.name] = torch.tensor(values, dtype=torch.float32).reshape(rows, f.width)
    return made


def export(model, inputs, names, output, torch):
    # Verbose, so that every operator has the place of the user's source that it comes from.
    file, seen, printed = io.BytesIO(), [], os.dup(1)
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            torch.onnx.export(
                model, tuple(inputs), file, input_names=names, output_names=[output],
                dynamic_axes={n: {0: "rows"} for n in [*names, output]}, verbose=True,
                training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17)
        except BaseException as error:
            unknown = re.search(r"(?:operator|operation) '?(?:aten::)?(\w+)'?.*(?:not supported|unsupported)", str(error)) \
                or re.search(r"ONNX export failed on an operator.*?: '?(?:aten::)?(\w+)", str(error))
            line = re.search(rf"{FILE}\((\d+)\)", str(error))
            if unknown and "pport" in str(error):
                word = unknown.group(1).rsplit("_", 1)[-1]
                named = next((n for n, text in enumerate(SOURCE, 1) if word in text), 0)  # torch does not tell where
                raise Refused(f"operator '{unknown.group(1)}' of torch has no counterpart in ONNX",
                              "write it with sums, products and functions of single numbers",
                              int(line.group(1)) if line else user_line(error)[0] or named)
            raise
    os.dup2(printed, 1)
    for warning in seen:
        if issubclass(warning.category, torch.jit.TracerWarning) and warning.filename == FILE:
            text = str(warning.message).split(". ")[0]
            if "results are registered as constants" in text:  # torch.tensor([1, 2]); others are found by their values
                continue
            raise Refused(f"what is computed here depends on the values or the number of rows of the batch: {text}",
                          "a model is one graph for all batches: torch.where chooses by row, and sums over rows do not work",
                          warning.lineno)
    return file.getvalue()


def compile_model(request):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(request["seed"])
    tables = Tables(torch)
    write_out(torch)
    space = load(request["source"])
    maker = guarded(choose, space, request["name"], torch.nn.Module)
    features = [Feature(**f) for f in request["features"]]
    given = arguments_for(maker, request)
    torch.manual_seed(request["seed"])
    model = guarded(maker, **given)
    if not isinstance(model, torch.nn.Module):
        raise Refused(f"{maker.__name__} returned {type(model).__name__}, not a torch.nn.Module")
    line = getattr(getattr(model.forward, "__code__", None), "co_firstlineno", 0)
    own, wants = model.forward, list(inspect.signature(model.forward).parameters.values())
    names = list(tensors_of(request["batches"][0]["x"], request["batches"][0]["rows"], features, torch))
    wants = [p.name for p in wants if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    if wants and all(any(n.lower() == w.lower() for n in names) for w in wants):  # forward(self, age, hours)
        names = [next(n for n in names if n.lower() == w.lower()) for w in wants]
        model.forward = lambda *tensors: own(*tensors)
    else:
        model.forward = lambda *tensors: own(dict(zip(names, tensors)))
    state = {n: (p, isinstance(p, torch.nn.Parameter)) for n, p in [*model.named_parameters(), *model.named_buffers()]}
    if (size := sum(p.numel() * p.element_size() for p, _ in state.values()) >> 20) > MOST_VALUES:
        most, (values, _) = max(state.items(), key=lambda item: item[1][0].numel())
        raise Refused(f"the model has {size} MiB of parameters: at most {MOST_VALUES} MiB of a class",
                      f"the largest is {most}, {list(values.shape)}; an Embedding counts with {TABLE_ROWS} rows at most")
    for name in names:
        if name in state:
            raise Refused(f"a feature and a parameter are both called '{name}'", "AS gives the column another name")
    outputs, kept = [], {n: p.detach().clone() for n, (p, _) in state.items()}
    model.eval()
    with torch.no_grad():
        for batch in request["batches"]:
            x = tensors_of(batch["x"], batch["rows"], features, torch)
            outputs.append(numbers_of(guarded(model, *(x[n] for n in names)), batch["rows"], request["outputs"], line, torch))
    model.train()
    last = request["batches"][-1]
    x = tensors_of(last["x"], last["rows"], features, torch)
    content = export(model, [x[n] for n in names], names, "output", torch)
    model.eval()
    check_alone(lambda *own: guarded(model, *own), [x[n] for n in names], line)
    loss = loss_of(space, request, outputs, torch)
    norms = {f"{n}.{part}".lstrip(".") for n, m in model.named_modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)
             for part in ("running_mean", "running_var")}
    write({"outputs": outputs, "torch": torch.__version__, "tables": tables.report(model),
           "frozen": [n for n, (p, learns) in state.items() if n not in norms and not (learns and p.requires_grad)],
           "statistics": {n: kept[n].tolist() for n in norms if n in kept}, "optimizer": optimizer_of(space, torch),
           **{k: v for k, v in (loss or {}).items() if k != "content"}}, content + (loss or {}).get("content", b""))


def main():
    request = json.loads(sys.stdin.buffer.read().decode())
    try:
        if request["language"] == "keras":
            guarded(describe if request["mode"] == "describe" else compile_keras, request)
            return
        try:
            import torch
        except ImportError as error:
            raise Refused(f"this Python has no torch ({error})",
                          "apt-get install python3-torch, or --python names another; an ONNX file or Keras's JSON needs neither")
        version = [int(v) for v in re.findall(r"\d+", torch.__version__)[:2]]
        if version < [1, 13]:
            raise Refused(f"torch {torch.__version__} is too old", "1.13 and later are supported")
        guarded(describe if request["mode"] == "describe" else compile_model, request)
    except Refused as refused:
        write({"error": refused.answer})


main()
