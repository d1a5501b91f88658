"""Proofs by which the workers of a cluster recognize each other before they join."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence

from tpu_estimator_compat import environment

NAME = "tpu_estimator_compat"


class RefusedError(RuntimeError):
    """Raised for a process that is not a worker of this cluster; the message says why."""


def token() -> str:
    """A random nonce, so that a proof cannot be replayed."""
    return secrets.token_hex(16)


@dataclasses.dataclass(frozen=True)
class Credentials:
    """The values that all workers of a cluster share, and the proofs that are made of them."""

    cluster: str  # a hash of the workers' addresses
    version: str
    secret: str
    count: int

    @classmethod
    def of(cls, addresses: Sequence[str]) -> Credentials:
        cluster = hashlib.sha256(json.dumps(list(addresses)).encode()).hexdigest()
        return cls(cluster, environment.version(), environment.cluster_secret(), len(addresses))

    def hello(self, index: int, own: str) -> list[str]:
        """The words of a worker's first message; `own` is its token."""
        words = [NAME, self.version, self.cluster, str(index), own]
        return [*words, self.proof(*words)]

    def admitted(self, words: Sequence[str]) -> tuple[int, str]:
        """Index and token of the worker whose hello is `words`; raises RefusedError for others."""
        if len(words) != 6 or words[0] != NAME:
            raise RefusedError("not a worker")
        _, version, cluster, index, own, proof = words
        # Other versions may have another protocol, and build other graphs.
        if version != self.version:
            raise RefusedError(f"another version of {NAME}; the chief has {self.version}")
        if cluster != self.cluster:
            raise RefusedError("another cluster in TF_CONFIG")
        if not self.is_proof(proof, *words[:-1]):
            raise RefusedError(f"another {environment.SECRET_VARIABLE}")
        if not index.isdecimal() or not 0 < int(index) < self.count:
            raise RefusedError("no task of this cluster")
        return int(index), own

    def proof(self, *words: str) -> str:
        """A hash of `words` that only a process with the secret can make."""
        text = " ".join((self.version, self.cluster, *words))
        return hmac.new(self.secret.encode(), text.encode(), hashlib.sha256).hexdigest()

    def is_proof(self, proof: str, *words: str) -> bool:
        return hmac.compare_digest(proof.encode(), self.proof(*words).encode())
