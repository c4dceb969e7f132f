#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch DiT with the module names of the authors' code, to compare outputs and times with at real sizes.

bench/torch_gpu.py times it on a GPU, and compares its output there.

  dit_torch.py make DIR MODEL.json HEIGHT WIDTH BATCH SEED   random weights and input: DIR/w.safetensors, DIR/x.safetensors;
                                                             HEIGHT, WIDTH in latent pixels; DIR/y.pt is the output
  dit_torch.py compare DIR Y                                 worst image's ||a-b||/||b||; exit 1 above 1e-4
  dit_torch.py time MODEL.json SIZE BATCH DTYPE MODE THREADS guided denoising steps of SIZE x SIZE pixels, MODE eager or
                                                             compile: says it is ready, then answers each line N on
                                                             standard input by the nanoseconds of N steps

DIR/w.safetensors holds pos_embed for the model's own latent_size, as a state dict of the authors' code does, whatever
HEIGHT and WIDTH are. The first image is at t = 0, the second at t = 999, and the last one has no class (y = classes).
"""
import json
import math
import struct
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


class Mlp(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, wide), nn.Linear(wide, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, dim, heads, wide):
        super().__init__()
        self.dim = dim
        self.attn, self.mlp = Attention(dim, heads), Mlp(dim, wide)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def norm(self, x):
        return F.layer_norm(x, (self.dim,), eps=1e-6)

    def forward(self, x, c):
        s1, m1, g1, s2, m2, g2 = self.adaLN_modulation(c).chunk(6, dim=1)
        x = x + g1.unsqueeze(1) * self.attn(modulate(self.norm(x), s1, m1))
        return x + g2.unsqueeze(1) * self.mlp(modulate(self.norm(x), s2, m2))


class Named(nn.Module):
    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


class DiT(nn.Module):
    def __init__(self, m):
        super().__init__()
        dim, p = m["hidden"], m["patch"]
        self.m, self.out_channels = m, m["in_channels"] * (2 if m["learn_sigma"] else 1)
        self.fixed = None  # positions of the one size that is timed, as the authors' code keeps them
        self.x_embedder = Named(proj=nn.Conv2d(m["in_channels"], dim, p, p))
        self.t_embedder = Named(mlp=nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim)))
        self.y_embedder = Named(embedding_table=nn.Embedding(m["classes"] + 1, dim))
        self.blocks = nn.ModuleList(Block(dim, m["heads"], int(dim * m["mlp_ratio"])) for _ in range(m["depth"]))
        self.final_layer = Named(linear=nn.Linear(dim, p * p * self.out_channels),
                                 adaLN_modulation=nn.Sequential(nn.SiLU(), nn.Linear(dim, 2 * dim)))

    def positions(self, h, w):
        dim = self.m["hidden"]
        omega = 1 / 10000 ** (torch.arange(dim // 4, dtype=torch.float64) / (dim / 4))
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        parts = []
        for axis in (columns, rows):
            angles = axis.reshape(-1, 1) * omega
            parts += [angles.sin(), angles.cos()]
        return torch.cat(parts, dim=1).float()

    def forward(self, x, t, y):
        b, _, height, width = x.shape
        p, dim = self.m["patch"], self.m["hidden"]
        h, w = height // p, width // p
        fixed = self.positions(h, w).to(x.device, x.dtype) if self.fixed is None else self.fixed
        x = self.x_embedder.proj(x).flatten(2).transpose(1, 2) + fixed
        angles = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(128, device=x.device) / 128)
        angles = torch.cat([angles.cos(), angles.sin()], dim=1).to(x.dtype)
        c = self.t_embedder.mlp(angles) + self.y_embedder.embedding_table(y)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.final_layer.adaLN_modulation(c).chunk(2, dim=1)
        x = self.final_layer.linear(modulate(F.layer_norm(x, (dim,), eps=1e-6), shift, scale))
        return x.reshape(b, h, w, p, p, self.out_channels).permute(0, 5, 1, 3, 2, 4).reshape(b, -1, height, width)


def save(path, tensors):
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        blobs.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load_out(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, blob = json.loads(file.read(size)), file.read()
    begin, end = header["out"]["data_offsets"]
    return torch.frombuffer(bytearray(blob[begin:end]), dtype=torch.float32).reshape(header["out"]["shape"])


def make_net(folder, model, seed):
    """Writes w.safetensors; the network."""
    torch.manual_seed(seed)
    with open(model) as file:
        m = json.load(file)
    net = DiT(m).eval()
    for value in net.parameters():
        nn.init.normal_(value, std=1.2 / math.sqrt(value[0].numel()) if value.dim() > 1 else 0.1)
    weights = {k: v.detach() for k, v in net.named_parameters()}
    side = m["latent_size"] // m["patch"]
    weights["pos_embed"] = net.positions(side, side)[None]
    save(folder + "/w.safetensors", weights)
    return net


def make_input(folder, m, height, width, batch, seed):
    """Writes x.safetensors; what the network is given."""
    torch.manual_seed(seed)
    x, t = torch.randn(batch, m["in_channels"], height, width), torch.randint(0, 1000, (batch,))
    y = torch.randint(0, m["classes"], (batch,))
    t[: min(2, batch)] = torch.tensor([0, 999])[: min(2, batch)]
    y[-1] = m["classes"]
    save(folder + "/x.safetensors", {"x": x, "t": t, "y": y})
    return x, t, y


def make(folder, model, height, width, batch, seed):
    net = make_net(folder, model, seed)
    return net, make_input(folder, net.m, height, width, batch, seed + 1)


def worst(want, got):
    """The worst image's ||a-b||/||b||."""
    return ((got - want).flatten(1).norm(dim=1) / want.flatten(1).norm(dim=1)).max().item()


