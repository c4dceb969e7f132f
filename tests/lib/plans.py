# SPDX-License-Identifier: MIT
"""Plans of one rank, written out in full as the protocol and the store want them: every parameter of cores, of GPUs."""
CPU = dict(ranks=1, cfg=1, ulysses=1, ring=1, threads=1, batch=1, tile_q=64, tile_kv=64, overlap=0, chunks=1)
GPU = dict(CPU, stages=1, warps=4, attention="own", graph=0, residual="float32", exchange="packed", v_first=0, comm_ctas=0, windows=0, nccl_launch_order=0,
           nccl_p2p_channels=0, nccl_p2p_chunk_kib=0)
