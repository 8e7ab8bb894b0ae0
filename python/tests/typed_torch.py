"""What mypy sees of qkv with tensors: read by test_typing.py, and not run."""
import torch
from torch import Tensor
from typing_extensions import assert_type

import qkv

x: Tensor = torch.ones(1, 2, 5, 8)
assert_type(qkv.attention(x, x, x), Tensor)
assert_type(qkv.attention(x, x, x, lse=True), tuple[Tensor, Tensor])
assert_type(qkv.attention(x, x, x, stats=["entropy"]).lse, Tensor)
assert_type(qkv.merge([(x, x), (x, x)]), tuple[Tensor, Tensor])
o, lse, _ = qkv.Problem(x, x, x).forward()
assert_type((o, lse), tuple[Tensor, Tensor])
assert_type(qkv.Problem(x, x, x).backward(x, o=o, lse=lse).d_v, Tensor)