def answer(**fields):
    print(json.dumps(fields), flush=True)


def time_steps(model, size, batch, dtype, mode, threads):
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    with open(model) as file:
        m = json.load(file)
    size, batch, dtype = int(size) // 8, int(batch), getattr(torch, dtype)
    net = DiT(m).eval()
    net.fixed = net.positions(size // m["patch"], size // m["patch"]).to(dtype)
    net.to(dtype)
    first = torch.randn(batch, m["in_channels"], size, size).to(dtype)
    t, y = torch.full((2 * batch,), 500), torch.arange(2 * batch) % m["classes"]
    y[batch:] = m["classes"]

    def step(latent):
        """Both halves in one batch, guidance, and the sampler's update: what dt_pass_step does."""
        eps = net(torch.cat([latent, latent]), t, y)[:, : m["in_channels"]]
        conditional, unconditional = eps.chunk(2)
        return 0.99 * latent + 0.01 * (unconditional + 4.0 * (conditional - unconditional))

    if mode == "compile":
        from torch._inductor import config
        config.freezing = True  # weights packed once, as for inference
        step = torch.compile(step, dynamic=False)
    with torch.inference_mode():
        began = time.perf_counter()
        step(first)
        answer(cold_seconds=time.perf_counter() - began, version=torch.__version__, threads=torch.get_num_threads())
        for line in sys.stdin:
            latent, ns = first, []
            for _ in range(int(line)):
                began = time.perf_counter_ns()
                latent = step(latent)
                ns.append(time.perf_counter_ns() - began)
            answer(ns=ns, finite=bool(torch.isfinite(latent).all()))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        net, given = make(sys.argv[2], sys.argv[3], *(int(a) for a in sys.argv[4:8]))
        with torch.no_grad():
            torch.save(net(*given), sys.argv[2] + "/y.pt")
    elif sys.argv[1] == "time":
        time_steps(*sys.argv[2:8])
    else:
        error = worst(torch.load(sys.argv[2] + "/y.pt"), load_out(sys.argv[3]))
        print("%.3g" % error)
        sys.exit(0 if error <= 1e-4 else 1)
