"""Slack, in Socket Mode: https://docs.slack.dev/apis/events-api/using-socket-mode, or called over HTTP.

`wire`, `words` and `failures` are pure, `client` makes the calls and holds a connection, `sockets` keeps one open,
`posted` is where Slack calls instead; `adapter` is the medium. Payloads of Slack stay in here.
"""

from mediums.slack.adapter import SlackMedium
from mediums.slack.introducing import introduced

__all__ = ["SlackMedium", "introduced"]
