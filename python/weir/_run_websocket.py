"""WebSocket of a run."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir._run_parts import Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSockets:
    """Connections and messages of a run over WebSocket, whose requests are messages with their replies.

    Attributes:
        upgraded: Connections whose upgrade succeeded.
        uncompressed: Of these, connections on which the service has declined the compression that was offered.
        rejected: Upgrades that were rejected, by status.
        failed: Connections that ended before a response to their upgrade, or with an invalid one.
        closes: Closes by the service, by code; 1006 without a close frame.
        violations: Connections that ended by a breach of the protocol.
        unmatched: Messages of the service that are not replies.
        messages_sent: Messages that users of a script have sent.
        messages_received: Messages that users of a script have received.
        pings: Pings of the service, which have had their pongs.
        pings_sent: Pings that were sent.
        ping_ms: Time from a ping to its pong, in milliseconds.
    """

    upgraded: int
    uncompressed: int
    rejected: Mapping[int, int]
    failed: int
    closes: Mapping[int, int]
    violations: int
    unmatched: int
    messages_sent: int
    messages_received: int
    pings: int
    pings_sent: int
    ping_ms: Percentiles
