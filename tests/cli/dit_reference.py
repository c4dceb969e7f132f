# SPDX-License-Identifier: MIT
"""A DiT forward pass in plain Python (double precision, loops), written from the paper and independent of dittune.

    images = make(folder, heads=3, hidden=24, depth=2, latent=6, batch=2, seed=7)   m.json, w.safetensors, x.safetensors
    error(images, path)                                                             the worst image's ||a - b|| / ||b||
"""
import json
import math
import random
import struct
from array import array

PATCH, CHANNELS, CLASSES = 2, 4, 10


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        data = struct.pack("<%d%s" % (len(values), {"F32": "f", "I64": "q"}[dtype]), *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def read_safetensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, blob = json.loads(file.read(size)), file.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = array("f")
            values.frombytes(blob[begin:end])
            out[name] = (entry["shape"], list(values))
    return out


def linear(x, w, b, outs, ins):
    return [b[o] + sum(w[o * ins + i] * x[i] for i in range(ins)) for o in range(outs)]


def silu(x):
    return [v / (1 + math.exp(-v)) for v in x]


def gelu(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))


def norm_modulate(x, shift, scale):
    mean = sum(x) / len(x)
    root = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-6)
    return [(v - mean) / root * (1 + s) + t for v, t, s in zip(x, shift, scale)]


def position(grid, hidden):
    def one(pos):
        quarter = hidden // 4
        angles = [pos / 10000 ** (i / quarter) for i in range(quarter)]
        return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
    return [one(column) + one(row) for row in range(grid) for column in range(grid)]


def attention(q, k, v, heads):
    tokens, dim = len(q), len(q[0]) // heads
    out = [[0.0] * len(q[0]) for _ in range(tokens)]
    for h in range(heads):
        part = range(h * dim, (h + 1) * dim)
        for i in range(tokens):
            scores = [sum(q[i][c] * k[j][c] for c in part) / math.sqrt(dim) for j in range(tokens)]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            for c in part:
                out[i][c] = sum(w * v[j][c] for j, w in enumerate(weights)) / total
    return out


def block(x, c, w, n, hidden, heads):
    mlp = 4 * hidden
    p = "blocks.%d." % n
    m = linear(silu(c), w[p + "adaLN_modulation.1.weight"], w[p + "adaLN_modulation.1.bias"], 6 * hidden, hidden)
    parts = [m[i * hidden:(i + 1) * hidden] for i in range(6)]
    qkv = [linear(norm_modulate(row, parts[0], parts[1]), w[p + "attn.qkv.weight"], w[p + "attn.qkv.bias"], 3 * hidden,
                  hidden) for row in x]
    q, k, v = ([row[i * hidden:(i + 1) * hidden] for row in qkv] for i in range(3))
    mixed = attention(q, k, v, heads)
    for row, a in zip(x, mixed):
        a = linear(a, w[p + "attn.proj.weight"], w[p + "attn.proj.bias"], hidden, hidden)
        row[:] = [r + g * d for r, g, d in zip(row, parts[2], a)]
    for row in x:
        a = norm_modulate(row, parts[3], parts[4])
        a = [gelu(u) for u in linear(a, w[p + "mlp.fc1.weight"], w[p + "mlp.fc1.bias"], mlp, hidden)]
        a = linear(a, w[p + "mlp.fc2.weight"], w[p + "mlp.fc2.bias"], hidden, mlp)
        row[:] = [r + g * d for r, g, d in zip(row, parts[5], a)]


def forward(image, t, y, w, shape):
    heads, hidden, depth, latent = shape
    grid, outs = latent // PATCH, 2 * CHANNELS
    x = []
    for gy in range(grid):
        for gx in range(grid):
            patch = [image[(c * latent + gy * PATCH + p) * latent + gx * PATCH + q]
                     for c in range(CHANNELS) for p in range(PATCH) for q in range(PATCH)]
            x.append(linear(patch, w["x_embedder.proj.weight"], w["x_embedder.proj.bias"], hidden, len(patch)))
    for row, pos in zip(x, position(grid, hidden)):
        row[:] = [a + b for a, b in zip(row, pos)]
    angles = [t * math.exp(-math.log(10000) * i / 128) for i in range(128)]
    c = linear([math.cos(a) for a in angles] + [math.sin(a) for a in angles], w["t_embedder.mlp.0.weight"],
               w["t_embedder.mlp.0.bias"], hidden, 256)
    c = linear(silu(c), w["t_embedder.mlp.2.weight"], w["t_embedder.mlp.2.bias"], hidden, hidden)
    c = [a + b for a, b in zip(c, w["y_embedder.embedding_table.weight"][y * hidden:(y + 1) * hidden])]
    for n in range(depth):
        block(x, c, w, n, hidden, heads)
    m = linear(silu(c), w["final_layer.adaLN_modulation.1.weight"], w["final_layer.adaLN_modulation.1.bias"],
               2 * hidden, hidden)
    out = [0.0] * (outs * latent * latent)
    for n, row in enumerate(x):
        row = linear(norm_modulate(row, m[:hidden], m[hidden:]), w["final_layer.linear.weight"],
                     w["final_layer.linear.bias"], PATCH * PATCH * outs, hidden)
        gy, gx = divmod(n, grid)
        for p in range(PATCH):
            for q in range(PATCH):
                for o in range(outs):
                    out[(o * latent + gy * PATCH + p) * latent + gx * PATCH + q] = row[(p * PATCH + q) * outs + o]
    return out


