# Functions that return a keras.Model, between compile_beside.py and compile_model.py: nothing is traced, since
# to_json() says all. The answer: that JSON and, unless they are too large, the model's weights as floats.
import importlib.util, inspect, os

MOST_WEIGHTS = 48 << 20  # bytes, of an answer of 64 MiB
KERAS_HINT = ("pip install keras tensorflow, or --python names another Python; the model's own to_json() as LANGUAGE keras, "
              "and an ONNX file, need neither")


def import_keras():
    """Keras 3 takes a backend that is there; its own default is tensorflow."""
    if importlib.util.find_spec("tensorflow") is None:
        found = next((b for b in ("torch", "jax") if importlib.util.find_spec(b)), None)
        if found:
            os.environ["KERAS_BACKEND"] = found
    try:
        import keras
    except ImportError as error:
        raise Refused(f"this Python has no keras ({error})", KERAS_HINT)
    return keras


def keras_optimizer(space):
    """Class and arguments, by Keras's names."""
    maker = space.get("optimizer")
    if not callable(maker):
        return None
    wants = len(inspect.signature(maker).parameters) if inspect.isfunction(maker) else 0
    made = guarded(maker, *([[]] * min(wants, 1)))
    if not hasattr(made, "get_config"):
        raise Refused(f"optimizer() returned {type(made).__name__}, not an optimizer of Keras",
                      "def optimizer(): return keras.optimizers.Adam(learning_rate=0.01)")
    values = {}
    for key, value in made.get_config().items():
        if isinstance(value, (bool, int, float)):
            values[key] = value
        elif key == "learning_rate" and value is not None:
            raise Refused("optimizer() has a learning rate that is no number",
                          "schedules are Sluice's: the rate is lowered where nothing improves")
    return {"name": type(made).__name__, "arguments": values, "line": maker.__code__.co_firstlineno if inspect.isfunction(maker) else 0}


def weights_of(model):
    """In the order of the layers; names as in "dense/kernel", or "dense/kernel:0" of Keras 2."""
    listed, content, left_out = [], [], []
    variables = [(layer.name, variable) for layer in model.layers for variable in layer.weights]
    sizes = [4 * int(variable.numpy().size) for _, variable in variables]
    # The largest first: they are tables, which begin by their initializer.
    for place in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        if sum(sizes) <= MOST_WEIGHTS:
            break
        left_out.append(place)
        sizes[place] = 0
    for place, (layer, variable) in enumerate(variables):
        name = variable.name.split(":")[0].split("/")[-1]
        if place in left_out:
            listed.append({"layer": layer, "name": name, "shape": []})
            continue
        values = variable.numpy().astype("float32")
        listed.append({"layer": layer, "name": name, "shape": list(values.shape)})
        content.append(values.tobytes())
    return listed, b"".join(content)


def compile_keras(request):
    keras = import_keras()
    seed = getattr(getattr(keras, "utils", None), "set_random_seed", None)
    if seed:
        seed(request["seed"] % (1 << 32))
    space = load(request["source"])
    maker = guarded(choose, space, request["name"], keras.Model)
    if space.get("loss") is not None and request["loss"]:
        raise Refused("loss() of a source in Keras is not read", "model.loss names one of Sluice's; a class in PyTorch may have its own",
                      getattr(getattr(space["loss"], "__code__", None), "co_firstlineno", 0))
    given = arguments_for(maker, request)
    if seed:
        seed(request["seed"] % (1 << 32))
    model = guarded(maker, **given)
    if not isinstance(model, keras.Model):
        raise Refused(f"{maker.__name__} returned {type(model).__name__}, not a keras.Model", "",
                      getattr(getattr(maker, "__code__", None), "co_firstlineno", 0))
    if isinstance(maker, type):
        raise Refused(f"{maker.__name__} is a class: its layers have no JSON",
                      "a function that returns keras.Model(inputs, outputs), or keras.Sequential([...]), has")
    text = guarded(model.to_json)
    weights, content = weights_of(model)
    text = text.encode()
    write({"keras": str(keras.__version__), "json_bytes": len(text), "weights": weights, "optimizer": keras_optimizer(space)},
          text + content)


