"""Muon for matrices, Adam for embeddings and vectors, on one flat gradient; all on the device, so a CUDA graph can
hold it.

Muon: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks" (Nesterov momentum, orthogonalised
by a Newton-Schulz iteration). Adam: Kingma and Ba 2014, arXiv:1412.6980.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


def orthogonalise(g: Tensor) -> Tensor:
    """[n, rows, columns] -> about the nearest orthogonal matrices, by five Newton-Schulz steps in bfloat16."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    out: Tensor = x.mT if tall else x
    return out


@dataclass
class _Group:
    """Matrices of one shape, and their span of the flat gradient."""

    shape: tuple[int, int]
    parameters: list[Tensor]
    start: int
    end: int
    momentum: Tensor


class Muon:
    """`collect` moves the gradients into `flat` (where processes may add theirs up), `step` reads them from there.

    rate: Muon's learning rate; adam_rate: Adam's. Both are multiplied by the 0-dim tensor given to `step`.
    """

    def __init__(
        self, model: nn.Module, *, rate: float, adam_rate: float, decay: float = 0.05, momentum: float = 0.95,
        compiled: bool = True, flat_dtype: torch.dtype = torch.float32,
    ):  # fmt: skip
        self.rate, self.adam_rate, self.decay, self.momentum = rate, adam_rate, decay, momentum
        named = list(model.named_parameters())
        matrices = [p for n, p in named if p.ndim == 2 and n != "embedding"]
        is_matrix = set(map(id, matrices))
        self.rest: list[Tensor] = [p for _, p in named if id(p) not in is_matrix]
        device = self.rest[0].device
        by_shape: dict[tuple[int, int], list[Tensor]] = {}
        for p in matrices:
            by_shape.setdefault((p.shape[0], p.shape[1]), []).append(p)
        self.groups: list[_Group] = []
        at = sum(p.numel() for p in self.rest)
        for shape, ps in by_shape.items():
            size = len(ps) * shape[0] * shape[1]
            self.groups.append(_Group(shape, ps, at, at + size, torch.zeros(len(ps), *shape, device=device)))
            at += size
        self.flat = torch.zeros(at, dtype=flat_dtype, device=device)
        self.mean = [torch.zeros_like(p) for p in self.rest]
        self.square = [torch.zeros_like(p) for p in self.rest]
        self.steps = torch.zeros((), device=device)
        self._order = [*self.rest, *(p for g in self.groups for p in g.parameters)]
        self._orthogonalise: Callable[[Tensor], Tensor] = (
            torch.compile(orthogonalise, dynamic=False) if compiled else orthogonalise
        )

    @torch.no_grad()
    def collect(self) -> None:
        """Gradients -> flat; the parameters' own are dropped."""
        self.flat.copy_(torch.cat([p.grad.reshape(-1) for p in self._order if p.grad is not None]))
        for p in self._order:
            p.grad = None

    @torch.no_grad()
    def step(self, factor: Tensor) -> None:
        self.steps += 1
        grads, at = [], 0
        for p in self.rest:
            grads.append(self.flat[at : at + p.numel()].view_as(p).float())
            at += p.numel()
        unbias1, unbias2 = 1 - torch.pow(0.9, self.steps), 1 - torch.pow(0.95, self.steps)
        torch._foreach_lerp_(self.mean, grads, 0.1)
        torch._foreach_mul_(self.square, 0.95)
        torch._foreach_addcmul_(self.square, grads, grads, 0.05)
        change = torch._foreach_sqrt(self.square)
        torch._foreach_add_(change, 1e-10)
        torch._foreach_reciprocal_(change)
        torch._foreach_mul_(change, self.mean)
        torch._foreach_mul_(change, -self.adam_rate * factor * unbias2.sqrt() / unbias1)
        torch._foreach_add_(self.rest, change)
        for g in self.groups:
            grad = self.flat[g.start : g.end].view(len(g.parameters), *g.shape).float()
            g.momentum.lerp_(grad, 1 - self.momentum)
            scale = -self.rate * max(1.0, g.shape[0] / g.shape[1]) ** 0.5
            update = self._orthogonalise(grad.lerp(g.momentum, self.momentum)).float() * (factor * scale)
            torch._foreach_mul_(g.parameters, 1 - factor * (self.rate * self.decay))
            torch._foreach_add_(g.parameters, list(update.unbind()))

    def state(self) -> dict[str, Any]:
        return {
            "momentum": [g.momentum for g in self.groups],
            "mean": self.mean,
            "square": self.square,
            "steps": self.steps,
        }

    def load(self, state: dict[str, Any]) -> None:
        pairs = [(g.momentum, m) for g, m in zip(self.groups, state["momentum"], strict=True)]
        pairs += [*zip(self.mean, state["mean"], strict=True), *zip(self.square, state["square"], strict=True)]
        for mine, theirs in [*pairs, (self.steps, state["steps"])]:
            mine.copy_(theirs)
