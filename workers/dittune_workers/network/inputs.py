# SPDX-License-Identifier: MIT
"""The networks of diffusers that this worker runs: for each class of transformer its inputs and its output's unit.

To add one: a function that builds the arguments of one forward pass, and a row in INPUTS."""
import torch


class Shapes:
    """What a forward pass needs to know beside the configuration."""

    def __init__(self, card, job, config, text):
        self.text, self.patch = text, card["patch"]  # tokens of the text
        space, time = card["vae"]["space"], card["vae"]["time"]
        self.width, self.height = job["width"] // space, job["height"] // space  # of the latent image
        self.frames = (job["frames"] - 1) // time + 1
        self.guidance, self.config = job["guidance"], config


def flux(shapes, draw, batch):
    config, rows, columns = shapes.config, shapes.height // 2, shapes.width // 2
    ids = torch.zeros(rows, columns, 3)
    ids[..., 1] += torch.arange(rows)[:, None]
    ids[..., 2] += torch.arange(columns)[None, :]
    inputs = dict(hidden_states=draw(rows * columns, config.in_channels),
                  encoder_hidden_states=draw(shapes.text, config.joint_attention_dim),
                  pooled_projections=draw(config.pooled_projection_dim), timestep=torch.full((batch,), 0.5),
                  img_ids=ids.reshape(-1, 3), txt_ids=torch.zeros(shapes.text, 3))
    if config.guidance_embeds:
        inputs["guidance"] = torch.full((batch,), float(shapes.guidance))
    return inputs


def wan(shapes, draw, batch):
    config = shapes.config
    return dict(hidden_states=draw(config.in_channels, shapes.frames, shapes.height, shapes.width),
                timestep=torch.full((batch,), 500.0), encoder_hidden_states=draw(shapes.text, config.text_dim))


def qwen_image(shapes, draw, batch):
    config, rows, columns = shapes.config, shapes.height // 2, shapes.width // 2
    return dict(hidden_states=draw(rows * columns, config.in_channels),
                encoder_hidden_states=draw(shapes.text, config.joint_attention_dim),
                timestep=torch.full((batch,), 0.5), img_shapes=[[(1, rows, columns)]] * batch)


INPUTS = {
    "FluxTransformer2DModel": flux,
    "WanTransformer3DModel": wan,
    "QwenImageTransformer2DModel": qwen_image,
}
