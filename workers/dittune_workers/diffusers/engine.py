# SPDX-License-Identifier: MIT
"""Context and tensor parallelism of diffusers. Each plan has a copy of the transformer's modules that shares the weights and has its
own hooks, so several plans are resident at once and none is switched."""
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from dittune_workers.diffusers import cores, settings
from dittune_workers.link import first_other
from dittune_workers.network import rank, tape


class Network(rank.Network):
    """The transformers and the meshes of its plans."""

    def __init__(self, job, *paths):
        super().__init__(job, *paths)
        self.meshes = {}
        if not self.gpu:
            cores.prepare()

    def mesh(self, degrees):
        """The mesh of these degrees (cfg, ring, ulysses, tensor), made by all ranks together for the first plan that has it."""
        if degrees not in self.meshes:
            mesh = settings.mesh_of(self.device.type, degrees)
            self.meshes[degrees] = [mesh, mesh["ring", "ulysses"]._flatten(), 0]
        self.meshes[degrees][2] += 1
        return self.meshes[degrees][0]

    def release(self, degrees):
        """Ends the communicators of a mesh with its last plan: they hold memory of the device."""
        mesh, flat, plans = self.meshes[degrees]
        self.meshes[degrees][2] = plans - 1
        if plans > 1:
            return
        del self.meshes[degrees]
        for group in {id(group): group for group in [*mesh.get_all_groups(), flat.get_group()]}.values():
            if group is not dist.group.WORLD:
                dist.destroy_process_group(group)


class Plan(rank.Plan):
    """A plan made resident on this rank."""

    def __init__(self, network, values, seed):
        super().__init__(network, values, seed)
        self.copy_modules()
        self.degrees = settings.degrees_of(values)
        self.mesh = network.mesh(self.degrees) if values["ranks"] > 1 else None
        for name, model in self.models.items():
            facts = network.facts["parts"][name]
            settings.set_attention(model, facts, values)
            settings.split(model, facts, values, self.mesh)
            if values.get("offload", "off") != "off":
                settings.stream(model, network.device)
            elif network.tight:
                self.place(model)
            if values.get("compile", "off") != "off" and facts["repeated"]:
                self.prepare_compiler()
                model.compile_repeated_blocks(**(network.facts["compile"] or {}))

    def place(self, model):
        """Brings what no rank shares onto the device, where the weights were loaded into the host's memory."""
        for module in model.modules():
            for name, weight in module._parameters.items():
                if weight is not None and not isinstance(weight, DTensor):
                    module._parameters[name] = torch.nn.Parameter(weight.to(self.network.device), requires_grad=False)
            for name, buffer in module._buffers.items():
                module._buffers[name] = buffer if buffer is None else buffer.to(self.network.device)

    def parts(self):
        """What compile_repeated_blocks compiles."""
        return [block for model in self.models.values() for block in settings.blocks_of(model)]

    def applied(self):
        """diffusers passes over layers that cannot keep a setting; parts that it cannot split are not asked."""
        found = super().applied()
        found["cfg"] = self.mesh["cfg"].size() if self.mesh else 1
        split = [model for name, model in self.models.items() if self.network.facts["parts"][name]["context"]]
        for name, models in (("tensor", [model for name, model in self.models.items() if self.network.facts["parts"][name]["tensor"]]),):
            sizes = [max((each.device_mesh.size() for each in model.parameters() if isinstance(each, DTensor)), default=1) for model in models]
            found[name] = first_other(sizes, self.values.get(name, 1))
        layers = [settings.layer(module.processor) for model in split for module in model.modules() if getattr(module, "processor", None) is not None]
        return {**found, **{name: first_other([each[name] for each in layers], self.values.get(name)) for name in (layers or [{}])[0]}}

    def gather(self, calls, passes):
        """Each half of the ranks makes one pass of guidance, and gets the other's output from the other half: one of two calls, or one half of
        each call's batch."""
        mine, half = self.mesh["cfg"].get_local_rank(), len(calls) // 2
        if passes == "batch":
            parts = [self.exchange(self.forward(halved(call, mine))) for call in calls]
            return [list(tape.leaves(join(*pair))) for pair in parts]
        parts = [self.exchange(self.forward(call)) for call in calls[mine * half:(mine + 1) * half]]
        return [list(tape.leaves(pair[which])) for which in range(2) for pair in parts]

    def exchange(self, out):
        """An output of this half of the ranks and of the other, in their order."""
        group, pairs = self.mesh["cfg"].get_group(), []
        for tensor in tape.leaves(out):
            pair = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(2)]
            dist.all_gather(pair, tensor.contiguous(), group=group)
            pairs.append(pair)
        several = isinstance(next(iter(out.values() if isinstance(out, dict) else out)), list)  # a tensor for each image
        return [[[pair[which] for pair in pairs]] if several else [pair[which] for pair in pairs] for which in range(2)]

    def close(self):
        super().close()
        if self.mesh is not None:
            self.network.release(self.degrees)


def halved(call, mine):
    """The call with one half of its batch."""
    name, args, named = call
    whole = tape.batch(call)
    part = slice(mine * whole // 2, (mine + 1) * whole // 2)

    def cut(value):
        if isinstance(value, list) or (torch.is_tensor(value) and value.dim()):
            return value[part] if len(value) == whole else value
        return value

    return [name, [cut(value) for value in args], {key: cut(value) for key, value in named.items()}]


def join(one, other):
    """The outputs of two halves of a batch."""
    return [mine + its if isinstance(mine, list) else torch.cat([mine, its]) for mine, its in zip(one, other)]