def tensor_shapes(hidden, depth):
    shapes = {"x_embedder.proj.weight": [hidden, CHANNELS, PATCH, PATCH], "x_embedder.proj.bias": [hidden],
              "t_embedder.mlp.0.weight": [hidden, 256], "t_embedder.mlp.0.bias": [hidden],
              "t_embedder.mlp.2.weight": [hidden, hidden], "t_embedder.mlp.2.bias": [hidden],
              "y_embedder.embedding_table.weight": [CLASSES + 1, hidden]}
    for n in range(depth):
        for name, rows, columns in (("attn.qkv", 3 * hidden, hidden), ("attn.proj", hidden, hidden),
                                    ("mlp.fc1", 4 * hidden, hidden), ("mlp.fc2", hidden, 4 * hidden),
                                    ("adaLN_modulation.1", 6 * hidden, hidden)):
            shapes["blocks.%d.%s.weight" % (n, name)] = [rows, columns]
            shapes["blocks.%d.%s.bias" % (n, name)] = [rows]
    shapes["final_layer.linear.weight"] = [PATCH * PATCH * 2 * CHANNELS, hidden]
    shapes["final_layer.linear.bias"] = [PATCH * PATCH * 2 * CHANNELS]
    shapes["final_layer.adaLN_modulation.1.weight"] = [2 * hidden, hidden]
    shapes["final_layer.adaLN_modulation.1.bias"] = [2 * hidden]
    return shapes


def make(folder, heads, hidden, depth, latent, batch, seed):
    """Writes a network, its weights and an input; the images that must come out, as lists of numbers."""
    rng = random.Random(seed)
    weights = {}
    for name, shape in tensor_shapes(hidden, depth).items():
        scale = 1.3 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.2
        weights[name] = list(array("f", (rng.gauss(0, scale) for _ in range(math.prod(shape)))))
    x = list(array("f", (rng.gauss(0, 1) for _ in range(batch * CHANNELS * latent * latent))))
    t = [rng.randrange(1000) for _ in range(batch)]
    y = [rng.randrange(CLASSES + 1) for _ in range(batch)]
    write_safetensors(folder / "w.safetensors", {name: ("F32", shape, weights[name])
                                                 for name, shape in tensor_shapes(hidden, depth).items()})
    write_safetensors(folder / "x.safetensors", {"x": ("F32", [batch, CHANNELS, latent, latent], x),
                                                 "t": ("I64", [batch], t), "y": ("I64", [batch], y)})
    (folder / "m.json").write_text(json.dumps(
        {"name": "reference", "family": "dit", "hidden": hidden, "heads": heads, "depth": depth, "patch": PATCH,
         "in_channels": CHANNELS, "latent_size": latent, "classes": CLASSES, "mlp_ratio": 4.0, "learn_sigma": True}))
    size = CHANNELS * latent * latent
    shape = (heads, hidden, depth, latent)
    return [forward(x[b * size:(b + 1) * size], t[b], y[b], weights, shape) for b in range(batch)]


def error(images, path):
    """How far the worst image of the file is from what make() returned; infinite when there are other images."""
    shape, got = read_safetensors(path)["out"]
    size = len(images[0])
    if shape[0] != len(images) or shape[1] != 2 * CHANNELS or len(got) != size * len(images):
        return math.inf
    worst = 0.0
    for b, image in enumerate(images):
        part = got[b * size:(b + 1) * size]
        far = math.sqrt(sum((p - q) ** 2 for p, q in zip(part, image)) / sum(q * q for q in image))
        worst = max(worst, far if far == far else math.inf)
    return worst
