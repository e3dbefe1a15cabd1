"""What one node's lines say of its network, and how nodes differ: pure functions of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_PLUGIN = re.compile(
    r"NET/OFI Initializing (aws-ofi-\S+ \S+)"
    r"|(?:Loaded net plugin|Initialized NET plugin) (.+?)(?: \(v\d+\))?\s*$"
)
_NETWORK = re.compile(r"Using network (.+?)\s*$|Assigned NET plugin (.+?) to comm")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([^\s,]+).*?\(found (\d+) nics?\)")
_ADAPTERS = re.compile(r"NET/IB ?: Using (.*)")
_ADAPTER = re.compile(r"\[\d+\]\S+:\d+/(?:IB|RoCE)")
_CHANNEL = re.compile(r"Channel \d+(?:/\d+)? ?: .*\bvia (?:(NET/[^/\s]+)(?:/\d+)?(\S*)|(P2P|SHM)\S*)")
_GPU_DIRECT = "GDRDMA"


@dataclass
class NodeNetwork:
    """One node, as far as its lines went."""

    plugin: str = ""
    network: str = ""
    provider: str = ""
    adapters: int = 0
    channels: Counter[str] = field(default_factory=Counter)
    """Of each transport: NET/AWS Libfabric, P2P, SHM."""
    gpu_direct: int = 0
    """Of the channels over the network those whose data goes from GPU to adapter without the processor."""
    proven: str = ""
    refused: str = ""
    """The first line that the facts' expressions match."""

    def read(self, line: str, proof: re.Pattern[str], refuse: re.Pattern[str]) -> None:
        """Take in one line."""
        if not self.refused and refuse.search(line):
            self.refused = line
        elif not self.proven and proof.search(line):
            self.proven = line
        if match := _PLUGIN.search(line):
            self.plugin = match[1] or self.plugin or match[2]
        if match := _NETWORK.search(line):
            self.network = match[1] or match[2]
        if match := _PROVIDER.search(line):
            self.provider, self.adapters = match[1], int(match[2])
        if match := _ADAPTERS.search(line):
            self.adapters = len(_ADAPTER.findall(match[1])) or self.adapters
        if match := _CHANNEL.search(line):
            self.channels[match[1] or match[3]] += 1
            self.gpu_direct += _GPU_DIRECT in (match[2] or "")

    @property
    def over_network(self) -> int:
        """The channels that leave the node."""
        return sum(count for name, count in self.channels.items() if name.startswith("NET/"))

    def document(self) -> dict[str, Any]:
        """As `fabric.json` has it."""
        state = "refused" if self.refused else "proven" if self.proven else "silent"
        return {
            "state": state,
            "line": self.refused or self.proven,
            "plugin": self.plugin,
            "network": self.network,
            "provider": self.provider,
            "adapters": self.adapters,
            "channels": dict(self.channels),
            "gpu_direct": self.gpu_direct,
        }


_COMPARED: Mapping[str, Callable[[NodeNetwork], str]] = {
    "adapters": lambda network: str(network.adapters or ""),
    "as provider": lambda network: network.provider,
    "as plugin": lambda network: network.plugin,
    "GPU-direct": lambda network: "some" if network.gpu_direct else "",
}


def differing(nodes: Mapping[str, NodeNetwork]) -> Iterator[str]:
    """Sentences about nodes that are not as most of them are."""
    for label, value_of in _COMPARED.items():
        values = {name: value_of(network) for name, network in nodes.items() if network.proven}
        most = Counter(values.values()).most_common(1)
        for name, value in values.items():
            if value != most[0][0]:
                yield f"{name} has {value or 'no'} {label}, most nodes {most[0][0] or 'no'}"


def summary(nodes: Mapping[str, NodeNetwork]) -> str:
    """One line for people: what most of them have."""
    silent = [name for name, network in nodes.items() if not (network.proven or network.refused)]
    first = next((network for network in nodes.values() if network.proven), None)
    if first is None:
        return f"{len(nodes)} nodes, none of which says which network it took"
    outward = sum(network.over_network for network in nodes.values())
    direct = sum(network.gpu_direct for network in nodes.values())
    parts = [
        f"{len(nodes) - len(silent)} of {len(nodes)} nodes over {first.provider or first.network}",
        first.plugin,
        f"{first.adapters} adapters each" if first.adapters else "",
        f"GPU-direct on {direct} of {outward} channels" if outward else "",
        f"nothing from {' '.join(silent[:4])}" if silent else "",
    ]
    return ", ".join(part for part in parts if part)
