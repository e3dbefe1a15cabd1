"""The few functions that these models are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.copying.casts import Array

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    return np.asarray(x * (1 + _erf(x / math.sqrt(2))) / 2)


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


_ACTIVATIONS = {
    "gelu": _gelu,
    "gelu_fast": _gelu_tanh,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": _relu,
    "silu": _silu,
    "swish": _silu,
}


def activation(name: str) -> Callable[[Array], Array]:
    """The activation function of a name that Hugging Face uses."""
    if name not in _ACTIVATIONS:
        raise ConfigError.of(
            "checkpoint-unsupported", f"--verify logits does not know the activation {name}", where=name
        )
    return _ACTIVATIONS[name]


def rms_norm(x: Array, scale: Array, epsilon: float) -> Array:
    """RMS norm: each row divided by its root mean square."""
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale)


def layer_norm(x: Array, weight: Array, bias: Array, epsilon: float) -> Array:
    """Layer norm: each row less its mean, divided by its standard deviation."""
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias)


def turned(x: Array, base: float, rotary: int, *, pairs: bool = False) -> Array:
    """[heads, time, size], its first `rotary` numbers turned by their place: two halves, or pairs."""
    angle = np.outer(np.arange(x.shape[1]), 1.0 / base ** (np.arange(0, rotary, 2) / rotary))
    out: Array = np.array(x)
    first, second = (
        (slice(0, rotary, 2), slice(1, rotary, 2))
        if pairs
        else (slice(0, rotary // 2), slice(rotary // 2, rotary))
    )
    a, b = x[..., first], x[..., second]
    out[..., first] = a * np.cos(angle) - b * np.sin(angle)
    out[..., second] = b * np.cos(angle) + a * np.sin(angle)
    return out


def heads(x: Array, size: int) -> Array:
    """[time, heads * size] -> [heads, time, size]."""
    return np.asarray(x.reshape(len(x), -1, size).swapaxes(0, 1))


def attention(query: Array, key: Array, value: Array) -> Array:
    """Causal attention of [heads, time, size]; fewer key heads serve several query heads each."""
    share = len(query) // len(key)
    key, value = (np.repeat(t, share, axis=0) for t in (key, value))
    scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[2])
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.asarray((weights @ value).swapaxes(0, 1).reshape(query.shape[1], -1))
