#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A DiT forward pass in plain Python (double precision, loops), written from the paper and independent of dittune.

  dit_reference.py make DIR heads hidden depth latent batch seed   writes DIR/m.json, w.safetensors, x.safetensors, y.json
  dit_reference.py compare DIR Y                                   prints the worst image's ||a-b||/||b||
"""
import json, math, random, struct, sys
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
    m = linear(silu(c), w["final_layer.adaLN_modulation.1.weight"], w["final_layer.adaLN_modulation.1.bias"], 2 * hidden,
               hidden)
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


def make(folder, heads, hidden, depth, latent, batch, seed):
    rng = random.Random(seed)
    shapes = {"x_embedder.proj.weight": [hidden, CHANNELS, PATCH, PATCH], "x_embedder.proj.bias": [hidden],
              "t_embedder.mlp.0.weight": [hidden, 256], "t_embedder.mlp.0.bias": [hidden],
              "t_embedder.mlp.2.weight": [hidden, hidden], "t_embedder.mlp.2.bias": [hidden],
              "y_embedder.embedding_table.weight": [CLASSES + 1, hidden]}
    for n in range(depth):
        p = "blocks.%d." % n
        for name, rows, columns in (("attn.qkv", 3 * hidden, hidden), ("attn.proj", hidden, hidden),
                                    ("mlp.fc1", 4 * hidden, hidden), ("mlp.fc2", hidden, 4 * hidden),
                                    ("adaLN_modulation.1", 6 * hidden, hidden)):
            shapes[p + name + ".weight"] = [rows, columns]
            shapes[p + name + ".bias"] = [rows]
    shapes["final_layer.linear.weight"] = [PATCH * PATCH * 2 * CHANNELS, hidden]
    shapes["final_layer.linear.bias"] = [PATCH * PATCH * 2 * CHANNELS]
    shapes["final_layer.adaLN_modulation.1.weight"] = [2 * hidden, hidden]
    shapes["final_layer.adaLN_modulation.1.bias"] = [2 * hidden]
    f32 = lambda values: list(array("f", values))
    weights, plain = {}, {}
    for name, shape in shapes.items():
        scale = 1.3 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.2
        plain[name] = f32([rng.gauss(0, scale) for _ in range(math.prod(shape))])
        weights[name] = ("F32", shape, plain[name])
    x = f32([rng.gauss(0, 1) for _ in range(batch * CHANNELS * latent * latent)])
    t = [rng.randrange(1000) for _ in range(batch)]
    y = [rng.randrange(CLASSES + 1) for _ in range(batch)]
    write_safetensors(folder + "/w.safetensors", weights)
    write_safetensors(folder + "/x.safetensors", {"x": ("F32", [batch, CHANNELS, latent, latent], x),
                                                  "t": ("I64", [batch], t), "y": ("I64", [batch], y)})
    with open(folder + "/m.json", "w") as file:
        json.dump({"name": "reference", "family": "dit", "hidden": hidden, "heads": heads, "depth": depth, "patch": PATCH,
                   "in_channels": CHANNELS, "latent_size": latent, "classes": CLASSES, "mlp_ratio": 4.0,
                   "learn_sigma": True}, file)
    size = CHANNELS * latent * latent
    outputs = [forward(x[b * size:(b + 1) * size], t[b], y[b], plain, (heads, hidden, depth, latent)) for b in range(batch)]
    with open(folder + "/y.json", "w") as file:
        json.dump(outputs, file)


def compare(folder, path):
    with open(folder + "/y.json") as file:
        want = json.load(file)
    shape, got = read_safetensors(path)["out"]
    size = len(want[0])
    assert shape[0] == len(want) and shape[1] == 2 * CHANNELS and len(got) == size * len(want), shape
    worst = 0.0
    for b, image in enumerate(want):
        part = got[b * size:(b + 1) * size]
        error = math.sqrt(sum((p - q) ** 2 for p, q in zip(part, image)) / sum(q * q for q in image))
        worst = max(worst, error if error == error else math.inf)
    print("%.3g" % worst)
    return worst


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], *(int(a) for a in sys.argv[3:9]))
    elif compare(sys.argv[2], sys.argv[3]) > 1e-4:
        sys.exit(1)
