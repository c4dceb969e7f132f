# SPDX-License-Identifier: MIT
"""The GPUs that torch sees, as `devices` of ready describes them (docs/protocol.md)."""
import ctypes
import os

ROOM = 80  # of a driver's version: NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE


def driver():
    """The version of NVIDIA's driver, by the library that comes with it; None where it does not say."""
    text = ctypes.create_string_buffer(ROOM)
    try:
        nvml = ctypes.CDLL(os.environ.get("DITTUNE_NVML", "libnvidia-ml.so.1"))
        if nvml.nvmlInit_v2() != 0:
            return None
        told = nvml.nvmlSystemGetDriverVersion(text, ROOM) == 0
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return text.value.decode("ascii", "replace") if told and text.value else None


def least_mib():
    """Memory of the smallest GPU."""
    import torch
    return min(torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())) >> 20


def least_compute():
    """The lowest capability, 90 for 9.0; None: a device that is none of CUDA's."""
    import torch
    if torch.version.cuda is None:
        return None
    return min(10 * major + minor for major, minor in map(torch.cuda.get_device_capability, range(torch.cuda.device_count())))


def describe(most):
    """The first `most` devices of this process; without what this torch or the driver does not say."""
    import torch
    version, found = driver(), []
    for i in range(min(most, torch.cuda.device_count())):
        card = torch.cuda.get_device_properties(i)
        uuid = getattr(card, "uuid", None)  # since torch 2.4, as 8-4-4-4-12 digits
        device = dict(name=card.name, uuid=f"GPU-{uuid}" if uuid else None, compute=f"{card.major}.{card.minor}",
                      memory_bytes=card.total_memory, driver=version)
        found.append({name: value for name, value in device.items() if value is not None})
    return found
